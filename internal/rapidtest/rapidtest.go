package rapidtest

import (
	"flag"
	"os"
	"testing"
)

// Main runs the tests of a package with one seed and without files of failures, which
// print what they drew. more are other flags of rapid with the values of this package.
// Flags that are given on the command line stay.
func Main(m *testing.M, more map[string]string) {
	flag.Parse()
	given := map[string]bool{}
	flag.Visit(func(f *flag.Flag) { given[f.Name] = true })
	set := func(name, value string) {
		if given[name] {
			return
		}
		if err := flag.Set(name, value); err != nil {
			panic(err)
		}
	}
	set("rapid.seed", "20260304")
	set("rapid.nofailfile", "true")
	for name, value := range more {
		set(name, value)
	}
	os.Exit(m.Run())
}
