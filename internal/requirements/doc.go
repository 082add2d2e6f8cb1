// Package requirements is the label algebra: what a pod, a NodePool or an
// instance type says about one label (a Requirement), about many (a Set), and
// whether two of them can be true of one node.
//
// A Requirement is the set of what it allows: label values, and possibly the
// absence of the label. So In [a] met with In [b] (nothing left) stays apart from
// DoesNotExist (absence left), which Karpenter's algebra makes equal, and two
// Sets are compatible exactly when a set of labels exists that satisfies both.
//
// Bounds (Gt, Lt, Gte, Lte) allow the values that are whole numbers in range: one
// or more decimal digits that fit an int64. No label value can carry a sign, so a
// range below zero is empty.
//
// The package knows no taints, no offerings and no prices, and it validates but
// does not report: errors and conflicts are values for the caller's verdicts.
package requirements
