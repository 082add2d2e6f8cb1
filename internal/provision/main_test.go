package provision_test

import (
	"flag"
	"os"
	"testing"
)

// TestMain keeps rapid from writing files into testdata: a failure prints its seed
// and its world.
func TestMain(m *testing.M) {
	flag.Parse()
	if err := flag.Set("rapid.nofailfile", "true"); err != nil {
		panic(err)
	}
	os.Exit(m.Run())
}
