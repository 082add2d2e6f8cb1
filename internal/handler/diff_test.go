package handler_test

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"kerf.sh/kerf/internal/catalog"
	"kerf.sh/kerf/internal/handler"
	"kerf.sh/kerf/internal/plan"
	"kerf.sh/kerf/internal/snapshot"
)

// twoSided is a fake whose reading has a side without the overlay: a pod waits, and
// with the overlay it does not.
func twoSided() *fake {
	f := newFake()
	before := &snapshot.Snapshot{Region: "us-east-1", Pods: []snapshot.Pod{{Namespace: "a", Name: "old"}, {Namespace: "a", Name: "b"}}}
	after := &snapshot.Snapshot{Region: "us-east-1", Pods: []snapshot.Pod{{Namespace: "a", Name: "b"}, {Namespace: "a", Name: "new"}}}
	f.reading = handler.Reading{Snapshot: after, Before: &handler.Reading{Snapshot: before}, Changes: []plan.Change{{Object: "pod/a/new", Kind: plan.Added}}}
	f.Solve = func(s *snapshot.Snapshot, _ *catalog.Catalog, explain string) *plan.Plan {
		p := &plan.Plan{Complete: true, Summary: plan.Summary{PendingPods: 2}}
		if explain != "" {
			p.Explained = &plan.Explanation{Object: explain, Lines: []plan.Line{{Text: "as the core says"}}}
		}
		if s == before {
			p.Verdicts = []plan.Verdict{{Object: "pod/a/b", Code: plan.NoNodePool}, {Object: "pod/a/old", Code: plan.NoNodePool}}
			return p
		}
		p.Placements = []plan.Placement{{Pod: "a/b", Node: "n"}, {Pod: "a/new", Node: "n"}}
		return p
	}
	return f
}

func TestWhatIfReachesTheReader(t *testing.T) {
	f := newFake()
	f.invoke(t, `{"objects":["x"],"whatIf":["kind: A\n",{"kind":"B"}],"remove":["node/n","deploy/ns/web"]}`)
	if diff := cmp.Diff([]string{"kind: A\n", `{"kind":"B"}`}, f.in.WhatIf); diff != "" {
		t.Error(diff)
	}
	if diff := cmp.Diff([]snapshot.Ref{{Kind: "Node", Name: "n"}, {Kind: "Deployment", Namespace: "ns", Name: "web"}}, f.in.Remove); diff != "" {
		t.Error(diff)
	}
}

func TestDiffModes(t *testing.T) {
	f := twoSided()
	if v := f.invoke(t, `{"objects":["x"],"remove":["node/n"]}`); v["summary"] == nil || v["diff"] == nil {
		t.Errorf("a plan with its comparison: %v", v)
	}
	v := f.invoke(t, `{"objects":["x"],"mode":"diff","remove":["node/n"]}`)
	if v["summary"] != nil || v["podCounts"] == nil {
		t.Errorf("the comparison alone: %v", v)
	}
	var got []string
	for _, p := range v["pods"].([]any) {
		m := p.(map[string]any)
		got = append(got, m["pod"].(string)+" "+m["change"].(string))
	}
	if diff := cmp.Diff([]string{"a/b BecomesSchedulable", "a/new Added", "a/old Removed"}, got); diff != "" {
		t.Error(diff)
	}
	if c := v["changes"].([]any); len(c) != 1 {
		t.Errorf("changes: %v", c)
	}
	if v := f.invoke(t, `{"objects":["x"],"mode":"diff","remove":["node/n"],"format":"text"}`); !strings.HasPrefix(v["text"].(string), "What would change in") {
		t.Error(v)
	}
	if v := f.invoke(t, `{"objects":["x"],"mode":"diff","remove":["node/n"],"format":"html"}`); !strings.Contains(v["html"].(string), "What would change in") {
		t.Error(v)
	}
}

func TestExplainOfBothSides(t *testing.T) {
	f := twoSided()
	for object, want := range map[string][2]string{
		"pod/a/b":   {"as the core says", "as the core says"},
		"pod/a/new": {"It is not there.", "as the core says"},
		"pod/a/old": {"as the core says", "It is not there."},
	} {
		v := f.invoke(t, `{"objects":["x"],"mode":"explain","explain":"`+object+`","remove":["node/n"]}`)
		text := func(v any) string {
			return v.(map[string]any)["lines"].([]any)[0].(map[string]any)["text"].(string)
		}
		if v["error"] != nil {
			t.Errorf("%s: %v", object, v)
			continue
		}
		if got := [2]string{text(v["diff"].(map[string]any)["explanationBefore"]), text(v["explanation"])}; got != want {
			t.Errorf("%s: %v, want %v", object, got, want)
		}
	}
	v := f.invoke(t, `{"objects":["x"],"explain":"pod/a/bb","remove":["node/n"]}`)
	if e, _ := v["error"].(map[string]any); e == nil || !strings.Contains(e["message"].(string), "did you mean pod/a/b") {
		t.Error(v)
	}
}

func TestDiffRefusals(t *testing.T) {
	f := newFake()
	for payload, want := range map[string]string{
		`{"objects":["x"],"mode":"diff"}`:                                                "needs something to compare with",
		`{"objects":["x"],"mode":"diff","remove":["node/n"],"explain":"pod/a/b"}`:        "mode explain",
		`{"objects":["x"],"remove":["node"]}`:                                            `remove "node": want KIND/NAME`,
		`{"objects":["x"],"remove":["pod/a"]}`:                                           "a pod lives in a namespace",
		`{"mode":"diff","whatIf":["kind: Node\napiVersion: v1\nmetadata: {name: n}\n"]}`: "no cluster to read",
	} {
		v := f.invoke(t, payload)
		if e, _ := v["error"].(map[string]any); e == nil || !strings.Contains(e["message"].(string), want) {
			t.Errorf("%s: %v, want %s", payload, v, want)
		}
	}
}

func TestUnknownRemoval(t *testing.T) {
	known := []snapshot.Ref{{Kind: "Node", Name: "ip-1"}, {Kind: "NodePool", Name: "general"}, {Kind: "Pod", Namespace: "shop", Name: "web-1"}}
	for ref, want := range map[snapshot.Ref]string{
		{Kind: "Node", Name: "ip-2"}:                       "remove: there is no node ip-2 in the input; did you mean node/ip-1?",
		{Kind: "NodePool", Name: "other"}:                  "there is only nodepool/general",
		{Kind: "Pod", Namespace: "default", Name: "web-1"}: "pod/shop/web-1",
		{Kind: "Job", Namespace: "a", Name: "b"}:           "nor any other job",
	} {
		if got := handler.Unknown("remove", ref, known).Message; !strings.Contains(got, want) {
			t.Errorf("%s: %s, want %s", ref, got, want)
		}
	}
}
