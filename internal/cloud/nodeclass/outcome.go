package nodeclass

// Outcome is one class after a resolution.
type Outcome struct {
	Class    *Class // nil when its spec cannot be read
	Resolved *Resolved
	Status   Status
	// Kept are conditions that rest on an earlier answer, because there was none now.
	Kept []string
	// Throttled: a part was refused because there were too many requests.
	Throttled bool
}
