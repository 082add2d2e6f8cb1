package scheduling

import (
	"testing"

	"kerf.sh/kerf/internal/catalog"
	"kerf.sh/kerf/internal/snapshot"
)

// TestTaken: a nomination does not hold against a pod that got the place and keeps others
// away, or that the nominated pod keeps away from.
func TestTaken(t *testing.T) {
	apart := func(weight int32, key string) []snapshot.PodAffinityTerm {
		return []snapshot.PodAffinityTerm{{Weight: weight, TopologyKey: key, Selector: &snapshot.LabelSelector{MatchLabels: map[string]string{"app": "a"}}}}
	}
	pod := func(name, app, node string, anti []snapshot.PodAffinityTerm) snapshot.Pod {
		return snapshot.Pod{Namespace: "default", Name: name, UID: name, NodeName: node, Labels: map[string]string{"app": app}, Spec: snapshot.PodSpec{Anti: anti}}
	}
	for _, tt := range []struct {
		name      string
		nominated snapshot.Pod
		bound     snapshot.Pod
		want      bool
	}{
		{"its own rule", pod("x", "b", "", apart(0, catalog.LabelHostname)), pod("y", "a", "n", nil), true},
		{"that of the other", pod("x", "a", "", nil), pod("y", "b", "n", apart(0, catalog.LabelHostname)), true},
		{"another node", pod("x", "a", "", apart(0, catalog.LabelHostname)), pod("y", "a", "m", nil), false},
		{"a preference", pod("x", "a", "", apart(5, catalog.LabelHostname)), pod("y", "a", "n", nil), false},
		{"about zones", pod("x", "a", "", apart(0, catalog.LabelZone)), pod("y", "a", "n", nil), false},
		{"others are meant", pod("x", "c", "", apart(0, catalog.LabelHostname)), pod("y", "c", "n", nil), false},
	} {
		s := &snapshot.Snapshot{Pods: []snapshot.Pod{tt.nominated, tt.bound}}
		if got := tenantsOf(s).taken(&s.Pods[0], "n"); got != tt.want {
			t.Errorf("%s: %v", tt.name, got)
		}
	}
}
