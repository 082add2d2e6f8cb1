package handler_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"kerf.sh/kerf/internal/cloud/nodeclass"
	"kerf.sh/kerf/internal/handler"
	"kerf.sh/kerf/internal/kube/api"
	"kerf.sh/kerf/internal/ledger"
	"kerf.sh/kerf/internal/lifecycle"
	"kerf.sh/kerf/internal/snapshot"
)

// TestFactsWarm: a warm function asks for one row and decodes nothing; what has changed is
// read anew, and only that.
func TestFactsWarm(t *testing.T) {
	w := newCatWorld(t)
	w.class("a", catSpec)
	w.class("b", catSpec)
	w.run()
	var reads []string
	w.table.Fault = func(c ledger.Call) ledger.Fault {
		for _, k := range c.Keys {
			reads = append(reads, k.SK[:strings.IndexByte(k.SK+"#", '#')])
		}
		return ledger.Fault{}
	}
	first := w.facts()
	if len(reads) != 7 { // the list, and head and rows of three parts
		t.Errorf("cold: %v", reads)
	}
	reads = nil
	if again := w.facts(); again != first || len(reads) != 1 {
		t.Errorf("warm: another object %v, read %v", again != first, reads)
	}
	w.now = w.now.Add(time.Minute)
	w.class("b", strings.Replace(catSpec, `"nodes"`, `"others"`, 1))
	w.run("b")
	reads = nil
	next := w.facts()
	if next == first || next.Catalog != first.Catalog || next.Classes["a"].Resolved != first.Classes["a"].Resolved || next.Classes["b"].Resolved == first.Classes["b"].Resolved {
		t.Error("not only what has changed is new")
	}
	if fmt.Sprint(reads) != "[catalog class.b class.b]" {
		t.Errorf("one class changed: read %v", reads)
	}
}

// TestFactsEmpty: without anything stored there is the embedded table, or that of another
// region with a warning.
func TestFactsEmpty(t *testing.T) {
	w := newCatWorld(t)
	f := w.facts()
	if f.Catalog.Region != "us-east-1" || len(f.Catalog.Types) < 100 || len(f.Warnings)+len(f.Classes) > 0 || !f.Prices.Types.IsZero() {
		t.Errorf("%d types of %s, warnings %v", len(f.Catalog.Types), f.Catalog.Region, f.Warnings)
	}
	f, err := handler.LoadFacts(background, w.memory(), "eu-west-9", w.now, &handler.FactsCache{})
	if err != nil || len(f.Warnings) != 1 || f.Warnings[0].Code != "CatalogueOfOtherRegion" {
		t.Errorf("a region without a table: %v, %v", f.Warnings, err)
	}
	w.run()
	// Types of one region are of no use to another.
	if f, err = handler.LoadFacts(background, w.memory(), "eu-west-9", w.now, w.cache); err != nil || len(f.Warnings) != 2 {
		t.Errorf("types of another region: %v, %v", f.Warnings, err)
	}
	if f = w.facts(); len(f.Catalog.Types) != 3 || len(f.Warnings) > 0 {
		t.Errorf("%d types, warnings %v", len(f.Catalog.Types), f.Warnings)
	}
}

// TestFactsUnreadable: an error of the ledger is one, and leaves nothing half read behind.
func TestFactsUnreadable(t *testing.T) {
	w := newCatWorld(t)
	w.class("a", catSpec)
	w.run()
	w.table.Fault = func(c ledger.Call) ledger.Fault {
		if c.Keys[0].SK == "class.a" {
			return ledger.Fault{Err: errors.New("no")}
		}
		return ledger.Fault{}
	}
	if _, err := handler.LoadFacts(background, w.memory(), "us-east-1", w.now, w.cache); err == nil {
		t.Fatal("no error")
	}
	w.table.Fault = nil
	if f := w.facts(); len(f.Classes) != 1 || len(f.Catalog.Types) != 3 {
		t.Errorf("after that: %d classes, %d types", len(f.Classes), len(f.Catalog.Types))
	}
}

// TestFactsMalformed: whatever is stored, there are facts that can be used: a class of which
// nothing can be made out is stale, and types come from the embedded table.
func TestFactsMalformed(t *testing.T) {
	w := newCatWorld(t)
	w.class("a", catSpec)
	w.run()
	part := func(name string) []byte {
		p, ok, err := w.memory().Part(background, name)
		if err != nil || !ok {
			t.Fatal(name, ok, err)
		}
		return p.Data
	}
	good := map[string][]byte{"types": part("types"), "class.a": part("class.a")}
	put := func(t interface{ Fatal(...any) }, name string, data []byte) {
		if err := w.memory().PutPart(background, lifecycle.Part{Name: name, Data: data, Generation: 1 << 62}); err != nil {
			t.Fatal(err)
		}
	}
	load := func(t interface{ Fatal(...any) }) (*handler.Facts, []string) {
		f, err := handler.LoadFacts(background, w.memory(), "us-east-1", w.now, &handler.FactsCache{})
		if err != nil {
			t.Fatal(err)
		}
		s, _ := w.kube.Some(background, "EC2NodeClass", "NodePool")
		s.Now = w.now
		return f, f.Fill(s)
	}
	for name, texts := range map[string][]string{
		"class.a": {"", "null", "{}", "[]", `{"resolved":3}`, `{"uid":"uid-a","generation":1}`, "\x00"},
		"types":   {"", "{}\n", "{}", "x\ny", string(good["types"][:len(good["types"])-1])},
	} {
		for _, text := range texts {
			put(t, name, []byte(text))
			f, stale := load(t)
			if len(f.Warnings) != 1 || name == "class.a" && !slices.Equal(stale, []string{"a"}) || name == "types" && (len(stale) > 0 || len(f.Catalog.Types) < 100) {
				t.Errorf("%s %q: warnings %v, stale %v, %d types", name, text, f.Warnings, stale, len(f.Catalog.Types))
			}
		}
		put(t, name, good[name])
	}
	rapid.Check(t, func(t *rapid.T) {
		name := rapid.SampledFrom([]string{"class.a", "types"}).Draw(t, "part")
		data := bytes.Clone(good[name])
		for range rapid.IntRange(1, 3).Draw(t, "changes") {
			data[rapid.IntRange(0, len(data)-1).Draw(t, "at")] = rapid.Byte().Draw(t, "byte")
		}
		put(t, name, data)
		f, _ := load(t)
		if f.Catalog == nil {
			t.Fatal("no catalogue")
		}
		put(t, name, good[name])
	})
	// The list itself.
	n, err := w.memory().Note(background, "catalog")
	if err != nil {
		t.Fatal(err)
	}
	n.Data = []byte("{")
	if _, err := w.memory().SaveNote(background, n); err != nil {
		t.Fatal(err)
	}
	if f, stale := load(t); len(f.Warnings) != 1 || len(stale) != 1 {
		t.Errorf("list: %v, %v", f.Warnings, stale)
	}
	w.run()
	if f, stale := load(t); len(f.Warnings)+len(stale) > 0 {
		t.Errorf("list mended: %v, %v", f.Warnings, stale)
	}
}

// TestFactsTwoWriters: two runs at once lose nothing of each other.
func TestFactsTwoWriters(t *testing.T) {
	w := newCatWorld(t)
	for _, name := range []string{"a", "b", "c", "d"} {
		w.class(name, catSpec)
	}
	nested := false
	w.table.Fault = func(c ledger.Call) ledger.Fault {
		// Another run is whole between this one's reading of the list and its writing.
		if c.Write && c.Keys[0].PK == "NOTES" && !nested {
			nested = true
			if _, err := w.catalog().Handle(background, handler.CatalogRequest{Classes: []string{"c", "d"}}); err != nil {
				t.Error(err)
			}
		}
		return ledger.Fault{}
	}
	if _, err := w.catalog().Handle(background, handler.CatalogRequest{Classes: []string{"a", "b"}}); err != nil {
		t.Fatal(err)
	}
	if !nested {
		t.Fatal("nothing happened at once")
	}
	if _, stale := w.filled(); len(stale) > 0 {
		t.Errorf("stale %v", stale)
	}
}

// TestFactsOfPools: what the status of a pool said before counts for nothing: its class is
// what decides.
func TestFactsOfPools(t *testing.T) {
	w := newCatWorld(t)
	w.class("a", catSpec)
	w.run()
	w.kube.statuses["NodePool/pool-a"] = api.Status{Conditions: []snapshot.Condition{{Type: "Ready", Status: "False"}, {Type: "NodeRegistrationHealthy", Status: "False"}}}
	w.kube.s.NodePools = append(w.kube.s.NodePools, snapshot.NodePool{Name: "auto", ClassRef: snapshot.ClassRef{Group: "eks.amazonaws.com"}})
	w.kube.statuses["NodePool/auto"] = api.Status{Conditions: []snapshot.Condition{{Type: "Ready", Status: "True"}}}
	s, _ := w.filled()
	if got := s.NodePools[0].Conditions; len(got) != 1 || got[0].Type != "NodeRegistrationHealthy" {
		t.Errorf("conditions %+v", got)
	}
	if len(s.NodePools[1].Conditions) != 1 {
		t.Error("a pool that is not ours was touched")
	}
}

// TestPoolStatus: what nodes of a pool have together, each counted once.
func TestPoolStatus(t *testing.T) {
	size := func(cpu int64) snapshot.Resources {
		return snapshot.Resources{CPU: cpu * 1000, Memory: cpu << 30, Pods: 10}
	}
	of := func(pool string) map[string]string { return map[string]string{"karpenter.sh/nodepool": pool} }
	now := time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)
	s := &snapshot.Snapshot{Now: now,
		NodeClasses: []snapshot.NodeClass{{Name: "c", Generation: 4, Conditions: []snapshot.Condition{{Type: nodeclass.Ready, Status: "True", ObservedGeneration: 4}}}},
		NodeClaims: []snapshot.NodeClaim{
			{Name: "coming", Labels: of("p"), Capacity: size(2)},
			{Name: "there", Labels: of("p"), Capacity: size(4), NodeName: "n1"},
			{Name: "by-provider", Labels: of("p"), Capacity: size(4), ProviderID: "aws:///a/i-2"},
			{Name: "going", Labels: of("p"), Capacity: size(64), Deleting: now, NodeName: "n3"},
			{Name: "node-going", Labels: of("p"), Capacity: size(64), NodeName: "n5"},
			{Name: "other", Labels: of("q"), Capacity: size(64)},
		},
		Nodes: []snapshot.Node{
			{Name: "n1", Labels: of("p"), Capacity: size(3)}, {Name: "n2", Labels: of("p"), ProviderID: "aws:///a/i-2", Capacity: size(5)},
			{Name: "n3", Labels: of("p"), Capacity: size(64)}, {Name: "n4", Labels: of("p"), Capacity: size(1)}, {Name: "n5", Labels: of("p"), Capacity: size(64), Deleting: now},
		},
	}
	pool := snapshot.NodePool{Name: "p", Generation: 2, ClassRef: snapshot.ClassRef{Group: "karpenter.k8s.aws", Name: "c"}}
	got := handler.PoolStatus(&pool, s)
	text, err := json.Marshal(got.Fields)
	if err != nil {
		t.Fatal(err)
	}
	const want = `{"nodeClassObservedGeneration":4,"nodes":4,"resources":{"cpu":"11","ephemeral-storage":"0","memory":"11Gi","nodes":"4","pods":"40"}}`
	if string(text) != want {
		t.Errorf("got  %s\nwant %s", text, want)
	}
	conditions := func(p snapshot.NodePool, s snapshot.Snapshot) (out []string) {
		for _, c := range handler.PoolStatus(&p, &s).Conditions {
			out = append(out, c.Type+"="+c.Status+" "+c.Reason)
		}
		return out
	}
	invalid, missing, empty := pool, pool, pool
	invalid.TemplateLabels = map[string]string{"kubernetes.io/hostname": "x"}
	missing.ClassRef.Name = "nobody"
	empty.Name = "empty"
	unknown, going := *s, *s
	unknown.NodeClasses = []snapshot.NodeClass{{Name: "c", Generation: 5, Conditions: s.NodeClasses[0].Conditions}}
	going.NodeClasses = []snapshot.NodeClass{{Name: "c", Generation: 4, Deleting: now, Conditions: s.NodeClasses[0].Conditions}}
	for name, tc := range map[string]struct {
		got  []string
		want string
	}{
		"ready":   {conditions(pool, *s), "[ValidationSucceeded=True ValidationSucceeded NodeClassReady=True NodeClassReady Ready=True Ready]"},
		"invalid": {conditions(invalid, *s), "[ValidationSucceeded=False NodePoolValidationFailed NodeClassReady=True NodeClassReady Ready=False UnhealthyDependents]"},
		"missing": {conditions(missing, *s), "[ValidationSucceeded=True ValidationSucceeded NodeClassReady=False NodeClassNotFound Ready=False UnhealthyDependents]"},
		"unknown": {conditions(pool, unknown), "[ValidationSucceeded=True ValidationSucceeded NodeClassReady=Unknown NodeClassReadinessUnknown Ready=Unknown ReconcilingDependents]"},
		"going":   {conditions(pool, going), "[ValidationSucceeded=True ValidationSucceeded NodeClassReady=False NodeClassTerminating Ready=False UnhealthyDependents]"},
	} {
		if fmt.Sprint(tc.got) != tc.want {
			t.Errorf("%s:\ngot  %v\nwant %v", name, tc.got, tc.want)
		}
	}
	if got := handler.PoolStatus(&empty, s).Fields["resources"]; fmt.Sprint(got) != "map[cpu:0 ephemeral-storage:0 memory:0 nodes:0 pods:0]" {
		t.Errorf("no nodes: %v", got)
	}
}
