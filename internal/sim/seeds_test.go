package sim

import (
	"flag"
	"fmt"
	"os"
	"runtime/debug"
	"testing"
)

var (
	seeds = flag.Int("seeds", 12, "how many worlds TestSeeds draws")
	from  = flag.Uint64("from", 0, "the seed of the first one")
	keep  = flag.String("keep", "", "keep the world of -seed in testdata/seeds, with these words on what it showed")
	one   = flag.String("seed", "", "run this seed alone and print its trace")
	trace = flag.String("trace", "", "write the trace of the last world to this file, instead of printing that of -seed")
)

// TestMain lets garbage gather: worlds are small and many.
func TestMain(m *testing.M) {
	debug.SetGCPercent(400)
	os.Exit(m.Run())
}

// TestSeeds draws worlds with all kinds of trouble. A seed that fails is printed with what
// was broken; -seed runs it again and prints all that happened.
func TestSeeds(t *testing.T) {
	if *one != "" {
		var seed uint64
		if _, err := fmt.Sscan(*one, &seed); err != nil {
			t.Fatalf("-seed %s: %v", *one, err)
		}
		rep := inBubble(t, seed, Options{Verbose: true})
		if *keep != "" {
			kept{seed, *keep, Draw(seed)}.write(t)
		}
		if *trace == "" {
			os.Stdout.WriteString(rep.Trace)
		}
		report(t, rep)
		return
	}
	for i := range uint64(*seeds) {
		t.Run(fmt.Sprint(*from+i), func(t *testing.T) {
			t.Parallel()
			report(t, inBubble(t, *from+i, Options{}))
		})
	}
}

func report(t *testing.T, rep *Report) {
	t.Helper()
	for _, b := range rep.Broken {
		t.Errorf("seed %d: %s", rep.Seed, b)
	}
	if len(rep.Broken) > 0 && *one == "" {
		t.Errorf("all that happened: SEED=%d make sim", rep.Seed)
	}
	t.Logf("seed %d: trace %s, %+v", rep.Seed, rep.Hash, rep.Stats)
}
