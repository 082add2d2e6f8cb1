package app_test

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"

	"kerf.sh/kerf/internal/plan"
)

// answer is the part of the plan that the checks below read, by its public names.
type answer struct {
	Complete bool
	Summary  struct {
		PendingPods, Placed, Launches, Unschedulable int
		PricePerHourBefore, PricePerHourAfter        float64
		LaunchPricePerHour, LaunchPriceWorstPerHour  float64
		LaunchLowerBoundPerHour                      float64
		BoundDuals                                   map[string]float64
	}
	Launches []struct {
		Name    string
		Pods    []string
		Chosen  offer
		Options []offer
	}
	Placements []struct{ Pod, Node string }
	Verdicts   []struct{ Object, Code string }
	Nodes      []struct {
		Name   string
		Placed int
	}
}

type offer struct {
	InstanceType, Zone, CapacityType string
	PricePerHour                     float64
}

// faults are the ways in which an answer contradicts itself.
func faults(a *answer) (out []string) {
	say := func(format string, args ...any) { out = append(out, fmt.Sprintf(format, args...)) }
	where := map[string]int{}
	price, worst := 0.0, 0.0
	for _, l := range a.Launches {
		if len(l.Pods) == 0 || !slices.IsSorted(l.Pods) {
			say("pods of %s: %v", l.Name, l.Pods)
		}
		for _, p := range l.Pods {
			where[p]++
		}
		if !slices.Contains(l.Options, l.Chosen) {
			say("%s: the chosen offer is no option", l.Name)
		}
		if !slices.IsSortedFunc(l.Options, func(x, y offer) int { return int((x.PricePerHour - y.PricePerHour) * 1e7) }) {
			say("%s: options are not sorted by price", l.Name)
		}
		price += l.Chosen.PricePerHour
		most := 0.0
		for _, o := range l.Options {
			most = max(most, o.PricePerHour)
		}
		worst += most
	}
	placed := map[string]int{}
	for _, p := range a.Placements {
		where[p.Pod]++
		placed[p.Node]++
	}
	cannot := 0
	for _, v := range a.Verdicts {
		if ref, ok := strings.CutPrefix(v.Object, "pod/"); ok && plan.Info(plan.Code(v.Code)).Kind == plan.KindCannotRun {
			where[ref]++
			cannot++
		}
	}
	for p, n := range where {
		if n != 1 {
			say("pod %s is in %d places", p, n)
		}
	}
	for _, n := range a.Nodes {
		if n.Placed != placed[n.Name] {
			say("node %s: %d placed, but %d placements", n.Name, n.Placed, placed[n.Name])
		}
	}
	s := &a.Summary
	near := func(x, y float64) bool { return x-y < 1e-6 && y-x < 1e-6 }
	if s.PendingPods != len(where) || s.Placed != len(a.Placements) || s.Launches != len(a.Launches) || s.Unschedulable != cannot {
		say("the summary counts %+v; there are %d pods, %d placements, %d launches, %d that cannot run", *s, len(where), len(a.Placements), len(a.Launches), cannot)
	}
	if !near(s.LaunchPricePerHour, price) || !near(s.LaunchPriceWorstPerHour, worst) || !near(s.PricePerHourAfter, s.PricePerHourBefore+price) {
		say("prices do not add up: %+v, launches %f, worst %f", *s, price, worst)
	}
	if s.LaunchLowerBoundPerHour > price+1e-6 {
		say("the bound %f is above the price %f", s.LaunchLowerBoundPerHour, price)
	}
	return out
}

// TestGapOfTheDemo: the README says that it is over 10 %. The day that it is less
// is a good one, and the README has to say so.
func TestGapOfTheDemo(t *testing.T) {
	status, out, stderr := run([]string{"-f", "../../events/worlds/demo", "--now", "2026-11-30T09:30:00Z", "-o", "json"}, "")
	var a answer
	if err := json.Unmarshal([]byte(out), &a); status != 0 || err != nil {
		t.Fatalf("exit %d: %s%v", status, stderr, err)
	}
	if gap := a.Summary.LaunchPricePerHour/a.Summary.LaunchLowerBoundPerHour - 1; gap < 0.10 || gap > 0.20 {
		t.Errorf("the gap of the demo is %.1f %%: the README says over 10 %%", 100*gap)
	}
}

// TestPlansAddUp: the plans of the worlds that ship with the repository do not
// contradict themselves, told by their public fields alone.
func TestPlansAddUp(t *testing.T) {
	for _, world := range []string{"demo", "small"} {
		status, out, stderr := run([]string{"-f", "../../events/worlds/" + world, "--now", "2026-11-30T09:30:00Z", "-o", "json"}, "")
		if status != 0 {
			t.Fatalf("%s: exit %d: %s", world, status, stderr)
		}
		read := func() *answer {
			var a answer
			if err := json.Unmarshal([]byte(out), &a); err != nil {
				t.Fatal(err)
			}
			return &a
		}
		if got := faults(read()); got != nil {
			t.Errorf("%s:\n%s", world, strings.Join(got, "\n"))
		}
		// Each check has been seen to fail.
		for name, breakIt := range map[string]func(*answer){
			"a pod twice":            func(a *answer) { a.Launches[0].Pods = append(a.Launches[0].Pods, a.Launches[0].Pods[0]) },
			"a pod lost":             func(a *answer) { a.Launches[0].Pods = a.Launches[0].Pods[1:] },
			"a launch without pods":  func(a *answer) { a.Launches[0].Pods = nil },
			"chosen is no option":    func(a *answer) { a.Launches[0].Chosen.Zone = "elsewhere" },
			"options upside down":    func(a *answer) { slices.Reverse(a.Launches[len(a.Launches)-1].Options) },
			"a price that is wrong":  func(a *answer) { a.Summary.LaunchPricePerHour += 0.001 },
			"a bound above":          func(a *answer) { a.Summary.LaunchLowerBoundPerHour = a.Summary.LaunchPricePerHour + 1 },
			"a verdict lost":         func(a *answer) { a.Verdicts = nil },
			"worst is not the worst": func(a *answer) { a.Summary.LaunchPriceWorstPerHour /= 2 },
		} {
			a := read()
			breakIt(a)
			if faults(a) == nil {
				t.Errorf("%s: %s goes unnoticed", world, name)
			}
		}
	}
}
