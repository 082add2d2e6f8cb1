package judge

import (
	"cmp"
	"math/rand/v2"
	"slices"
	"strconv"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"

	"kerf.sh/kerf/internal/lifecycle"
)

const (
	// joinWithin is the time in which the nodes of a plan join, each at any moment of it.
	joinWithin = 20 * time.Second
	// lookEvery is how often the lifecycle function looks at what the scheduler does.
	lookEvery = 200 * time.Millisecond
	// between is how far apart the nodes open that are opened together: the scheduler is
	// trying pods already.
	between = 2 * time.Millisecond
)

// opening is a node on its way to its pods.
type opening struct {
	node    *corev1.Node
	pods    []string // what it is to take
	state   lifecycle.OpeningState
	since   time.Time
	joins   time.Time
	daemons func(*corev1.Node)
	done    bool
}

// open lets nodes join, and does what lifecycle.Opening says until none of them has
// anything to come. Its clock goes by what is to come next; how often is looked while the
// scheduler works goes by the bubble's.
func (c *Cluster) open(f *Free, nodes []*corev1.Node, by map[string][]string, r *rand.Rand) error {
	var list []*opening
	for _, n := range nodes {
		list = append(list, &opening{node: n, pods: by[n.Name], joins: epoch.Add(time.Duration(r.Int64N(int64(joinWithin))))})
	}
	slices.SortStableFunc(list, func(a, b *opening) int { return a.joins.Compare(b.joins) })
	return c.openAll(f, list)
}

func (c *Cluster) openAll(f *Free, list []*opening) error {
	for _, n := range list {
		if err := c.shut(f, n); err != nil {
			return err
		}
		if _, err := c.look(f, list, n.joins); err != nil {
			return err
		}
	}
	if len(list) == 0 {
		return f.Rest()
	}
	// What is held is let go when it has waited long enough; what does not come is given up.
	for now := list[len(list)-1].joins; ; now = now.Add(time.Second) {
		if open, err := c.look(f, list, now); err != nil || !open {
			return err
		}
	}
}

// shut lets a node join and cordons it, until its daemonset pods have come.
func (c *Cluster) shut(f *Free, n *opening) error {
	n.daemons = c.appear(f, n.node)
	if err := f.Rest(); err != nil {
		return err
	}
	closed := cordoned(n.node)
	f.set(closed)
	n.daemons(closed)
	n.state, n.since = lifecycle.NodeShut, n.joins
	return f.Rest()
}

// look does what there is to do at a time, until nothing is left or the scheduler can do
// no more. open is false when all nodes are done.
func (c *Cluster) look(f *Free, list []*opening, now time.Time) (open bool, err error) {
	for {
		o := c.observed(f, list)
		step := o.Open(now)
		c.act(f, list, step, now)
		open = slices.ContainsFunc(list, func(n *opening) bool { return !n.done })
		if len(step.Claims)+len(step.Open) == 0 {
			return open, f.Rest()
		}
		time.Sleep(lookEvery)
	}
}

func (c *Cluster) act(f *Free, list []*opening, step lifecycle.OpeningStep, now time.Time) {
	find := func(name string) *opening {
		return list[slices.IndexFunc(list, func(n *opening) bool { return n.node.Name == name })]
	}
	for n, pods := range step.Pods {
		find(n).pods = nil
		for _, p := range pods {
			find(n).pods = append(find(n).pods, p.Namespace+"/"+p.Name)
		}
	}
	for _, k := range step.Claims {
		f.nominate(k.Pod.Namespace+"/"+k.Pod.Name, k.Node)
	}
	for _, name := range step.Open {
		n := find(name)
		n.state, n.since = lifecycle.NodeOpen, now
		f.set(n.node.DeepCopy())
		n.daemons(n.node)
		time.Sleep(between)
	}
	for _, name := range step.Done {
		find(name).done = true
	}
}

// observed is what the lifecycle function would read.
func (c *Cluster) observed(f *Free, list []*opening) *lifecycle.Opening {
	o := &lifecycle.Opening{Labels: map[string]map[string]string{}}
	uids := map[string]string{}
	for i := range c.s.Pods {
		p := c.s.Pods[i]
		now, ok := f.pods.find(p.Namespace, p.Name).(*corev1.Pod)
		if !ok {
			continue
		}
		p.UID, p.NodeName, p.NominatedNode = string(now.UID), now.Spec.NodeName, now.Status.NominatedNodeName
		version, err := strconv.ParseUint(now.ResourceVersion, 10, 64)
		if err != nil {
			panic(err) // a version of our own making
		}
		uids[p.Ref()] = p.UID
		o.Pods = append(o.Pods, lifecycle.OpeningPod{Pod: &p, Version: version})
	}
	ours := map[string]bool{}
	for _, n := range list {
		if n.done {
			continue
		}
		ours[n.node.Name] = true
		node := lifecycle.OpeningNode{Name: n.node.Name, State: n.state, Since: n.since}
		if n.state != lifecycle.NodeComing {
			node.Labels = n.node.Labels
		}
		for _, ref := range n.pods {
			ns, pod, _ := strings.Cut(ref, "/")
			node.Pods = append(node.Pods, lifecycle.Pod{Namespace: ns, Name: pod, UID: cmp.Or(uids[ref], "gone")})
		}
		o.Nodes = append(o.Nodes, node)
	}
	for _, obj := range f.nodes.List() {
		if n := obj.(*corev1.Node); !ours[n.Name] {
			o.Labels[n.Name] = n.Labels
		}
	}
	return o
}
