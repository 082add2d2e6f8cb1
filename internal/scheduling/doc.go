// Package scheduling turns a snapshot into a packing problem: it applies the
// rules of Kubernetes and of NodePools once, and hands on sets of allowed offers,
// integer vectors and conflicts. Afterwards it says in numbers why a pod that got
// no node got none.
//
//	Snapshot -> New -> World -> Problem() -> packing.Solve
//	                     |                        |
//	                     +---- Explain() <--------+
//
// It owns: which pods are planned, equal pods as classes, NodePools as templates,
// existing nodes as free capacity, and whether a pod may run there. It refuses to
// own the choice: which offer, how many nodes and which pod where is package
// packing's.
//
// A pod's rules (where it may run) are kept apart from its requests (how much it
// needs): fifty thousand pods that differ only in size are checked against
// templates and nodes once.
package scheduling
