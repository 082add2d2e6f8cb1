package oracle

import (
	"slices"
	"testing"

	"pgregory.net/rapid"
)

// comparison draws a case, asks Kerf and the oracle, and says how they differ, ""
// when they do not. fault names what is to be broken in Kerf's answer, "" for
// nothing: a comparison that does not notice a fault proves nothing.
type comparison func(t *rapid.T, fault string) difference

type difference struct {
	text string
	// onPurpose names the departures that apply to the case.
	onPurpose []departure
}

// departure is a known difference; applies tells whether this case is one.
type departure struct {
	name    string
	applies bool
}

func (d difference) departure() string {
	for _, p := range d.onPurpose {
		if p.applies {
			return p.name
		}
	}
	return ""
}

// draws is how many fixed draws must show each departure and each fault.
const draws = 5000

// check wants no difference but the named departures. It wants each of these to
// occur (one that is gone must leave the list) and each fault to be noticed, both
// among draws that are the same every time.
func check(t *testing.T, departures, faults []string, compare comparison) {
	t.Helper()
	rapid.Check(t, func(t *rapid.T) {
		for range 20 {
			if d := compare(t, ""); d.text != "" && !slices.Contains(departures, d.departure()) {
				t.Fatal(d.text)
			}
		}
	})
	occurs := func(fault string, is func(difference) bool) bool {
		cases := rapid.Custom(func(t *rapid.T) difference { return compare(t, fault) })
		for i := range draws {
			if d := cases.Example(i); d.text != "" && is(d) {
				return true
			}
		}
		return false
	}
	for _, name := range departures {
		if !occurs("", func(d difference) bool { return d.departure() == name }) {
			t.Errorf("departure %q does not occur: take it off the list", name)
		}
	}
	for _, fault := range faults {
		if !occurs(fault, func(d difference) bool { return d.departure() == "" }) {
			t.Errorf("fault %q is not noticed", fault)
		}
	}
}
