package sim

import (
	"cmp"
	"encoding/json"
	"fmt"
	"time"

	"kerf.sh/kerf/internal/handler"
	"kerf.sh/kerf/internal/snapshot"
)

const (
	finalizer = "karpenter.sh/termination"
	zoneKey   = "topology.kubernetes.io/zone"
	hostKey   = "kubernetes.io/hostname"
	mib       = int64(1) << 20
)

// settings are those of every function.
func (w *World) settings() snapshot.Settings {
	s := snapshot.DefaultSettings()
	s.StaticCapacity = true
	s.SpotToSpot = w.Profile.SpotToSpot
	// Worlds are small, and there are thousands.
	s.Work = cmp.Or(w.Profile.Work, 200_000)
	return s
}

// furnish puts into the cluster what is there at first.
func (w *World) furnish() {
	c := w.cluster
	classes := map[string]bool{}
	for _, p := range w.Profile.Pools {
		if !classes[p.Class] {
			classes[p.Class] = true
			c.classes.create(p.Class, class{NodeClass: snapshot.NodeClass{Name: p.Class, Spec: classSpec(p.Class)}}, nil)
		}
	}
	for _, p := range w.Profile.Pools {
		c.pools.create(p.Name, w.pool(p), nil)
	}
	for i := range w.Profile.Daemons {
		name := fmt.Sprintf("agent-%d", i)
		c.daemons.create("kube-system/"+name, snapshot.DaemonSet{Namespace: "kube-system", Name: name, Template: snapshot.PodTemplate{
			Labels: map[string]string{"app": name},
			Spec: snapshot.PodSpec{Requests: snapshot.Resources{CPU: 50, Memory: 64 * mib, Pods: 1}, SchedulerName: "default-scheduler",
				Tolerations: []snapshot.Toleration{{Key: startup.Key, Operator: "Exists"}}},
		}}, nil)
	}
	for i, l := range w.Profile.Loads {
		w.load(i, l)
	}
}

func classSpec(name string) []byte {
	tags := map[string]string{"discovery": clusterName}
	if name == "broken" {
		tags = map[string]string{"discovery": "nobody"}
	}
	raw, err := json.Marshal(map[string]any{
		"amiSelectorTerms":           []any{map[string]any{"alias": "al2023@latest"}},
		"role":                       "nodes",
		"securityGroupSelectorTerms": []any{map[string]any{"tags": map[string]string{"discovery": clusterName}}},
		"subnetSelectorTerms":        []any{map[string]any{"tags": tags}},
		"tags":                       map[string]string{"team": name},
	})
	if err != nil {
		panic(err)
	}
	return raw
}

func (w *World) pool(p Pool) snapshot.NodePool {
	out := snapshot.NodePool{
		Name: p.Name, Weight: p.Weight, ClassRef: snapshot.ClassRef{Group: "karpenter.k8s.aws", Kind: "EC2NodeClass", Name: p.Class},
		TemplateLabels: map[string]string{"pool": p.Name}, ExpireAfter: "720h", TerminationGracePeriod: p.GracePeriod,
		Disruption: p.Disruption.of(p.Replicas > 0),
		Requirements: []snapshot.SelectorRequirement{
			{Key: "karpenter.sh/capacity-type", Operator: "In", Values: p.CapacityType},
			{Key: "kubernetes.io/arch", Operator: "In", Values: p.Arch},
			{Key: "kubernetes.io/os", Operator: "In", Values: []string{"linux"}},
		},
	}
	if p.CPULimit > 0 || p.NodeLimit > 0 {
		out.Limits = map[string]int64{}
	}
	if p.CPULimit > 0 {
		out.Limits[snapshot.CPU] = p.CPULimit
	}
	if p.NodeLimit > 0 {
		out.Limits[snapshot.Nodes] = p.NodeLimit
	}
	if p.Replicas > 0 {
		n := p.Replicas
		out.Replicas = &n
		out.Weight = 0
	}
	if p.Rebalance {
		out.Annotations = map[string]string{handler.AnnotationRebalance: "true"}
	}
	if p.Taint != "" {
		out.Taints = []snapshot.Taint{{Key: p.Taint, Effect: "NoSchedule"}}
	}
	if w.Profile.StartupTaint {
		out.StartupTaints = []snapshot.Taint{startup}
	}
	return out
}

// load arranges for pods to come, and to go.
func (w *World) load(i int, l Load) {
	name := fmt.Sprintf("%s-%d", l.Kind, i)
	d := snapshot.Workload{
		Kind: "Deployment", Namespace: "default", Name: name, Selector: &snapshot.LabelSelector{MatchLabels: map[string]string{"app": name}},
		Template: snapshot.PodTemplate{Labels: map[string]string{"app": name}, Spec: l.spec(name)},
	}
	if l.Hold != "" {
		d.Template.Annotations = map[string]string{snapshot.DoNotDisrupt: l.Hold}
	}
	if w.Profile.Budgets && l.Kind == "plain" {
		w.cluster.budgets.create("default/"+name, snapshot.PodDisruptionBudget{
			Namespace: "default", Name: name, Selector: d.Selector, MaxUnavailable: "1", HasStatus: true,
		}, nil)
	}
	scale := func(n int) {
		it := w.cluster.loads.by["default/"+name]
		if it == nil {
			it, _ = w.cluster.loads.create("default/"+name, d, nil)
		}
		it.v.Replicas = int64(n)
		w.cluster.loads.touch(it)
		w.tracef("%s wants %d pods", name, n)
	}
	steps := 1
	if l.Over > 0 {
		steps = min(l.Pods, 12)
	}
	for k := range steps {
		n := l.Pods * (k + 1) / steps
		w.after(l.After+l.Over*time.Duration(k)/time.Duration(steps), func() { scale(n) })
	}
	if l.Gone > 0 {
		w.after(max(l.Gone, l.After+l.Over+time.Second), func() { scale(l.Left) })
	}
}

func (l Load) spec(app string) snapshot.PodSpec {
	s := snapshot.PodSpec{Requests: snapshot.Resources{CPU: l.CPU, Memory: l.Mem * mib, Pods: 1}, SchedulerName: "default-scheduler"}
	if l.Grace > 0 {
		s.TerminationGrace = &l.Grace
	}
	own := &snapshot.LabelSelector{MatchLabels: map[string]string{"app": app}}
	switch l.Kind {
	case "spread":
		s.Spread = []snapshot.TopologySpread{{MaxSkew: 1, TopologyKey: zoneKey, WhenUnsatisfiable: "DoNotSchedule", Selector: own}}
	case "anti":
		s.Anti = []snapshot.PodAffinityTerm{{TopologyKey: hostKey, Selector: own}}
	case "spot":
		s.NodeSelector = map[string]string{"karpenter.sh/capacity-type": "spot"}
	case "ondemand":
		s.NodeSelector = map[string]string{"karpenter.sh/capacity-type": "on-demand"}
	case "arm":
		s.NodeSelector = map[string]string{"kubernetes.io/arch": "arm64"}
	}
	return s
}
