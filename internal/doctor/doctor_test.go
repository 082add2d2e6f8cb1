package doctor

import (
	"encoding/json"
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/cockroachdb/datadriven"
	"sigs.k8s.io/yaml"

	"kerf.sh/kerf/internal/plan"
)

// healthy are facts in which nothing is wrong, as JSON.
func healthy(t *testing.T) map[string]any {
	t.Helper()
	text, err := os.ReadFile("testdata/healthy.yaml")
	if err != nil {
		t.Fatal(err)
	}
	var out map[string]any
	if err := yaml.UnmarshalStrict(text, &out); err != nil {
		t.Fatal(err)
	}
	return out
}

// merge lays a patch over a value as RFC 7396 says; a list of objects that have a name or an
// id is laid over the objects of that name.
func merge(have, patch any) any {
	switch p := patch.(type) {
	case map[string]any:
		out := map[string]any{}
		if h, ok := have.(map[string]any); ok {
			for k, v := range h {
				out[k] = v
			}
		}
		for k, v := range p {
			if v == nil {
				delete(out, k)
			} else {
				out[k] = merge(out[k], v)
			}
		}
		return out
	case []any:
		h, ok := have.([]any)
		if !ok || len(p) == 0 || key(p[0]) == "" || slices.ContainsFunc(h, func(v any) bool { return key(v) == "" }) {
			return p
		}
		out := slices.Clone(h)
		for _, v := range p {
			i := slices.IndexFunc(out, func(o any) bool { return key(o) == key(v) })
			if i < 0 {
				out = append(out, v)
			} else {
				out[i] = merge(out[i], v)
			}
		}
		return out
	}
	return patch
}

func key(v any) string {
	m, _ := v.(map[string]any)
	for _, k := range []string{"code", "function", "name", "id"} {
		if s, ok := m[k].(string); ok {
			return s
		}
	}
	return ""
}

func facts(t *testing.T, patch string) *Facts {
	t.Helper()
	var p map[string]any
	if err := yaml.Unmarshal([]byte(patch), &p); err != nil {
		t.Fatal(err)
	}
	raw, err := json.Marshal(merge(healthy(t), p))
	if err != nil {
		t.Fatal(err)
	}
	d := json.NewDecoder(strings.NewReader(string(raw)))
	d.DisallowUnknownFields()
	f := &Facts{}
	if err := d.Decode(f); err != nil {
		t.Fatal(err)
	}
	return f
}

// TestTranscripts: what is changed of a cluster in which all is well, and what the doctor
// says of it. "all" shows steps too that have nothing to say, "json" the report for programs.
func TestTranscripts(t *testing.T) {
	shown := map[Code]bool{}
	datadriven.Walk(t, "testdata/transcripts", func(t *testing.T, path string) {
		datadriven.RunTest(t, path, func(t *testing.T, d *datadriven.TestData) string {
			r := Examine(facts(t, d.Input))
			for _, s := range r.Steps {
				for _, f := range s.Findings {
					shown[f.Code] = true
				}
			}
			if d.HasArg("json") {
				out, err := json.MarshalIndent(r, "", "  ")
				if err != nil {
					t.Fatal(err)
				}
				return string(out) + "\n"
			}
			if d.HasArg("all") {
				return strings.ReplaceAll(r.Text(), "\n\n", "\n")
			}
			lines := strings.Split(strings.TrimRight(r.Text(), "\n"), "\n")
			var out []string
			for i, line := range lines[2:] {
				quiet := strings.HasPrefix(line, "ok ") && (i+3 >= len(lines) || !strings.HasPrefix(lines[i+3], "     "))
				if !quiet && line != "" {
					out = append(out, line)
				}
			}
			return strings.Join(out, "\n") + "\n"
		})
	})
	for _, c := range Codes() {
		if !shown[c] {
			t.Errorf("no transcript shows %s", c)
		}
	}
}

// TestReference: every code has its line, every look its permission and name, and every
// status its mark.
func TestReference(t *testing.T) {
	if len(slices.Compact(slices.Sorted(slices.Values(Codes())))) != len(meanings) {
		t.Error("a code is listed twice")
	}
	for _, l := range Looks() {
		if whats[l] == "" || len(Permissions[l]) == 0 {
			t.Errorf("look %s: %q, %v", l, whats[l], Permissions[l])
		}
	}
	if len(whats) != len(Looks()) || len(Permissions) != len(Looks()) {
		t.Error("a look is described that no step needs")
	}
	for _, s := range order {
		if marks[s] == "" {
			t.Errorf("%s has no mark", s)
		}
	}
	if strings.Contains(Markdown(), "| |") && !strings.Contains(Markdown(), "| | step |") {
		t.Error(Markdown())
	}
}

// TestUnseenIsNotFine: whatever could not be looked at, the step says so, and no finding is
// made of what was not seen.
func TestUnseenIsNotFine(t *testing.T) {
	for _, l := range Looks() {
		f := facts(t, "")
		f.Unseen = map[Look]Unseen{l: {Permission: "the:Permission", Why: "AccessDenied"}}
		// Nothing is there of what was not seen.
		switch l {
		case LookCluster:
			f.EKS = nil
		case LookAPI:
			f.API = nil
		case LookDefinitions:
			f.Definitions = nil
		case LookStack:
			f.Stack = nil
		case LookLedger:
			f.Ledger = nil
		case LookConcurrency:
			f.Concurrency = nil
		case LookObjects:
			f.Pools, f.Classes, f.Nodes, f.Pending, f.Roles = nil, nil, nil, nil, nil
		case LookSubnets:
			f.Subnets = nil
		case LookGroups:
			f.Groups = nil
		case LookImages:
			f.Classes[0].Images = 0
		case LookProfiles:
			f.Classes[0].Profile = "p"
		case LookRoles:
			f.Roles[0].Trusts = nil
		case LookPassRole:
			f.Roles[0].Pass = ""
		case LookEntries:
			f.Roles[0].Entry = ""
			for i := range f.Stack.Functions {
				f.Stack.Functions[i].Entry = nil
			}
		case LookQuotas:
			f.Quotas = nil
		case LookInstances:
			f.Instances = nil
		case LookTriggers:
			for i := range f.Stack.Triggers {
				f.Stack.Triggers[i].State = ""
			}
		case LookSchedules:
			for i := range f.Stack.Schedules {
				f.Stack.Schedules[i].State = ""
			}
		case LookRules:
			for i := range f.Stack.Rules {
				f.Stack.Rules[i].State = ""
			}
		case LookQueues:
			for i := range f.Stack.Queues {
				f.Stack.Queues[i] = Queue{Name: f.Stack.Queues[i].Name}
			}
		case LookFunctions:
			for i := range f.Stack.Functions {
				f.Stack.Functions[i] = Function{Name: f.Stack.Functions[i].Name, ID: "x"}
			}
		}
		r := Examine(f)
		said := 0
		for _, s := range r.Steps {
			for _, x := range s.Findings {
				switch {
				case x.Code == NotSeen && strings.Contains(x.Detail, "the:Permission"):
					said++
				case x.Status != Note:
					t.Errorf("without %s: %s: %+v", l, s.Name, x)
				}
			}
		}
		if said != 1 || r.Complete || r.Broken != "" {
			t.Errorf("without %s: said %d times, complete %v, broken %q", l, said, r.Complete, r.Broken)
		}
		for _, s := range r.Steps {
			i := slices.IndexFunc(steps, func(x step) bool { return x.name == s.Name })
			if slices.Contains(slices.Concat(steps[i].looks, steps[i].after), l) && s.Status == Fine {
				t.Errorf("without %s: step %s is called fine", l, s.Name)
			}
		}
	}
}

func TestGlob(t *testing.T) {
	for _, tt := range []struct {
		pattern, s string
		want       bool
	}{
		{"prod", "prod", true}, {"prod", "prod2", false}, {"*", "", true}, {"p*d", "prod", true}, {"p*d", "prods", false}, {"pr?d", "prod", true}, {"pr?d", "prd", false},
		{`a\*`, "a*", true}, {`a\*`, "ab", false}, {"*x*", "axb", true}, {"", "", true}, {"", "a", false}, {"?", "", false},
	} {
		if got := glob(tt.pattern, tt.s); got != tt.want {
			t.Errorf("glob(%q, %q) = %v", tt.pattern, tt.s, got)
		}
	}
}

// TestTelling: of a console the lines are kept that say why, each once, the last few.
func TestTelling(t *testing.T) {
	var b strings.Builder
	b.WriteString("[    0.000000] Linux version 6.1\r\n\n")
	for i := range 20 {
		fmt.Fprintf(&b, "[  %d] kubelet: Unable to register node: dial tcp 10.0.0.%d:443: i/o timeout\r\n", i, i)
	}
	b.WriteString("same: Unauthorized\nsame: Unauthorized\n" + "x509: " + strings.Repeat("long ", 100) + "\n")
	got := Telling(b.String())
	if len(got) != telling || got[telling-2] != "same: Unauthorized" || len(got[telling-1]) > longestBit+3 || !strings.Contains(got[0], "10.0.0.16") {
		t.Errorf("%q", got)
	}
	if got := Telling("all is well\n"); len(got) != 0 {
		t.Errorf("%q", got)
	}
}

// TestHarmless: pods that are left alone on purpose are nobody's to mend.
func TestHarmless(t *testing.T) {
	for _, c := range plan.Codes() {
		if Harmless(c.Code) != (c.Kind == plan.KindNotPlanned && c.Code != plan.ResourceClaims && c.Code != plan.EvictionBlocked) {
			t.Errorf("%s (%s): %v", c.Code, c.Kind, Harmless(c.Code))
		}
	}
}
