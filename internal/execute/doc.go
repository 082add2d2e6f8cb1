// Package execute brings a plan about: it writes down what is wanted, asks EC2 for it,
// writes down what came of that, and tells Kubernetes. It decides nothing. Every effect is
// preceded by what is needed to repeat or resolve it, so that a pass may be cut off
// anywhere and another goes on from the records:
//
//	commit (records, limits) -> NodeClaims -> attempt -> CreateFleet -> outcome -> records
//
// What it needs of the outside it declares itself (ports.go); package app joins them.
package execute
