package judge

import (
	"maps"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"kerf.sh/kerf/internal/catalog"
	"kerf.sh/kerf/internal/plan"
	"kerf.sh/kerf/internal/snapshot"
	"kerf.sh/kerf/internal/worldtest"
)

var epoch = time.Date(2026, 3, 4, 11, 0, 0, 0, time.UTC)

// Taints that stand for a state and go, or come, by themselves.
const (
	unregistered = "karpenter.sh/unregistered"
	disrupted    = "karpenter.sh/disrupted"
)

// starting are taints of a node that is not ready yet.
var starting = []string{
	unregistered, corev1.TaintNodeNotReady, corev1.TaintNodeUnreachable, corev1.TaintNodeNetworkUnavailable, "node.cloudprovider.kubernetes.io/uninitialized",
}

// Labels that say in which zone a node, or a volume, is.
const (
	zoneLabel    = corev1.LabelTopologyZone
	ebsZoneLabel = "topology.ebs.csi.aws.com/zone"
	ebsDriver    = "ebs.csi.aws.com"
)

func taints(ts []snapshot.Taint) []corev1.Taint {
	var out []corev1.Taint
	for _, t := range ts {
		out = append(out, corev1.Taint{Key: t.Key, Value: t.Value, Effect: corev1.TaintEffect(t.Effect)})
	}
	return out
}

// label adds what kubelet and the EBS driver say of every node.
func label(n *corev1.Node) {
	n.Labels = maps.Clone(n.Labels)
	if n.Labels == nil {
		n.Labels = map[string]string{}
	}
	if n.Labels[corev1.LabelHostname] == "" {
		n.Labels[corev1.LabelHostname] = n.Name
	}
	if zone := n.Labels[zoneLabel]; zone != "" && n.Labels[ebsZoneLabel] == "" {
		n.Labels[ebsZoneLabel] = zone
	}
}

func newNode(name string, labels map[string]string, ts []corev1.Taint, capacity, allocatable snapshot.Resources) *corev1.Node {
	n := &corev1.Node{
		ObjectMeta: metav1.ObjectMeta{Name: name, UID: types.UID("node-" + name), Labels: labels, CreationTimestamp: metav1.NewTime(epoch)},
		Spec:       corev1.NodeSpec{Taints: ts},
		Status: corev1.NodeStatus{
			Capacity: resourceList(capacity), Allocatable: resourceList(allocatable),
			Conditions: []corev1.NodeCondition{{Type: corev1.NodeReady, Status: corev1.ConditionTrue}},
		},
	}
	label(n)
	return n
}

// ready is a node as it will be when it takes pods: one that is starting up has lost
// its startup taints and shows what its claim promised. One that is on its way out,
// or cordoned, has the taint that says so.
func ready(n *corev1.Node, c *snapshot.NodeClaim) *corev1.Node {
	n = n.DeepCopy()
	label(n)
	if c != nil && n.Labels["karpenter.sh/initialized"] != "true" {
		n.Spec.Taints = settled(n.Spec.Taints, taints(c.StartupTaints))
		n.Status.Allocatable = promised(n.Status.Allocatable, c.Allocatable)
		n.Status.Capacity = promised(n.Status.Capacity, c.Capacity)
	}
	taint := func(key string) {
		if !slices.ContainsFunc(n.Spec.Taints, func(t corev1.Taint) bool { return t.Key == key }) {
			n.Spec.Taints = append(n.Spec.Taints, corev1.Taint{Key: key, Effect: corev1.TaintEffectNoSchedule})
		}
	}
	if n.Spec.Unschedulable {
		taint(corev1.TaintNodeUnschedulable)
	}
	if n.DeletionTimestamp != nil || c != nil && !c.Deleting.IsZero() {
		taint(disrupted)
	}
	return n
}

// settled leaves out the taints that go before a node takes pods.
func settled(ts, startup []corev1.Taint) []corev1.Taint {
	return slices.DeleteFunc(slices.Clone(ts), func(t corev1.Taint) bool {
		return slices.Contains(starting, t.Key) || slices.ContainsFunc(startup, func(u corev1.Taint) bool {
			return u.Key == t.Key && u.Effect == t.Effect
		})
	})
}

func promised(have corev1.ResourceList, promise snapshot.Resources) corev1.ResourceList {
	have = maps.Clone(have)
	if have == nil {
		have = corev1.ResourceList{}
	}
	for name, q := range resourceList(promise) {
		if v := have[name]; v.IsZero() {
			have[name] = q
		}
	}
	return have
}

// going reports whether a node is on its way out.
func going(n *corev1.Node) bool {
	return slices.ContainsFunc(n.Spec.Taints, func(t corev1.Taint) bool { return t.Key == disrupted })
}

// claimOf finds the NodeClaim of a node.
func claimOf(s *snapshot.Snapshot, n *corev1.Node) *snapshot.NodeClaim {
	for i := range s.NodeClaims {
		c := &s.NodeClaims[i]
		if c.NodeName == n.Name || c.ProviderID != "" && c.ProviderID == n.Spec.ProviderID {
			return c
		}
	}
	return nil
}

// coming is the node that a claim in flight will be: of its size where that is
// known, else of the first type that the claim allows.
func (c *Cluster) coming(claim *snapshot.NodeClaim) *corev1.Node {
	labels := maps.Clone(claim.Labels)
	if labels == nil {
		labels = map[string]string{}
	}
	for _, r := range claim.Requirements {
		if _, has := labels[r.Key]; !has && r.Operator == "In" && len(r.Values) > 0 {
			labels[r.Key] = r.Values[0]
		}
	}
	alloc, size := claim.Allocatable, claim.Capacity
	if t := c.typeOf(claim.ClassRef.Name, labels[corev1.LabelInstanceTypeStable]); t != nil {
		for k, v := range t.Labels() {
			if _, has := labels[k]; !has {
				labels[k] = v
			}
		}
		if alloc.IsZero() {
			alloc, size = t.Allocatable, t.Capacity
		}
	}
	return newNode(claim.Name, labels, settled(taints(claim.Taints), taints(claim.StartupTaints)), size, alloc)
}

// launched is the node that a launch will be when the given offer is bought; nil when
// there is no such thing. What describes the machine comes from the machine, whatever
// the plan says of it.
func (c *Cluster) launched(l *plan.Launch, o plan.Offer) *corev1.Node {
	for _, sup := range c.supplies[l.NodePool] {
		if sup.Type != o.InstanceType || sup.Zone != o.Zone || sup.Capacity != o.CapacityType {
			continue
		}
		labels := maps.Clone(l.Labels)
		if labels == nil {
			labels = map[string]string{}
		}
		if was := c.typeOf(l.NodeClass, l.Chosen.InstanceType); was != nil {
			for k := range was.Labels() {
				delete(labels, k)
			}
		}
		return machine(l.Name, labels, sup)
	}
	return nil
}

// machine is a node of a supply, with labels that its pool leaves open.
func machine(name string, labels map[string]string, sup *worldtest.Supply) *corev1.Node {
	maps.Copy(labels, sup.Labels)
	labels["karpenter.sh/registered"], labels["karpenter.sh/initialized"] = "true", "true"
	return newNode(name, labels, settled(taints(sup.Pool.Taints), taints(sup.Pool.StartupTaints)), sup.Size, sup.Alloc)
}

// attachLimit is the CSINode that the EBS driver makes of a new node: how many volumes
// its type can have attached, those that it boots with left out. It is nil for a node
// of no known type.
func (c *Cluster) attachLimit(n *corev1.Node) *storagev1.CSINode {
	pool := c.pool(n.Labels["karpenter.sh/nodepool"])
	if pool == nil {
		return nil
	}
	t := c.typeOf(pool.ClassRef.Name, n.Labels[corev1.LabelInstanceTypeStable])
	if t == nil {
		return nil
	}
	devices := 0
	for i := range c.s.NodeClasses {
		if k := &c.s.NodeClasses[i]; k.Name == pool.ClassRef.Name {
			if devices = len(k.BlockDevices); devices == 0 && k.AMIFamily == "Bottlerocket" {
				devices = 2 // of the system, and of data
			}
		}
	}
	count := int32(t.Type.EBSVolumes(int64(max(devices, 1))))
	return &storagev1.CSINode{ObjectMeta: metav1.ObjectMeta{Name: n.Name}, Spec: storagev1.CSINodeSpec{Drivers: []storagev1.CSINodeDriver{{
		Name: ebsDriver, NodeID: n.Name, Allocatable: &storagev1.VolumeNodeResources{Count: &count},
	}}}}
}

func (c *Cluster) pool(name string) *snapshot.NodePool {
	for i := range c.s.NodePools {
		if c.s.NodePools[i].Name == name {
			return &c.s.NodePools[i]
		}
	}
	return nil
}

// typeOf finds an instance type as nodes of a class have it; nil when there is none.
func (c *Cluster) typeOf(class, name string) *catalog.Resolved {
	types, ok := c.types[class]
	if !ok {
		types = map[string]*catalog.Resolved{}
		for i := range c.s.NodeClasses {
			if c.s.NodeClasses[i].Name != class {
				continue
			}
			resolved, err := c.c.Resolve(&c.s.NodeClasses[i], c.s.Settings)
			if err != nil {
				break
			}
			for k := range resolved {
				types[resolved[k].Type.Name] = &resolved[k]
			}
		}
		c.types[class] = types
	}
	return types[name]
}
