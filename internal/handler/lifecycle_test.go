package handler_test

import (
	"slices"
	"strings"
	"testing"
	"time"

	"kerf.sh/kerf/internal/snapshot"
)

// TestLife: nodes join, are registered and opened for their pods, and are then left alone;
// NodeClaims tell each stage, and in the end nobody looks any more.
func TestLife(t *testing.T) {
	w := newLifeWorld(t)
	w.rounds = false
	w.launch(2)
	w.want("launched", "Launched Launched", 2)
	r := w.record(0)
	w.pass(8 * time.Second)
	if got := w.kube.condition(r.Claim, "Launched") + ", " + w.kube.condition(r.Claim, "Registered"); got != "True Launched, Unknown NodeNotFound" {
		t.Errorf("the NodeClaim says %q", got)
	}
	o := w.kube.claims[r.Claim]
	for key, want := range map[string]string{"node.kubernetes.io/instance-type": "m5.large", "topology.kubernetes.io/zone": "us-east-1a", "karpenter.sh/capacity-type": "on-demand"} {
		if o.meta.Labels[key] != want {
			t.Errorf("label %s of the NodeClaim is %q, want %q", key, o.meta.Labels[key], want)
		}
	}
	w.pass(3 * time.Minute)
	w.want("joined", "Initialized Initialized", 2)
	if len(w.queue) != 0 {
		t.Errorf("%d messages are left when nothing is in flight", len(w.queue))
	}
	for i := range 2 {
		r := w.record(i)
		n := w.kube.nodes[r.Node]
		if n.node.Unschedulable || n.meta.Annotations["kerf.sh/opening"] != "" || len(n.node.Taints) != 0 {
			t.Errorf("node %s is not open: %+v %v", r.Node, n.node, n.meta.Annotations)
		}
		if n.meta.Labels["team"] != "blue" || n.meta.Labels["karpenter.sh/registered"] != "true" || n.owner != r.UID || !slices.Contains(n.meta.Finalizers, "karpenter.sh/termination") {
			t.Errorf("node %s is not registered: %+v, owner %s", r.Node, n.meta, n.owner)
		}
		if got := w.kube.condition(r.Claim, "Ready"); got != "True Ready" {
			t.Errorf("NodeClaim %s is Ready=%q", r.Claim, got)
		}
		status := w.kube.claims[r.Claim].status.Fields
		if status["providerID"] != r.Instance.ProviderID() || status["nodeName"] != r.Node || status["imageID"] != "ami-1" {
			t.Errorf("status of %s: %v", r.Claim, status)
		}
		if !r.Tagged || r.Allocatable.CPU != 1900 {
			t.Errorf("record %+v", r)
		}
	}
	for _, p := range w.kube.pods {
		if p.NodeName == "" {
			t.Errorf("pod %s has no node; nominated %v", p.Name, w.kube.nominated)
		}
	}
	for _, i := range w.ec2.Instances() {
		if i.Tags["karpenter.sh/nodeclaim"] == "" || i.Tags["Name"] != "node-"+i.ID {
			t.Errorf("tags of %s: %v", i.ID, i.Tags)
		}
	}
	sizes, err := w.memory.LearnedSizes(background)
	if err != nil || len(sizes) != 1 || sizes[0].Allocatable.Memory != 7<<30 {
		t.Errorf("learned %+v, %v", sizes, err)
	}
	if p := w.problems(); len(p)+len(w.errs) > 0 {
		t.Errorf("problems %v, errors %v", p, w.errs)
	}
}

// TestShutUntilNominated: a node that was made for pods takes none until these are
// nominated; the pods of DaemonSets come before.
func TestShutUntilNominated(t *testing.T) {
	w := newLifeWorld(t)
	w.launch(1)
	r := w.record(0)
	shut := false
	for range 60 {
		w.pass(time.Second)
		o := w.kube.nodes["node-"+r.Instance.ID]
		if o == nil || o.meta.Labels["karpenter.sh/registered"] == "" {
			continue
		}
		if len(w.kube.nominated) == 0 {
			shut = true
			if !o.node.Unschedulable {
				t.Fatalf("registered, open, and nothing nominated: %+v", o.node)
			}
		}
	}
	if !shut || len(w.kube.nominated) != 1 || w.kube.pods[0].NodeName == "" {
		t.Errorf("shut %v, nominated %v, pod on %q", shut, w.kube.nominated, w.kube.pods[0].NodeName)
	}
}

// TestNominationRefused: a node does not stay shut for ever because pods cannot be nominated.
func TestNominationRefused(t *testing.T) {
	w := newLifeWorld(t)
	w.kube.fail = func(verb, _, _ string) error {
		if verb == "nominate" {
			return errTest
		}
		return nil
	}
	w.launch(1)
	w.pass(3 * time.Minute)
	w.want("without nominations", "Initialized", 1)
	if o := w.kube.nodes[w.record(0).Node]; o.node.Unschedulable {
		t.Error("the node is still cordoned")
	}
}

// TestOpenTogether: nodes whose pods are spread over zones open together: the one that is
// ready waits for the other, but not for ever.
func TestOpenTogether(t *testing.T) {
	for _, late := range []time.Duration{15 * time.Second, 5 * time.Minute} {
		w := newLifeWorld(t)
		w.launch(2)
		for i := range w.kube.pods {
			p := &w.kube.pods[i]
			p.Owner = &snapshot.Owner{Kind: "ReplicaSet", Name: "p", UID: "rs"}
			p.Spec.Spread = []snapshot.TopologySpread{{MaxSkew: 1, TopologyKey: "topology.kubernetes.io/zone", WhenUnsatisfiable: "DoNotSchedule", Selector: &snapshot.LabelSelector{MatchLabels: p.Labels}}}
		}
		slow := w.record(1)
		w.late = map[string]time.Duration{slow.Instance.ID: late}
		opened := map[string]time.Time{}
		for range 420 {
			w.pass(time.Second)
			for name, o := range w.kube.nodes {
				if _, ok := opened[name]; !ok && o.meta.Labels["karpenter.sh/registered"] != "" && !o.node.Unschedulable {
					opened[name] = w.now
				}
			}
		}
		first, second := opened["node-"+w.record(0).Instance.ID], opened["node-"+slow.Instance.ID]
		if first.IsZero() || second.IsZero() {
			t.Fatalf("%s late: opened %v", late, opened)
		}
		apart := second.Sub(first)
		if late < time.Minute && apart > 3*time.Second || late > time.Minute && apart < 3*time.Minute {
			t.Errorf("%s late: they open %s apart", late, apart)
		}
		w.want("in the end", twoInUse, 2)
	}
}

// TestClaimedAgain: a pod that did not get its place is claimed again.
func TestClaimedAgain(t *testing.T) {
	w := newLifeWorld(t)
	w.launch(1)
	lost := 0
	for range 90 {
		w.now = w.now.Add(time.Second)
		w.deliver()
		if p := &w.kube.pods[0]; p.NominatedNode != "" && lost < 2 {
			p.NominatedNode = "" // kube-scheduler found no room in that attempt
			lost++
		}
		w.kubelets()
	}
	if lost != 2 || len(w.kube.nominated) != 3 || w.kube.pods[0].NodeName == "" {
		t.Errorf("lost %d times, nominated %v, pod on %q", lost, w.kube.nominated, w.kube.pods[0].NodeName)
	}
}

// TestCordonOfAPerson: a cordon that is not ours is not lifted.
func TestCordonOfAPerson(t *testing.T) {
	w := newLifeWorld(t)
	w.launch(1)
	id := w.record(0).Instance.ID
	for w.kube.nodes["node-"+id] == nil {
		w.now = w.now.Add(time.Second)
		w.kubelets()
	}
	w.kube.nodes["node-"+id].node.Unschedulable = true
	w.pass(3 * time.Minute)
	w.want("cordoned", "Initialized", 1)
	if !w.kube.nodes["node-"+id].node.Unschedulable {
		t.Error("the cordon of a person was lifted")
	}
}

// TestPersonDeletes: whoever deletes a NodeClaim or a Node ends the instance, once no pod
// is left but those that go with the node; then both objects and the record are gone.
func TestPersonDeletes(t *testing.T) {
	for _, kind := range []string{"NodeClaim", "Node"} {
		t.Run(kind, func(t *testing.T) {
			w := newLifeWorld(t)
			w.launch(1)
			w.pass(3 * time.Minute)
			w.want("joined", "Initialized", 1)
			r := w.record(0)
			w.kube.pods = append(w.kube.pods,
				snapshot.Pod{Namespace: "kube-system", Name: "proxy", UID: "d", NodeName: r.Node, Owner: &snapshot.Owner{Kind: "DaemonSet"}},
				snapshot.Pod{Namespace: "shop", Name: "done", UID: "e", NodeName: r.Node, Phase: "Succeeded"},
				snapshot.Pod{Namespace: "kube-system", Name: "static", UID: "m", NodeName: r.Node, Annotations: map[string]string{"kubernetes.io/config.mirror": "x"}})
			name := r.Claim
			if kind == "Node" {
				name = r.Node
			}
			blockedPods[w.kube] = map[string]string{"p-1": "PodDisruptionBudget one allows none now"}
			w.deleteAs(kind, name)
			w.pass(3 * time.Minute)
			w.want("a pod is on it", "Draining", 1)
			is := w.record(0)
			if want := "Deleted: waits for 2 pods to leave: kube-system/proxy, shop/p-1"; is.Message != want {
				t.Errorf("the record says %q, want %q", is.Message, want)
			}
			if e := w.event("FailedDraining"); e == nil || !strings.Contains(e.Note, "shop/p-1") {
				t.Errorf("events %+v", w.kube.events)
			}
			n := w.kube.nodes[r.Node]
			if !slices.ContainsFunc(n.node.Taints, func(x snapshot.Taint) bool { return x.Key == "karpenter.sh/disrupted" }) || n.meta.Labels["node.kubernetes.io/exclude-from-external-load-balancers"] == "" {
				t.Errorf("node %+v", n)
			}
			if w.kube.claims[r.Claim].meta.Deleting.IsZero() {
				t.Error("the NodeClaim is not being deleted")
			}
			w.kube.pods = slices.DeleteFunc(w.kube.pods, func(p snapshot.Pod) bool { return p.Name == "p-1" })
			w.pass(4 * time.Minute)
			w.want("empty", "", 0)
			if len(w.kube.claims)+len(w.kube.nodes) != 0 {
				t.Errorf("left: %d NodeClaims, %d Nodes", len(w.kube.claims), len(w.kube.nodes))
			}
			if c := w.closed(); len(c) != 1 || c[0].Reason != "Deleted" {
				t.Errorf("closed %+v", c)
			}
			usage, err := w.memory.Usage(background)
			if err != nil || usage["general"]["nodes"] != 0 {
				t.Errorf("usage %v, %v", usage, err)
			}
			if len(w.queue) != 0 {
				t.Errorf("%d messages are left", len(w.queue))
			}
		})
	}
}
