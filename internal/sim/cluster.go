package sim

import (
	"slices"
	"strings"
	"time"

	"kerf.sh/kerf/internal/kube/api"
	"kerf.sh/kerf/internal/snapshot"
)

// cluster is the API server with what it stores, and its controllers.
type cluster struct {
	w        *World
	version  int64
	changes  map[string]int // by kind
	removers []objects

	pods    *kind[snapshot.Pod]
	nodes   *kind[snapshot.Node]
	pools   *kind[snapshot.NodePool]
	claims  *kind[snapshot.NodeClaim]
	classes *kind[class]
	daemons *kind[snapshot.DaemonSet]
	loads   *kind[snapshot.Workload]
	budgets *kind[snapshot.PodDisruptionBudget]
	events  map[string]api.Event

	// webhook: creating NodeClaims fails until then. leader is who leads Karpenter, and
	// when it last said so.
	webhook time.Time
	leader  api.LeaseState

	scheduler *scheduler
	dice      dice
	collect   bool // a collection is arranged
	kicked    bool
	podNames  int
	machines  map[string]*machine // by instance id
}

// class is an EC2NodeClass as it is stored: its spec and status are documents.
type class struct {
	snapshot.NodeClass
	status map[string]any
}

func newCluster(w *World) *cluster {
	c := &cluster{w: w, changes: map[string]int{}, events: map[string]api.Event{}, dice: newDice(w.Seed, "cluster"), machines: map[string]*machine{}}
	c.pods = newKind(c, "Pod", func(i *item[snapshot.Pod]) {
		i.v.UID, i.v.Created, i.v.Deleting = i.uid, i.created, i.deleting
	})
	c.nodes = newKind(c, "Node", func(i *item[snapshot.Node]) {
		i.v.UID, i.v.Created, i.v.Deleting = i.uid, i.created, i.deleting
	})
	c.pools = newKind(c, "NodePool", func(i *item[snapshot.NodePool]) {
		i.v.UID, i.v.Generation, i.v.Deleting = i.uid, i.generation, i.deleting
	})
	c.claims = newKind(c, "NodeClaim", func(i *item[snapshot.NodeClaim]) {
		i.v.UID, i.v.Created, i.v.Deleting = i.uid, i.created, i.deleting
	})
	c.classes = newKind(c, "EC2NodeClass", func(i *item[class]) {
		i.v.UID, i.v.Generation, i.v.Deleting = i.uid, i.generation, i.deleting
		i.v.NodeClass = readClass(&i.v)
	})
	c.daemons = newKind(c, "DaemonSet", func(i *item[snapshot.DaemonSet]) { i.v.UID = i.uid })
	c.loads = newKind(c, "Deployment", func(i *item[snapshot.Workload]) { i.v.UID = i.uid })
	c.budgets = newKind(c, "PodDisruptionBudget", func(*item[snapshot.PodDisruptionBudget]) {})
	c.scheduler = &scheduler{c: c, dice: newDice(w.Seed, "scheduler")}
	return c
}

// kindOf finds a kind by its name, nil if it is not served.
func (c *cluster) kindOf(name string) objects {
	for _, k := range c.removers {
		if k.kindName() == name {
			return k
		}
	}
	return nil
}

// changed arranges for those who watch.
func (c *cluster) changed(kind, key string) {
	if kind == "Node" && c.nodes.by[key] == nil {
		c.w.after(c.dice.between(5*time.Second, 40*time.Second), c.collectPods)
	}
	switch kind {
	case "Pod", "Node", "Deployment", "DaemonSet":
		c.kick()
	}
}

// kick lets the controllers and the scheduler have a look soon.
func (c *cluster) kick() {
	if c.kicked {
		return
	}
	c.kicked = true
	c.w.after(c.dice.between(50*time.Millisecond, 500*time.Millisecond), func() {
		c.kicked = false
		c.reconcile()
		c.scheduler.round()
	})
}

// orphaned arranges a collection of what belonged to an object.
func (c *cluster) orphaned(string) {
	if c.collect {
		return
	}
	c.collect = true
	c.w.after(c.dice.between(100*time.Millisecond, 3*time.Second), func() {
		c.collect = false
		there := map[string]bool{}
		for _, k := range c.removers {
			for _, m := range k.metas() {
				there[m.Version.UID] = true
			}
		}
		for _, k := range c.removers {
			k.dropOwned(func(uid string) bool { return there[uid] })
		}
	})
}

func (k *kind[T]) metas() []api.Meta {
	out := make([]api.Meta, 0, len(k.by))
	for _, it := range k.all() {
		out = append(out, it.apiMeta(k.name))
	}
	return out
}

func (i *item[T]) apiMeta(string) api.Meta {
	namespace, name, ok := strings.Cut(i.key, "/")
	if !ok {
		namespace, name = "", i.key
	}
	m := api.Meta{
		Namespace: namespace, Name: name, Version: api.Version{UID: i.uid, Resource: itoa(i.version)}, Generation: i.generation,
		Finalizers: slices.Clone(i.finalizers), Created: i.created, Deleting: i.deleting,
	}
	switch v := any(&i.v).(type) {
	case *snapshot.Pod:
		m.Labels, m.Annotations = v.Labels, v.Annotations
	case *snapshot.Node:
		m.Labels, m.Annotations = v.Labels, v.Annotations
	case *snapshot.NodeClaim:
		m.Labels, m.Annotations = v.Labels, v.Annotations
	case *snapshot.NodePool:
		m.Annotations = v.Annotations
	case *class:
		m.Annotations = v.Annotations
	}
	return m
}

// nodeOf finds the nodes of an instance.
func (c *cluster) nodesOf(instance string) []*item[snapshot.Node] {
	var out []*item[snapshot.Node]
	for _, n := range c.nodes.all() {
		if strings.HasSuffix(n.v.ProviderID, "/"+instance) {
			out = append(out, n)
		}
	}
	return out
}

// ready reports the Ready condition of a node.
func ready(n *snapshot.Node) bool {
	c := snapshot.FindCondition(n.Conditions, "Ready")
	return c != nil && c.Status == "True"
}
