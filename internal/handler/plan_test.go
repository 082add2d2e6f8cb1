package handler_test

import (
	"context"
	"encoding/json"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"kerf.sh/kerf/internal/catalog"
	"kerf.sh/kerf/internal/handler"
	"kerf.sh/kerf/internal/plan"
	"kerf.sh/kerf/internal/snapshot"
)

// fake is a handler whose parts are played: it records what it was asked.
type fake struct {
	handler.Plan
	manifests []string
	in        handler.Input
	set       map[string]string
	explain   string
	region    string // of the table it was given
	reading   handler.Reading
	plan      plan.Plan
	readErr   error
}

func newFake() *fake {
	f := &fake{reading: handler.Reading{Snapshot: &snapshot.Snapshot{Region: "us-east-1"}}, plan: plan.Plan{Complete: true}}
	f.Settings = func(set map[string]string) (handler.Settings, error) {
		f.set = set
		return handler.Settings{Cluster: "from-settings", Apply: func(s snapshot.Settings) snapshot.Settings { return s }}, nil
	}
	f.Read = func(m []string, in handler.Input) (*handler.Reading, error) {
		f.manifests, f.in = m, in
		return &f.reading, f.readErr
	}
	f.Solve = func(_ *snapshot.Snapshot, c *catalog.Catalog, explain string) *plan.Plan {
		f.explain, f.region = explain, c.Region
		p := f.plan
		return &p
	}
	return f
}

func (f *fake) invoke(t *testing.T, payload string) map[string]any {
	t.Helper()
	out, err := f.Handle(context.Background(), json.RawMessage(payload))
	if err != nil {
		t.Fatal(err)
	}
	var v map[string]any
	if err := json.Unmarshal(out, &v); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	return v
}

func TestRequestReachesTheParts(t *testing.T) {
	f := newFake()
	f.invoke(t, `{"objects":["kind: A\n",{"kind":"B"}],"workloads":true,"cluster":"c","region":"r","now":"2026-03-04T12:00:00Z","seed":7,
		"settings":{"A":"text","B":1,"C":0.070,"D":true,"FEATURE_GATES":{"Y":false,"X":true}}}`)
	if diff := cmp.Diff([]string{"kind: A\n", `{"kind":"B"}`}, f.manifests); diff != "" {
		t.Errorf("manifests\n%s", diff)
	}
	if diff := cmp.Diff(map[string]string{"A": "text", "B": "1", "C": "0.070", "D": "true", "FEATURE_GATES": "X=true,Y=false"}, f.set); diff != "" {
		t.Errorf("settings\n%s", diff)
	}
	want := handler.Input{Cluster: "c", Region: "r", Now: time.Date(2026, 3, 4, 12, 0, 0, 0, time.UTC), Seed: 7, Workloads: true}
	f.in.Settings = nil
	if diff := cmp.Diff(want, f.in); diff != "" {
		t.Errorf("input\n%s", diff)
	}
	f.invoke(t, `{"objects":[""]}`)
	if f.in.Cluster != "from-settings" || !f.in.Now.IsZero() || f.in.Region != "" {
		t.Errorf("what is not given: %+v", f.in)
	}
	f.invoke(t, `{"objects":[""],"catalog":{"region":"elsewhere","date":"2026-01-01","instanceTypes":[{"name":"m7g.large","arch":"arm64","vcpu":2,"memoryMiB":8192,
		"offerings":[{"zone":"z-a","capacityType":"on-demand","pricePerHour":0.1,"available":true}]}]}}`)
	if f.region != "elsewhere" {
		t.Errorf("the table of the payload is not used, but that of %q", f.region)
	}
}

func TestRefusals(t *testing.T) {
	f := newFake()
	f.readErr = errors.New("a.yaml: document 2: no")
	v := f.invoke(t, `{"objects":["x"]}`)
	want := map[string]any{"error": map[string]any{"code": "InvalidInput", "message": "a.yaml: document 2: no"}}
	if diff := cmp.Diff(want, v); diff != "" {
		t.Error(diff)
	}
	v = f.invoke(t, `{"objects":["x"],"settings":{"A":[1]}}`)
	if got := v["error"].(map[string]any); got["code"] != "InvalidRequest" || !strings.Contains(got["message"].(string), "settings: A") {
		t.Error(v)
	}
}

// TestAnswerTooLarge: what Lambda would cut off is refused, with the way out.
func TestAnswerTooLarge(t *testing.T) {
	f := newFake()
	f.plan.Warnings = []plan.Warning{{Detail: strings.Repeat("x", 6<<20)}}
	v := f.invoke(t, `{"objects":["x"]}`)
	if got, _ := v["error"].(map[string]any); got["code"] != "AnswerTooLarge" {
		t.Errorf("%.200v", v)
	}
	f.plan.Warnings[0].Detail = strings.Repeat("x", 5<<20)
	if v := f.invoke(t, `{"objects":["x"]}`); v["error"] != nil {
		t.Errorf("5 MiB are refused: %v", v["error"])
	}
}

func TestFormats(t *testing.T) {
	f := newFake()
	if v := f.invoke(t, `{"objects":["x"],"format":"html"}`); !strings.HasPrefix(v["html"].(string), "<!DOCTYPE html>") {
		t.Errorf("%.200v", v)
	}
	if v := f.invoke(t, `{"objects":["x"],"format":"text"}`); !strings.HasPrefix(v["text"].(string), "Plan for") || strings.Contains(v["text"].(string), "\x1b") {
		t.Errorf("%.200v", v)
	}
	if v := f.invoke(t, `{"objects":["x"]}`); v["summary"] == nil || v["complete"] != true {
		t.Errorf("%.200v", v)
	}
}

func TestLeftOutObjectsMakeAPlanIncomplete(t *testing.T) {
	f := newFake()
	f.reading.Left = []plan.Warning{{Object: "pod/a/b", Code: plan.IncompleteReading, Detail: "left out: why"}}
	f.reading.Warnings = []plan.Warning{{Object: "z", Code: plan.ClassNotResolved, Detail: "x"}}
	v := f.invoke(t, `{"objects":["x"]}`)
	if v["complete"] != false || len(v["warnings"].([]any)) != 2 || !strings.Contains(v["incomplete"].([]any)[0].(string), "1 object left out") {
		t.Errorf("%v", v)
	}
}

func TestExplainUnknownObjects(t *testing.T) {
	f := newFake()
	s := f.reading.Snapshot
	for _, name := range []string{"web-1", "web-2", "api"} {
		s.Pods = append(s.Pods, snapshot.Pod{Namespace: "shop", Name: name})
	}
	s.Nodes = []snapshot.Node{{Name: "ip-10-0-0-1"}}
	s.NodeClaims = []snapshot.NodeClaim{{Name: "general-x"}}
	for object, want := range map[string]string{
		"pod/shop/web-3":     "did you mean pod/shop/web-1 or pod/shop/web-2",
		"pod/default/web-1":  "pod/shop/web-1",
		"node/ip-10-0-0-2":   "did you mean node/ip-10-0-0-1?",
		"nodepool/general":   "there is no nodepool general in the input, nor any other nodepool",
		"node/quite-another": "there are node/general-x, node/ip-10-0-0-1",
	} {
		v := f.invoke(t, `{"objects":["x"],"mode":"explain","explain":"`+object+`"}`)
		if e, _ := v["error"].(map[string]any); e == nil || e["code"] != "InvalidRequest" || !strings.Contains(e["message"].(string), want) {
			t.Errorf("%s: %v, want %s", object, v["error"], want)
		}
	}
	for _, object := range []string{"pod/shop/api", "node/general-x"} {
		v := f.invoke(t, `{"objects":["x"],"mode":"explain","explain":"`+object+`"}`)
		if e, _ := v["explanation"].(map[string]any); e == nil || e["object"] != object || f.explain != object {
			t.Errorf("%s: %v", object, v)
		}
	}
}

func TestCheckObject(t *testing.T) {
	for name, ok := range map[string]bool{
		"pod/a/b": true, "node/a": true, "nodepool/a": true,
		"": false, "pod/a": false, "pod/a/b/c": false, "pod//b": false, "node/": false, "node/a/b": false, "nodeclaim/a": false, "Pod/a/b": false,
	} {
		if err := handler.CheckObject(name); (err == nil) != ok {
			t.Errorf("%q: %v", name, err)
		}
	}
}
