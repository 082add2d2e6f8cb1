package packing

import (
	"fmt"
	"slices"
)

// maxOptionTypes is how many types one launch may offer (EC2 takes 60 in practice).
const maxOptionTypes = 60

// What a launch should offer at least, so that it finds capacity: spot pools run dry
// one by one, on-demand capacity is rarely short.
const (
	wantedSpotTypes    = 15
	wantedSpotFamilies = 3
	wantedTypes        = 5
)

// How far all launches at their dearest options may be above the bound, in percent
// beyond the cap of a single option, and how far the plan may be above it for the bound
// to say anything: one that is weaker than that costs no options.
const (
	overBound = 2
	weakBound = 0.955
)

// optionCeiling is the most that an option may cost of the chosen one, in thousandths:
// the cap of the problem, lowered where the plan is so far above its bound that all
// dearest options together would be too dear. 0: no cap.
func (s *solver) optionCeiling(bounds []Bound) int64 {
	most := s.p.OptionPriceCap
	if most <= 0 {
		return 0
	}
	price, low := int64(0), int64(0)
	for _, n := range s.nodes {
		price += s.p.Templates[n.template].Offers[n.offer].Price
	}
	for i := range bounds {
		low += bounds[i].Total
	}
	ceiling := 10 * most
	if share := float64(low) / float64(max(price, 1)); share > weakBound {
		ceiling = min(ceiling, int64(float64(10*(most+overBound))*share))
	}
	return ceiling
}

// options lists what a node may be launched as: every allowed offer whose type holds
// the contents and that costs little more than the chosen one.
func (s *solver) options(n *pnode, l *Launch) {
	tm := &s.p.Templates[n.template]
	types := NewBitset(len(tm.Types)) // those that would do
	size := 0
	for i := range tm.Types {
		if t := &tm.Types[i]; (!t.Exotic || tm.Types[n.typ].Exotic) && covers(t.Alloc, n.use) && s.limitsAllow(n, t) {
			types.Set(i)
			size++
		}
	}
	all := make([]int, 0, size*(len(tm.Offers)/len(tm.Types)+1))
	for _, o := range s.ranked(n.template) {
		if types.Has(tm.Offers[o].Type) && n.offers.Has(o) && s.countLeft(n, o) {
			all = append(all, o)
		}
	}
	l.Chosen = all[0]
	top, paid := NoLimit, NoLimit
	if s.ceiling > 0 {
		top = tm.Offers[l.Chosen].Price * s.ceiling / 1000
		paid = tm.Offers[l.Chosen].Paid() * s.ceiling / 1000
	}
	taken, takenTypes := NewBitset(len(tm.Types)), 0
	for _, o := range all {
		of := &tm.Offers[o]
		if of.Price > top && len(tm.MinValues) == 0 && of.Rank == tm.Offers[l.Chosen].Rank {
			break
		}
		if of.Price > top || of.Paid() > paid || (!taken.Has(of.Type) && takenTypes == maxOptionTypes) {
			continue
		}
		if !taken.Has(of.Type) {
			taken.Set(of.Type)
			takenTypes++
		}
		l.Options = append(l.Options, o)
	}
	l.Options = s.forMinValues(tm, all, l.Options)
	l.Chosen = s.choose(tm, l.Options)
	l.Limited, l.Dear = s.limited(tm, all, l)
	s.reserveLargest(n, l.Options)
	for _, o := range l.Options {
		l.Worst = max(l.Worst, tm.Offers[o].Paid())
	}
}

// variety counts what offers of one capacity type differ in.
type variety struct{ types, families, zones int }

func varietyOf(tm *Template, offers []int, capacity string) variety {
	var v variety
	types, families := NewBitset(len(tm.Types)), map[string]bool{}
	var markets []*Market // few
	var zones []string
	for _, o := range offers {
		of := &tm.Offers[o]
		if of.Capacity != capacity {
			continue
		}
		if !types.Has(of.Type) {
			types.Set(of.Type)
			v.types++
			families[tm.Types[of.Type].Family] = true
		}
		if !slices.Contains(markets, of.Market) {
			markets = append(markets, of.Market)
			if !slices.Contains(zones, of.Zone) {
				zones = append(zones, of.Zone)
			}
		}
	}
	v.families, v.zones = len(families), len(zones)
	return v
}

// limited says why a launch offers less than is wanted, as far as it is not reserved:
// whether the rules leave no more, or the price; "" if it offers enough. all are the
// offers that rules and contents leave at any price; dear reports that those are enough.
func (s *solver) limited(tm *Template, all []int, l *Launch) (why string, dear bool) {
	capacity := tm.Offers[l.Chosen].Capacity
	if tm.Offers[l.Chosen].Reservation != "" {
		return "", false
	}
	have := varietyOf(tm, l.Options, capacity)
	spot := capacity == "spot"
	if !spot && have.types >= wantedTypes {
		return "", false
	}
	could := varietyOf(tm, all, capacity)
	if spot && have.types >= wantedSpotTypes && have.families >= wantedSpotFamilies && have.zones >= could.zones {
		return "", false
	}
	wanted := fmt.Sprintf("%d are wanted", wantedTypes)
	enough := could.types >= wantedTypes
	if spot {
		wanted = fmt.Sprintf("%d in %d families are wanted", wantedSpotTypes, wantedSpotFamilies)
		enough = could.types >= wantedSpotTypes && could.families >= wantedSpotFamilies
	}
	count := func(n int, one, many string) string {
		if n == 1 {
			return "1 " + one
		}
		return fmt.Sprintf("%d %s", n, many)
	}
	out := fmt.Sprintf("only %s of %s as %s", count(have.types, "type", "types"), count(have.families, "family", "families"), capacity)
	if spot && have.zones < could.zones {
		out += fmt.Sprintf(" in %d of %d zones", have.zones, could.zones)
	}
	cost := fmt.Sprintf("others cost over %.1f %% of the chosen offer", float64(s.ceiling)/10)
	switch {
	case have == could:
		return fmt.Sprintf("%s (%s): the rules leave no others that hold these pods", out, wanted), false
	case !enough:
		return fmt.Sprintf("%s (%s): the rules leave only %s that hold these pods, and %s", out, wanted, count(could.types, "type", "types"), cost), false
	}
	return fmt.Sprintf("%s (%s): %s", out, wanted, cost), true
}
