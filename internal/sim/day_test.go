package sim

import (
	"flag"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"kerf.sh/kerf/internal/sim/daypage"
)

var dayOut = flag.String("day", "", "write the page of the day to this file, and its text beside it (make demo)")

// What the day has to keep to.
const (
	// dayLess is how much less the day costs with consolidation than without, in percent.
	dayLess = 18
	// dayWaits is how long a pod may wait until it runs.
	dayWaits = 3 * time.Minute
)

// liveDay lets the day go by twice, with consolidation and without, side by side.
func liveDay(t *testing.T) *daypage.Day {
	var reps [2]*Report
	var recs [2]*dayRecord
	t.Run("runs", func(t *testing.T) {
		for i, name := range []string{"kerf", "never"} {
			t.Run(name, func(t *testing.T) {
				t.Parallel()
				synctest.Test(t, func(*testing.T) { reps[i], recs[i] = runDay(i == 1, dayLength) })
			})
		}
	})
	for i, rep := range reps {
		if rep == nil {
			t.FailNow()
		}
		for _, b := range rep.Broken {
			t.Errorf("%s: %s", []string{"kerf", "never"}[i], b)
		}
		if *trace != "" {
			if err := os.WriteFile(*trace+[]string{".kerf", ".never"}[i], []byte(rep.Trace), 0o644); err != nil {
				t.Fatal(err)
			}
		}
		t.Logf("%s: trace %s, %+v", []string{"kerf", "never"}[i], rep.Hash, rep.Stats)
	}
	return dayStory(recs[0], recs[1])
}

// TestDay: a day costs less with consolidation than without, no pod waits long, and no pod is
// lost to an interruption or an image that does not work. With -day it is the demo.
func TestDay(t *testing.T) {
	d := liveDay(t)
	html, err := daypage.HTML(d)
	if err != nil {
		t.Fatal(err)
	}
	text := daypage.Text(d)
	t.Logf("\n%s", text)
	if *dayOut != "" {
		if err := os.MkdirAll(filepath.Dir(*dayOut), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(*dayOut, html, 0o644); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(strings.TrimSuffix(*dayOut, filepath.Ext(*dayOut))+".txt", text, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	for _, problem := range dayProblems(d) {
		t.Error(problem)
	}
}

// TestDayIsTheSame: the morning and the bad image twice are the same to the byte.
func TestDayIsTheSame(t *testing.T) {
	var hashes [2]string
	var moves [2][]daypage.Move
	t.Run("runs", func(t *testing.T) {
		for i := range hashes {
			t.Run("", func(t *testing.T) {
				t.Parallel()
				synctest.Test(t, func(*testing.T) {
					rep, rec := runDay(false, dayAt(14, 10))
					hashes[i], moves[i] = rep.Hash, rec.moves()
				})
			})
		}
	})
	if hashes[0] != hashes[1] || !reflect.DeepEqual(moves[0], moves[1]) || len(moves[0]) == 0 {
		t.Errorf("two runs of the day differ: traces %v, %d and %d moves", hashes, len(moves[0]), len(moves[1]))
	}
}
