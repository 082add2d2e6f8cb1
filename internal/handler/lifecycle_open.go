package handler

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"time"

	"kerf.sh/kerf/internal/execute"
	"kerf.sh/kerf/internal/kube/api"
	"kerf.sh/kerf/internal/lifecycle"
	"kerf.sh/kerf/internal/snapshot"
)

const (
	// openingAnnotation marks a Node that is cordoned until its pods are nominated, with the
	// time: a cordon of a person is not ours to lift.
	openingAnnotation = "kerf.sh/opening"
	// shutAtMost is how long a Node stays cordoned because its pods cannot be nominated.
	shutAtMost = 30 * time.Second
	// shutAtLeast is how long a Node stays cordoned for the pods of DaemonSets to be bound.
	shutAtLeast = 3 * time.Second
	// betweenLooks is how soon is looked again at pods that were told their node, up to
	// looksAtMost times: those that lost their nomination get another, and the next of a kind
	// is told once the one before is bound.
	betweenLooks = 250 * time.Millisecond
	looksAtMost  = 10
	// pollOpening is when nodes that are about to take their pods are looked at again.
	pollOpening = 2 * time.Second
	// hostname is the label that every Node has for itself.
	hostname = "kubernetes.io/hostname"
)

// cordonTaint is what the node lifecycle controller puts on Nodes that are cordoned.
var cordonTaint = snapshot.Taint{Key: "node.kubernetes.io/unschedulable", Effect: "NoSchedule"}

// opening cordons a Node that registers and was made for pods, in the same write that takes
// the unregistered taint off: the pods of DaemonSets come, others wait for their nomination
// (docs/adr/0005).
func opening(now time.Time) func(s *execute.Stepped, e lifecycle.PatchNode, change *api.NodeChange) {
	return func(s *execute.Stepped, e lifecycle.PatchNode, change *api.NodeChange) {
		i := slices.IndexFunc(s.Nodes, func(n lifecycle.Node) bool { return n.Name == e.Node })
		if i < 0 || e.Labels[lifecycle.LabelRegistered] != "true" || s.Nodes[i].Labels[lifecycle.LabelRegistered] == "true" {
			return
		}
		if len(s.Was.Nominated) == 0 || s.Nodes[i].Unschedulable {
			return
		}
		yes := true
		// Of two that look after the node at a time, the slower one would shut it again after
		// the other one has opened it.
		change.Unschedulable, change.Unless = &yes, lifecycle.LabelRegistered
		annotations := map[string]string{openingAnnotation: now.UTC().Format(time.RFC3339)}
		for k, v := range change.Annotations {
			annotations[k] = v
		}
		change.Annotations = annotations
	}
}

// shut reports whether a Node is cordoned by us.
func shut(n *snapshot.Node) bool { return n.Annotations[openingAnnotation] != "" }

// unshut makes of a Node that is cordoned by us one that takes pods, for plans: it will in a
// moment, and pods that are to come to it need no other node.
func unshut(n *snapshot.Node) {
	if !shut(n) {
		return
	}
	n.Unschedulable = false
	n.Taints = slices.DeleteFunc(slices.Clone(n.Taints), func(t snapshot.Taint) bool { return t.Key == cordonTaint.Key })
}

// openAll lets the nodes that are ready take the pods of their plan, and looks after them as
// long as there is something to tell their pods. It reports whether to come back soon.
func (h *Lifecycle) openAll(ctx context.Context, records, flying []lifecycle.Record, look *look, rep *LifecycleReport) (again bool) {
	for range looksAtMost {
		var told bool
		again, told = h.open(ctx, records, flying, look, rep)
		if !again || !told || h.Pause == nil || !h.enough(ctx) {
			return again
		}
		if h.Pause(ctx, betweenLooks) != nil {
			return again
		}
		look.now = h.Now()
	}
	return again
}

// open is one such look: it acts in the order and as lifecycle.Opening says. It brings flying
// up to date, and reports whether it has to be called again, and whether it opened a node or
// told a pod. What it cannot read or write leaves nodes shut, but not for long.
func (h *Lifecycle) open(ctx context.Context, records, flying []lifecycle.Record, look *look, rep *LifecycleReport) (again, told bool) {
	w := &opener{h: h, look: look, rep: rep, nodes: map[string]*snapshot.Node{}, of: map[string]*lifecycle.Record{}}
	current := map[string]*lifecycle.Record{}
	for i := range flying {
		current[flying[i].Claim] = &flying[i]
	}
	for i := range records {
		r := &records[i]
		if f := current[r.Claim]; f != nil {
			r = f
		}
		w.add(r)
	}
	if !w.some {
		return false, false
	}
	if err := w.read(ctx); err != nil {
		rep.Problems = append(rep.Problems, "read pods for nodes that open: "+err.Error())
		w.openLate(ctx, nil)
		return true, false
	}
	step := w.o.Open(look.now)
	if err := w.exchange(ctx, step.Pods); err != nil {
		// Somebody else has changed one of them; the next look starts from that.
		rep.Problems = append(rep.Problems, err.Error())
		w.openLate(ctx, nil)
		return true, false
	}
	failed := w.claim(ctx, step.Claims)
	w.openLate(ctx, failed)
	w.liftAll(ctx, slices.DeleteFunc(step.Open, func(name string) bool { return failed[name] }))
	return len(step.Done) < w.active, len(step.Claims)+len(step.Open) > 0
}

// opener is one step of opening.
type opener struct {
	h     *Lifecycle
	look  *look
	rep   *LifecycleReport
	o     lifecycle.Opening
	nodes map[string]*snapshot.Node    // that are shut, by name
	of    map[string]*lifecycle.Record // by name of the node of the opening
	some  bool                         // a node is shut, or open and not done
	// active counts those.
	active int
}

// add puts the node of a record to the opening, if it takes part in it.
func (w *opener) add(r *lifecycle.Record) {
	if !r.Phase.Live() || r.Doomed != nil || r.Phase.Before(lifecycle.Launching) || len(r.Nominated) == 0 && !w.forgotten(r) {
		return
	}
	now := w.look.now
	n := lifecycle.OpeningNode{Name: r.Claim, Since: r.Created, Pods: r.Nominated}
	switch r.Phase {
	case lifecycle.Initialized:
		if age(r.InitializedAt, now) >= lifecycle.ClaimMost {
			return
		}
		n.Name, n.State, n.Since, n.Labels = r.Node, lifecycle.NodeOpen, r.InitializedAt, w.labels(r)
	case lifecycle.Registered:
		seen := w.look.byInstance[r.Instance.ID]
		if len(seen) != 1 {
			return
		}
		node := &seen[0]
		n.Name, n.Labels, n.Since = node.Name, node.Labels, r.RegisteredAt
		ready := opens(r, node)
		switch c := snapshot.FindCondition(node.Conditions, "Ready"); {
		case !shut(node) && node.Unschedulable:
			return // a person keeps it shut
		case !ready || age(r.RegisteredAt, now) < shutAtLeast:
		case shut(node):
			n.State = lifecycle.NodeShut
			if c.Since.After(n.Since) {
				n.Since = c.Since
			}
		default:
			n.State = lifecycle.NodeOpen
			if c.Since.After(n.Since) {
				n.Since = c.Since
			}
		}
		if shut(node) {
			w.nodes[node.Name] = node
		}
	}
	if n.State != lifecycle.NodeComing {
		w.some = true
		w.active++
	}
	w.of[n.Name] = r
	w.o.Nodes = append(w.o.Nodes, n)
}

// forgotten reports whether a node was shut for pods that are not to come any more: they went,
// or run where they are until the node can stand in for theirs.
func (w *opener) forgotten(r *lifecycle.Record) bool {
	seen := w.look.byInstance[r.Instance.ID]
	return r.Phase == lifecycle.Registered && len(seen) == 1 && shut(&seen[0])
}

// labels are those of the Node of a record, as far as they are known without it.
func (w *opener) labels(r *lifecycle.Record) map[string]string {
	if seen := w.look.byInstance[r.Instance.ID]; len(seen) == 1 {
		return seen[0].Labels
	}
	out := r.NodeClaim().Labels
	out[hostname] = r.Node
	return out
}

// read reads the pods that wait, in the scheduler's order. Where they have to be spread over
// zones, all pods and Nodes are read: those that run count.
func (w *opener) read(ctx context.Context) error {
	pods, err := w.h.Cluster.PendingPods(ctx)
	if err != nil {
		return err
	}
	versions, err := w.h.Cluster.PendingVersions(ctx)
	if err != nil {
		return err
	}
	ours := map[string]bool{}
	for i := range w.o.Nodes {
		for _, p := range w.o.Nodes[i].Pods {
			ours[p.UID] = true
		}
	}
	spread := slices.ContainsFunc(pods, func(p snapshot.Pod) bool {
		return ours[p.UID] && slices.ContainsFunc(p.Spec.Spread, func(t snapshot.TopologySpread) bool {
			return t.WhenUnsatisfiable == "DoNotSchedule" && t.TopologyKey != hostname
		})
	})
	if spread {
		s, err := w.h.Cluster.Some(ctx, "Pod", "Node")
		if err != nil {
			return err
		}
		pods = s.Pods
		w.o.Labels = map[string]map[string]string{}
		for i := range s.Nodes {
			w.o.Labels[s.Nodes[i].Name] = s.Nodes[i].Labels
		}
	}
	for i := range pods {
		if spread || ours[pods[i].UID] {
			w.o.Pods = append(w.o.Pods, lifecycle.OpeningPod{Pod: &pods[i], Version: versions[pods[i].UID]})
		}
	}
	return nil
}

// exchangedTogether is how many records are saved at once: each is two or three of the
// actions of a transaction.
const exchangedTogether = 30

// exchange writes down which pods are now meant for which nodes, where pods that are alike
// have changed places. At no moment is a pod on no list: a plan that is made then would launch
// a node for it.
func (w *opener) exchange(ctx context.Context, pods map[string][]lifecycle.Pod) error {
	names := slices.DeleteFunc(sortedKeys(pods), func(name string) bool { return w.of[name] == nil })
	if len(names) > exchangedTogether { // too many for one write: first every list has both
		more := map[string][]lifecycle.Pod{}
		for _, name := range names {
			more[name] = pods[name]
			for _, p := range w.of[name].Nominated {
				if !slices.ContainsFunc(pods[name], func(o lifecycle.Pod) bool { return o.UID == p.UID }) {
					more[name] = append(slices.Clone(more[name]), p)
				}
			}
		}
		for part := range slices.Chunk(names, exchangedTogether) {
			if err := w.meant(ctx, part, more); err != nil {
				return err
			}
		}
	}
	for part := range slices.Chunk(names, exchangedTogether) {
		if err := w.meant(ctx, part, pods); err != nil {
			return err
		}
	}
	return nil
}

// meant saves which pods nodes are for, all or none.
func (w *opener) meant(ctx context.Context, names []string, pods map[string][]lifecycle.Pod) error {
	var changes []lifecycle.Change
	for _, name := range names {
		next := *w.of[name]
		next.Nominated = nil
		for _, p := range pods[name] {
			if p.At.IsZero() {
				p.Since, p.At = w.look.now, w.look.now
			}
			next.Nominated = append(next.Nominated, p)
		}
		changes = append(changes, lifecycle.Change{Was: *w.of[name], Next: next})
	}
	saved, err := w.h.Memory.Save(ctx, changes...)
	if err != nil {
		return fmt.Errorf("other pods for nodes %s: %w", strings.Join(names, ", "), err)
	}
	for i, name := range names {
		*w.of[name] = saved[i]
	}
	return nil
}

// claim tells kube-scheduler which node pods are meant for, and returns the nodes for which
// that failed.
func (w *opener) claim(ctx context.Context, claims []lifecycle.Claim) map[string]bool {
	failed := map[string]bool{}
	var mu sync.Mutex
	w.h.each(len(claims), func(i int) {
		c := claims[i]
		_, err := w.h.Cluster.Nominate(ctx, api.PodName{Namespace: c.Pod.Namespace, Name: c.Pod.Name, UID: c.Pod.UID}, c.Node)
		if err == nil {
			return
		}
		mu.Lock()
		defer mu.Unlock()
		failed[c.Node] = true
		w.rep.Problems = append(w.rep.Problems, fmt.Sprintf("nominate pod %s/%s to node %s: %v", c.Pod.Namespace, c.Pod.Name, c.Node, err))
	})
	slices.Sort(w.rep.Problems)
	return failed
}

// openLate opens nodes that are ready and have been shut for too long because something
// about their pods fails: pods may also come without, and a node that stays shut is worse.
func (w *opener) openLate(ctx context.Context, failed map[string]bool) {
	for i := range w.o.Nodes {
		n := &w.o.Nodes[i]
		if n.State == lifecycle.NodeShut && (failed == nil || failed[n.Name]) && age(n.Since, w.look.now) >= shutAtMost {
			w.lift(ctx, n.Name)
		}
	}
}

// liftAll takes our cordon off Nodes, as nearly at once as can be: as soon as one is open,
// kube-scheduler tries every pod that waits, and one whose Node is still shut loses its
// nomination and takes the room of others.
func (w *opener) liftAll(ctx context.Context, names []string) {
	names = slices.DeleteFunc(slices.Clone(names), func(name string) bool { return w.nodes[name] == nil })
	var nodes []api.NodeName
	for _, name := range names {
		nodes = append(nodes, api.NodeName{Name: name, UID: w.nodes[name].UID})
	}
	for i, err := range w.h.Cluster.ChangeNodes(ctx, nodes, uncordoned()) {
		w.lifted(names[i], err)
	}
}

// lift takes our cordon off a Node.
func (w *opener) lift(ctx context.Context, name string) {
	w.liftAll(ctx, []string{name})
}

// lifted is told what became of a cordon.
func (w *opener) lifted(name string, err error) {
	if err != nil {
		w.rep.Problems = append(w.rep.Problems, fmt.Sprintf("open node %s: %v", name, err))
		return
	}
	n := w.nodes[name]
	n.Annotations = maps.Clone(n.Annotations) // lists may share it
	delete(n.Annotations, openingAnnotation)  // what follows in this run sees it open
	n.Unschedulable = false
}

// opens reports whether pods may come: the Node is Ready and no taint is left that goes by
// itself.
func opens(r *lifecycle.Record, n *snapshot.Node) bool {
	if c := snapshot.FindCondition(n.Conditions, "Ready"); c == nil || c.Status != "True" {
		return false
	}
	for _, t := range n.Taints {
		if lifecycle.Ephemeral(t) {
			return false
		}
		if slices.ContainsFunc(r.Spec.StartupTaints, func(s snapshot.Taint) bool { return s.Key == t.Key && s.Effect == t.Effect }) {
			return false
		}
	}
	return true
}

// uncordoned is the end of our cordon. The taint goes in the same write as the field that
// it stands for: its controller takes it off a moment later, and in that moment every pod
// would be tried in vain and lose its nomination.
func uncordoned() api.NodeChange {
	no := false
	return api.NodeChange{Unschedulable: &no, DropTaints: []snapshot.Taint{cordonTaint}, DropAnnotations: []string{openingAnnotation}}
}
