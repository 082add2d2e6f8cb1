package scheduling

import (
	"fmt"
	"slices"
	"strings"

	"kerf.sh/kerf/internal/catalog"
	"kerf.sh/kerf/internal/plan"
)

// reservedOnly names the reservations of a pool that a class is confined to, where no
// other offer is large enough and allowed: others of the plan have taken them. "" when
// some other offer would do.
func (w *World) reservedOnly(class, pool int) string {
	c := &w.Classes[class]
	left := map[string]int64{}
	for ti := range w.Templates {
		t := &w.Templates[ti]
		if t.Pool != pool || w.allow == nil || ti >= len(w.allow[c.Rules].offers) || w.allow[c.Rules].offers[ti] == nil {
			continue
		}
		other := false
		w.allow[c.Rules].offers[ti].Members(func(o int) {
			k := t.offerType[o]
			rest := t.u.types[t.types[k]].Allocatable.Sub(t.daemons.groups[t.daemons.of[k]].requests)
			if !c.Requests.Fits(rest) {
				return
			}
			if of := &t.u.offers[t.offers[o]]; of.capacity == catalog.Reserved {
				left[of.reservation] = of.count
			} else {
				other = true
			}
		})
		if other {
			return ""
		}
	}
	if len(left) == 0 {
		return ""
	}
	var parts []string
	for _, id := range sortedKeys(left) {
		parts = append(parts, fmt.Sprintf("%s (%s left before this plan)", id, plan.Count(int(left[id]), "instance")))
	}
	slices.Sort(parts)
	return "only reserved capacity would do, and the plan has used it up: " + strings.Join(parts, ", ")
}
