package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"kerf.sh/kerf/internal/idle"
)

// TestPagesAreNotStale: what is in docs/ is what the tables say today.
func TestPagesAreNotStale(t *testing.T) {
	root := filepath.Join("..", "..")
	all, err := pages(root)
	if err != nil {
		t.Fatal(err)
	}
	for name, want := range all {
		got, err := os.ReadFile(filepath.Join("..", "..", "docs", name))
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(want, string(got)); diff != "" {
			t.Errorf("docs/%s is stale: go run ./scripts/docs (-want +got)\n%s", name, diff)
		}
	}
}

// TestReadmeKnowsTheCost: the sentence on cost in the README is the one of the page.
func TestReadmeKnowsTheCost(t *testing.T) {
	root := filepath.Join("..", "..")
	alarms, err := alarmed(root)
	if err != nil || alarms < 8 {
		t.Fatal(alarms, err)
	}
	want, err := idle.Headline(billed(), alarms)
	if err != nil {
		t.Fatal(err)
	}
	got, err := os.ReadFile(filepath.Join(root, "README.md"))
	if err != nil {
		t.Fatal(err)
	}
	if !strings.Contains(strings.Join(strings.Fields(string(got)), " "), want) {
		t.Errorf("README.md does not say, whatever its lines are:\n%s", want)
	}
}
