package worldtest

import (
	"slices"
	"strconv"
	"strings"

	"kerf.sh/kerf/internal/snapshot"
)

// Label names that the rules below speak of.
const (
	labelType     = "node.kubernetes.io/instance-type"
	labelZone     = "topology.kubernetes.io/zone"
	labelZoneID   = "topology.k8s.aws/zone-id"
	labelRegion   = "topology.kubernetes.io/region"
	labelCapacity = "karpenter.sh/capacity-type"
	labelArch     = "kubernetes.io/arch"
	labelOS       = "kubernetes.io/os"
	labelHostname = "kubernetes.io/hostname"
	labelPool     = "karpenter.sh/nodepool"
	labelTenancy  = "karpenter.k8s.aws/instance-tenancy"
	labelClass    = "karpenter.k8s.aws/ec2nodeclass"
	labelRegister = "karpenter.sh/registered"
	labelInit     = "karpenter.sh/initialized"
)

// aliases are old label names that mean a stable one.
var aliases = map[string]string{
	"failure-domain.beta.kubernetes.io/zone":   labelZone,
	"failure-domain.beta.kubernetes.io/region": labelRegion,
	"beta.kubernetes.io/arch":                  labelArch,
	"beta.kubernetes.io/os":                    labelOS,
	"beta.kubernetes.io/instance-type":         labelType,
	"topology.ebs.csi.aws.com/zone":            labelZone,
}

func stable(key string) string {
	if s, ok := aliases[key]; ok {
		return s
	}
	return key
}

// labelValue looks a key up under its own name and under its stable one.
func labelValue(labels map[string]string, key string) (string, bool) {
	if v, ok := labels[key]; ok {
		return v, true
	}
	v, ok := labels[stable(key)]
	return v, ok
}

// matches is the kube-scheduler's reading of one node selector requirement.
func matches(r snapshot.SelectorRequirement, labels map[string]string) bool {
	v, has := labelValue(labels, r.Key)
	switch r.Operator {
	case "In":
		return has && slices.Contains(r.Values, v)
	case "NotIn":
		return !has || !slices.Contains(r.Values, v)
	case "Exists":
		return has
	case "DoesNotExist":
		return !has
	}
	if !has || len(r.Values) != 1 {
		return false
	}
	have, err := strconv.ParseInt(v, 10, 64)
	if err != nil {
		return false
	}
	bound, err := strconv.ParseInt(r.Values[0], 10, 64)
	if err != nil {
		return false
	}
	switch r.Operator {
	case "Gt":
		return have > bound
	case "Lt":
		return have < bound
	case "Gte":
		return have >= bound
	case "Lte":
		return have <= bound
	}
	return false
}

// selects reports whether nodeSelector and required node affinity allow a node.
// nodeName is "" for a node that does not exist yet: a term with matchFields then
// matches nothing.
func selects(p *snapshot.PodSpec, labels map[string]string, nodeName string) bool {
	for k, want := range p.NodeSelector {
		if v, ok := labelValue(labels, k); !ok || v != want {
			return false
		}
	}
	if p.Required == nil {
		return true
	}
	return slices.ContainsFunc(p.Required, func(t snapshot.NodeSelectorTerm) bool {
		return termSelects(t, labels, nodeName)
	})
}

func termSelects(t snapshot.NodeSelectorTerm, labels map[string]string, nodeName string) bool {
	if len(t.Expressions)+len(t.Fields) == 0 {
		return false
	}
	for _, e := range t.Expressions {
		if !matches(e, labels) {
			return false
		}
	}
	for _, f := range t.Fields {
		if nodeName == "" || f.Key != "metadata.name" || !matches(f, map[string]string{"metadata.name": nodeName}) {
			return false
		}
	}
	return true
}

// tolerates is the API's rule for one toleration and one taint.
func tolerates(t snapshot.Toleration, taint snapshot.Taint) bool {
	if t.Effect != "" && t.Effect != taint.Effect {
		return false
	}
	if t.Key != "" && t.Key != taint.Key {
		return false
	}
	switch t.Operator {
	case "Exists":
		return true
	case "", "Equal":
		return t.Key != "" && t.Value == taint.Value
	case "Gt", "Lt":
		have, err1 := strconv.ParseInt(taint.Value, 10, 64)
		bound, err2 := strconv.ParseInt(t.Value, 10, 64)
		if err1 != nil || err2 != nil {
			return false
		}
		return (t.Operator == "Gt" && have > bound) || (t.Operator == "Lt" && have < bound)
	}
	return false
}

// untolerated returns the first taint that keeps a pod away. PreferNoSchedule never
// does: on a new node it is the last preference to be relaxed.
func untolerated(taints []snapshot.Taint, ts []snapshot.Toleration) *snapshot.Taint {
	for i, taint := range taints {
		if taint.Effect == "PreferNoSchedule" {
			continue
		}
		if !slices.ContainsFunc(ts, func(t snapshot.Toleration) bool { return tolerates(t, taint) }) {
			return &taints[i]
		}
	}
	return nil
}

// daemonTolerations are what the DaemonSet controller gives every pod it makes.
var daemonTolerations = []snapshot.Toleration{
	{Key: "node.kubernetes.io/not-ready", Operator: "Exists", Effect: "NoExecute"},
	{Key: "node.kubernetes.io/unreachable", Operator: "Exists", Effect: "NoExecute"},
	{Key: "node.kubernetes.io/disk-pressure", Operator: "Exists", Effect: "NoSchedule"},
	{Key: "node.kubernetes.io/memory-pressure", Operator: "Exists", Effect: "NoSchedule"},
	{Key: "node.kubernetes.io/pid-pressure", Operator: "Exists", Effect: "NoSchedule"},
	{Key: "node.kubernetes.io/unschedulable", Operator: "Exists", Effect: "NoSchedule"},
}

// ephemeral reports whether a taint goes by itself while a node starts up.
func ephemeral(t snapshot.Taint) bool {
	switch t.Key {
	case "node.kubernetes.io/not-ready":
		return t.Effect == "NoSchedule" || t.Effect == "NoExecute"
	case "node.kubernetes.io/unreachable":
		return t.Effect == "NoSchedule"
	case "node.cloudprovider.kubernetes.io/uninitialized":
		return t.Effect == "NoSchedule"
	case "karpenter.sh/unregistered":
		return t.Effect == "NoExecute"
	}
	return strings.HasPrefix(t.Key, "readiness.k8s.io/")
}

// portsClash reports whether two host ports cannot be on one node: same port, same
// protocol, and the same address or one of them on all addresses.
func portsClash(a, b snapshot.HostPort) bool {
	proto := func(p snapshot.HostPort) string {
		if p.Protocol == "" {
			return "TCP"
		}
		return p.Protocol
	}
	all := func(ip string) bool { return ip == "" || ip == "0.0.0.0" }
	if a.Port != b.Port || proto(a) != proto(b) {
		return false
	}
	return all(a.IP) || all(b.IP) || a.IP == b.IP
}

// anyClash returns a port of a that clashes with one of b, or nil.
func anyClash(a, b []snapshot.HostPort) *snapshot.HostPort {
	for i := range a {
		for _, o := range b {
			if portsClash(a[i], o) {
				return &a[i]
			}
		}
	}
	return nil
}

// fits compares resource by resource; like the scheduler it looks at what is asked
// for only, except that a negative amount of cpu, memory, storage or pod slots
// means that nothing fits.
func fits(need, have snapshot.Resources) bool {
	if have.CPU < 0 || have.Memory < 0 || have.Ephemeral < 0 || have.Pods < 0 {
		return false
	}
	if need.CPU > have.CPU || need.Memory > have.Memory || need.Ephemeral > have.Ephemeral || need.Pods > have.Pods {
		return false
	}
	for n, v := range need.Extended {
		if v > 0 && v > have.Extended[n] {
			return false
		}
	}
	return true
}

// plus and minus are sums without saturation: worlds in tests are small.
func plus(a, b snapshot.Resources) snapshot.Resources { return combine(a, b, 1) }

func minus(a, b snapshot.Resources) snapshot.Resources { return combine(a, b, -1) }

func combine(a, b snapshot.Resources, sign int64) snapshot.Resources {
	out := snapshot.Resources{
		CPU: a.CPU + sign*b.CPU, Memory: a.Memory + sign*b.Memory,
		Ephemeral: a.Ephemeral + sign*b.Ephemeral, Pods: a.Pods + sign*b.Pods,
		Extended: map[string]int64{},
	}
	for n, v := range a.Extended {
		out.Extended[n] += v
	}
	for n, v := range b.Extended {
		out.Extended[n] += sign * v
	}
	return out
}
