package plan_test

import (
	"encoding/json"
	"testing"

	"github.com/cockroachdb/datadriven"
	"sigs.k8s.io/yaml"

	"kerf.sh/kerf/internal/plan"
)

// TestTranscripts renders the plans of testdata/transcripts. Commands: plan (reads one, in
// YAML, by the names of the Go fields), text (width, color), json, only (object); compare (with
// the plan that was read before the last one; the input is the changes, in YAML), diff (width,
// color) and diffjson.
func TestTranscripts(t *testing.T) {
	datadriven.Walk(t, "testdata/transcripts", func(t *testing.T, path string) {
		var before, p *plan.Plan
		datadriven.RunTest(t, path, func(t *testing.T, d *datadriven.TestData) string {
			switch d.Cmd {
			case "plan":
				before, p = p, readPlan(t, d.Input)
				return "ok"
			case "compare":
				p.Diff = plan.Compare(before, p)
				p.Diff.Changes = readPlan(t, "Diff: {Changes: ["+d.Input+"]}").Diff.Changes
				return "ok"
			case "diff":
				o := plan.TextOptions{Color: d.HasArg("color")}
				d.MaybeScanArgs(t, "width", &o.Width)
				return plan.DiffText(p, o)
			case "diffjson":
				out, err := p.Diff.JSON(true)
				if err != nil {
					t.Fatal(err)
				}
				return string(out)
			case "text":
				o := plan.TextOptions{Color: d.HasArg("color")}
				d.MaybeScanArgs(t, "width", &o.Width)
				return plan.Text(p, o)
			case "json":
				out, err := plan.JSON(p, true)
				if err != nil {
					t.Fatal(err)
				}
				return string(out)
			case "only":
				var object string
				d.ScanArgs(t, "object", &object)
				return plan.Text(p.Only(object), plan.TextOptions{})
			}
			t.Fatalf("unknown command %q", d.Cmd)
			return ""
		})
	})
}

func readPlan(t *testing.T, text string) *plan.Plan {
	t.Helper()
	raw, err := yaml.YAMLToJSON([]byte(text))
	if err != nil {
		t.Fatal(err)
	}
	var p plan.Plan
	if err := json.Unmarshal(raw, &p); err != nil {
		t.Fatal(err)
	}
	return &p
}
