package sim

import (
	"fmt"
	"maps"
	"slices"
	"time"

	"kerf.sh/kerf/internal/snapshot"
)

// reconcile is what controllers do when pods or nodes have changed.
func (c *cluster) reconcile() {
	c.cordons()
	c.deployments()
	c.daemonPods()
	c.taintEvictions()
}

// cordons gives nodes that are cordoned the taint that goes with it.
func (c *cluster) cordons() {
	for _, n := range c.nodes.all() {
		has := slices.ContainsFunc(n.v.Taints, func(t snapshot.Taint) bool { return t.Key == cordon.Key })
		switch {
		case n.v.Unschedulable && !has:
			n.v.Taints = append(slices.Clone(n.v.Taints), cordon)
			c.nodes.touch(n)
		case !n.v.Unschedulable && has:
			c.dropTaint(n, cordon.Key)
		}
	}
}

var cordon = snapshot.Taint{Key: "node.kubernetes.io/unschedulable", Effect: "NoSchedule"}

// deployments gives every Deployment its pods, no more and no less.
func (c *cluster) deployments() {
	have := map[string][]*item[snapshot.Pod]{}
	for _, p := range c.pods.all() {
		if p.v.Owner != nil && p.v.Owner.Kind == "ReplicaSet" && p.deleting.IsZero() && !p.v.Terminal() {
			have[p.v.Owner.Name] = append(have[p.v.Owner.Name], p)
		}
	}
	for _, d := range c.loads.all() {
		pods := have[d.v.Name]
		for n := len(pods); n < int(d.v.Replicas); n++ {
			c.makePod(&d.v)
		}
		if more := len(pods) - int(d.v.Replicas); more > 0 {
			// Pods without a node go first, then the youngest.
			slices.SortStableFunc(pods, func(a, b *item[snapshot.Pod]) int {
				if x, y := a.v.NodeName == "", b.v.NodeName == ""; x != y {
					if x {
						return -1
					}
					return 1
				}
				return b.created.Compare(a.created)
			})
			for _, p := range pods[:more] {
				c.deletePod(p)
			}
		}
	}
	for _, name := range slices.Sorted(maps.Keys(have)) {
		if c.loads.by["default/"+name] == nil {
			for _, p := range have[name] {
				c.deletePod(p)
			}
		}
	}
}

func (c *cluster) makePod(d *snapshot.Workload) {
	c.podNames++
	name := fmt.Sprintf("%s-%04d", d.Name, c.podNames)
	c.w.stats.PodsMade++
	c.pods.create(d.Namespace+"/"+name, snapshot.Pod{
		Namespace: d.Namespace, Name: name, Labels: d.Template.Labels, Annotations: d.Template.Annotations, Spec: d.Template.Spec, Phase: "Pending",
		Owner: &snapshot.Owner{APIVersion: "apps/v1", Kind: "ReplicaSet", Name: d.Name, UID: d.UID},
	}, nil)
}

// daemonTolerations are what the DaemonSet controller gives its pods.
var daemonTolerations = []snapshot.Toleration{
	{Key: "node.kubernetes.io/not-ready", Operator: "Exists", Effect: "NoExecute"},
	{Key: "node.kubernetes.io/unreachable", Operator: "Exists", Effect: "NoExecute"},
	{Key: "node.kubernetes.io/disk-pressure", Operator: "Exists", Effect: "NoSchedule"},
	{Key: "node.kubernetes.io/memory-pressure", Operator: "Exists", Effect: "NoSchedule"},
	{Key: "node.kubernetes.io/pid-pressure", Operator: "Exists", Effect: "NoSchedule"},
	{Key: "node.kubernetes.io/unschedulable", Operator: "Exists", Effect: "NoSchedule"},
}

// daemonPods gives every node its pods of DaemonSets; the scheduler binds them.
func (c *cluster) daemonPods() {
	have := map[string]bool{}
	for _, p := range c.pods.all() {
		if p.v.Owner != nil && p.v.Owner.Kind == "DaemonSet" {
			target := p.v.Spec.Required[0].Fields[0].Values[0]
			have[p.v.Owner.Name+"/"+target] = true
			if n := c.nodes.by[target]; n == nil && p.deleting.IsZero() {
				c.deletePod(p)
			}
		}
	}
	for _, d := range c.daemons.all() {
		for _, n := range c.nodes.all() {
			spec := d.v.Template.Spec
			spec.Tolerations = slices.Concat(spec.Tolerations, daemonTolerations)
			if have[d.v.Name+"/"+n.key] || !n.deleting.IsZero() || !selects(&spec, &n.v) || untolerated(n.v.Taints, spec.Tolerations) {
				continue
			}
			spec.Required = []snapshot.NodeSelectorTerm{{Fields: []snapshot.SelectorRequirement{{Key: "metadata.name", Operator: "In", Values: []string{n.key}}}}}
			c.podNames++
			name := fmt.Sprintf("%s-%04d", d.v.Name, c.podNames)
			c.pods.create(d.v.Namespace+"/"+name, snapshot.Pod{
				Namespace: d.v.Namespace, Name: name, Labels: d.v.Template.Labels, Spec: spec, Phase: "Pending",
				Owner: &snapshot.Owner{APIVersion: "apps/v1", Kind: "DaemonSet", Name: d.v.Name, UID: d.uid},
			}, nil)
		}
	}
}

// isDaemon reports whether a pod is one of a DaemonSet.
func isDaemon(p *snapshot.Pod) bool { return p.Owner != nil && p.Owner.Kind == "DaemonSet" }

// deletePod lets a pod go: one that runs takes its time.
func (c *cluster) deletePod(p *item[snapshot.Pod]) {
	if !p.deleting.IsZero() {
		return
	}
	if p.v.NodeName == "" {
		c.pods.remove(p)
		return
	}
	p.deleting = c.w.now().Truncate(time.Second)
	c.pods.touch(p)
	key, uid := p.key, p.uid
	c.w.after(c.dice.between(time.Second, 20*time.Second), func() {
		if p := c.pods.by[key]; p != nil && p.uid == uid && c.kubeletLives(p.v.NodeName) {
			c.pods.remove(p)
		}
	})
}

// runPod is what a kubelet does with a pod that it was given.
func (c *cluster) runPod(key, uid string) {
	p := c.pods.by[key]
	if p == nil || p.uid != uid || !p.deleting.IsZero() || !c.kubeletLives(p.v.NodeName) {
		return
	}
	p.v.Phase = "Running"
	p.v.Started = c.w.now().Truncate(time.Second)
	p.v.Ready = &snapshot.Condition{Type: "Ready", Status: "True", Since: p.v.Started}
	c.pods.touch(p)
}

// taintEvictions deletes pods from nodes whose NoExecute taints they do not tolerate.
// Every pod tolerates for five minutes that its node is not ready.
func (c *cluster) taintEvictions() {
	bad := map[string][]snapshot.Taint{}
	for _, n := range c.nodes.all() {
		for _, t := range n.v.Taints {
			if t.Effect == "NoExecute" && t.Key != "node.kubernetes.io/not-ready" && t.Key != "node.kubernetes.io/unreachable" {
				bad[n.key] = append(bad[n.key], t)
			}
		}
	}
	if len(bad) == 0 {
		return
	}
	for _, p := range c.pods.all() {
		if ts := bad[p.v.NodeName]; len(ts) > 0 && p.deleting.IsZero() && untolerated(ts, p.v.Spec.Tolerations) {
			c.w.tracef("%s is evicted from %s by its taints", p.key, p.v.NodeName)
			c.deletePod(p)
		}
	}
}

// podsOf are the pods on a node.
func (c *cluster) podsOf(node string) []*item[snapshot.Pod] {
	var out []*item[snapshot.Pod]
	for _, p := range c.pods.all() {
		if p.v.NodeName == node {
			out = append(out, p)
		}
	}
	return out
}

// collectPods removes pods of nodes that are not there any more, as the pod collector does.
func (c *cluster) collectPods() {
	for _, p := range c.pods.all() {
		if p.v.NodeName != "" && c.nodes.by[p.v.NodeName] == nil {
			c.w.tracef("pod %s is collected: its node %s is gone", p.key, p.v.NodeName)
			c.pods.remove(p)
		}
	}
}

// setReady changes the Ready condition of a node, with the taints that follow from it.
func (c *cluster) setReady(n *item[snapshot.Node], status, reason string) {
	v := n.v
	v.Conditions = slices.Clone(v.Conditions)
	cond := snapshot.Condition{Type: "Ready", Status: status, Reason: reason, Since: c.w.now().Truncate(time.Second)}
	if i := slices.IndexFunc(v.Conditions, func(o snapshot.Condition) bool { return o.Type == "Ready" }); i >= 0 {
		if v.Conditions[i].Status == status {
			return
		}
		v.Conditions[i] = cond
	} else {
		v.Conditions = append(v.Conditions, cond)
	}
	v.Taints = slices.DeleteFunc(slices.Clone(v.Taints), func(t snapshot.Taint) bool {
		return t.Key == "node.kubernetes.io/not-ready" || t.Key == "node.kubernetes.io/unreachable"
	})
	key := map[string]string{"False": "node.kubernetes.io/not-ready", "Unknown": "node.kubernetes.io/unreachable"}[status]
	if key != "" {
		v.Taints = append(v.Taints, snapshot.Taint{Key: key, Effect: "NoSchedule"}, snapshot.Taint{Key: key, Effect: "NoExecute"})
		name, uid := n.key, n.uid
		c.w.after(5*time.Minute, func() { c.evictFrom(name, uid, key) })
	}
	n.v = v
	c.nodes.touch(n)
	c.w.tracef("node %s is Ready=%s", n.key, status)
}

// evictFrom lets the pods of a node go that was not ready for too long.
func (c *cluster) evictFrom(name, uid, taint string) {
	n := c.nodes.by[name]
	if n == nil || n.uid != uid || !slices.ContainsFunc(n.v.Taints, func(t snapshot.Taint) bool { return t.Key == taint }) {
		return
	}
	if r := snapshot.FindCondition(n.v.Conditions, "Ready"); r == nil || c.w.now().Sub(r.Since) < 5*time.Minute-time.Second {
		return
	}
	for _, p := range c.podsOf(name) {
		if !isDaemon(&p.v) {
			c.deletePod(p)
		}
	}
}
