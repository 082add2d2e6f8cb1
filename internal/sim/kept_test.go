package sim

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"testing"
)

// kept is a world that showed something once: its profile is kept with its seed, because
// what a seed draws changes with the drawing.
type kept struct {
	Seed    uint64
	Showed  string
	Profile Profile
}

func (k kept) write(t *testing.T) {
	raw, err := json.MarshalIndent(k, "", "  ")
	if err == nil {
		err = os.WriteFile(filepath.Join("testdata", "seeds", fmt.Sprintf("%d.json", k.Seed)), append(raw, '\n'), 0o644)
	}
	if err != nil {
		t.Fatal(err)
	}
}

// TestKept runs the worlds again that showed something.
func TestKept(t *testing.T) {
	files, err := filepath.Glob(filepath.Join("testdata", "seeds", "*.json"))
	if err != nil || len(files) == 0 {
		t.Fatalf("no worlds are kept: %v", err)
	}
	for _, f := range files {
		raw, err := os.ReadFile(f)
		if err != nil {
			t.Fatal(err)
		}
		var k kept
		if err := json.Unmarshal(raw, &k); err != nil {
			t.Fatalf("%s: %v", f, err)
		}
		t.Run(fmt.Sprint(k.Seed), func(t *testing.T) {
			t.Parallel()
			rep := inBubble(t, k.Seed, Options{Profile: &k.Profile})
			if len(rep.Broken) > 0 {
				t.Logf("it showed before: %s", k.Showed)
			}
			report(t, rep)
		})
	}
}
