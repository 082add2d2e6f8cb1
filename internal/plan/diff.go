package plan

// ChangeKind says what an overlay does to an object.
type ChangeKind string

// Kinds of changes.
const (
	Added     ChangeKind = "Added"
	Replaced  ChangeKind = "Replaced"
	Unchanged ChangeKind = "Unchanged" // replaced by one that says the same
	Removed   ChangeKind = "Removed"
	Going     ChangeKind = "Going" // a node: it is there until its pods have left
)

// Change is one object that an overlay (--what-if, --remove) changes.
type Change struct {
	Object string // nodepool/general, pod/shop/web-1
	Kind   ChangeKind
	// With are the objects that go with one that is removed, sorted.
	With []string
	Note string // what became of the pods of a workload; "" otherwise
}
