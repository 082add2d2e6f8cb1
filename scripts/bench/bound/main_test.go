package bound

import (
	"flag"
	"os"
	"testing"
)

// TestMain makes drawn problems the same in every run, so that a test that passed
// yesterday passes today: -rapid.seed draws others, -rapid.checks draws more. Failures
// print their problem instead of writing files into testdata.
func TestMain(m *testing.M) {
	flag.Parse()
	given := map[string]bool{}
	flag.Visit(func(f *flag.Flag) { given[f.Name] = true })
	for name, value := range map[string]string{
		"rapid.seed": "20260304", "rapid.checks": "300", "rapid.shrinktime": "10s", "rapid.nofailfile": "true",
	} {
		if given[name] {
			continue
		}
		if err := flag.Set(name, value); err != nil {
			panic(err)
		}
	}
	os.Exit(m.Run())
}
