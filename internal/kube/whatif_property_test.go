package kube_test

import (
	"fmt"
	"io"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"kerf.sh/kerf/internal/kube"
	"kerf.sh/kerf/internal/plan"
	"kerf.sh/kerf/internal/snapshot"
	"kerf.sh/kerf/internal/worldtest"
)

func source(name, text string) kube.Source {
	return kube.Source{Name: name, Open: func() (io.ReadCloser, error) { return io.NopCloser(strings.NewReader(text)), nil }}
}

const between = "\n---\n"

// documents draws a world and splits its manifests into those of the overlay, 1 to 6
// of those that may be, and the rest. Workloads may not: those of an overlay get their
// pods.
func documents(t *rapid.T, not ...string) (rest, overlay []string) {
	w := worldtest.Draw(rapid.Uint64Range(0, 1<<20).Draw(t, "world"))
	not = append(not, "Deployment", "ReplicaSet", "StatefulSet", "Job")
	for _, d := range strings.Split(strings.Trim(w.Manifests(), "-\n"), between) {
		if isAny(d, not) {
			rest = append(rest, d)
		} else {
			overlay = append(overlay, d)
		}
	}
	picked := rapid.SliceOfNDistinct(rapid.IntRange(0, len(overlay)-1), 1, min(6, len(overlay)), rapid.ID[int]).Draw(t, "overlay")
	all := overlay
	overlay = nil
	for i, d := range all {
		if slices.Contains(picked, i) {
			overlay = append(overlay, d)
		} else {
			rest = append(rest, d)
		}
	}
	if len(rest) == 0 { // a file without a document is an error of its own
		rest = []string{"apiVersion: v1\nkind: Namespace\nmetadata: {name: beside}"}
	}
	return rest, overlay
}

func isAny(document string, kinds []string) bool {
	return slices.ContainsFunc(kinds, func(k string) bool {
		return strings.Contains(document, "kind: "+k+"\n") || strings.Contains(document, `"kind":"`+k+`"`)
	})
}

// whatIf reads documents with others laid over them and some removed. bytes is what is
// saved of the changed cluster.
func whatIf(t *rapid.T, rest, overlay []string, remove ...snapshot.Ref) (before, after *kube.Reading, bytes string) {
	t.Helper()
	ov := kube.Overlay{Remove: remove}
	for i, d := range overlay {
		ov.Sources = append(ov.Sources, source(fmt.Sprintf("what-if-%d.yaml", i), d))
	}
	before, after, err := kube.ReadWhatIf([]kube.Source{source("world.yaml", strings.Join(rest, between))}, ov, options)
	if err != nil {
		t.Fatal(err)
	}
	return before, after, saved(t, after.Snapshot)
}

func asFiles(t *rapid.T, docs []string) (*snapshot.Snapshot, *kube.Report) {
	t.Helper()
	s, report, err := kube.Read([]kube.Source{source("world.yaml", strings.Join(docs, between))}, options)
	if err != nil {
		t.Fatal(err)
	}
	return s, report
}

func saved(t *rapid.T, s *snapshot.Snapshot) string {
	t.Helper()
	var b strings.Builder
	if err := kube.Save(&b, s); err != nil {
		t.Fatal(err)
	}
	return b.String()
}

var options = kube.Options{Now: worldtest.Clock}

// admitted are objects that admission changes, admission what changes it.
var (
	admitted = []string{
		`{"apiVersion":"v1","kind":"Pod","metadata":{"name":"zz-manifest","namespace":"shop"},"spec":{"runtimeClassName":"sandbox","priorityClassName":"high","containers":[{"name":"c","resources":{"limits":{"memory":"1Gi"}}}]}}`,
		`{"apiVersion":"apps/v1","kind":"DaemonSet","metadata":{"name":"zz-agent","namespace":"shop"},"spec":{"selector":{},"template":{"spec":{"tolerations":[{"key":"a"}],"containers":[{"name":"c"}]}}}}`,
		`{"apiVersion":"v1","kind":"LimitRange","metadata":{"name":"zz-there","namespace":"shop"},"spec":{"limits":[{"type":"Container","defaultRequest":{"cpu":"10m"}}]}}`,
		`{"apiVersion":"node.k8s.io/v1","kind":"RuntimeClass","metadata":{"name":"sandbox"},"handler":"h","overhead":{"podFixed":{"cpu":"250m"}},"scheduling":{"nodeSelector":{"sandbox":"yes"},"tolerations":[{"key":"b"}]}}`,
	}
	admission = []string{
		`{"apiVersion":"v1","kind":"LimitRange","metadata":{"name":"zz-there","namespace":"shop"},"spec":{"limits":[{"type":"Container","defaultRequest":{"cpu":"100m"}}]}}`,
		`{"apiVersion":"v1","kind":"LimitRange","metadata":{"name":"zz-new","namespace":"shop"},"spec":{"limits":[{"type":"Container","defaultRequest":{"memory":"64Mi"}}]}}`,
		`{"apiVersion":"node.k8s.io/v1","kind":"RuntimeClass","metadata":{"name":"sandbox"},"handler":"h","overhead":{"podFixed":{"cpu":"500m"}},"scheduling":{"nodeSelector":{"sandbox":"no"}}}`,
		`{"apiVersion":"scheduling.k8s.io/v1","kind":"PriorityClass","metadata":{"name":"high"},"value":1000}`,
		`{"apiVersion":"scheduling.k8s.io/v1","kind":"PriorityClass","metadata":{"name":"zz-all"},"value":7,"globalDefault":true}`,
	}
)

// strip writes a snapshot without what it keeps for being saved.
func strip(t *rapid.T, s *snapshot.Snapshot) string {
	t.Helper()
	out := *s
	out.Unadmitted, out.Remarks = nil, nil
	return saved(t, &out)
}

// emulated are the warnings about emulated admission, told by object.
func emulated(r *kube.Reading) []string {
	var out []string
	for _, w := range r.Report.Warnings {
		if w.Code == plan.EmulatedAdmission {
			out = append(out, w.Object+" "+w.Detail)
		}
	}
	return out
}

func added(after *kube.Reading) []snapshot.Ref {
	var out []snapshot.Ref
	for _, c := range after.Report.Changes {
		if r, err := snapshot.ParseRef(c.Object); err == nil && c.Kind == plan.Added {
			out = append(out, r)
		}
	}
	return out
}

// TestOverlayActsAsIfItsObjectsHadBeenInTheFiles, admission included.
func TestOverlayActsAsIfItsObjectsHadBeenInTheFiles(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		rest, overlay := documents(t)
		_, after, got := whatIf(t, rest, overlay)
		want, report := asFiles(t, slices.Concat(rest, overlay))
		if got != saved(t, want) {
			t.Fatalf("laid over:\n%s\nin the files:\n%s", got, saved(t, want))
		}
		if fmt.Sprint(after.Report.Objects) != fmt.Sprint(report.Objects) || len(after.Report.Left) != len(report.Left) || fmt.Sprint(after.Report.Warnings) != fmt.Sprint(report.Warnings) {
			t.Fatalf("%+v\nin the files\n%+v", after.Report, report)
		}
		if n := len(added(after)); n != len(overlay)-len(report.Left) {
			t.Fatalf("%d objects are added of %d", n, len(overlay))
		}
	})
}

// TestAddedThenRemovedIsIdentity.
func TestAddedThenRemovedIsIdentity(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		rest, overlay := documents(t)
		_, after, _ := whatIf(t, rest, overlay)
		before, after, got := whatIf(t, rest, overlay, added(after)...)
		if want := saved(t, before.Snapshot); got != want || len(after.Report.Changes) > 0 {
			t.Fatalf("added and removed:\n%s\nbefore:\n%s\nchanges %+v", got, want, after.Report.Changes)
		}
	})
}

// TestOrderOfOverlaysDoesNotMatter unless they hold the same object: then the last
// counts.
func TestOrderOfOverlaysDoesNotMatter(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		rest, overlay := documents(t)
		_, _, want := whatIf(t, rest, overlay)
		shuffled := rapid.Permutation(overlay).Draw(t, "order")
		if _, _, got := whatIf(t, rest, shuffled); got != want {
			t.Fatalf("in another order:\n%s\nwant\n%s", got, want)
		}
		// The same objects before, without what they say: overwritten.
		var stale []string
		for _, d := range overlay {
			if !strings.Contains(d, `"annotations"`) {
				d = strings.Replace(d, `"metadata":{`, `"metadata":{"annotations":{"stale.k8s.io/a":"b"},`, 1)
			}
			stale = append(stale, d)
		}
		_, after, got := whatIf(t, rest, slices.Concat(stale, overlay))
		if got != want {
			t.Fatalf("twice:\n%s\nwant\n%s", got, want)
		}
		twice := 0
		for _, w := range after.Report.Warnings {
			if w.Code == plan.DuplicateObject {
				twice++
			}
		}
		if n := len(added(after)); twice != n {
			t.Fatalf("%d warnings of %d doubled objects: %+v", twice, n, after.Report.Warnings)
		}
	})
}

// TestOverlayOfWhatIsThereChangesNothing, and says so.
func TestOverlayOfWhatIsThereChangesNothing(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		rest, overlay := documents(t)
		before, after, got := whatIf(t, slices.Concat(rest, overlay), overlay)
		if want := saved(t, before.Snapshot); got != want {
			t.Fatalf("laid over itself:\n%s\nwant\n%s", got, want)
		}
		for _, c := range after.Report.Changes {
			if c.Kind != plan.Unchanged {
				t.Fatalf("%+v", c)
			}
		}
	})
}

// TestOverlayOnASavedSnapshot is the same as on the files that it was made of.
func TestOverlayOnASavedSnapshot(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		rest, overlay := documents(t)
		rest = append(rest, admitted...)
		extra := rapid.SampledFrom(append(admission, "")).Draw(t, "admission")
		if extra != "" {
			overlay = append(overlay, extra)
		}
		o := options
		o.Unadmitted = true
		s, _, err := kube.Read([]kube.Source{source("world.yaml", strings.Join(rest, between))}, o)
		if err != nil {
			t.Fatal(err)
		}
		before, files, want := whatIf(t, rest, overlay)
		again, snap, got := whatIf(t, []string{saved(t, s)}, overlay)
		if strip(t, snap.Snapshot) != strip(t, files.Snapshot) {
			t.Fatalf("on the saved snapshot:\n%s\non the files\n%s", got, want)
		}
		if strip(t, again.Snapshot) != strip(t, before.Snapshot) {
			t.Fatal("the saved snapshot is another one without the overlay")
		}
		if a, b := emulated(files), emulated(snap); len(a) > 0 && len(extra) > 0 && !slices.Equal(a, b) {
			t.Fatalf("remarks %v\non the files %v", b, a)
		}
	})
}

// TestRemovals: any object can be removed; what is left is what was there but for it
// and what the report says went with it, and the reading without is untouched.
func TestRemovals(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		rest, overlay := documents(t)
		docs := slices.Concat(rest, overlay)
		plain, _ := asFiles(t, docs)
		victim := rapid.SampledFrom(plain.Objects()).Draw(t, "remove")
		before, after, _ := whatIf(t, docs, nil, victim)
		if saved(t, before.Snapshot) != saved(t, plain) {
			t.Fatalf("removing %s changes the reading without it", victim)
		}
		if len(after.Report.Changes) != 1 || after.Report.Changes[0].Object != victim.String() {
			t.Fatalf("%s: %+v", victim, after.Report.Changes)
		}
		gone := map[string]bool{victim.String(): victim.Kind != "Node" && victim.Kind != "NodeClaim"}
		for _, o := range after.Report.Changes[0].With {
			if !strings.HasPrefix(o, "node/") && !strings.HasPrefix(o, "nodeclaim/") {
				gone[o] = true
			}
		}
		var want []string
		for _, r := range plain.Objects() {
			if !gone[r.String()] {
				want = append(want, r.String())
			}
		}
		var got []string
		for _, r := range after.Snapshot.Objects() {
			got = append(got, r.String())
		}
		if !slices.Equal(got, want) {
			t.Fatalf("%s: left are %v, want %v", victim, got, want)
		}
	})
}

// TestPlannedPodsOfASavedSnapshot: pods that --workloads made are saved with what their
// template said, so that a LimitRange laid over them counts.
func TestPlannedPodsOfASavedSnapshot(t *testing.T) {
	const deployment = `{apiVersion: apps/v1, kind: Deployment, metadata: {name: web, namespace: shop}, spec: {replicas: 2, selector: {}, template: {spec: {containers: [{name: c}]}}}}`
	s, _, err := kube.Read([]kube.Source{source("world.yaml", deployment)}, kube.Options{Now: worldtest.Clock, Workloads: true, Unadmitted: true})
	if err != nil {
		t.Fatal(err)
	}
	var b strings.Builder
	if err := kube.Save(&b, s); err != nil {
		t.Fatal(err)
	}
	over := kube.Overlay{Sources: []kube.Source{source("limits.yaml",
		`{apiVersion: v1, kind: LimitRange, metadata: {name: all, namespace: shop}, spec: {limits: [{type: Container, defaultRequest: {cpu: 100m}}]}}`)}}
	before, after, err := kube.ReadWhatIf([]kube.Source{source("saved.json", b.String())}, over, kube.Options{})
	if err != nil {
		t.Fatal(err)
	}
	for _, tc := range []struct {
		s    *snapshot.Snapshot
		want int64
	}{{before.Snapshot, 0}, {after.Snapshot, 100}} {
		if len(tc.s.Pods) != 2 || tc.s.Pods[0].Spec.Requests.CPU != tc.want || tc.s.Workloads[0].Template.Spec.Requests.CPU != tc.want {
			t.Errorf("want %d millicores: %+v, template %+v", tc.want, tc.s.Pods, tc.s.Workloads)
		}
	}
}
