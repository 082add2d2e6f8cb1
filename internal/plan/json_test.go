package plan_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"math/big"
	"slices"
	"strconv"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"kerf.sh/kerf/internal/plan"
	"kerf.sh/kerf/internal/snapshot"
)

// contract are the fields that other people's scripts rely on, with the kind of
// their value. "[]" stands for every element of a list.
var contract = map[string]string{
	"planId": "string", "now": "string", "cluster": "string", "complete": "bool",
	"summary":                         "object",
	"summary.pendingPods":             "number",
	"summary.placed":                  "number",
	"summary.launches":                "number",
	"summary.unschedulable":           "number",
	"summary.pricePerHourBefore":      "number",
	"summary.pricePerHourAfter":       "number",
	"summary.launchPricePerHour":      "number",
	"summary.launchPriceWorstPerHour": "number",
	"summary.launchLowerBoundPerHour": "number",
	"summary.boundDuals":              "object",
	"summary.boundDuals.cpu":          "number",
	"summary.boundDuals.memory":       "number",
	"summary.boundDuals.pods":         "number",

	"launches": "list", "launches.[].name": "string", "launches.[].nodePool": "string", "launches.[].nodeClass": "string",
	"launches.[].pods": "list", "launches.[].pods.[]": "string",
	"launches.[].requests": "object", "launches.[].requests.cpu": "string", "launches.[].requests.memory": "string", "launches.[].requests.pods": "string",
	"launches.[].chosen": "object", "launches.[].chosen.instanceType": "string", "launches.[].chosen.zone": "string",
	"launches.[].chosen.capacityType": "string", "launches.[].chosen.pricePerHour": "number",
	"launches.[].options": "list", "launches.[].options.[].instanceType": "string", "launches.[].options.[].zone": "string",
	"launches.[].options.[].capacityType": "string", "launches.[].options.[].pricePerHour": "number",

	"placements": "list", "placements.[].pod": "string", "placements.[].node": "string",
	"displaced": "list", "displaced.[].pod": "string", "displaced.[].from": "string", "displaced.[].to": "string",
	"moves":    "list",
	"verdicts": "list", "verdicts.[].object": "string", "verdicts.[].code": "string", "verdicts.[].detail": "string",
	"verdicts.[].pools": "list", "verdicts.[].pools.[].nodePool": "string", "verdicts.[].pools.[].code": "string", "verdicts.[].pools.[].detail": "string",
	"warnings": "list", "warnings.[].object": "string", "warnings.[].code": "string", "warnings.[].detail": "string",
}

// collect gathers the values of a path.
func collect(v any, path []string) (out []any, missing bool) {
	if len(path) == 0 {
		return []any{v}, false
	}
	if path[0] == "[]" {
		list, ok := v.([]any)
		if !ok {
			return nil, true
		}
		for _, e := range list {
			got, miss := collect(e, path[1:])
			out, missing = append(out, got...), missing || miss
		}
		return out, missing
	}
	m, ok := v.(map[string]any)
	if !ok {
		return nil, true
	}
	e, ok := m[path[0]]
	if !ok {
		return nil, true
	}
	return collect(e, path[1:])
}

func kind(v any) string {
	switch v.(type) {
	case string:
		return "string"
	case bool:
		return "bool"
	case json.Number:
		return "number"
	case []any:
		return "list"
	case map[string]any:
		return "object"
	}
	return "null"
}

// breaches checks a plan against the contract. Lists may be empty when full is false.
func breaches(t *testing.T, raw []byte, full bool) []string {
	t.Helper()
	dec := json.NewDecoder(bytes.NewReader(raw))
	dec.UseNumber()
	var v any
	if err := dec.Decode(&v); err != nil {
		t.Fatal(err)
	}
	var out []string
	for path, want := range contract {
		got, missing := collect(v, strings.Split(path, "."))
		if missing || full && len(got) == 0 {
			out = append(out, path+" is missing")
		}
		for _, g := range got {
			if k := kind(g); k != want {
				out = append(out, fmt.Sprintf("%s is %s, want %s", path, k, want))
			}
		}
	}
	slices.Sort(out)
	return slices.Compact(out)
}

func fullPlan() *plan.Plan {
	offer := plan.Offer{InstanceType: "m7g.xlarge", Zone: "us-east-1a", CapacityType: "spot", Price: 65_301}
	use := snapshot.Resources{CPU: 3000, Memory: 4 << 30, Pods: 5}
	return &plan.Plan{
		ID: "x", Cluster: "c", Region: "r", Complete: true,
		Summary:    plan.Summary{PendingPods: 3, Placed: 1, Launches: 1, Unschedulable: 1, PriceAfter: 65_301},
		Bounds:     []plan.Bound{{Pools: []string{"a"}, Total: 65_000, Duals: map[string]float64{"cpu": 21_666.666666666668, "nodes": 3}, Demand: map[string]float64{"cpu": 3}}},
		Launches:   []plan.Launch{{Name: "a-1", NodePool: "a", NodeClass: "default", Pods: []string{"ns/a"}, Requests: use, Chosen: offer, Options: []plan.Offer{offer}}},
		Placements: []plan.Placement{{Pod: "ns/b", Node: "n"}},
		Displaced:  []plan.Displaced{{Pod: "ns/d", From: "n", To: "a-1"}},
		Verdicts:   []plan.Verdict{{Object: "pod/ns/c", Code: plan.Unschedulable, Detail: "d", Pools: []plan.PoolVerdict{{NodePool: "a", Code: plan.LimitReached, Detail: "d"}}}},
		Warnings:   []plan.Warning{{Object: "o", Code: plan.FewOptions, Detail: "d"}},
		Nodes:      []plan.NodeUse{{Name: "n"}},
	}
}

func TestJSONKeepsTheContract(t *testing.T) {
	full, err := plan.JSON(fullPlan(), false)
	if err != nil {
		t.Fatal(err)
	}
	if got := breaches(t, full, true); got != nil {
		t.Errorf("a plan with everything:\n%s", strings.Join(got, "\n"))
	}
	empty, err := plan.JSON(&plan.Plan{}, false)
	if err != nil {
		t.Fatal(err)
	}
	if got := breaches(t, empty, false); got != nil {
		t.Errorf("an empty plan:\n%s", strings.Join(got, "\n"))
	}
	// The check must be able to fail: every field taken away is noticed.
	for path := range contract {
		parts := strings.Split(path, ".")
		name := parts[len(parts)-1]
		broken := bytes.ReplaceAll(full, []byte(`"`+name+`":`), []byte(`"no_`+name+`":`))
		if name != "[]" && breaches(t, broken, true) == nil {
			t.Errorf("a plan without %s passes", path)
		}
	}
}

func TestJSONIsByteStable(t *testing.T) {
	a, _ := plan.JSON(fullPlan(), true)
	for range 20 {
		if b, _ := plan.JSON(fullPlan(), true); !bytes.Equal(a, b) {
			t.Fatalf("two renderings differ:\n%s\n%s", a, b)
		}
	}
	compact, _ := plan.JSON(fullPlan(), false)
	var buf bytes.Buffer
	if err := json.Compact(&buf, a); err != nil || !bytes.Equal(append(buf.Bytes(), '\n'), compact) {
		t.Errorf("indent changes more than blanks (%v)", err)
	}
}

// exact reports what is wrong with a rendering of a price as a JSON number.
func exact(micro int64, text string) string {
	r, ok := new(big.Rat).SetString(text)
	if !ok || !json.Valid([]byte(text)) {
		return "is no JSON number"
	}
	if r.Cmp(big.NewRat(micro, 1_000_000)) != 0 {
		return "is not exact"
	}
	if _, frac, ok := strings.Cut(text, "."); ok && (len(frac) > 6 || strings.HasSuffix(frac, "0")) || strings.ContainsAny(text, "eE") {
		return "has a wrong form"
	}
	return ""
}

func priceInJSON(t interface{ Fatal(...any) }, micro int64) string {
	raw, err := plan.JSON(&plan.Plan{Summary: plan.Summary{PriceAfter: micro}}, false)
	if err != nil {
		t.Fatal(err)
	}
	_, after, _ := strings.Cut(string(raw), `"pricePerHourAfter":`)
	text, _, _ := strings.Cut(after, ",")
	return text
}

func TestPricesAreExact(t *testing.T) {
	for micro, want := range map[int64]string{0: "0", 1: "0.000001", 163_200: "0.1632", 1_000_000: "1", -500_000: "-0.5", 123_456_789_012_345: "123456789.012345"} {
		if got := priceInJSON(t, micro); got != want {
			t.Errorf("%d micro-dollars are %s, want %s", micro, got, want)
		}
	}
	rapid.Check(t, func(t *rapid.T) {
		micro := rapid.Int64Range(-1<<60, 1<<60).Draw(t, "micro-dollars")
		if text := priceInJSON(t, micro); exact(micro, text) != "" {
			t.Fatalf("%d micro-dollars as %s: %s", micro, text, exact(micro, text))
		}
	})
	// Mutant: the way through a float loses micro-dollars.
	const micro = 9_007_199_254_740_993
	if exact(micro, strconv.FormatFloat(float64(micro)/1e6, 'f', -1, 64)) == "" {
		t.Error("a price by way of a float passes")
	}
}

func TestDuals(t *testing.T) {
	raw, _ := plan.JSON(fullPlan(), false)
	want := `"boundDuals":{"cpu":0.021666666667,"memory":0,"nodes":0.000003,"pods":0}`
	if !bytes.Contains(raw, []byte(want)) {
		t.Errorf("want %s in\n%s", want, raw)
	}
	p := fullPlan()
	p.Bounds = append(p.Bounds, plan.Bound{Total: 70_000, Duals: map[string]float64{"cpu": 1}})
	raw, _ = plan.JSON(p, false)
	if want := `"boundDuals":{"cpu":0.000001,"memory":0,"pods":0}`; !bytes.Contains(raw, []byte(want)) {
		t.Errorf("the summary does not show the dearest bound: want %s in\n%s", want, raw)
	}
}

func TestQuantity(t *testing.T) {
	for _, tc := range []struct {
		resource string
		v        int64
		want     string
		rounded  string
	}{
		{"cpu", 3000, "3", "3"}, {"cpu", 2500, "2500m", "2.5"}, {"cpu", 0, "0", "0"}, {"cpu", 63_770, "63770m", "63.8"}, {"cpu", -500, "-500m", "-0.5"}, {"cpu", 191_450, "191450m", "191"},
		{"memory", 4 << 30, "4Gi", "4Gi"}, {"memory", 1536 << 20, "1536Mi", "1.5Gi"}, {"memory", 1000, "1000", "0.98Ki"}, {"memory", 0, "0", "0"}, {"memory", 7_238_320_128, "6903Mi", "6.74Gi"},
		{"ephemeral-storage", 1 << 20, "1Mi", "1Mi"}, {"pods", 58, "58", "58"}, {"nvidia.com/gpu", 4, "4", "4"}, {"hugepages-2Mi", 2 << 20, "2Mi", "2Mi"},
	} {
		if got := plan.Quantity(tc.resource, tc.v); got != tc.want {
			t.Errorf("Quantity(%s, %d) = %s, want %s", tc.resource, tc.v, got, tc.want)
		}
		if got := plan.Rounded(tc.resource, tc.v); got != tc.rounded {
			t.Errorf("Rounded(%s, %d) = %s, want %s", tc.resource, tc.v, got, tc.rounded)
		}
	}
}

func TestMoneyForPeople(t *testing.T) {
	for micro, want := range map[int64][2]string{
		0: {"$0.0000", "$0"}, 163_200: {"$0.1632", "$119"}, 42: {"$0.000042", "$0"}, 1_234_567_890: {"$1,234.5679", "$901,235"},
		-163_200: {"-$0.1632", "-$119"}, 999_999: {"$1.0000", "$730"},
	} {
		if got := [2]string{plan.Dollars(micro), plan.PerMonth(micro)}; got != want {
			t.Errorf("%d: %v, want %v", micro, got, want)
		}
	}
	for _, tc := range []struct {
		price, bound int64
		want         string
	}{{100, 100, "0 %"}, {1_000_100, 1_000_000, "< 0.1 %"}, {136_000, 135_999, "0 %"}, {1_000_005, 1_000_000, "0 %"}, {1_010_000, 1_000_000, "1.0 %"}, {3_000_000, 1_000_000, "200 %"}, {5, 0, ""}} {
		if got := plan.Gap(tc.price, tc.bound); got != tc.want {
			t.Errorf("Gap(%d, %d) = %q, want %q", tc.price, tc.bound, got, tc.want)
		}
	}
}
