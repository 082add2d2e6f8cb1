package bound

import (
	"cmp"
	"math"
	"slices"
)

// filling is the search for the pods that are worth the most in one bin, depth first.
// Prices per resource, from the relaxation that cuts pods, bound it: a filling is worth
// what the bin's room is, and what every kind is worth beyond its resources at the most
// there may be of it, less what each choice and the room that is left give away.
type filling struct {
	kinds []filled
	room  Vector
	value float64 // worth of everything, nothing given away
	unit  [Nodes]float64

	take  []int64
	left  Vector
	best  []int64 // by kind of the program
	goal  float64
	open  float64 // most that what was not searched could be worth
	steps int
	found bool
}

// filled is a kind in the search.
type filled struct {
	index int
	need  Vector
	most  int64
	price float64
	extra float64 // worth beyond its resources
}

func newFilling(p *program, bin int, prices []float64) *filling {
	f := &filling{room: p.bins[bin].Gives, best: make([]int64, len(p.kinds))}
	var rows [3][]float64
	var limits, gain []float64
	for i := range p.kinds {
		if most := p.most(bin, i); most > 0 && prices[i] > 0 {
			f.kinds = append(f.kinds, filled{index: i, need: p.kinds[i].Need, most: most, price: prices[i]})
		}
	}
	for r := range Nodes {
		for _, k := range f.kinds {
			rows[r] = append(rows[r], float64(k.need[r])/scale[r])
		}
		limits = append(limits, float64(f.room[r])/scale[r])
	}
	all := rows[:]
	for i, k := range f.kinds {
		row := make([]float64, len(f.kinds))
		row[i] = 1
		all, limits, gain = append(all, row), append(limits, float64(k.most)), append(gain, k.price)
	}
	t := newTableau(all, limits, gain)
	t.run()
	for r, v := range t.dual()[:Nodes] {
		f.unit[r] = max(0, v) / scale[r]
		f.value += f.unit[r] * float64(f.room[r])
	}
	for i := range f.kinds {
		k := &f.kinds[i]
		k.extra = k.price
		for r := range Nodes {
			k.extra -= f.unit[r] * float64(k.need[r])
		}
		f.value += max(0, k.extra) * float64(k.most)
	}
	slices.SortStableFunc(f.kinds, func(a, b filled) int { return cmp.Compare(math.Abs(b.extra), math.Abs(a.extra)) })
	f.take = make([]int64, len(f.kinds))
	return f
}

// search returns a bound on what the bin can hold: goal when nothing is worth more,
// else what was found, or what was left unsearched could be.
func (f *filling) search(goal float64, steps int) float64 {
	f.goal, f.open, f.steps, f.left = goal, 0, steps, f.room
	f.descend(0, 0, 0)
	return max(f.goal, f.open)
}

// descend chooses how many of kind i there are; worth is what is chosen, lost what it
// gives away.
func (f *filling) descend(i int, worth, lost float64) {
	if worth > f.goal {
		f.goal, f.found = worth, true
		clear(f.best)
		for j, n := range f.take {
			f.best[f.kinds[j].index] = n
		}
	}
	if i == len(f.kinds) || (f.value-lost)*(1+margin) <= f.goal {
		return
	}
	if f.steps--; f.steps < 0 {
		f.open = max(f.open, f.value-lost)
		return
	}
	k := &f.kinds[i]
	most := k.most
	for r := range Nodes {
		if k.need[r] > 0 {
			most = min(most, f.left[r]/k.need[r])
		}
	}
	from, to, step := most, int64(-1), int64(-1) // the side that gives nothing away first
	if k.extra < 0 {
		from, to, step = 0, most+1, 1
	}
	for n := from; n != to; n += step {
		gone := lost
		if k.extra < 0 {
			gone -= k.extra * float64(n)
		} else {
			gone += k.extra * float64(k.most-n)
		}
		if (f.value-gone)*(1+margin) <= f.goal {
			break // and more so further on
		}
		f.take[i] = n
		for r := range Nodes {
			f.left[r] -= n * k.need[r]
		}
		f.descend(i+1, worth+float64(n)*k.price, gone)
		for r := range Nodes {
			f.left[r] += n * k.need[r]
		}
		f.take[i] = 0
	}
}
