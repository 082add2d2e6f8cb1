package lifecycle

import (
	"cmp"
	"slices"
	"time"

	"kerf.sh/kerf/internal/snapshot"
)

const (
	// TogetherMost is how long a node that is ready waits for others which have to open with
	// it. Nodes that were launched together are seldom further apart.
	TogetherMost = 30 * time.Second
	// ClaimMost is how long pods are held to a node after it has opened.
	ClaimMost = time.Minute
)

// OpeningState is how far a node is that will take the pods of its plan.
type OpeningState int

const (
	// NodeComing: it is launched, or has joined and is not ready.
	NodeComing OpeningState = iota
	// NodeShut: it is ready but for the cordon that Kerf put on it, and the pods of its
	// daemonsets are bound.
	NodeShut
	// NodeOpen: pods may come.
	NodeOpen
)

// OpeningNode is a node that a plan wants, until its pods are there.
type OpeningNode struct {
	// Name is that of the Node, or of its claim while there is no Node.
	Name string
	// Labels are those of the Node; nil while there is none.
	Labels map[string]string
	State  OpeningState
	// Since is when the node came into the state.
	Since time.Time
	// Pods are those that it was made for (Record.Nominated). One that was bound stays
	// until Opening has had the chance to see where.
	Pods []Pod
}

// OpeningPod is a pod as it was read.
type OpeningPod struct {
	*snapshot.Pod
	// Version is metadata.resourceVersion as a number. kube-scheduler writes into a pod
	// whenever it has found no node for it, so pods that wait, by their version, stand in
	// the order in which it will try them again.
	Version uint64
}

// Opening is what is known when nodes are about to take their pods.
type Opening struct {
	// Nodes that plans want and that are not done.
	Nodes []OpeningNode
	// Labels of the other Nodes, by name.
	Labels map[string]map[string]string
	// Pods are those of Nodes, and those that are counted by a topology spread of one of
	// them.
	Pods []OpeningPod
}

// Claim is a pod to be nominated to a node (status.nominatedNodeName).
type Claim struct {
	Pod  Pod
	Node string
}

// OpeningStep is what to do now: first every claim, then every node of Open, in this order
// and as fast as can be. The next step starts from what is then read; doing one twice, or
// a part of it, does no harm.
type OpeningStep struct {
	// Claims are written before any node is opened.
	Claims []Claim
	// Open are nodes whose cordon is to be lifted.
	Open []string
	// Pods are those of the nodes that get other pods than they had: pods that are alike
	// have changed places. To be saved before the claims are written.
	Pods map[string][]Pod
	// Held are nodes that are ready and wait for others, with one of those.
	Held map[string]string
	// Done are nodes that are open and need no further step.
	Done []string
}

// Open decides which nodes take their pods now, and which pods are told so.
//
// kube-scheduler tries a nominated node first, and keeps its room for the pod against
// others, for one attempt. So a nomination has to be written shortly before the attempt
// that succeeds. Three things of the scheduler decide the rest:
//
//   - It tries waiting pods in the order in which it last tried them (OpeningPod.Version).
//   - A pod with a spread over zones is refused while pods are missing in another zone; it
//     loses the nomination, and others take its room. So nodes of such pods open together,
//     and pods that are alike change places so that zones take turns in the scheduler's
//     order.
//   - When it looks at a node, pods nominated to that node count as if they ran there, for
//     spread too. Two of a kind on one node refuse each other when the spread is tight. So
//     one is claimed, and the next when that is bound.
//
// Pods whose attempt failed are claimed again at the next step, while there is room for
// their kind. Rules that are not about spread are not looked at: the plan keeps them.
func (o *Opening) Open(now time.Time) OpeningStep {
	w := newOpeningWorld(o)
	step := OpeningStep{Pods: map[string][]Pod{}, Held: map[string]string{}}
	opening := w.ready(now, &step)
	step.Claims = w.claims(opening)
	waiting := w.exchange(&step)
	step.Open = w.inOrder(opening, step.Claims)
	for i := range o.Nodes {
		n := &o.Nodes[i]
		if n.State == NodeOpen && (waiting[i] == 0 || now.Sub(n.Since) >= ClaimMost) {
			step.Done = append(step.Done, n.Name)
		}
	}
	slices.Sort(step.Done)
	return step
}

// ready are the nodes that open now, by index: those that are shut and need no others, and
// those whose others are ready too, or were waited for long enough.
func (w *openingWorld) ready(now time.Time, step *OpeningStep) map[int]bool {
	out := map[int]bool{}
	coming, since := map[int]int{}, map[int]time.Time{} // by what ties nodes
	nodes := w.o.Nodes
	for i := range nodes {
		k := w.tie.find(i)
		switch n := &nodes[i]; {
		case n.State == NodeComing && w.waiting[i] > 0:
			if was, ok := coming[k]; !ok || n.Name < nodes[was].Name {
				coming[k] = i
			}
		case n.State == NodeShut:
			if was, ok := since[k]; !ok || n.Since.Before(was) {
				since[k] = n.Since
			}
		}
	}
	for i := range nodes {
		if nodes[i].State != NodeShut {
			continue
		}
		k := w.tie.find(i)
		other, some := coming[k]
		if some && now.Sub(since[k]) < TogetherMost {
			step.Held[nodes[i].Name] = nodes[other].Name
			continue
		}
		out[i] = true
	}
	return out
}

// inOrder sorts the nodes that open by the pod that the scheduler will try first.
func (w *openingWorld) inOrder(opening map[int]bool, claims []Claim) []string {
	first := map[string]int{}
	for i := len(claims) - 1; i >= 0; i-- {
		first[claims[i].Node] = i
	}
	var out []string
	for i := range opening {
		n := w.o.Nodes[i].Name
		if _, ok := first[n]; !ok {
			first[n] = len(claims)
		}
		out = append(out, n)
	}
	slices.SortFunc(out, func(a, b string) int { return cmp.Or(cmp.Compare(first[a], first[b]), cmp.Compare(a, b)) })
	return out
}

// ties joins indices to sets.
type ties []int

func newTies(n int) ties {
	t := make(ties, n)
	for i := range t {
		t[i] = i
	}
	return t
}

func (t ties) find(i int) int {
	for t[i] != i {
		t[i] = t[t[i]]
		i = t[i]
	}
	return i
}

// join keeps the lower index of the two sets, whatever the order.
func (t ties) join(a, b int) {
	a, b = t.find(a), t.find(b)
	t[max(a, b)] = min(a, b)
}
