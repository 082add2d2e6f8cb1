package provision

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"kerf.sh/kerf/internal/plan"
	"kerf.sh/kerf/internal/snapshot"
)

// priced counts what of a plan one overlay prices.
type priced struct {
	launches, nodes int
	example         string // the first launch, else the first node
}

// overlaid notes that a launch or a node has the price of an overlay. listed is the
// catalogue's price, -1 where it is left out.
func (pl *planner) overlaid(overlay, object string, price, listed snapshot.Price) {
	if overlay == "" {
		return
	}
	if pl.priced == nil {
		pl.priced = map[string]*priced{}
	}
	p := pl.priced[overlay]
	if p == nil {
		p = &priced{}
		pl.priced[overlay] = p
	}
	text := object + " at " + plan.Dollars(price)
	if listed >= 0 {
		p.launches++
		text += " in place of " + plan.Dollars(listed)
	} else {
		p.nodes++
	}
	if p.example == "" {
		p.example = text + " per hour"
	}
}

// warnOverlaid says which prices of the plan are not the catalogue's.
func (pl *planner) warnOverlaid() {
	for i := range pl.out.Launches {
		l := &pl.out.Launches[i]
		pl.overlaid(l.Chosen.Overlay, l.Name, l.Chosen.Price, l.Chosen.ListPrice)
	}
	for _, name := range slices.Sorted(maps.Keys(pl.priced)) {
		p := pl.priced[name]
		var parts []string
		if p.launches > 0 {
			parts = append(parts, plan.Count(p.launches, "new node"))
		}
		if p.nodes > 0 {
			parts = append(parts, plan.Count(p.nodes, "node"))
		}
		pl.warn("nodeoverlay/"+name, plan.PriceOverlaid, fmt.Sprintf("it sets the price of %s: %s", strings.Join(parts, " and "), p.example))
	}
}
