package sim

import (
	"os"
	"testing"
	"testing/synctest"
	"time"
)

// inBubble runs a world in a bubble of its own.
func inBubble(t *testing.T, seed uint64, o Options) *Report {
	t.Helper()
	var rep *Report
	o.Verbose = o.Verbose || *trace != ""
	synctest.Test(t, func(*testing.T) { rep = Run(seed, o) })
	if *trace != "" {
		if err := os.WriteFile(*trace, []byte(rep.Trace), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	return rep
}

// calm is a profile in which nothing goes wrong.
func calm(loads ...Load) *Profile {
	return &Profile{
		Trouble: 10 * time.Minute, Settle: 10 * time.Minute, Quiet: 5 * time.Minute, Free: 250, VisibleAfter: 3 * time.Second, RunningAfter: 10 * time.Second,
		Pools: []Pool{{Name: "general", CapacityType: []string{"on-demand", "spot"}, Arch: []string{"amd64", "arm64"}, Class: "default"}},
		Loads: loads, Daemons: 1,
	}
}

// TestCalm: without any trouble pods come, nodes come, and all is at rest.
func TestCalm(t *testing.T) {
	rep := inBubble(t, 1, Options{Verbose: true, Profile: calm(Load{After: 20 * time.Second, Kind: "plain", Pods: 12, CPU: 500, Mem: 1024})})
	for _, b := range rep.Broken {
		t.Error(b)
	}
	if rep.Stats.PodsBound < 12 || rep.Stats.Instances == 0 {
		t.Errorf("%+v", rep.Stats)
	}
	if t.Failed() || testing.Verbose() {
		t.Log("\n" + rep.Trace)
	}
}

// bench runs something in a bubble that needs a test: a benchmark has none.
func bench(b *testing.B, f func()) {
	b.Helper()
	ok := testing.RunTests(func(string, string) (bool, error) { return true, nil }, []testing.InternalTest{{Name: "world", F: func(t *testing.T) {
		synctest.Test(t, func(*testing.T) { f() })
	}}})
	if !ok {
		b.Fatal("the world broke")
	}
}
