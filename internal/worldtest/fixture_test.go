package worldtest

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"kerf.sh/kerf/internal/snapshot"
)

// The figures that transcripts rely on are those worked out by hand.
func TestFixtureAllocatable(t *testing.T) {
	class := &snapshot.NodeClass{Name: "default", AMIFamily: "AL2023"}
	rs, err := Fixture().Resolve(class, snapshot.DefaultSettings())
	if err != nil {
		t.Fatal(err)
	}
	got := map[string][3]int64{}
	for _, r := range rs {
		got[r.Type.Name] = [3]int64{r.Allocatable.CPU, r.Allocatable.Memory >> 20, r.Allocatable.Pods}
	}
	if d := cmp.Diff(FixtureAllocatable, got); d != "" {
		t.Errorf("allocatable (-by hand +resolved):\n%s", d)
	}
}
