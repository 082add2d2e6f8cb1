package worldtest

import (
	"strings"

	"kerf.sh/kerf/internal/plan"
	"kerf.sh/kerf/internal/snapshot"
)

// fewerValues: under BestEffort a launch has as many values as its most demanding pod
// leaves it, and says so where that is fewer than minValues.
func (j *judge) fewerValues(l *plan.Launch, v *poolView) {
	for _, key := range sortedKeys(v.minValues) {
		want := v.minValues[key]
		if want == 0 {
			continue
		}
		distinct := map[string]bool{}
		for _, o := range l.Options {
			if sup := v.find(o); sup != nil && sup.Labels[key] != "" {
				distinct[sup.Labels[key]] = true
			}
		}
		said := false
		for _, r := range l.Relaxed {
			said = said || strings.Contains(r, "minValues of "+key)
		}
		if said != (len(distinct) < want) {
			j.fail("launch %s: options have %d values of %s, minValues is %d, and it says so: %t", l.Name, len(distinct), key, want, said)
		}
		need := want
		for _, p := range j.inLaunch[l.Name] {
			need = min(need, j.valuesFor(l, v, p, key))
		}
		if len(v.pool.Limits) == 0 && len(j.inLaunch[l.Name]) > 0 && len(distinct) < need {
			j.fail("launch %s: options have %d values of %s, its pods alone leave it %d", l.Name, len(distinct), key, need)
		}
	}
}

// valuesFor counts the values of a label that supplies bring which host a pod alone.
func (j *judge) valuesFor(l *plan.Launch, v *poolView, p *snapshot.Pod, key string) int {
	count := func(exotic bool) int {
		values := map[string]bool{}
		for _, sup := range v.supplies {
			if sup.Reservation == "" && sup.Exotic == exotic && j.holds(sup, l, []*snapshot.Pod{p}) == "" && sup.Labels[key] != "" {
				values[sup.Labels[key]] = true
			}
		}
		return len(values)
	}
	if n := count(false); n > 0 {
		return n
	}
	return count(true)
}
