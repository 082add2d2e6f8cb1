// Package fleet makes and ends instances: it sends stored requests, reads their answers,
// finds instances by id, by attempt and by cluster, terminates and tags them. What to ask
// for, and what an answer means, is decided in launch.
package fleet
