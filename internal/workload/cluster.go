package workload

import (
	"cmp"
	"fmt"
	"hash/fnv"
	"slices"
	"strconv"
	"time"

	"kerf.sh/kerf/internal/snapshot"
)

// Region is where the pools of this package are.
const Region = "us-east-1"

const (
	mib       = int64(1) << 20
	poolName  = "default"
	className = "default"
	awsGroup  = "karpenter.k8s.aws"
)

// now is the clock of every snapshot; pods were created a minute before it.
var now = time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)

// Zones returns the zones of the class with their ids.
func Zones() []snapshot.SubnetZone {
	return []snapshot.SubnetZone{
		{Zone: Region + "a", ZoneID: "use1-az1"},
		{Zone: Region + "b", ZoneID: "use1-az2"},
		{Zone: Region + "c", ZoneID: "use1-az4"},
	}
}

// Pods returns the pods, all pending and found unschedulable, sorted by name. No
// two share a map, slice or pointer, as with pods that were read from an API server.
func (w Workload) Pods() []snapshot.Pod {
	out := make([]snapshot.Pod, 0, w.N)
	for i := range w.Deployments {
		d := &w.Deployments[i]
		for k := range d.Replicas {
			name := fmt.Sprintf("%s-%d", d.Name, k)
			out = append(out, snapshot.Pod{
				Namespace: "default",
				Name:      name,
				UID:       name,
				Labels:    map[string]string{"app": d.Name},
				Owner:     &snapshot.Owner{APIVersion: "apps/v1", Kind: "ReplicaSet", Name: d.Name, UID: d.Name},
				Created:   now.Add(-time.Minute),
				Spec:      d.spec(),
				Phase:     "Pending",
				Scheduled: &snapshot.Condition{Type: "PodScheduled", Status: "False", Reason: "Unschedulable", Since: now.Add(-time.Minute)},
			})
		}
	}
	slices.SortFunc(out, func(a, b snapshot.Pod) int { return cmp.Compare(a.Name, b.Name) })
	return out
}

func (d *Deployment) spec() snapshot.PodSpec {
	own := func() *snapshot.LabelSelector {
		return &snapshot.LabelSelector{MatchLabels: map[string]string{"app": d.Name}}
	}
	spec := snapshot.PodSpec{
		Requests:      snapshot.Resources{CPU: d.CPUMilli, Memory: d.MemoryMiB * mib, Pods: 1},
		SchedulerName: "default-scheduler",
	}
	spread := func(key string, skew int) {
		if skew > 0 {
			spec.Spread = append(spec.Spread, snapshot.TopologySpread{
				MaxSkew: int32(skew), TopologyKey: key, WhenUnsatisfiable: "DoNotSchedule", Selector: own(),
			})
		}
	}
	spread("topology.kubernetes.io/zone", d.ZoneMaxSkew)
	spread("kubernetes.io/hostname", d.HostMaxSkew)
	if d.HostAntiAffinity {
		spec.Anti = []snapshot.PodAffinityTerm{{TopologyKey: "kubernetes.io/hostname", Selector: own()}}
	}
	return spec
}

// Pool returns the one NodePool: both architectures, categories c, m and r,
// generations above 2. spot allows spot beside on-demand; capVCPU limits the size
// of a node, 0 = open.
func Pool(spot bool, capVCPU int) snapshot.NodePool {
	capacity := []string{"on-demand"}
	if spot {
		capacity = append(capacity, "spot")
	}
	p := snapshot.NodePool{
		Name:     poolName,
		UID:      poolName,
		ClassRef: snapshot.ClassRef{Group: awsGroup, Kind: "EC2NodeClass", Name: className},
		Requirements: []snapshot.SelectorRequirement{
			{Key: "kubernetes.io/arch", Operator: "In", Values: []string{"amd64", "arm64"}},
			{Key: "kubernetes.io/os", Operator: "In", Values: []string{"linux"}},
			{Key: "karpenter.sh/capacity-type", Operator: "In", Values: capacity},
			{Key: awsGroup + "/instance-category", Operator: "In", Values: []string{"c", "m", "r"}},
			{Key: awsGroup + "/instance-generation", Operator: "Gt", Values: []string{"2"}},
		},
		HasStatus:  true,
		Conditions: []snapshot.Condition{{Type: "Ready", Status: "True", Reason: "Ready", Since: now.Add(-time.Hour)}},
	}
	if capVCPU > 0 {
		p.Requirements = append(p.Requirements, snapshot.SelectorRequirement{
			Key: awsGroup + "/instance-cpu", Operator: "Lt", Values: []string{strconv.Itoa(capVCPU + 1)},
		})
	}
	return p
}

// NodeClass returns the class of the pool: AL2023 in three zones, resolved.
func NodeClass() snapshot.NodeClass {
	image := func(arch string) snapshot.Image {
		return snapshot.Image{
			ID:   "ami-" + arch,
			Name: "amazon-eks-node-al2023-" + arch + "-standard",
			Requirements: []snapshot.SelectorRequirement{
				{Key: "kubernetes.io/arch", Operator: "In", Values: []string{arch}},
				{Key: awsGroup + "/instance-accelerator-count", Operator: "DoesNotExist"},
				{Key: awsGroup + "/instance-gpu-count", Operator: "DoesNotExist"},
			},
		}
	}
	return snapshot.NodeClass{
		Name:       className,
		UID:        className,
		AMIFamily:  "AL2023",
		AMIAlias:   "al2023@latest",
		Zones:      Zones(),
		Images:     []snapshot.Image{image("amd64"), image("arm64")},
		HasStatus:  true,
		Conditions: []snapshot.Condition{{Type: "Ready", Status: "True", Reason: "Ready", Since: now.Add(-time.Hour)}},
	}
}

// DaemonSets returns the two daemonsets that every node carries: 100m/128Mi and
// 50m/64Mi.
func DaemonSets() []snapshot.DaemonSet {
	daemon := func(name string, cpu, mem int64) snapshot.DaemonSet {
		return snapshot.DaemonSet{
			Namespace: "kube-system",
			Name:      name,
			UID:       name,
			Template: snapshot.PodTemplate{
				Labels: map[string]string{"app": name},
				Spec:   snapshot.PodSpec{Requests: snapshot.Resources{CPU: cpu, Memory: mem * mib, Pods: 1}},
			},
		}
	}
	return []snapshot.DaemonSet{daemon("daemon-a", 100, 128), daemon("daemon-b", 50, 64)}
}

// Snapshot returns the cluster around a workload: its pods, one pool (see Pool),
// one class, two daemonsets and no node.
func Snapshot(w Workload, spot bool, capVCPU int) *snapshot.Snapshot {
	return &snapshot.Snapshot{
		Cluster:     "bench",
		Region:      Region,
		Now:         now,
		Settings:    snapshot.DefaultSettings(),
		Pods:        w.Pods(),
		NodePools:   []snapshot.NodePool{Pool(spot, capVCPU)},
		NodeClasses: []snapshot.NodeClass{NodeClass()},
		DaemonSets:  DaemonSets(),
	}
}

// SpotPrice derives a spot price from the on-demand price (micro-dollars per hour):
// 35 to 45 % of it, by a hash of type and zone. Real spot prices change by the hour;
// measurements need some that never do.
func SpotPrice(instanceType, zone string, onDemand snapshot.Price) snapshot.Price {
	h := fnv.New64a()
	h.Write([]byte(instanceType + "/" + zone))
	share := 35_000 + int64(h.Sum64()%10_001) // in parts of 100,000
	return (onDemand*share + 50_000) / 100_000
}
