package live

import (
	"encoding/json"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"kerf.sh/kerf/internal/kube/api"
	"kerf.sh/kerf/internal/snapshot"
)

// asJSON is a patch as it is sent.
func asJSON(t *testing.T, v any) string {
	t.Helper()
	raw, err := json.Marshal(v)
	if err != nil {
		t.Fatal(err)
	}
	return string(raw)
}

func TestStatusOver(t *testing.T) {
	const have = `{"providerID":"p","capacity":{"cpu":"8","example.com/gpu":"1"},"conditions":[
		{"type":"Launched","status":"True","reason":"Launched","message":"","lastTransitionTime":"2026-11-30T10:00:00Z"},
		{"type":"Drifted","status":"True","reason":"X","message":"","lastTransitionTime":"2026-11-30T10:00:00Z"}]}`
	for _, tt := range []struct {
		name string
		s    Status
		want string
	}{
		{"nothing is said", Status{}, `{}`},
		{"what is there is said", Status{Fields: map[string]any{"providerID": "p"}, Conditions: []snapshot.Condition{{Type: "Launched", Status: "True", Since: now}}}, `{}`},
		{"a field changes", Status{Fields: map[string]any{"providerID": "q"}}, `{"providerID":"q"}`},
		{"a field goes", Status{Fields: map[string]any{"providerID": nil}}, `{"providerID":null}`},
		{"a map is taken as a whole", Status{Fields: map[string]any{"capacity": map[string]string{"cpu": "4"}}}, `{"capacity":{"cpu":"4","example.com/gpu":null}}`},
		{"a condition changes, and only its time", Status{Conditions: []snapshot.Condition{{Type: "Launched", Status: "False", Reason: "Gone", Since: now}}, Gone: []string{"Drifted"}},
			`{"conditions":[{"type":"Launched","status":"False","lastTransitionTime":"2026-11-30T12:00:00Z","reason":"Gone","message":""}]}`},
	} {
		got, err := statusPatch(&tt.s, json.RawMessage(have))
		if err != nil {
			t.Fatal(err)
		}
		if d := cmp.Diff(tt.want, asJSON(t, got)); d != "" {
			t.Errorf("%s: %s", tt.name, d)
		}
	}
	first, err := statusPatch(&Status{Conditions: []snapshot.Condition{{Type: "Ready", Status: "Unknown", Since: now}}}, nil)
	if want := `{"conditions":[{"type":"Ready","status":"Unknown","lastTransitionTime":"2026-11-30T12:00:00Z","reason":"Ready","message":""}]}`; err != nil || asJSON(t, first) != want {
		t.Errorf("%s, %v", asJSON(t, first), err)
	}
}

func TestNodeChange(t *testing.T) {
	added := metav1.NewTime(now.Add(-time.Hour))
	n := &corev1.Node{
		ObjectMeta: metav1.ObjectMeta{Name: "n", UID: "u", ResourceVersion: "5", Labels: map[string]string{"a": "1", "b": "2"}, Finalizers: []string{"other"}},
		Spec:       corev1.NodeSpec{Taints: []corev1.Taint{{Key: "karpenter.sh/unregistered", Effect: "NoExecute"}, {Key: "team", Value: "x", Effect: "NoSchedule", TimeAdded: &added}}},
	}
	for _, tt := range []struct {
		name string
		x    NodeChange
		want string
	}{
		{"nothing", NodeChange{}, `null`},
		{"nothing new", NodeChange{Labels: map[string]string{"a": "1"}, DropLabels: []string{"z"}, Taints: []snapshot.Taint{{Key: "team", Value: "x", Effect: "NoSchedule"}}, Finalizer: "other"}, `null`},
		{"labels", NodeChange{Labels: map[string]string{"a": "2", "c": ""}, DropLabels: []string{"b"}}, `{"metadata":{"labels":{"a":"2","b":null,"c":""},"resourceVersion":"5","uid":"u"}}`},
		{"a taint goes, the time of the other stays", NodeChange{DropTaints: []snapshot.Taint{{Key: "karpenter.sh/unregistered"}}},
			`{"metadata":{"resourceVersion":"5","uid":"u"},"spec":{"taints":[{"key":"team","value":"x","effect":"NoSchedule","timeAdded":"2026-11-30T11:00:00Z"}]}}`},
		{"another effect is another taint", NodeChange{DropTaints: []snapshot.Taint{{Key: "team", Effect: "NoExecute"}}}, `null`},
		{"a finalizer beside the others", NodeChange{Finalizer: TerminationFinalizer}, `{"metadata":{"finalizers":["other","karpenter.sh/termination"],"resourceVersion":"5","uid":"u"}}`},
	} {
		got := nodePatch(&tt.x, n)
		if d := cmp.Diff(tt.want, asJSON(t, got)); d != "" {
			t.Errorf("%s: %s", tt.name, d)
		}
	}
}

// TestEventName: one key, one name; a note is cut between characters.
func TestEventName(t *testing.T) {
	e := Event{Object: api.Reference{Kind: "Pod", Namespace: "shop", Name: strings.Repeat("a", 250), UID: "u"}, Key: "k", Note: strings.Repeat("é", 600)}
	a, b := wireEvent(&e), wireEvent(&e)
	e.Key = "other"
	if c := wireEvent(&e); a.Name != b.Name || a.Name == c.Name || len(a.Name) > 253 || a.Namespace != "shop" {
		t.Errorf("names %q, %q, %q", a.Name, b.Name, c.Name)
	}
	if len(a.Note) > MaxNote || !strings.HasSuffix(a.Note, "é...") {
		t.Errorf("a note of %d bytes that ends in %q", len(a.Note), a.Note[len(a.Note)-8:])
	}
}
