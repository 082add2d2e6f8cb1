package provision_test

import (
	"fmt"
	"slices"

	"pgregory.net/rapid"

	"kerf.sh/kerf/internal/catalog"
	"kerf.sh/kerf/internal/plan"
	"kerf.sh/kerf/internal/provision"
	"kerf.sh/kerf/internal/snapshot"
	"kerf.sh/kerf/internal/worldtest"
)

// planner is provision.Plan, or something that claims to be as good.
type planner func(*snapshot.Snapshot, *catalog.Catalog) *plan.Plan

func real(s *snapshot.Snapshot, c *catalog.Catalog) *plan.Plan {
	return provision.Plan(s, c, provision.Options{})
}

// world is a drawn cluster.
type world struct {
	s *snapshot.Snapshot
	c *catalog.Catalog
}

// kind says how large and how varied drawn worlds are.
type kind struct {
	pods, types, nodes, daemons int
	// oneMarket leaves weights and limits out.
	oneMarket bool
	// plain leaves custom labels and host ports out.
	plain bool
	// sameDaemons leaves out daemonsets that depend on a custom label: which value a
	// node gets that no pod asks a value of is nobody's promise.
	sameDaemons bool
}

const mib = int64(1) << 20

// worlds draws clusters of a kind.
func worlds(k kind) *rapid.Generator[world] {
	return rapid.Custom(func(t *rapid.T) world {
		d := drawer{t, k}
		w := world{c: d.catalog(), s: &snapshot.Snapshot{
			Cluster: "test", Region: "z", Now: worldtest.Clock, Settings: snapshot.DefaultSettings(),
		}}
		w.s.NodeClasses = []snapshot.NodeClass{{Name: "default", AMIFamily: "AL2023", AMIAlias: "al2023@latest"}}
		for i := range d.upTo("pools", 1, 3) {
			w.s.NodePools = append(w.s.NodePools, d.pool(fmt.Sprintf("pool-%d", i), w.c))
		}
		for i := range d.upTo("daemonsets", 0, k.daemons) {
			w.s.DaemonSets = append(w.s.DaemonSets, d.daemonSet(fmt.Sprintf("daemon-%d", i)))
		}
		for i := range d.upTo("nodes", 0, k.nodes) {
			d.node(w.s, fmt.Sprintf("node-%d", i))
		}
		for i := range d.upTo("pods", 1, k.pods) {
			w.s.Pods = append(w.s.Pods, d.pod(fmt.Sprintf("pod-%02d", i)))
		}
		if !k.oneMarket {
			d.oddities(&w)
		}
		w.s.Normalize()
		return w
	})
}

type drawer struct {
	t *rapid.T
	k kind
}

func (d drawer) upTo(label string, lo, hi int) int { return rapid.IntRange(lo, hi).Draw(d.t, label) }

func (d drawer) one(label string, of ...string) string { return rapid.SampledFrom(of).Draw(d.t, label) }

// chance is true n times in ten.
func (d drawer) chance(label string, n int) bool { return d.upTo(label, 1, 10) <= n }

func (d drawer) some(label string, of ...string) []string {
	var out []string
	for _, s := range of {
		if d.chance(label, 5) {
			out = append(out, s)
		}
	}
	if len(out) == 0 {
		out = append(out, d.one(label, of...))
	}
	return out
}

// catalog draws types of one to eight cores, a price that is roughly fair, and
// zones that not every type is in.
func (d drawer) catalog() *catalog.Catalog {
	c := &catalog.Catalog{Region: "z", Date: "2026-03-04", Source: "drawn", Zones: worldtest.Zones}
	for i := range d.upTo("types", 1, d.k.types) {
		cores := int64(d.upTo("cores", 1, 8))
		gib := cores * int64(d.upTo("GiB a core", 1, 8))
		fair := cores*20_000 + gib*3_000
		t := catalog.InstanceType{
			Name: fmt.Sprintf("m%d.%s", 5+i%2, []string{"large", "xlarge", "2xlarge", "4xlarge"}[i/2%4]), Arch: "amd64",
			VCPU: cores, MemoryMiB: gib * 1024, ENI: catalog.ENI{Interfaces: int64(d.upTo("ENIs", 2, 4)), IPv4PerENI: int64(d.upTo("IPs", 4, 10))},
			Hypervisor: "nitro",
		}
		if i >= 8 {
			t.Name = fmt.Sprintf("r5.%dxlarge", i)
		}
		od := fair * int64(d.upTo("price percent", 70, 130)) / 100
		spot := od * int64(d.upTo("spot percent", 30, 60)) / 100
		if d.chance("no spot", 3) {
			spot = 0
		}
		t.Offerings = worldtest.Offerings(d.some("zones of type", worldtest.Zones...), od, spot)
		c.Types = append(c.Types, t)
	}
	slices.SortFunc(c.Types, func(a, b catalog.InstanceType) int {
		if a.Name < b.Name {
			return -1
		}
		return 1
	})
	return c
}

func in(key string, values ...string) snapshot.SelectorRequirement {
	return snapshot.SelectorRequirement{Key: key, Operator: "In", Values: values}
}

func (d drawer) pool(name string, c *catalog.Catalog) snapshot.NodePool {
	p := snapshot.NodePool{
		Name: name, ClassRef: snapshot.ClassRef{Group: "karpenter.k8s.aws", Kind: "EC2NodeClass", Name: "default"},
		TemplateLabels: map[string]string{},
	}
	if d.chance("pool zones", 3) {
		p.Requirements = append(p.Requirements, in("topology.kubernetes.io/zone", d.some("pool zone", worldtest.Zones...)...))
	}
	if d.chance("pool capacity", 3) {
		p.Requirements = append(p.Requirements, in("karpenter.sh/capacity-type", d.some("pool capacity type", "spot", "on-demand")...))
	}
	if d.chance("pool cores", 2) {
		p.Requirements = append(p.Requirements, snapshot.SelectorRequirement{
			Key: "karpenter.k8s.aws/instance-cpu", Operator: d.one("pool cores op", "Gt", "Lt", "Gte", "Lte"), Values: []string{d.one("pool cores bound", "1", "2", "4", "6")},
		})
	}
	if d.chance("pool type", 2) {
		p.Requirements = append(p.Requirements, snapshot.SelectorRequirement{
			Key: "node.kubernetes.io/instance-type", Operator: d.one("pool type op", "In", "NotIn"), Values: []string{c.Types[d.upTo("which type", 0, len(c.Types)-1)].Name},
		})
	}
	if d.chance("pool taint", 3) {
		p.Taints = []snapshot.Taint{d.taint()}
	}
	if d.chance("startup taint", 2) {
		p.StartupTaints = []snapshot.Taint{{Key: "startup", Effect: "NoSchedule"}}
	}
	if d.chance("pool label", 3) {
		p.TemplateLabels["team"] = d.one("pool team", "a", "b")
	} else if !d.k.plain && d.chance("open label", 3) {
		if d.chance("listed", 5) {
			p.Requirements = append(p.Requirements, in("team", "a", "b"))
		} else {
			p.Requirements = append(p.Requirements, snapshot.SelectorRequirement{Key: "team", Operator: "Exists"})
		}
	}
	if !d.k.oneMarket {
		p.Weight = int32(10 * d.upTo("weight", 0, 2))
		switch d.upTo("limit", 0, 7) {
		case 0:
			p.Limits = map[string]int64{"cpu": 1000 * int64(d.upTo("cpu limit", 0, 12))}
		case 1:
			p.Limits = map[string]int64{"nodes": int64(d.upTo("node limit", 0, 3))}
		case 2:
			p.Limits = map[string]int64{"memory": 1024 * mib * int64(d.upTo("memory limit", 0, 40)), "cpu": 1000 * int64(d.upTo("cpu limit", 0, 12))}
		}
	}
	return p
}

func (d drawer) taint() snapshot.Taint {
	return snapshot.Taint{Key: d.one("taint", "x", "y"), Value: d.one("taint value", "", "1"), Effect: d.one("effect", "NoSchedule", "NoExecute")}
}

func (d drawer) tolerations() []snapshot.Toleration {
	switch d.upTo("tolerations", 0, 5) {
	case 0:
		return []snapshot.Toleration{{Operator: "Exists"}}
	case 1:
		return []snapshot.Toleration{{Key: "x", Operator: "Exists"}}
	case 2:
		return []snapshot.Toleration{{Key: "y", Value: "1"}}
	}
	return nil
}

func (d drawer) requests(cpuMax, memMax int) snapshot.Resources {
	return snapshot.Resources{
		CPU: 100 * int64(d.upTo("cpu", 0, cpuMax)), Memory: 128 * mib * int64(d.upTo("memory", 0, memMax)), Pods: 1,
	}
}

func (d drawer) daemonSet(name string) snapshot.DaemonSet {
	ds := snapshot.DaemonSet{Namespace: "kube-system", Name: name}
	ds.Template.Spec = snapshot.PodSpec{Requests: d.requests(4, 4), Tolerations: d.tolerations()}
	if d.chance("daemon selects", 2) && !d.k.sameDaemons {
		ds.Template.Spec.NodeSelector = map[string]string{"team": "a"}
	}
	if d.chance("daemon selects size", 2) {
		ds.Template.Spec.Required = []snapshot.NodeSelectorTerm{{Expressions: []snapshot.SelectorRequirement{
			{Key: "karpenter.k8s.aws/instance-cpu", Operator: "Gt", Values: []string{"2"}},
		}}}
	}
	if !d.k.plain && d.chance("daemon port", 2) {
		ds.Template.Spec.HostPorts = []snapshot.HostPort{d.hostPort()}
	}
	return ds
}

func (d drawer) hostPort() snapshot.HostPort {
	return snapshot.HostPort{
		Port: int32(d.upTo("port", 1, 2)), Protocol: d.one("protocol", "", "TCP", "UDP"), IP: d.one("ip", "", "0.0.0.0", "10.0.0.1", "10.0.0.2"),
	}
}

func (d drawer) node(s *snapshot.Snapshot, name string) {
	n := snapshot.Node{Name: name, ProviderID: "i-" + name, Labels: map[string]string{
		"kubernetes.io/hostname": name, "kubernetes.io/arch": "amd64", "kubernetes.io/os": "linux",
		"topology.kubernetes.io/zone": d.one("node zone", worldtest.Zones...), "karpenter.sh/capacity-type": d.one("node capacity", "spot", "on-demand"),
		"karpenter.k8s.aws/instance-cpu": "4",
	}}
	n.Allocatable = snapshot.Resources{CPU: 1000 * int64(d.upTo("node cores", 1, 4)), Memory: 1024 * mib * int64(d.upTo("node GiB", 1, 8)), Pods: int64(d.upTo("node pods", 2, 12))}
	n.Capacity = n.Allocatable
	if d.chance("node of pool", 5) {
		n.Labels["karpenter.sh/nodepool"] = "pool-0"
		n.Labels["karpenter.sh/registered"], n.Labels["karpenter.sh/initialized"] = "true", "true"
	}
	if d.chance("node team", 3) {
		n.Labels["team"] = d.one("node team", "a", "b")
	}
	if d.chance("node taint", 2) {
		n.Taints = []snapshot.Taint{d.taint()}
	}
	s.Nodes = append(s.Nodes, n)
	for i := range d.upTo("pods of node", 0, 2) {
		p := snapshot.Pod{Namespace: "default", Name: fmt.Sprintf("%s-old-%d", name, i), NodeName: name, Phase: "Running"}
		p.Spec.Requests = d.requests(8, 8)
		s.Pods = append(s.Pods, p)
	}
}

func (d drawer) pod(name string) snapshot.Pod {
	p := snapshot.Pod{Namespace: "default", Name: name, Labels: map[string]string{"app": name}}
	p.Spec.Requests = d.requests(35, 40)
	p.Spec.Tolerations = d.tolerations()
	switch d.upTo("selector", 0, 9) {
	case 0:
		p.Spec.NodeSelector = map[string]string{"topology.kubernetes.io/zone": d.one("pod zone", worldtest.Zones...)}
	case 1:
		p.Spec.NodeSelector = map[string]string{"karpenter.sh/capacity-type": d.one("pod capacity", "spot", "on-demand")}
	case 2:
		p.Spec.NodeSelector = map[string]string{"team": d.one("pod team", "a", "b")}
	case 3:
		p.Spec.Required = []snapshot.NodeSelectorTerm{{Expressions: []snapshot.SelectorRequirement{
			{Key: "karpenter.k8s.aws/instance-cpu", Operator: d.one("pod cores op", "Gt", "Lt"), Values: []string{d.one("pod cores", "2", "4")}},
		}}}
	case 4:
		p.Spec.Required = []snapshot.NodeSelectorTerm{
			{Expressions: []snapshot.SelectorRequirement{in("topology.kubernetes.io/zone", d.one("first zone", worldtest.Zones...))}},
			{Expressions: []snapshot.SelectorRequirement{in("topology.kubernetes.io/zone", d.one("second zone", worldtest.Zones...)), {Key: "team", Operator: "NotIn", Values: []string{"a"}}}},
		}
	}
	if !d.k.plain && d.chance("pod port", 2) {
		p.Spec.HostPorts = []snapshot.HostPort{d.hostPort()}
	}
	return p
}

// oddities are what real clusters have besides: devices, storage, claims in flight,
// nodes that are going or cordoned, pods that are not to be planned, minValues, and
// taints that are only a preference.
func (d drawer) oddities(w *world) {
	const device = "example.com/device"
	for i := range w.c.Types {
		if d.chance("type has devices", 2) {
			w.c.Types[i].Extended = map[string]int64{device: int64(d.upTo("devices", 1, 4))}
		}
	}
	for i := range w.s.Pods {
		p := &w.s.Pods[i]
		if p.NodeName != "" {
			continue
		}
		switch d.upTo("oddity", 0, 19) {
		case 0:
			p.Spec.Requests.Extended = map[string]int64{device: int64(d.upTo("devices wanted", 1, 3))}
		case 1:
			p.Spec.Requests.Ephemeral = 1024 * mib * int64(d.upTo("storage", 1, 20))
		case 2:
			p.Spec.Gates = []string{"example.com/gate"}
		case 3:
			p.Deleting = w.s.Now
		case 4:
			p.Spec.Tolerations = append(p.Spec.Tolerations, snapshot.Toleration{Key: "node.kubernetes.io/unschedulable", Operator: "Exists"})
		}
	}
	for i := range w.s.Nodes {
		n := &w.s.Nodes[i]
		n.Allocatable.Ephemeral, n.Capacity.Ephemeral = 10*1024*mib, 10*1024*mib
		switch d.upTo("node oddity", 0, 9) {
		case 0:
			n.Unschedulable = true
		case 1:
			n.Deleting = w.s.Now
		case 2:
			n.Allocatable.CPU = -1
		case 3:
			n.Taints = append(n.Taints, snapshot.Taint{Key: "x", Effect: "PreferNoSchedule"})
		}
	}
	for i := range w.s.NodePools {
		p := &w.s.NodePools[i]
		switch d.upTo("pool oddity", 0, 14) {
		case 0:
			p.Requirements = append(p.Requirements, snapshot.SelectorRequirement{
				Key: "node.kubernetes.io/instance-type", Operator: "Exists", MinValues: d.upTo("minValues", 1, 3)})
		case 1:
			p.Taints = append(p.Taints, snapshot.Taint{Key: "soft", Effect: "PreferNoSchedule"})
		case 2:
			p.Limits = map[string]int64{device: int64(d.upTo("device limit", 0, 4))}
		}
	}
	if d.chance("claim in flight", 3) {
		size := snapshot.Resources{CPU: 1000 * int64(d.upTo("claim cores", 1, 4)), Memory: 4096 * mib, Ephemeral: 1024 * mib, Pods: 5}
		w.s.NodeClaims = append(w.s.NodeClaims, snapshot.NodeClaim{
			Name: "claim-0", ClassRef: w.s.NodePools[0].ClassRef, ProviderID: "i-claim", Capacity: size, Allocatable: size,
			Labels: map[string]string{
				"karpenter.sh/nodepool": w.s.NodePools[0].Name, "topology.kubernetes.io/zone": "z-b", "karpenter.sh/capacity-type": "on-demand",
				"kubernetes.io/arch": "amd64", "kubernetes.io/os": "linux", "node.kubernetes.io/instance-type": w.c.Types[0].Name,
			},
			Taints: w.s.NodePools[0].Taints, StartupTaints: w.s.NodePools[0].StartupTaints,
		})
	}
}
