// Package worldtest is test support: it describes small clusters in a line
// language (World), draws such clusters so that rules meet and matter (Draw; each rule
// can be taken out, and what fails shrunk), judges plans with rules of its own (Check),
// and solves small cases by brute force.
//
// The judge (Check and its parts) shares no code with the packages that decide:
// it works from the objects of a Snapshot and the finished Plan alone, slowly and
// in the plainest way, so that a mistake has to be made twice to go unseen. Only
// the size and the labels of an instance type come from package catalog, whose
// figures have an oracle of their own.
//
// Nothing outside tests imports this package.
package worldtest
