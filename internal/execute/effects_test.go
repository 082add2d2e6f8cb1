package execute

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"kerf.sh/kerf/internal/kube/api"
	"kerf.sh/kerf/internal/lifecycle"
	"kerf.sh/kerf/internal/snapshot"
)

// TestNodeChange: a step says which taints a Node is to have, by those that were seen; what
// is written are the differences, so that nothing comes back that somebody took off since.
func TestNodeChange(t *testing.T) {
	taint := func(key, value, effect string) snapshot.Taint {
		return snapshot.Taint{Key: key, Value: value, Effect: effect}
	}
	seen := []snapshot.Taint{taint("stays", "", "NoSchedule"), taint("changes", "old", "NoSchedule"), taint("goes", "", "NoExecute"), taint("two", "", "NoSchedule"), taint("two", "", "NoExecute")}
	s := &Stepped{Nodes: []lifecycle.Node{{Node: snapshot.Node{Name: "n", Taints: seen}}}}
	s.Step.Record.Claim = "c"
	e := lifecycle.PatchNode{
		Node: "n", UID: "u", Labels: map[string]string{"a": "b"}, Finalizer: true, Owner: "c-uid", SetTaints: true,
		Taints: []snapshot.Taint{taint("stays", "", "NoSchedule"), taint("changes", "new", "NoSchedule"), taint("comes", "", "NoSchedule"), taint("two", "", "NoExecute")},
	}
	want := api.NodeChange{
		Labels: map[string]string{"a": "b"}, Finalizer: lifecycle.Finalizer, Owner: &api.Owner{APIVersion: "karpenter.sh/v1", Kind: "NodeClaim", Name: "c", UID: "c-uid"},
		Taints:     []snapshot.Taint{taint("changes", "new", "NoSchedule"), taint("comes", "", "NoSchedule")},
		DropTaints: []snapshot.Taint{taint("goes", "", "NoExecute"), taint("two", "", "NoSchedule")},
	}
	if d := cmp.Diff(want, nodeChange(e, s)); d != "" {
		t.Errorf("change (-want +got):\n%s", d)
	}
	e = lifecycle.PatchNode{Node: "n", Labels: map[string]string{"a": "b"}, Taints: e.Taints}
	if d := cmp.Diff(api.NodeChange{Labels: map[string]string{"a": "b"}}, nodeChange(e, s)); d != "" {
		t.Errorf("change without taints (-want +got):\n%s", d)
	}
}

// TestShown: what a NodeClaim says changes with what is known of its node, and with nothing
// else.
func TestShown(t *testing.T) {
	r := lifecycle.Record{Claim: "c", Phase: lifecycle.Launched, Instance: lifecycle.Instance{ID: "i-1", Zone: "a"}}
	same := r
	same.Version, same.Step, same.Tagged = 7, 3, true
	other := r
	other.Message = "no Node has joined"
	if Shown(r) != Shown(same) || Shown(r) == Shown(other) || Shown(r) == "" {
		t.Errorf("%s, %s, %s", Shown(r), Shown(same), Shown(other))
	}
}
