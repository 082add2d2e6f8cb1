// Package catalog knows instance types: what they hold, what a node of them can
// give to pods, which labels it carries and what its offers cost.
//
// It owns the capacity and allocatable maths, the labels per type, the embedded
// table of types and prices with its date, and the catalogue file format. It does
// not choose.
package catalog
