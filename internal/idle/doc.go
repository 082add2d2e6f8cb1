// Package idle says what it costs that the functions look after a cluster in which nothing
// happens: how often they run and what they ask, counted in the deterministic world
// (measured.json, written by internal/sim), times list prices. docs/cost.md is made of it.
package idle
