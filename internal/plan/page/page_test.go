package page_test

import (
	"encoding/json"
	"os"
	"path/filepath"
	"testing"

	"github.com/cockroachdb/datadriven"
	"sigs.k8s.io/yaml"

	"kerf.sh/kerf/internal/plan"
	"kerf.sh/kerf/internal/plan/page"
)

// demo is the plan that package plan's transcripts render.
func demo(t *testing.T) *plan.Plan {
	t.Helper()
	var p *plan.Plan
	datadriven.RunTest(t, filepath.Join("..", "testdata", "transcripts", "demo.txt"), func(t *testing.T, d *datadriven.TestData) string {
		if d.Cmd == "plan" && p == nil {
			raw, err := yaml.YAMLToJSON([]byte(d.Input))
			if err != nil {
				t.Fatal(err)
			}
			p = &plan.Plan{}
			if err := json.Unmarshal(raw, p); err != nil {
				t.Fatal(err)
			}
		}
		return d.Expected
	})
	return p
}

func TestX(t *testing.T) {
	b, err := page.HTML(demo(t))
	if err != nil {
		t.Fatal(err)
	}
	os.WriteFile("/tmp/demo.html", b, 0o644)
}
