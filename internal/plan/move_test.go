package plan

import "testing"

func TestSavings(t *testing.T) {
	for want, s := range map[string]Savings{
		"You pay $31.2000 an hour; $18.4000 is reachable now; $17.9000 is the floor.": {Now: 31_200_000, After: 18_400_000, Floor: 17_900_000},
		"You pay $31.2000 an hour; no less is reachable now; $17.9000 is the floor.":  {Now: 31_200_000, After: 31_200_000, Floor: 17_900_000},
		"You pay $31.2000 an hour; no less is reachable now; that is the floor.":      {Now: 31_200_000, After: 31_200_000, Floor: 31_199_999},
	} {
		if got := s.String(); got != want {
			t.Errorf("%q, want %q", got, want)
		}
	}
}
