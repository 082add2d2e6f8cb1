package judge

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"strings"
	"testing/synctest"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/tools/events"
	"k8s.io/klog/v2"
	"k8s.io/kubernetes/pkg/scheduler"
	"k8s.io/kubernetes/pkg/scheduler/framework"

	"kerf.sh/kerf/internal/catalog"
	"kerf.sh/kerf/internal/plan"
	"kerf.sh/kerf/internal/snapshot"
)

// Free is kube-scheduler as it runs in a cluster: with its default profile, its queue
// and its binding, and nobody to tell it where a pod should go. It lives in a bubble of
// testing/synctest, whose clock stands still while anything is computed, so that what
// comes of it does not depend on how busy the machine is.
type Free struct {
	*objects
	sched *scheduler.Scheduler
	stop  context.CancelFunc
	done  chan struct{}
}

// NewFree starts a scheduler that knows no object. Stop it after use.
func NewFree() (*Free, error) {
	f := &Free{objects: newObjects(), done: make(chan struct{})}
	f.client.AddReactor("*", "*", f.react)
	ctx, stop := context.WithCancel(context.Background())
	f.stop = stop
	var err error
	f.sched, err = scheduler.New(ctx, f.client, f.factory, nil, func(string) events.EventRecorderLogger { return quiet{} })
	if err != nil {
		stop()
		return nil, fmt.Errorf("start kube-scheduler: %w", err)
	}
	next := f.sched.NextPod
	f.sched.NextPod = func(l klog.Logger) (*framework.QueuedPodInfo, error) {
		p, err := next(l)
		time.Sleep(attempt)
		return p, err
	}
	go func() {
		defer close(f.done)
		f.sched.Run(ctx)
	}()
	return f, nil
}

// Stop ends the scheduler and waits for it.
func (f *Free) Stop() {
	f.stop()
	<-f.done
	time.Sleep(time.Minute) // what it runs beside itself looks once in a while whether it is to end
}

// patience is how long a scheduler may take to come to rest; it is for a mistake that
// would keep the tests waiting forever.
const patience = time.Hour

// attempt is how long the scheduler takes to try a pod: 500 a second, which is more than
// it does in most clusters. What happens between two attempts takes no time.
const attempt = 2 * time.Millisecond

// Rest waits until the scheduler has tried every pod that waits and has nothing left to
// do. Pods it cannot place are found by Waiting.
func (f *Free) Rest() error {
	var state string
	for deadline := time.Now().Add(patience); time.Now().Before(deadline); {
		state = ""
		synctest.Wait()
		_, summary := f.sched.SchedulingQueue.PendingPods()
		var active, backoff, unschedulable int
		if _, err := fmt.Sscanf(summary, "activeQ:%d; backoffQ:%d; unschedulablePods:%d", &active, &backoff, &unschedulable); err != nil {
			return fmt.Errorf("read the scheduler's queue from %q: %w", summary, err)
		}
		if active == 0 && backoff == 0 {
			waiting := len(f.Waiting())
			if unschedulable == waiting {
				return nil
			}
			state = fmt.Sprintf("%d pods wait; ", waiting)
		}
		state += summary
		time.Sleep(attempt)
	}
	return errors.New("wait for the scheduler: it does not come to rest: " + state)
}

// Waiting lists the pods without a node, by name; those with scheduling gates too.
func (f *Free) Waiting() []*corev1.Pod {
	var out []*corev1.Pod
	for _, o := range f.pods.List() {
		if p := o.(*corev1.Pod); p.Spec.NodeName == "" {
			out = append(out, p)
		}
	}
	slices.SortFunc(out, func(a, b *corev1.Pod) int { return strings.Compare(name(a), name(b)) })
	return out
}

// Steering is how Kerf makes the scheduler keep to the plan.
type Steering int

// The ways that were looked at.
const (
	// Unsteered lets pods go where they like.
	Unsteered Steering = iota
	// Early writes status.nominatedNodeName into the planned pods of a node at the moment
	// the node appears, with the taint of one that is not registered, and takes the taint
	// away later.
	Early
	// Nominated writes it just before the taint goes.
	Nominated
	// Cordoned does the same, but before the taint goes it cordons the node, until its
	// daemonset pods, which tolerate that, have come.
	Cordoned
	// Opening does as the lifecycle function does: lifecycle.Opening says which of the
	// cordoned nodes open, and which pods are nominated.
	Opening
)

func (s Steering) String() string {
	return []string{"not steered", "nominated early", "nominated", "nominated, cordoned", "opened"}[s]
}

// Outcome is what became of a plan with a scheduler that is free.
type Outcome struct {
	Planned int // pods with a place in the first plan
	// Stranded are those of them without a node once all nodes had joined.
	Stranded int
	// Elsewhere are those that a node got instead of the pods, or the like of them, that
	// the first plan has on it.
	Elsewhere int
	// Rounds is how many plans were made until no pod was left that a plan could place.
	Rounds int
	Left   int // pods that never got a node
	// Price is what all launched nodes cost, Planned price that of the first plan, Bound
	// the lower bound of the first plan.
	Price, FirstPrice, Bound snapshot.Price
	Launches                 int
}

// maxRounds is how often pods that were left are planned again.
const maxRounds = 5

// Settle plans a cluster, lets the nodes of the plan join one after the other in an
// order drawn from the seed, and lets the scheduler place the pods; pods that are left
// are planned again. planner is provision.Plan or stands for it. The cluster must have
// been made of the snapshot. It must run in a bubble of testing/synctest.
func (c *Cluster) Settle(planner func(*snapshot.Snapshot, *catalog.Catalog) *plan.Plan, how Steering, seed uint64) (Outcome, error) {
	f, err := NewFree()
	if err != nil {
		return Outcome{}, err
	}
	defer f.Stop()
	r := rand.New(rand.NewPCG(seed, 4))
	c.tell(f, r)
	if len(c.Nodes) == 0 {
		// No cluster is quite without nodes, and without any the scheduler does not even
		// look at pods. This one takes none and counts nowhere.
		f.set(&corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "system"}, Spec: corev1.NodeSpec{
			Taints: []corev1.Taint{{Key: "CriticalAddonsOnly", Effect: corev1.TaintEffectNoSchedule}},
		}})
	}
	s := *c.s
	s.Pods, s.Nodes = slices.Clone(c.s.Pods), slices.Clone(c.s.Nodes)
	// Kerf is asked when the scheduler has found no node.
	if err := f.Rest(); err != nil {
		return Outcome{}, err
	}
	c.observe(f, &s, nil)
	var out Outcome
	for out.Rounds < maxRounds {
		p := planner(&s, c.c)
		placed := seatsOf(p)
		if len(placed) == 0 {
			break
		}
		out.Rounds++
		if out.Rounds == 1 {
			out.Planned, out.FirstPrice, out.Bound = len(placed), p.Summary.LaunchPrice, p.Summary.LaunchLowerBound
		}
		out.Price += p.Summary.LaunchPrice
		out.Launches += len(p.Launches)
		nodes, err := c.Launched(p, nil)
		if err != nil {
			return out, err
		}
		// A later round's nodes have names of their own.
		renamed := map[string]string{}
		for _, n := range nodes {
			was := n.Name
			n.Name = fmt.Sprintf("r%d-%s", out.Rounds, was)
			n.Labels[corev1.LabelHostname] = n.Name
			renamed[was] = n.Name
		}
		if err := c.welcome(f, nodes, placed, renamed, how, r); err != nil {
			return out, err
		}
		c.observe(f, &s, nodes)
		if out.Rounds == 1 {
			for _, w := range f.Waiting() {
				if placed[name(w)] != "" {
					out.Stranded++
				}
			}
			out.Elsewhere = f.elsewhere(placed, renamed) - out.Stranded
		}
	}
	out.Left = len(f.Waiting())
	return out, nil
}

// elsewhere is how many pods are missing where they were placed. Those of one controller
// stand for each other.
func (f *Free) elsewhere(placed, renamed map[string]string) int {
	type seat struct{ kind, node string }
	missing := map[seat]int{}
	for ref, to := range placed {
		ns, pod, _ := strings.Cut(ref, "/")
		kind, p := ref, f.pods.find(ns, pod).(*corev1.Pod)
		if owner := metav1.GetControllerOf(p); owner != nil {
			kind = ns + "/" + owner.Kind + "/" + owner.Name
		}
		missing[seat{kind, cmp.Or(renamed[to], to)}]++
		missing[seat{kind, p.Spec.NodeName}]--
	}
	out := 0
	for _, n := range missing {
		out += max(n, 0)
	}
	return out
}

// seatsOf gives the node or launch of every pod that a plan places; units of buffers
// are room, and nobody's pods.
func seatsOf(p *plan.Plan) map[string]string {
	out := placesOf(p)
	maps.DeleteFunc(out, func(ref, _ string) bool { return strings.HasPrefix(ref, "buffer/") })
	return out
}

// placesOf gives the node or launch of everything that a plan places.
func placesOf(p *plan.Plan) map[string]string {
	out := map[string]string{}
	for i := range p.Launches {
		for _, ref := range p.Launches[i].Pods {
			out[ref] = p.Launches[i].Name
		}
	}
	for _, pl := range p.Placements {
		out[pl.Pod] = pl.Node
	}
	for _, d := range p.Displaced {
		out[d.Pod] = d.To
	}
	return out
}

// welcome lets nodes join in any order, each once the scheduler is done with the one
// before.
func (c *Cluster) welcome(f *Free, nodes []*corev1.Node, placed, renamed map[string]string, how Steering, r *rand.Rand) error {
	by := map[string][]string{}
	for ref, to := range placed {
		if n := renamed[to]; n != "" {
			by[n] = append(by[n], ref)
		} else if how != Unsteered {
			f.nominate(ref, to)
		}
	}
	r.Shuffle(len(nodes), func(i, k int) { nodes[i], nodes[k] = nodes[k], nodes[i] })
	if how == Opening {
		return c.open(f, nodes, by, r)
	}
	for _, n := range nodes {
		slices.Sort(by[n.Name])
		if err := c.admit(f, n, by[n.Name], how); err != nil {
			return err
		}
	}
	return f.Rest()
}

// admit lets one node join, with its pods steered to it. A nomination lasts until the
// scheduler next tries the pod and fails, so it comes when the node is about to open.
func (c *Cluster) admit(f *Free, n *corev1.Node, pods []string, how Steering) error {
	daemons := c.appear(f, n)
	if how == Early {
		for _, ref := range pods {
			f.nominate(ref, n.Name)
		}
	}
	if err := f.Rest(); err != nil {
		return err
	}
	if how == Cordoned {
		closed := cordoned(n)
		f.set(closed)
		daemons(closed)
		if err := f.Rest(); err != nil {
			return err
		}
	}
	if how == Nominated || how == Cordoned {
		for _, ref := range pods {
			f.nominate(ref, n.Name)
		}
	}
	f.set(n.DeepCopy())
	daemons(n)
	return f.Rest()
}

// appear lets a node join with the taint of one that is not registered. Daemonset pods that
// do not mind it are there from the start; the controller makes the others when it is
// gone, and the scheduler is looking at the node already: that is what is returned.
func (c *Cluster) appear(f *Free, n *corev1.Node) (daemons func(*corev1.Node)) {
	came := map[string]bool{}
	daemons = func(n *corev1.Node) {
		for _, d := range c.daemons(n) {
			if !came[name(d)] {
				came[name(d)] = true
				f.set(critical(d, n.Name))
			}
		}
	}
	joining := n.DeepCopy()
	joining.Spec.Taints = append(joining.Spec.Taints, corev1.Taint{Key: unregistered, Effect: corev1.TaintEffectNoExecute})
	f.set(joining)
	if k := c.attachLimit(n); k != nil {
		f.set(k)
	}
	daemons(joining)
	return daemons
}

func cordoned(n *corev1.Node) *corev1.Node {
	n = n.DeepCopy()
	n.Spec.Unschedulable = true
	n.Spec.Taints = append(n.Spec.Taints, corev1.Taint{Key: corev1.TaintNodeUnschedulable, Effect: corev1.TaintEffectNoSchedule})
	return n
}

// critical is a daemonset pod as its controller makes it: for one node, and, as usual
// for them, more important than others.
func critical(p *corev1.Pod, node string) *corev1.Pod {
	p = p.DeepCopy()
	priority := int32(2_000_001_000)
	p.Spec.Priority, p.Spec.PriorityClassName = &priority, "system-node-critical"
	p.Spec.Affinity = &corev1.Affinity{NodeAffinity: &corev1.NodeAffinity{RequiredDuringSchedulingIgnoredDuringExecution: &corev1.NodeSelector{
		NodeSelectorTerms: []corev1.NodeSelectorTerm{{MatchFields: []corev1.NodeSelectorRequirement{
			{Key: "metadata.name", Operator: corev1.NodeSelectorOpIn, Values: []string{node}},
		}}},
	}}}
	return p
}

func (f *Free) nominate(ref, node string) {
	ns, pod, _ := strings.Cut(ref, "/")
	p, ok := f.pods.find(ns, pod).(*corev1.Pod)
	if !ok || p.Spec.NodeName != "" {
		return
	}
	p = p.DeepCopy()
	p.Status.NominatedNodeName = node
	f.set(p)
}

// tell gives a scheduler the cluster, pods that wait included, which come in any order.
func (c *Cluster) tell(f *Free, r *rand.Rand) {
	for _, o := range c.Others {
		f.set(o.DeepCopyObject())
	}
	for _, k := range c.Claims {
		f.set(k.DeepCopy())
	}
	for _, n := range c.Nodes {
		f.set(n.DeepCopy())
		if k := c.attachLimit(n); k != nil && c.inFlight[n.Name] {
			f.set(k)
		}
	}
	var refs []string
	for ref := range c.Pods {
		refs = append(refs, ref)
	}
	slices.Sort(refs)
	r.Shuffle(len(refs), func(i, k int) { refs[i], refs[k] = refs[k], refs[i] })
	for _, ref := range refs {
		f.set(c.Pods[ref].DeepCopy())
	}
}

// observe writes into the snapshot what a later pass would read: new nodes, and where
// pods are now.
func (c *Cluster) observe(f *Free, s *snapshot.Snapshot, nodes []*corev1.Node) {
	for _, n := range nodes {
		node := snapshot.Node{
			Name: n.Name, ProviderID: "i-" + n.Name, Labels: n.Labels, Capacity: resources(n.Status.Capacity), Allocatable: resources(n.Status.Allocatable),
		}
		for _, taint := range n.Spec.Taints {
			node.Taints = append(node.Taints, snapshot.Taint{Key: taint.Key, Value: taint.Value, Effect: string(taint.Effect)})
		}
		s.Nodes = append(s.Nodes, node)
	}
	known := map[string]bool{}
	for i := range s.Pods {
		p := &s.Pods[i]
		known[p.Ref()] = true
		now, ok := f.pods.find(p.Namespace, p.Name).(*corev1.Pod)
		if !ok {
			continue
		}
		p.NodeName, p.NominatedNode = now.Spec.NodeName, ""
		if p.NodeName != "" && p.Phase != "Running" {
			p.Phase, p.Scheduled = "Running", nil
		}
	}
	// Daemonset pods of the new nodes.
	for _, o := range f.pods.List() {
		p := o.(*corev1.Pod)
		if known[name(p)] || p.Spec.NodeName == "" || len(p.OwnerReferences) == 0 {
			continue
		}
		for i := range s.DaemonSets {
			if d := &s.DaemonSets[i]; d.Name == p.OwnerReferences[0].Name && d.Namespace == p.Namespace {
				s.Pods = append(s.Pods, snapshot.Pod{
					Namespace: p.Namespace, Name: p.Name, Labels: p.Labels, Owner: &snapshot.Owner{APIVersion: "apps/v1", Kind: "DaemonSet", Name: d.Name},
					Spec: d.Template.Spec, NodeName: p.Spec.NodeName, Phase: "Running",
				})
			}
		}
	}
	s.Normalize()
}
