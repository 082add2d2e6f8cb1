package bound

import (
	"cmp"
	"math/big"
	"slices"
)

// Kind is a number of pods that need the same.
type Kind struct {
	Need  Vector
	Count int
}

// ContentsBound is a bound that sees how pods share nodes.
type ContentsBound struct {
	// Total is proven, in micro-dollars per hour.
	Total int64
	// Value is the price of the best fractional mix of filled nodes that was found: no
	// bound of this kind can prove more.
	Value  float64
	Whole  int // kinds whose pods were whole
	Rounds int
}

// grain is how many of the integers that worths are counted in make a micro-dollar.
const grain = 1 << 20

// Effort of a bound by contents.
const (
	wholeKinds    = 16
	wholeShare    = 150 // pods smaller than this part of a node may be cut, if kinds are many
	contentRounds = 80
	findSteps     = 4_000 // of a search for contents
	findSettle    = 400
	proofSteps    = 300_000
	slack         = 5_000 // contents worth less than this part more than their node are no news
)

// Contents bounds the price of nodes for kinds of pods. Every pod has a price; a node
// is worth no more than the dearest contents that it could hold, the largest kinds
// whole, the others cut as one likes. The prices come from a program over filled nodes,
// whose columns the same search finds that proves them in the end, in integers.
func Contents(columns []Column, kinds []Kind) ContentsBound {
	c := newContents(columns, kinds)
	if len(c.rooms) == 0 {
		return ContentsBound{}
	}
	out := ContentsBound{Whole: len(c.whole)}
	demand := make([]float64, len(kinds))
	var sum Vector
	for i, k := range kinds {
		demand[i] = float64(k.Count)
		for r := range k.Need {
			sum[r] += k.Need[r] * int64(k.Count)
		}
	}
	sum[Nodes] = 1
	lp := newCover(demand, 10*float64(slices.Max(c.price)))
	// At first pods are worth their resources.
	if cert, err := LP(columns, sum); err == nil {
		for i, k := range kinds {
			lp.duals[i], _ = Worth(k.Need, cert.Duals).Float64()
		}
		c.extend(lp, -slack/10, findSteps, findSettle)
		lp.reprice()
	}
	for out.Rounds < contentRounds {
		out.Rounds++
		lp.run(2000)
		out.Value = lp.value()
		// A hasty search that finds nothing is followed by one that is as good as the proof.
		if !c.extend(lp, slack, findSteps, findSettle) && !c.extend(lp, slack, proofSteps, proofSteps) {
			break
		}
	}
	out.Total = c.prove(c.worths(lp.duals))
	return out
}

// contents is the problem in units: steps that all needs are a multiple of.
type contents struct {
	unit  room
	rooms []room // by column that no other one replaces
	price []int64
	kinds int
	whole []packed // without worths
	parts []packed
}

func newContents(columns []Column, kinds []Kind) *contents {
	c := &contents{kinds: len(kinds)}
	for _, k := range kinds {
		for r := range c.unit {
			c.unit[r] = gcd(c.unit[r], k.Need[r])
		}
	}
	var all []packed
	for i, k := range kinds {
		p := packed{index: i, count: int64(k.Count)}
		for r := range c.unit {
			p.need[r] = k.Need[r] / c.unit[r]
		}
		all = append(all, p)
	}
	c.keep(columns)
	if len(c.rooms) == 0 {
		return c
	}
	// The share of a middling node that a pod takes tells how large it is.
	mid := c.rooms[len(c.rooms)/2]
	size := func(p packed) float64 {
		return max(float64(p.need[0])/float64(mid[0]), float64(p.need[1])/float64(mid[1]))
	}
	slices.SortStableFunc(all, func(a, b packed) int { return cmp.Compare(size(b), size(a)) })
	n := min(wholeKinds, len(all))
	for len(all) > wholeKinds && n > 0 && size(all[n-1]) < 1.0/wholeShare {
		n--
	}
	c.whole, c.parts = all[:n], all[n:]
	return c
}

// keep takes over the columns that no other one replaces, cheapest first.
func (c *contents) keep(columns []Column) {
	type bin struct {
		room  room
		price int64
	}
	var bins []bin
	for _, col := range columns {
		b := bin{price: col.Price}
		for r := range b.room {
			b.room[r] = col.Gives[r] / c.unit[r]
		}
		if slices.Min(b.room[:]) > 0 && col.Price > 0 {
			bins = append(bins, b)
		}
	}
	slices.SortStableFunc(bins, func(a, b bin) int {
		return cmp.Or(cmp.Compare(a.price, b.price), slices.Compare(b.room[:], a.room[:]))
	})
	for _, b := range bins {
		if !slices.ContainsFunc(c.rooms, func(o room) bool { return o[0] >= b.room[0] && o[1] >= b.room[1] && o[2] >= b.room[2] }) {
			c.rooms, c.price = append(c.rooms, b.room), append(c.price, b.price)
		}
	}
}

// worths are prices in grains by kind, rounded down.
func (c *contents) worths(duals []float64) []int64 {
	out := make([]int64, c.kinds)
	for i, v := range duals {
		out[i] = int64(max(0, v) * grain)
	}
	return out
}

func (c *contents) knapsack(worths []int64) *knapsack {
	priced := func(kinds []packed) []packed {
		kinds = slices.Clone(kinds)
		for i := range kinds {
			kinds[i].worth = worths[kinds[i].index]
		}
		return kinds
	}
	return newKnapsack(priced(c.whole), priced(c.parts))
}

// extend adds contents that are worth more than their node by a part, and reports
// whether there were any.
func (c *contents) extend(lp *cover, part int64, steps, settle int) bool {
	k := c.knapsack(c.worths(lp.duals))
	more := false
	for b, cap := range c.rooms {
		price := c.price[b] * grain
		if _, found := k.most(cap, price+price/part, steps, settle); found {
			row := make([]float64, c.kinds)
			k.amounts(cap, row)
			lp.add(row, float64(c.price[b]))
			more = true
		}
	}
	return more
}

// prove scales prices until no node can hold contents worth more than it costs and
// returns what all pods are worth then.
func (c *contents) prove(worths []int64) int64 {
	k := c.knapsack(worths)
	num, den := big.NewInt(1), big.NewInt(1<<20) // the steepest node: worth by price
	for b, cap := range c.rooms {
		price := c.price[b] * grain
		// What the steepest node so far allows need not be found out.
		from := new(big.Int).Mul(big.NewInt(price), num)
		from.Quo(from, den)
		v, _ := k.most(cap, from.Int64(), proofSteps, proofSteps)
		if n, d := big.NewInt(v), big.NewInt(price); new(big.Int).Mul(n, den).Cmp(new(big.Int).Mul(num, d)) > 0 {
			num, den = n, d
		}
	}
	sum := new(big.Int)
	for _, p := range slices.Concat(c.whole, c.parts) {
		sum.Add(sum, new(big.Int).Mul(big.NewInt(worths[p.index]), big.NewInt(p.count)))
	}
	sum.Mul(sum, den)
	sum.Quo(sum, num.Mul(num, big.NewInt(grain)))
	return sum.Int64()
}
