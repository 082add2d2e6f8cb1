package workload

import (
	"cmp"
	"fmt"
	"math/rand"
	"slices"
	"sort"
	"time"

	"kerf.sh/kerf/internal/snapshot"
)

// NodeType is what nodes of an instance type look like: labels without zone,
// hostname and capacity type.
type NodeType struct {
	Name                  string
	Labels                map[string]string
	Capacity, Allocatable snapshot.Resources
}

// World is a running cluster.
type World struct {
	Nodes  []snapshot.Node
	Claims []snapshot.NodeClaim
	Pods   []snapshot.Pod // bound ones: the workload's and the daemonsets'
}

// Running returns a cluster of on-demand nodes whose pods (shapes of mixedweb) ask for
// about use percent of each node, half to one and a half times as much, daemonset pods
// included. Types are used in random order. Equal arguments give equal clusters.
func Running(types []NodeType, nodes, use int, seed int64) World {
	deployments := Named(MixedWeb, 10_000).Deployments
	upTo := make([]int, len(deployments)) // of replicas, to draw by weight
	total := 0
	for i, d := range deployments {
		total += d.Replicas
		upTo[i] = total
	}
	r := rand.New(rand.NewSource(seed))
	zones := Zones()
	var w World
	for i := range nodes {
		t := &types[r.Intn(len(types))]
		n := node(fmt.Sprintf("node-%d", i), t, zones[i%len(zones)])
		w.Nodes = append(w.Nodes, n)
		w.Claims = append(w.Claims, claim(&n))
		var used snapshot.Resources
		for _, d := range DaemonSets() {
			w.Pods = append(w.Pods, bound(&n, d.Namespace, d.Name+"-"+n.Name, d.Template,
				snapshot.Owner{APIVersion: "apps/v1", Kind: "DaemonSet", Name: d.Name, UID: d.UID}))
			used = used.Add(d.Template.Spec.Requests)
		}
		share := func(u snapshot.Resources) float64 {
			return max(float64(u.CPU)/float64(t.Allocatable.CPU), float64(u.Memory)/float64(t.Allocatable.Memory))
		}
		target := float64(use) / 100 * (0.5 + r.Float64())
		for range 60 {
			if share(used) >= target {
				break
			}
			d := &deployments[sort.SearchInts(upTo, r.Intn(total)+1)]
			next := used.Add(d.spec().Requests)
			if share(next) > target+0.12 || next.Pods > t.Allocatable.Pods {
				continue
			}
			used = next
			template := snapshot.PodTemplate{Labels: map[string]string{"app": d.Name}, Spec: d.spec()}
			w.Pods = append(w.Pods, bound(&n, "default", fmt.Sprintf("run-%s-%d", d.Name, len(w.Pods)), template,
				snapshot.Owner{APIVersion: "apps/v1", Kind: "ReplicaSet", Name: "run-" + d.Name, UID: "run-" + d.Name}))
		}
	}
	slices.SortFunc(w.Nodes, func(a, b snapshot.Node) int { return cmp.Compare(a.Name, b.Name) })
	slices.SortFunc(w.Claims, func(a, b snapshot.NodeClaim) int { return cmp.Compare(a.Name, b.Name) })
	slices.SortFunc(w.Pods, func(a, b snapshot.Pod) int { return cmp.Compare(a.Ref(), b.Ref()) })
	return w
}

// Join adds a running cluster to a snapshot.
func (w World) Join(s *snapshot.Snapshot) {
	s.Nodes = append(s.Nodes, w.Nodes...)
	s.NodeClaims = append(s.NodeClaims, w.Claims...)
	s.Pods = append(s.Pods, w.Pods...)
	slices.SortFunc(s.Pods, func(a, b snapshot.Pod) int { return cmp.Compare(a.Ref(), b.Ref()) })
}

func node(name string, t *NodeType, zone snapshot.SubnetZone) snapshot.Node {
	labels := make(map[string]string, len(t.Labels)+8)
	for k, v := range t.Labels {
		labels[k] = v
	}
	labels["kubernetes.io/hostname"] = name
	labels["node.kubernetes.io/instance-type"] = t.Name
	labels["topology.kubernetes.io/zone"] = zone.Zone
	labels["topology.k8s.aws/zone-id"] = zone.ZoneID
	labels["karpenter.sh/capacity-type"] = "on-demand"
	labels["karpenter.sh/nodepool"] = poolName
	labels["karpenter.sh/registered"] = "true"
	labels["karpenter.sh/initialized"] = "true"
	return snapshot.Node{
		Name: name, UID: name, ProviderID: "aws:///" + zone.Zone + "/i-" + name, Labels: labels,
		Capacity: t.Capacity, Allocatable: t.Allocatable, Created: now.Add(-time.Hour),
		Conditions: []snapshot.Condition{{Type: "Ready", Status: "True", Reason: "KubeletReady", Since: now.Add(-time.Hour)}},
	}
}

func claim(n *snapshot.Node) snapshot.NodeClaim {
	c := snapshot.NodeClaim{
		Name: "claim-" + n.Name, UID: "claim-" + n.Name, Labels: map[string]string{},
		ClassRef:   snapshot.ClassRef{Group: awsGroup, Kind: "EC2NodeClass", Name: className},
		ProviderID: n.ProviderID, NodeName: n.Name, Capacity: n.Capacity, Allocatable: n.Allocatable, Created: n.Created,
	}
	for k, v := range n.Labels {
		c.Labels[k] = v
	}
	for _, typ := range []string{"Launched", "Registered", "Initialized", "Ready"} {
		c.Conditions = append(c.Conditions, snapshot.Condition{Type: typ, Status: "True", Reason: typ, Since: n.Created})
	}
	return c
}

func bound(n *snapshot.Node, namespace, name string, t snapshot.PodTemplate, owner snapshot.Owner) snapshot.Pod {
	return snapshot.Pod{
		Namespace: namespace, Name: name, UID: name, Labels: t.Labels, Owner: &owner, Created: n.Created, Spec: t.Spec,
		NodeName: n.Name, Phase: "Running", Started: n.Created,
		Scheduled: &snapshot.Condition{Type: "PodScheduled", Status: "True", Since: n.Created},
		Ready:     &snapshot.Condition{Type: "Ready", Status: "True", Since: n.Created},
	}
}
