package snapshot

import (
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

// TestListsAreAllFields: every list of objects in a Snapshot (what it remembers or
// remarks is none) is one of lists, each once, and its kinds are among those that have names.
func TestListsAreAllFields(t *testing.T) {
	var s Snapshot
	v := reflect.ValueOf(&s).Elem()
	want := 0
	for i := range v.NumField() {
		f := v.Type().Field(i)
		if f.Type.Kind() != reflect.Slice || f.Type.Elem().Kind() != reflect.Struct || slices.Contains([]string{"Remarks", "Nominations", "Shortages", "Setbacks", "Rests", "Learned", "Unadmitted"}, f.Name) {
			continue
		}
		want++
		v.Field(i).Set(reflect.MakeSlice(f.Type, 1, 1))
		reached := 0
		for _, l := range lists {
			reached += l.len(&s)
		}
		if reached != want {
			t.Errorf("the lists reach %d objects where there are %d: %s is missing", reached, want, f.Name)
			want = reached
		}
	}
	if len(lists) != want {
		t.Errorf("%d lists for %d fields", len(lists), want)
	}
	for _, r := range s.Objects() {
		if r.Kind == "" { // a Workload carries its own
			continue
		}
		if !slices.ContainsFunc(kindNames, func(k kindName) bool { return k.kind == r.Kind }) {
			t.Errorf("%s has no name on the command line", r.Kind)
		}
	}
}

func TestParseRef(t *testing.T) {
	for text, want := range map[string]Ref{
		"node/a":                          {"Node", "", "a"},
		"nodes/a":                         {"Node", "", "a"},
		"NodePool/a":                      {"NodePool", "", "a"},
		"nodepool.karpenter.sh/a":         {"NodePool", "", "a"},
		"pod/ns/a":                        {"Pod", "ns", "a"},
		"po/ns/a":                         {"Pod", "ns", "a"},
		"deployment.apps/ns/web":          {"Deployment", "ns", "web"},
		"storageclasses/gp3":              {"StorageClass", "", "gp3"},
		"nodeclass/default":               {"EC2NodeClass", "", "default"},
		"ec2nodeclasses/default":          {"EC2NodeClass", "", "default"},
		"pvc/ns/data":                     {"PersistentVolumeClaim", "ns", "data"},
		"poddisruptionbudgets.policy/n/b": {"PodDisruptionBudget", "n", "b"},
	} {
		got, err := ParseRef(text)
		if err != nil || got != want {
			t.Errorf("%s: %v %v, want %v", text, got, err, want)
		}
		if again, err := ParseRef(got.String()); err != nil || again != got {
			t.Errorf("%s does not read back: %v %v", got, again, err)
		}
	}
	for text, want := range map[string]string{
		"": "want KIND/NAME", "a": "want KIND/NAME", "node/": "want KIND/NAME", "/a": "want KIND/NAME", "pod//a": "want KIND/NAME",
		"pod/a": "a pod lives in a namespace", "node/ns/a": "a node lives in no namespace", "pod/a/b/c": "a pod lives in a namespace",
		"configmap/ns/a": `kind "configmap" is not one`,
	} {
		if _, err := ParseRef(text); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: %v, want %s", text, err, want)
		}
	}
}

// TestRemoveLeavesTheOriginal: what is removed from a fork is still in the snapshot
// that it was made of.
func TestRemoveLeavesTheOriginal(t *testing.T) {
	at := time.Date(2026, 3, 4, 12, 0, 0, 0, time.UTC)
	pool := map[string]string{nodePoolLabel: "general"}
	original := func() *Snapshot {
		return &Snapshot{
			NodePools:  []NodePool{{Name: "general"}, {Name: "other"}},
			Nodes:      []Node{{Name: "a", ProviderID: "i-a", Labels: pool}, {Name: "b", Labels: pool}, {Name: "c"}},
			NodeClaims: []NodeClaim{{Name: "general-a", ProviderID: "i-a", Labels: pool}, {Name: "general-x", Labels: pool}, {Name: "other-y"}},
			Workloads:  []Workload{{Kind: "Deployment", Namespace: "ns", Name: "web"}, {Kind: "ReplicaSet", Namespace: "ns", Name: "web-1", Owner: &Owner{Kind: "Deployment", Name: "web"}}},
			Pods: []Pod{
				{Namespace: "ns", Name: "web-1-a", Owner: &Owner{Kind: "ReplicaSet", Name: "web-1"}},
				{Namespace: "ns", Name: "db-0", Owner: &Owner{Kind: "StatefulSet", Name: "db"}},
				{Namespace: "other", Name: "web-1-a", Owner: &Owner{Kind: "ReplicaSet", Name: "web-1"}},
			},
			Namespaces: []Namespace{{Name: "ns"}},
			Budgets:    []PodDisruptionBudget{{Namespace: "ns", Name: "web"}},
		}
	}
	names := func(refs []Ref) (out []string) {
		for _, r := range refs {
			out = append(out, r.String())
		}
		return out
	}
	for _, tc := range []struct {
		remove      Ref
		going, gone []string
		left        int
	}{
		{Ref{"NodePool", "", "general"}, []string{"node/a", "node/b", "nodeclaim/general-a", "nodeclaim/general-x"}, nil, 14},
		{Ref{"Node", "", "a"}, []string{"node/a", "nodeclaim/general-a"}, nil, 15},
		{Ref{"Node", "", "c"}, []string{"node/c"}, nil, 15},
		{Ref{"NodeClaim", "", "general-a"}, []string{"node/a", "nodeclaim/general-a"}, nil, 15},
		{Ref{"Deployment", "ns", "web"}, nil, []string{"pod/ns/web-1-a", "replicaset/ns/web-1"}, 12},
		{Ref{"ReplicaSet", "ns", "web-1"}, nil, []string{"pod/ns/web-1-a"}, 13},
		{Ref{"Namespace", "", "ns"}, nil, []string{"deployment/ns/web", "pod/ns/db-0", "pod/ns/web-1-a", "poddisruptionbudget/ns/web", "replicaset/ns/web-1"}, 9},
		{Ref{"PodDisruptionBudget", "ns", "web"}, nil, nil, 14},
	} {
		s := original()
		f := s.Fork()
		got := f.Remove([]Ref{tc.remove}, at)
		if len(got) != 1 || got[0].Object != tc.remove {
			t.Fatalf("%s: %+v", tc.remove, got)
		}
		if diff := cmp.Diff(tc.going, names(got[0].Going)); diff != "" {
			t.Errorf("%s: going\n%s", tc.remove, diff)
		}
		if diff := cmp.Diff(tc.gone, names(got[0].Gone)); diff != "" {
			t.Errorf("%s: gone\n%s", tc.remove, diff)
		}
		if n := len(f.Objects()); n != tc.left {
			t.Errorf("%s: %d objects are left, want %d: %v", tc.remove, n, tc.left, f.Objects())
		}
		if diff := cmp.Diff(original(), s); diff != "" {
			t.Errorf("%s: the original has changed\n%s", tc.remove, diff)
		}
		going := f.Going()
		for _, r := range got[0].Going {
			if !going[r.Name] {
				t.Errorf("%s: %s is not going", tc.remove, r)
			}
		}
		if again := f.Remove([]Ref{tc.remove}, at.Add(time.Hour)); len(again[0].Going)+len(again[0].Gone) > 0 {
			t.Errorf("%s: removed twice: %+v", tc.remove, again)
		}
	}
}
