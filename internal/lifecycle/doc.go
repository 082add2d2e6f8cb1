// Package lifecycle owns what is remembered of a node from the intent to its end, and
// the rules by which that changes: given a record, what is observed, and the time, which
// record comes next, what is to be done, and when to look again.
//
//	Intended -> Launching -> Launched -> Registered -> Initialized -> Draining -> Terminating -> Closed
//	    ^___________|            (each of these may go to Terminating when its time is up)
//
// A Record is one node that is wanted or there; its NodeClaim object is what people see
// of it. An Attempt is one call that launches nodes, stored before it is made: whoever
// finds it can tell what became of it. A Command removes nodes and brings replacements.
//
// The package stores nothing and calls nobody. What it returns may be applied twice, late,
// or not at all: each rule starts from the record and the observation alone.
package lifecycle
