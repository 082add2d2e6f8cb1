// Package api owns the words in which a cluster is asked for things and answers: what an
// object is called, what a change of it is, what an error means. It asks nothing itself and
// knows no client: package live does what is said here, and so does a simulated cluster.
package api
