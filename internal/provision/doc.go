// Package provision plans nodes for pending pods: it puts the rules (package
// scheduling) and the choice (package packing) together and writes the outcome
// down as a plan.Plan, with a reason for every pod that gets no node.
//
// It owns the way from classes and offers back to pods and names. It decides
// nothing of its own.
package provision
