package packing

import (
	"cmp"
	"slices"
)

func (s *solver) result() *Result {
	r := &Result{Exhausted: s.work <= 0}
	r.Placed = s.placed
	slices.SortFunc(r.Placed, func(a, b Placed) int {
		return cmp.Or(cmp.Compare(a.Node, b.Node), cmp.Compare(a.Class, b.Class))
	})
	s.nodes = slices.DeleteFunc(s.nodes, func(n *pnode) bool { return n.dead })
	slices.SortStableFunc(s.nodes, func(a, b *pnode) int {
		return cmp.Or(cmp.Compare(a.template, b.template), cmp.Compare(b.price, a.price), cmp.Compare(a.typ, b.typ),
			slices.CompareFunc(a.contents, b.contents, func(x, y ClassCount) int {
				return cmp.Or(cmp.Compare(x.Class, y.Class), cmp.Compare(y.Count, x.Count))
			}))
	})
	for c, n := range s.left {
		if n > 0 {
			r.Unplaced = append(r.Unplaced, Unplaced{Class: c, Count: n, Limits: s.limitHits(c)})
		}
	}
	r.Bounds = s.bounds()
	s.ceiling = s.optionCeiling(r.Bounds)
	var prev *pnode
	for _, n := range s.nodes {
		l := Launch{Template: n.template, Contents: n.contents, Chosen: n.offer}
		if prev != nil && !s.limits && prev.template == n.template && prev.offer == n.offer && slices.Equal(prev.use, n.use) && slices.Equal(prev.offers, n.offers) {
			p := &r.Launches[len(r.Launches)-1]
			l.Chosen, l.Options, l.Worst, l.Limited, l.Dear = p.Chosen, p.Options, p.Worst, p.Limited, p.Dear
		} else {
			s.options(n, &l)
		}
		r.Price += s.p.Templates[n.template].Offers[l.Chosen].Price
		r.Launches = append(r.Launches, l)
		prev = n
	}
	if s.penalized() {
		r.Bounds = s.paidBounds()
	}
	return r
}

// choose picks among the first options that are equal in rank and price: the first of
// them, or with a seed the one that the seed favours.
func (s *solver) choose(tm *Template, options []int) int {
	best := options[0]
	if s.p.Seed == 0 {
		return best
	}
	favour := func(o int) uint64 {
		of := &tm.Offers[o]
		h := s.p.Seed ^ 0xcbf29ce484222325 // FNV-1a over the offer's name
		for _, part := range [...]string{tm.Types[of.Type].Name, "/", of.Zone, "/", of.Capacity} {
			for i := range len(part) {
				h = (h ^ uint64(part[i])) * 0x100000001b3
			}
		}
		return h
	}
	for _, o := range options[1:] {
		if tm.Offers[o].Rank != tm.Offers[best].Rank || tm.Offers[o].Price != tm.Offers[best].Price {
			break
		}
		if favour(o) < favour(best) {
			best = o
		}
	}
	return best
}

// ranked are a template's offers, best first.
func (s *solver) ranked(t int) []int {
	if s.rank == nil {
		s.rank = make([][]int, len(s.p.Templates))
	}
	if s.rank[t] == nil {
		s.rank[t] = rankOffers(&s.p.Templates[t])
	}
	return s.rank[t]
}

// rankOffers sorts offers as compareOffers does. Offers come sorted by type, zone and
// capacity type, so only rank and price are left, which make one number, and numbers sort
// digit by digit; where they do not fit one, it sorts the slow way.
func rankOffers(tm *Template) []int {
	const priceBits = 40
	out := make([]int, len(tm.Offers))
	for o := range out {
		out[o] = o
	}
	if len(out) == 0 {
		return out
	}
	keys := make([]uint64, len(tm.Offers))
	most := uint64(0)
	for o := range tm.Offers {
		of := &tm.Offers[o]
		keys[o] = uint64(of.Rank)<<priceBits | uint64(of.Price)
		most = max(most, keys[o])
		if of.Rank < 0 || of.Price < 0 || of.Price >= 1<<priceBits || (o > 0 && tm.Offers[o-1].Type > of.Type) {
			slices.SortFunc(out, func(a, b int) int { return compareOffers(tm, a, b) })
			return out
		}
	}
	// All ranks are alike where nothing is reserved: then they are no digits.
	if low := slices.Min(keys); low>>priceBits == most>>priceBits {
		most &= 1<<priceBits - 1
	}
	return sortByDigits(out, keys, most)
}

// sortByDigits sorts places by their keys, equal ones in the order that they have; most
// is the largest value of the digits that differ.
func sortByDigits(places []int, keys []uint64, most uint64) []int {
	const digit = 11
	other := make([]int, len(places))
	for shift := 0; most>>shift > 0; shift += digit {
		var ends [1<<digit + 1]int32
		for _, k := range keys {
			ends[k>>shift&(1<<digit-1)+1]++
		}
		for i := 1; i < len(ends); i++ {
			ends[i] += ends[i-1]
		}
		for _, p := range places {
			at := &ends[keys[p]>>shift&(1<<digit-1)]
			other[*at] = p
			*at++
		}
		places, other = other, places
	}
	return places
}

// forMinValues adds the cheapest types that minValues still needs, beyond the price
// cap if it must be.
func (s *solver) forMinValues(tm *Template, all, options []int) []int {
	if len(tm.MinValues) == 0 {
		return options
	}
	have := map[int]bool{}
	for _, o := range options {
		have[o] = true
	}
	for i := range tm.MinValues {
		mv := &tm.MinValues[i]
		seen := map[int32]bool{}
		for _, o := range options {
			for _, v := range mv.Values[tm.Offers[o].Type] {
				seen[v] = true
			}
		}
		for _, o := range all {
			if len(seen) >= max(mv.Min, mv.Want) {
				break
			}
			for _, v := range mv.Values[tm.Offers[o].Type] {
				if !seen[v] {
					seen[v] = true
					if !have[o] {
						have[o] = true
						options = append(options, o)
					}
				}
			}
		}
	}
	slices.SortFunc(options, func(a, b int) int { return compareOffers(tm, a, b) })
	return options
}

// limitsAllow reports whether a node may be of type t: the chosen type is booked
// already, a larger option needs the difference from what the whole plan leaves.
func (s *solver) limitsAllow(n *pnode, t *Type) bool {
	tm := &s.p.Templates[n.template]
	for k, v := range t.Capacity {
		if v > n.book[k] && v-n.book[k] > s.capacityLeft(tm.Pool, k) {
			return false
		}
	}
	return true
}

// reserveLargest books the most that any option of a node may take of its limits.
func (s *solver) reserveLargest(n *pnode, options []int) {
	tm := &s.p.Templates[n.template]
	for k, v := range n.book {
		most := v
		for _, o := range options {
			most = max(most, tm.Types[tm.Offers[o].Type].Capacity[k])
		}
		s.used[tm.Pool][k] += most - v
	}
}

// limitHits tells which limits keep one more pod of a class from a new node.
func (s *solver) limitHits(c int) []LimitHit {
	var out []LimitHit
	cl := &s.p.Classes[c]
	for t := range s.p.Templates {
		if t >= len(cl.Offers) || cl.Offers[t] == nil {
			continue
		}
		tm := &s.p.Templates[t]
		best := LimitHit{Dim: -1}
		most, share := 0, 0.0 // limits in the way, and how far over the worst of them
		last := -1
		for o := range tm.Offers {
			ty := tm.Offers[o].Type
			if ty == last || !cl.Offers[t].Has(o) || !covers(tm.Types[ty].Alloc, cl.Need) {
				continue
			}
			last = ty
			hit, n, over := LimitHit{}, 0, -1.0
			for k, v := range tm.Types[ty].Capacity {
				left := s.capacityLeft(tm.Pool, k)
				if v <= left {
					continue
				}
				n++
				if part := float64(v-max(left, 0)) / float64(v); part > over {
					hit, over = LimitHit{t, k, v, left}, part
				}
			}
			closer := n < most || (n == most && (over < share || (over == share && hit.Dim == best.Dim && hit.Needed < best.Needed)))
			if n > 0 && (best.Dim < 0 || closer) {
				best, most, share = hit, n, over
			}
		}
		if best.Dim >= 0 {
			out = append(out, best)
		}
	}
	return out
}
