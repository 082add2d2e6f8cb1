package scheduling

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"kerf.sh/kerf/internal/catalog"
	"kerf.sh/kerf/internal/snapshot"
)

const poolLabel = "karpenter.sh/nodepool"

func initialised(extra ...string) map[string]string {
	m := map[string]string{poolLabel: "a", labelRegistered: "true", labelInitialized: "true"}
	for i := 0; i < len(extra); i += 2 {
		m[extra[i]] = extra[i+1]
	}
	return m
}

func size(cpu, mem, pods int64) snapshot.Resources {
	return snapshot.Resources{CPU: cpu, Memory: mem * mib, Pods: pods}
}

// onNodes is a world with one pool, one pending pod and the given nodes.
func onNodes(p snapshot.Pod, nodes []snapshot.Node, claims ...snapshot.NodeClaim) *snapshot.Snapshot {
	s := small([]snapshot.NodePool{pool("a", types("c5.large", "m5.large"))}, p)
	for i := range claims {
		claims[i].ClassRef = s.NodePools[0].ClassRef
		if claims[i].Labels == nil {
			claims[i].Labels = map[string]string{poolLabel: "a"}
		}
	}
	s.Nodes, s.NodeClaims = nodes, claims
	return s
}

func TestNodesThatTakeAPod(t *testing.T) {
	startup := snapshot.Taint{Key: "cni.example/not-ready", Effect: noSchedule}
	unregistered := snapshot.Taint{Key: taintUnregistered, Effect: noExecute}
	plain := func(change func(n *snapshot.Node)) snapshot.Node {
		n := snapshot.Node{Name: "n1", ProviderID: "i-1", Labels: initialised(), Allocatable: size(2000, 2048, 10)}
		change(&n)
		return n
	}
	selector := func(key, value string) snapshot.PodSpec {
		return snapshot.PodSpec{NodeSelector: map[string]string{key: value}}
	}
	claim := snapshot.NodeClaim{Name: "c1", ProviderID: "i-1", StartupTaints: []snapshot.Taint{startup}, Allocatable: size(1900, 2000, 10), Capacity: size(2000, 4000, 10)}
	cases := []struct {
		name   string
		node   snapshot.Node
		claims []snapshot.NodeClaim
		spec   snapshot.PodSpec
		want   bool
	}{
		{"plain", plain(func(n *snapshot.Node) {}), nil, snapshot.PodSpec{}, true},
		{"unmanaged", plain(func(n *snapshot.Node) { n.Labels = nil }), nil, snapshot.PodSpec{}, true},
		{"cordoned", plain(func(n *snapshot.Node) { n.Unschedulable = true }), nil, snapshot.PodSpec{}, false},
		{"cordoned, tolerated", plain(func(n *snapshot.Node) { n.Unschedulable = true }), nil, snapshot.PodSpec{Tolerations: []snapshot.Toleration{{Operator: "Exists"}}}, true},
		{"deleting", plain(func(n *snapshot.Node) { n.Deleting = clock }), nil, snapshot.PodSpec{}, false},
		{"claim deleting", plain(func(n *snapshot.Node) {}), []snapshot.NodeClaim{{Name: "c1", ProviderID: "i-1", Deleting: clock}}, snapshot.PodSpec{}, false},
		{"chosen for disruption, whatever is tolerated", plain(func(n *snapshot.Node) { n.Taints = []snapshot.Taint{{Key: taintDisrupted, Effect: noSchedule}} }), nil, snapshot.PodSpec{Tolerations: []snapshot.Toleration{{Operator: "Exists"}}}, false},
		{"taint", plain(func(n *snapshot.Node) { n.Taints = []snapshot.Taint{{Key: "x", Effect: noSchedule}} }), nil, snapshot.PodSpec{}, false},
		{"preference is no filter", plain(func(n *snapshot.Node) { n.Taints = []snapshot.Taint{{Key: "x", Effect: preferNoSchedule}} }), nil, snapshot.PodSpec{}, true},
		{"not ready", plain(func(n *snapshot.Node) { n.Taints = []snapshot.Taint{{Key: taintNotReady, Effect: noSchedule}} }), nil, snapshot.PodSpec{}, false},
		{"starting: not ready, startup taint", plain(func(n *snapshot.Node) {
			delete(n.Labels, labelInitialized)
			n.Taints = []snapshot.Taint{{Key: taintNotReady, Effect: noSchedule}, startup}
		}), []snapshot.NodeClaim{claim}, snapshot.PodSpec{}, true},
		{"starting: a taint that nobody declared (BC-26)", plain(func(n *snapshot.Node) {
			delete(n.Labels, labelInitialized)
			n.Taints = []snapshot.Taint{{Key: "other", Effect: noSchedule}}
		}), []snapshot.NodeClaim{claim}, snapshot.PodSpec{}, false},
		{"started: the startup taint is back", plain(func(n *snapshot.Node) { n.Taints = []snapshot.Taint{startup} }), []snapshot.NodeClaim{claim}, snapshot.PodSpec{}, false},
		{"unregistered: labels of the claim", plain(func(n *snapshot.Node) {
			n.Labels, n.Taints = nil, []snapshot.Taint{unregistered}
		}), []snapshot.NodeClaim{{Name: "c1", ProviderID: "i-1", Labels: map[string]string{"team": "red"}, Allocatable: size(1900, 2000, 10), Capacity: size(2000, 4000, 10)}}, selector("team", "red"), true},
		{"label", plain(func(n *snapshot.Node) { n.Labels["team"] = "red" }), nil, selector("team", "red"), true},
		{"a label that the node lacks is no match (S-07)", plain(func(n *snapshot.Node) {}), nil, selector(catalog.LabelSize, "large"), false},
		{"NotIn matches a node without the label (S-07)", plain(func(n *snapshot.Node) {}), nil, snapshot.PodSpec{Required: []snapshot.NodeSelectorTerm{{Expressions: []snapshot.SelectorRequirement{req(catalog.LabelSize, "NotIn", "large")}}}}, true},
		{"its name", plain(func(n *snapshot.Node) {}), nil, snapshot.PodSpec{Required: []snapshot.NodeSelectorTerm{{Fields: []snapshot.SelectorRequirement{req("metadata.name", "In", "n1")}}}}, true},
		{"another name", plain(func(n *snapshot.Node) {}), nil, snapshot.PodSpec{Required: []snapshot.NodeSelectorTerm{{Fields: []snapshot.SelectorRequirement{req("metadata.name", "In", "n2")}}}}, false},
		{"avoids pools", plain(func(n *snapshot.Node) { n.Labels = nil }), nil, snapshot.PodSpec{Required: []snapshot.NodeSelectorTerm{{Expressions: []snapshot.SelectorRequirement{req(poolLabel, "DoesNotExist")}}}}, true},
		{"empty term", plain(func(n *snapshot.Node) {}), nil, snapshot.PodSpec{Required: []snapshot.NodeSelectorTerm{{}}}, false},
	}
	for _, c := range cases {
		p := pod("p", 100, 100)
		c.spec.Requests = p.Spec.Requests
		p.Spec = c.spec
		w, prob := world(onNodes(p, []snapshot.Node{c.node}, c.claims...))
		if got := len(allowedNodes(prob, 0)) == 1; got != c.want {
			t.Errorf("%s: taken = %v, want %v (closed %q)", c.name, got, c.want, w.Nodes[0].Closed)
		}
	}
}

func TestFreeCapacity(t *testing.T) {
	bound := func(name string, cpu int64) snapshot.Pod {
		p := pod(name, cpu, 100)
		p.NodeName = "n1"
		return p
	}
	daemonPod := bound("agent-x", 300)
	daemonPod.Owner = &snapshot.Owner{Kind: "DaemonSet", Name: "agent"}
	done := bound("done", 500)
	done.Phase = "Succeeded"
	nominated := pod("nominated", 400, 100)
	nominated.NominatedNode = "n1"
	ds := func(name string, cpu int64) snapshot.DaemonSet {
		return snapshot.DaemonSet{Namespace: "default", Name: name, Template: snapshot.PodTemplate{Spec: snapshot.PodSpec{Requests: size(cpu, 100, 1)}}}
	}
	cases := []struct {
		name    string
		pods    []snapshot.Pod
		daemons []snapshot.DaemonSet
		want    snapshot.Resources
	}{
		{"empty", nil, nil, size(2000, 2048, 10)},
		{"a pod", []snapshot.Pod{bound("x", 500)}, nil, size(1500, 1948, 9)},
		{"a finished pod", []snapshot.Pod{done}, nil, size(2000, 2048, 10)},
		{"a nominated pod holds its place", []snapshot.Pod{nominated}, nil, size(1600, 1948, 9)},
		{"a daemon pod to come", nil, []snapshot.DaemonSet{ds("agent", 300)}, size(1700, 1948, 9)},
		{"a daemon pod that is there counts once", []snapshot.Pod{daemonPod}, []snapshot.DaemonSet{ds("agent", 300)}, size(1700, 1948, 9)},
		{"two daemons, one there", []snapshot.Pod{daemonPod}, []snapshot.DaemonSet{ds("agent", 300), ds("other", 200)}, size(1500, 1848, 8)},
		{"an orphaned daemon pod never gives back", []snapshot.Pod{daemonPod}, nil, size(1700, 1948, 9)},
		{"overcommitted", []snapshot.Pod{bound("x", 2500)}, nil, size(-500, 1948, 9)},
	}
	for _, c := range cases {
		s := onNodes(pod("p", 1, 1), []snapshot.Node{{Name: "n1", Labels: initialised(), Allocatable: size(2000, 2048, 10)}})
		s.Pods = append(s.Pods, c.pods...)
		s.DaemonSets = c.daemons
		w, _ := world(s)
		if diff := cmp.Diff(c.want, w.Nodes[0].Free); diff != "" {
			t.Errorf("%s (-want +got)\n%s", c.name, diff)
		}
	}
}

func TestSizesWhileStarting(t *testing.T) {
	claim := snapshot.NodeClaim{Name: "c1", ProviderID: "i-1", Allocatable: size(1900, 2000, 29), Capacity: size(2000, 4000, 29)}
	starting := snapshot.Node{Name: "n1", ProviderID: "i-1", Labels: map[string]string{labelRegistered: "true", poolLabel: "a"}, Allocatable: size(1800, 0, 0)}
	started := starting
	started.Labels = initialised()
	open := snapshot.NodeClaim{Name: "c1", Requirements: []snapshot.SelectorRequirement{types("c5.large", "m5.2xlarge"), req(catalog.LabelCapacityType, "In", "spot")}}
	cases := []struct {
		name   string
		nodes  []snapshot.Node
		claim  snapshot.NodeClaim
		alloc  snapshot.Resources
		counts snapshot.Resources
	}{
		{"missing quantities are the claim's", []snapshot.Node{starting}, claim, size(1800, 2000, 29), size(2000, 4000, 29)},
		{"initialised: the node's word", []snapshot.Node{started}, claim, size(1800, 0, 0), size(2000, 4000, 29)},
		{"in flight", nil, claim, size(1900, 2000, 29), size(2000, 4000, 29)},
		// The least of both types, and the most for limits.
		{"not launched", nil, open, size(1930, 3114, 29), size(8000, 30310, 58)},
	}
	for _, c := range cases {
		w, _ := world(onNodes(pod("p", 1, 1), c.nodes, c.claim))
		if len(w.Nodes) != 1 {
			t.Fatalf("%s: %d nodes", c.name, len(w.Nodes))
		}
		trim := func(r snapshot.Resources) snapshot.Resources { r.Ephemeral, r.Extended = 0, nil; return r }
		if diff := cmp.Diff(c.alloc, trim(w.Nodes[0].Allocatable)); diff != "" {
			t.Errorf("%s: allocatable (-want +got)\n%s", c.name, diff)
		}
		if diff := cmp.Diff(c.counts, trim(w.Nodes[0].Capacity)); diff != "" {
			t.Errorf("%s: capacity (-want +got)\n%s", c.name, diff)
		}
		if w.Nodes[0].InFlight() != (c.nodes == nil) {
			t.Errorf("%s: in flight = %v", c.name, w.Nodes[0].InFlight())
		}
	}
}

// Claims of another provider are not ours; its nodes are nodes all the same.
func TestForeignClaims(t *testing.T) {
	s := onNodes(pod("p", 1, 1), []snapshot.Node{{Name: "auto", Allocatable: size(1000, 1000, 5)}})
	s.NodeClaims = []snapshot.NodeClaim{{Name: "auto-2", ClassRef: snapshot.ClassRef{Group: "eks.amazonaws.com"}, Allocatable: size(1000, 1000, 5)}}
	_, p := world(s)
	if diff := cmp.Diff([]string{"auto"}, allowedNodes(p, 0)); diff != "" {
		t.Errorf("nodes (-want +got)\n%s", diff)
	}
}

func TestInitialisedNodesComeFirst(t *testing.T) {
	starting := snapshot.Node{Name: "a-starting", ProviderID: "i-1", Labels: map[string]string{labelRegistered: "true", poolLabel: "a"}, Allocatable: size(1, 1, 1)}
	s := onNodes(pod("p", 1, 1), []snapshot.Node{
		starting, {Name: "z", Labels: initialised(), Allocatable: size(1, 1, 1)}, {Name: "m", Labels: initialised(), Allocatable: size(1, 1, 1)},
	}, snapshot.NodeClaim{Name: "c", ProviderID: "i-1"}, snapshot.NodeClaim{Name: "0-flight", Allocatable: size(1, 1, 1), Capacity: size(1, 1, 1)})
	_, p := world(s)
	var got []string
	for i := range p.Nodes {
		got = append(got, p.Nodes[i].Name)
	}
	if diff := cmp.Diff([]string{"m", "z", "0-flight", "a-starting"}, got); diff != "" {
		t.Errorf("nodes (-want +got)\n%s", diff)
	}
}

func TestHostPortsOnNodes(t *testing.T) {
	s := onNodes(pod("p", 1, 1), []snapshot.Node{
		{Name: "free", Labels: initialised(), Allocatable: size(1000, 1000, 5)},
		{Name: "taken", Labels: initialised(), Allocatable: size(1000, 1000, 5)},
		{Name: "daemon", Labels: initialised("agent", "yes"), Allocatable: size(1000, 1000, 5)},
	})
	s.Pods[0].Spec.HostPorts = []snapshot.HostPort{{Port: 80}}
	holder := pod("holder", 1, 1)
	holder.NodeName, holder.Spec.HostPorts = "taken", []snapshot.HostPort{{Port: 80, IP: "10.0.0.1"}}
	s.Pods = append(s.Pods, holder)
	s.DaemonSets = []snapshot.DaemonSet{{Namespace: "default", Name: "agent", Template: snapshot.PodTemplate{Spec: snapshot.PodSpec{
		NodeSelector: map[string]string{"agent": "yes"}, HostPorts: []snapshot.HostPort{{Port: 80}}}}}}
	_, p := world(s)
	if diff := cmp.Diff([]string{"free"}, allowedNodes(p, 0)); diff != "" {
		t.Errorf("nodes (-want +got)\n%s", diff)
	}
}

func TestExplainNodes(t *testing.T) {
	p := pod("p", 900, 100)
	p.Spec.NodeSelector = map[string]string{"team": "red"}
	p.Spec.HostPorts = []snapshot.HostPort{{Port: 80}}
	holder := pod("holder", 1, 1)
	holder.NodeName, holder.Spec.HostPorts = "port", []snapshot.HostPort{{Port: 80}}
	s := onNodes(p, []snapshot.Node{
		{Name: "far", Labels: initialised("team", "blue"), Taints: []snapshot.Taint{{Key: "x", Effect: noSchedule}}, Allocatable: size(100, 1000, 5)},
		{Name: "label", Labels: initialised(), Allocatable: size(1000, 1000, 5)},
		{Name: "near", Labels: initialised("team", "red"), Allocatable: size(850, 1000, 5)},
		{Name: "port", Labels: initialised("team", "red"), Allocatable: size(1000, 1000, 5)},
		{Name: "takes", Labels: initialised("team", "red"), Allocatable: size(1000, 1000, 5)},
	})
	s.Pods = append(s.Pods, holder)
	w, _ := world(s)
	free := make([]snapshot.Resources, len(w.Nodes))
	for i := range free {
		free[i] = w.Nodes[i].Free
	}
	var got []string
	for _, m := range w.ExplainNodes(0, free) {
		got = append(got, m.Node+": "+m.Detail)
	}
	want := []string{
		"near: needs 0.9 cpu, 0.85 left",
		"label: it wants team In [red], the node has no such label",
		"port: host port 80/TCP is taken",
		"far: taint x:NoSchedule is not tolerated; it wants team In [red], the node has blue; needs 0.9 cpu, 0.1 left",
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("reasons, nearest first (-want +got)\n%s", diff)
	}
	if strings.Contains(strings.Join(got, ""), "takes") {
		t.Error("a node that takes the pod needs no reason")
	}
}
