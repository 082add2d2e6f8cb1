package app_test

import (
	"encoding/json"
	"os"
	"path/filepath"
	"testing"

	"github.com/aws/aws-lambda-go/events"

	"kerf.sh/kerf/internal/app"
	"kerf.sh/kerf/internal/app/region"
)

// TestEvents sends every payload under events to its function, as it is built for Lambda:
// none is refused for what it says. (What is asked of AWS is refused, and that is no error
// of the payload.)
func TestEvents(t *testing.T) {
	o := newOutside(t)
	sweep, err := app.SweepFunction(t.Context(), o.environ())
	if err != nil {
		t.Fatal(err)
	}
	life, err := app.LifecycleFunction(t.Context(), o.environ())
	if err != nil {
		t.Fatal(err)
	}
	catalog, err := app.CatalogFunction(t.Context(), o.environ(), region.Ask)
	if err != nil {
		t.Fatal(err)
	}
	for dir, fn := range map[string]app.Function{"sweep": sweep, "lifecycle": life, "catalog": catalog} {
		files, err := filepath.Glob(filepath.Join("..", "..", "events", dir, "*.json"))
		if err != nil || len(files) == 0 {
			t.Fatalf("no payloads of %s: %v", dir, err)
		}
		for _, f := range files {
			payload, err := os.ReadFile(f)
			if err != nil {
				t.Fatal(err)
			}
			o.take()
			out, err := fn(t.Context(), json.RawMessage(payload))
			if len(o.take()) == 0 && (err != nil || dir != "sweep") {
				t.Errorf("%s: nothing was asked of anybody: %v", f, err)
			}
			if r, ok := out.(events.SQSEventResponse); ok && filepath.Base(f) == "ticks.json" && len(r.BatchItemFailures) > 0 {
				t.Errorf("%s: old ticks came back: %+v", f, r)
			}
		}
	}
}
