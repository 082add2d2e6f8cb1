// Package packing decides which nodes to launch for a set of pods, at the least
// cost. It knows nothing of Kubernetes: rules have become sets of allowed offers,
// resources have become integer vectors, and equal pods have become one Class
// with a count.
//
// It owns the fill of existing nodes, the search, the options of each launch, and
// the certified lower bound. It refuses to own feasibility rules: whoever builds a
// Problem has already turned them into bitsets and conflicts.
package packing
