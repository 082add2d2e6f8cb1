package worldtest

import (
	"cmp"
	"maps"
	"slices"
	"strings"

	"kerf.sh/kerf/internal/catalog"
	"kerf.sh/kerf/internal/snapshot"
)

// Supply is one thing that could be launched: a type in a zone as a capacity type,
// under one NodePool.
type Supply struct {
	Pool     *snapshot.NodePool
	Type     string
	Zone     string
	Capacity string
	Price    int64
	Counts   int64 // the price as offers are compared: what went wrong lately makes it more
	Rank     int   // 0 reserved, 1 everything else
	// Reservation and how many instances it has left, of reserved supplies.
	Reservation string
	Left        int64
	// Labels of a node of it, open custom labels left out.
	Labels map[string]string
	// Size counts against limits; Alloc is allocatable, daemonset pods not taken off.
	Size, Alloc snapshot.Resources
	Exotic      bool
	// Volumes is how many volumes pods can have attached, by driver.
	Volumes map[string]int64
}

// before orders supplies as a plan must choose among them.
func (a *Supply) before(b *Supply) int {
	return cmp.Or(cmp.Compare(a.Rank, b.Rank), cmp.Compare(a.Counts, b.Counts), cmp.Compare(a.Type, b.Type),
		cmp.Compare(a.Zone, b.Zone), cmp.Compare(a.Capacity, b.Capacity))
}

// poolView is a NodePool and what it could launch.
type poolView struct {
	pool     *snapshot.NodePool
	supplies []*Supply
	// left is what remains of each limit before the plan.
	left map[string]int64
	// minValues by key.
	minValues map[string]int
}

// wellKnown reports whether a key describes instance types or offers, so that a
// pool that says nothing of it allows any value.
func wellKnown(key string) bool {
	switch key = stable(key); key {
	case labelType, labelZone, labelZoneID, labelRegion, labelCapacity, labelArch, labelOS,
		"node.kubernetes.io/windows-build":
		return true
	}
	return strings.HasPrefix(key, "karpenter.k8s.aws/")
}

// views works out what each pool could launch. A pool that may launch nothing
// (deleting, static, no usable class) has no supplies.
func views(s *snapshot.Snapshot, c *catalog.Catalog) map[string]*poolView {
	out := map[string]*poolView{}
	resolved := map[string][]catalog.Resolved{}
	change := overlays(s, c)
	for i := range s.NodePools {
		p := &s.NodePools[i]
		v := &poolView{pool: p, left: map[string]int64{}, minValues: map[string]int{}}
		out[p.Name] = v
		maps.Copy(v.left, p.Limits)
		for _, r := range p.Requirements {
			v.minValues[stable(r.Key)] = max(v.minValues[stable(r.Key)], r.MinValues)
		}
		class := classOf(s, p)
		if class == nil || p.Replicas != nil && !s.Settings.StaticCapacity || !p.Deleting.IsZero() || notReady(p.Conditions) {
			continue
		}
		if _, ok := resolved[class.Name]; !ok {
			rs, err := c.Resolve(class, s.Settings)
			if err != nil {
				rs = nil
			}
			relearn(s, class, rs)
			resolved[class.Name] = rs
		}
		for _, r := range resolved[class.Name] {
			if r.Unusable == "" {
				v.supplies = append(v.supplies, suppliesOf(s, p, class, &r)...)
			}
		}
		for _, sup := range v.supplies {
			if price, ok := change.price[offerID{p.Name, sup.Type, sup.Zone, sup.Capacity, sup.Reservation}]; ok {
				sup.Price = price
			}
			sup.Counts = setBack(s, sup)
			for name, n := range change.extra[[2]string{p.Name, sup.Type}] {
				sup.Size, sup.Alloc = sup.Size.With(name, n), sup.Alloc.With(name, n)
			}
		}
		slices.SortFunc(v.supplies, func(a, b *Supply) int { return a.before(b) })
	}
	return out
}

func classOf(s *snapshot.Snapshot, p *snapshot.NodePool) *snapshot.NodeClass {
	if p.ClassRef.Kind != "EC2NodeClass" || p.ClassRef.Group != "karpenter.k8s.aws" {
		return nil
	}
	for i := range s.NodeClasses {
		c := &s.NodeClasses[i]
		if c.Name == p.ClassRef.Name && c.Deleting.IsZero() && !notReady(c.Conditions) {
			return c
		}
	}
	return nil
}

func notReady(cs []snapshot.Condition) bool {
	ready := snapshot.FindCondition(cs, "Ready")
	return ready != nil && ready.Status != "True"
}

func suppliesOf(s *snapshot.Snapshot, p *snapshot.NodePool, class *snapshot.NodeClass, r *catalog.Resolved) []*Supply {
	var out []*Supply
	limits := attachLimits(s, r.Type.Name, r.Type.EBSVolumes(devicesOf(class)))
	ofType := r.Labels()
	for _, o := range r.Type.Offerings {
		if !o.Available || !classHasZone(class, o.Zone) || !reservationOpen(s, class, &o) || shortNow(s, r.Type.Name, &o) {
			continue
		}
		labels := maps.Clone(ofType)
		labels[labelZone], labels[labelCapacity] = o.Zone, o.CapacityType
		if o.ZoneID != "" {
			labels[labelZoneID] = o.ZoneID
		}
		labels[labelTenancy] = tenancy(p)
		labels[labelPool], labels[labelClass] = p.Name, class.Name
		maps.Copy(labels, p.TemplateLabels)
		for _, q := range p.Requirements {
			if q.Operator == "In" && len(q.Values) == 1 && !wellKnown(q.Key) {
				labels[stable(q.Key)] = q.Values[0]
			}
		}
		if !poolAllows(p, labels) {
			continue
		}
		sup := &Supply{
			Pool: p, Type: r.Type.Name, Zone: o.Zone, Capacity: o.CapacityType, Price: o.Price, Rank: 1,
			Labels: labels, Size: r.Capacity, Alloc: r.Allocatable, Exotic: r.Exotic && !names(p, ofType),
			Volumes: limits,
		}
		if o.CapacityType == "reserved" {
			sup.Rank = 0
			if o.Reservation != nil {
				sup.Reservation, sup.Left = o.Reservation.ID, o.Reservation.Remaining
				labels["karpenter.k8s.aws/capacity-reservation-id"] = o.Reservation.ID
				labels["karpenter.k8s.aws/capacity-reservation-type"] = o.Reservation.Type
			}
		}
		out = append(out, sup)
	}
	return out
}

// devicesOf is how many volumes a node of the class boots with.
func devicesOf(class *snapshot.NodeClass) int64 {
	if n := len(class.BlockDevices); n > 0 {
		return int64(n)
	}
	if class.AMIFamily == "Bottlerocket" {
		return 2
	}
	return 1
}

// names reports whether the pool names the type, its family or size: then the type
// is no surprise, whatever devices it has.
func names(p *snapshot.NodePool, labels map[string]string) bool {
	for _, q := range p.Requirements {
		switch q.Key {
		case labelType, "karpenter.k8s.aws/instance-family":
			if q.Operator == "In" && slices.Contains(q.Values, labels[q.Key]) {
				return true
			}
		}
	}
	return false
}

// tenancy of a pool's nodes: default if the pool allows it. Every type has both.
func tenancy(p *snapshot.NodePool) string {
	for _, v := range []string{"default", "dedicated"} {
		if poolAllows(&snapshot.NodePool{Requirements: tenancyOnly(p.Requirements)}, map[string]string{labelTenancy: v}) {
			return v
		}
	}
	return ""
}

func tenancyOnly(rs []snapshot.SelectorRequirement) []snapshot.SelectorRequirement {
	return slices.DeleteFunc(slices.Clone(rs), func(r snapshot.SelectorRequirement) bool { return r.Key != labelTenancy })
}

// poolAllows checks the requirements that a node's labels decide. A custom key
// without a label yet is open and judged with the launch.
func poolAllows(p *snapshot.NodePool, labels map[string]string) bool {
	for _, q := range p.Requirements {
		if _, has := labels[stable(q.Key)]; !has && !wellKnown(q.Key) {
			continue
		}
		if !matches(q, labels) {
			return false
		}
	}
	return true
}

func classHasZone(c *snapshot.NodeClass, zone string) bool {
	return c.Zones == nil || slices.ContainsFunc(c.Zones, func(z snapshot.SubnetZone) bool { return z.Zone == zone })
}

// openKeys are custom keys that the pool requires but leaves open.
func openKeys(p *snapshot.NodePool, labels map[string]string) []string {
	set := map[string]bool{}
	for _, q := range p.Requirements {
		if _, has := labels[stable(q.Key)]; !has && !wellKnown(q.Key) && q.Operator != "DoesNotExist" {
			set[stable(q.Key)] = true
		}
	}
	return slices.Sorted(maps.Keys(set))
}

// labelings are the label sets that a node of the supply may be given for pods:
// open custom keys take any value that the pool allows and a pod names, or one
// that nobody names.
func labelings(sup *Supply, pods []*snapshot.Pod) []map[string]string {
	out := []map[string]string{sup.Labels}
	for _, key := range openKeys(sup.Pool, sup.Labels) {
		var next []map[string]string
		for _, base := range out {
			for _, v := range candidates(sup.Pool, pods, key) {
				m := maps.Clone(base)
				m[key] = v
				ok := true
				for _, q := range sup.Pool.Requirements {
					ok = ok && (stable(q.Key) != key || matches(q, m))
				}
				if ok {
					next = append(next, m)
				}
			}
		}
		out = next
	}
	return out
}

// unnamed stands for a value that nobody names.
const unnamed = "4711"

func candidates(p *snapshot.NodePool, pods []*snapshot.Pod, key string) []string {
	vals := []string{unnamed}
	for _, pod := range pods {
		if v, ok := pod.Spec.NodeSelector[key]; ok {
			vals = append(vals, v)
		}
		for _, t := range pod.Spec.Required {
			for _, e := range t.Expressions {
				if stable(e.Key) == key {
					vals = append(vals, e.Values...)
				}
			}
		}
	}
	for _, q := range p.Requirements {
		if stable(q.Key) == key {
			vals = append(vals, q.Values...)
		}
	}
	slices.Sort(vals)
	return slices.Compact(vals)
}

// daemonsOn are the daemonset pods that a new node with these labels carries.
func daemonsOn(s *snapshot.Snapshot, labels map[string]string, taints []snapshot.Taint) (snapshot.Resources, []snapshot.HostPort) {
	labels = maps.Clone(labels)
	labels[labelRegister], labels[labelInit] = "true", "true"
	var sum snapshot.Resources
	var ports []snapshot.HostPort
	for i := range s.DaemonSets {
		if spec := &s.DaemonSets[i].Template.Spec; daemonRuns(spec, labels, taints, "") {
			sum = plus(sum, spec.Requests)
			ports = append(ports, spec.HostPorts...)
		}
	}
	return sum, ports
}

func daemonRuns(spec *snapshot.PodSpec, labels map[string]string, taints []snapshot.Taint, nodeName string) bool {
	ts := append(slices.Clone(daemonTolerations), spec.Tolerations...)
	return selects(spec, labels, nodeName) && untolerated(taints, ts) == nil
}

// Supplies lists what each NodePool could launch, by name of the pool, the best first.
func Supplies(s *snapshot.Snapshot, c *catalog.Catalog) map[string][]*Supply {
	out := map[string][]*Supply{}
	for name, v := range views(s, c) {
		out[name] = v.supplies
	}
	return out
}

// Room is what a new node of the supply leaves for pods once its daemonset pods run.
func Room(s *snapshot.Snapshot, sup *Supply) snapshot.Resources {
	daemons, _ := daemonsOn(s, sup.Labels, sup.Pool.Taints)
	return minus(sup.Alloc, daemons)
}
