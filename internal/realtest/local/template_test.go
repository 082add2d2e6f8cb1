package local

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

const golden = "../../../infra/autoscaler/testdata/template.json"

// TestTemplate: every function of the template gets its program, and EC2 is told what its role
// may do.
func TestTemplate(t *testing.T) {
	build := t.TempDir()
	names := []string{"sweep", "lifecycle", "catalog", "interruption", "consolidation", "plan", "bootstrap"}
	for _, name := range names {
		if err := os.MkdirAll(filepath.Join(build, name), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(build, name, "bootstrap"), []byte(name), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	got, err := readTemplate(golden, build)
	if err != nil {
		t.Fatal(err)
	}
	if got.cluster != "prod" || got.types["AWS::Lambda::Function"] != len(names) || len(got.actions) != len(names) || len(got.assets) != len(names) {
		t.Errorf("cluster %q, %d functions, actions of %d, %d assets", got.cluster, got.types["AWS::Lambda::Function"], len(got.actions), len(got.assets))
	}
	for id, actions := range got.actions {
		launches := strings.HasPrefix(id, "KerfSweep") || strings.HasPrefix(id, "KerfLifecycle") || strings.HasPrefix(id, "KerfConsolidation")
		if slices.Contains(actions, "ec2:CreateFleet") != launches {
			t.Errorf("%s may launch: %t, want %t", id, !launches, launches)
		}
	}
	for _, name := range names {
		if !strings.Contains(string(got.text), `"S3Key":"`+name+`.zip"`) {
			t.Errorf("no function has the program %s", name)
		}
	}
	// A program that is missing is named.
	if err := os.RemoveAll(filepath.Join(build, "sweep")); err != nil {
		t.Fatal(err)
	}
	if _, err := readTemplate(golden, build); err == nil || !strings.Contains(err.Error(), "KerfSweepFunction") {
		t.Errorf("without a program: %v", err)
	}
}
