package worldtest

import (
	"fmt"

	"kerf.sh/kerf/internal/packing"
)

// contentsProof checks a bound by prices per pod: they add up to the total, and no
// contents that an offer can hold are worth more than it costs. It tries all contents,
// so it is for few pods.
func contentsProof(p *packing.Problem, b *packing.Bound, classes []int, launched []int64) []string {
	var bad []string
	price := map[int]float64{}
	for _, cp := range b.Prices {
		price[cp.Class] = cp.Price
	}
	proved := 0.0
	for _, c := range classes {
		if _, ok := price[c]; !ok || price[c] < 0 {
			bad = append(bad, fmt.Sprintf("class %d has the price %g in the contents bound", c, price[c]))
		}
		proved += price[c] * float64(launched[c])
	}
	if float64(b.Total) > proved*(1+1e-6) {
		bad = append(bad, fmt.Sprintf("contents: total %d, the prices prove %g", b.Total, proved))
	}
	for t := range p.Templates {
		tm := &p.Templates[t]
		for o, offer := range tm.Offers {
			left := append([]int64(nil), tm.Types[offer.Type].Alloc...)
			held := make([]int64, len(p.Classes))
			if worth := richest(p, classes, launched, price, t, o, left, held); worth > float64(offer.Paid())*(1+1e-6) {
				bad = append(bad, fmt.Sprintf("template %d offer %d (%s) costs %d, the prices say it can hold %g", t, o, tm.Types[offer.Type].Name, offer.Paid(), worth))
			}
		}
	}
	return bad
}

// richest is the most that contents of the classes are worth in what is left of an
// offer beside what it holds.
func richest(p *packing.Problem, classes []int, launched []int64, price map[int]float64, t, o int, left, held []int64) float64 {
	if len(classes) == 0 {
		return 0
	}
	c := classes[0]
	best := richest(p, classes[1:], launched, price, t, o, left, held)
	defer func() { held[c] = 0 }()
	if offers := p.Classes[c].Offers[t]; offers == nil || !offers.Has(o) {
		return best
	}
	for n := int64(1); n <= launched[c]; n++ {
		rest := append([]int64(nil), left...)
		for k, v := range p.Classes[c].Need {
			rest[k] -= n * v
		}
		for _, v := range rest {
			if v < 0 {
				return best
			}
		}
		held[c] = n
		if !mayShare(p, held) {
			return best
		}
		best = max(best, float64(n)*price[c]+richest(p, classes[1:], launched, price, t, o, rest, held))
	}
	return best
}
