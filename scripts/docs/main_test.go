package main

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// TestPagesAreNotStale: what is in docs/ is what the tables say today.
func TestPagesAreNotStale(t *testing.T) {
	for name, want := range pages() {
		got, err := os.ReadFile(filepath.Join("..", "..", "docs", name))
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(want, string(got)); diff != "" {
			t.Errorf("docs/%s is stale: go run ./scripts/docs (-want +got)\n%s", name, diff)
		}
	}
}
