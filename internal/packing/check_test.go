package packing

import (
	"fmt"
	"slices"
	"testing"

	"pgregory.net/rapid"
)

// verify checks a result against its problem from scratch: every pod once, rules,
// room, conflicts, limits, options, minValues, bounds. It shares no code with the
// solver but Bitset.
func verify(p *Problem, r *Result) error {
	got := make([]int, len(p.Classes))
	free := make([][]int64, len(p.Nodes))
	on := make([]map[int]int, len(p.Nodes))
	for i := range p.Nodes {
		free[i] = slices.Clone(p.Nodes[i].Free)
		on[i] = map[int]int{}
	}
	for _, pl := range r.Placed {
		if pl.Count <= 0 || !p.Classes[pl.Class].Nodes.Has(pl.Node) {
			return fmt.Errorf("class %d on node %d: not allowed", pl.Class, pl.Node)
		}
		got[pl.Class] += pl.Count
		on[pl.Node][pl.Class] += pl.Count
		for d, v := range p.Classes[pl.Class].Need {
			free[pl.Node][d] -= v * int64(pl.Count)
			if free[pl.Node][d] < 0 {
				return fmt.Errorf("node %d: dimension %d overfull", pl.Node, d)
			}
		}
	}
	quarrel := func(m map[int]int, node int) error { // node < 0: a new one
		for k, cp := range p.Caps {
			if held, some := capSum(p, k, m, node); some && held > cp.Max {
				return fmt.Errorf("cap %d: %d on one node, %d is the most", k, held, cp.Max)
			}
		}
		for a, n := range m {
			foes := p.Classes[a].Conflicts
			if node < 0 {
				foes = slices.Concat(foes, p.Classes[a].Apart)
			}
			for _, b := range foes {
				if (int(b) == a && n > 1) || (int(b) != a && m[int(b)] > 0) {
					return fmt.Errorf("classes %d and %d conflict on one node", a, b)
				}
			}
		}
		return nil
	}
	for i, m := range on {
		if err := quarrel(m, i); err != nil {
			return err
		}
	}
	used := make([][]int64, len(p.Pools))
	for i := range used {
		used[i] = make([]int64, len(p.LimitDims))
	}
	price := int64(0)
	counted := map[[2]int]int64{}
	for i, l := range r.Launches {
		tm := &p.Templates[l.Template]
		m := map[int]int{}
		need := make([]int64, len(p.Dims))
		for _, cc := range l.Contents {
			if cc.Count <= 0 {
				return fmt.Errorf("launch %d: %d pods of class %d", i, cc.Count, cc.Class)
			}
			got[cc.Class] += cc.Count
			m[cc.Class] += cc.Count
			for d, v := range p.Classes[cc.Class].Need {
				need[d] += v * int64(cc.Count)
			}
		}
		if len(m) == 0 {
			return fmt.Errorf("launch %d is empty", i)
		}
		if err := quarrel(m, -1); err != nil {
			return fmt.Errorf("launch %d: %w", i, err)
		}
		if !slices.Contains(l.Options, l.Chosen) || l.Options[0] != l.Chosen {
			return fmt.Errorf("launch %d: chosen %d is not the first of %v", i, l.Chosen, l.Options)
		}
		types := map[int]bool{}
		worst := int64(0)
		most := make([]int64, len(p.LimitDims))
		for k, o := range l.Options {
			of := &tm.Offers[o]
			types[of.Type] = true
			worst = max(worst, of.Price)
			if k > 0 && compareOffers(tm, l.Options[k-1], o) >= 0 {
				return fmt.Errorf("launch %d: options not sorted", i)
			}
			for c := range m {
				if !p.Classes[c].Offers[l.Template].Has(o) {
					return fmt.Errorf("launch %d: class %d does not allow option %d", i, c, o)
				}
			}
			for d, v := range need {
				if v > tm.Types[of.Type].Alloc[d] {
					return fmt.Errorf("launch %d: option %s too small in dimension %d", i, tm.Types[of.Type].Name, d)
				}
			}
			for d, v := range tm.Types[of.Type].Capacity {
				most[d] = max(most[d], v)
			}
		}
		if len(types) > 60 || worst != l.Worst {
			return fmt.Errorf("launch %d: %d types, worst %d reported %d", i, len(types), worst, l.Worst)
		}
		for _, mv := range tm.MinValues {
			seen := map[int32]bool{}
			for t := range types {
				for _, v := range mv.Values[t] {
					seen[v] = true
				}
			}
			if len(seen) < mv.Min {
				return fmt.Errorf("launch %d: %d values of %s, want %d", i, len(seen), mv.Key, mv.Min)
			}
		}
		if p.OptionPriceCap > 0 && len(tm.MinValues) == 0 && worst > tm.Offers[l.Chosen].Price*p.OptionPriceCap/100 {
			return fmt.Errorf("launch %d: option at %d, chosen at %d", i, worst, tm.Offers[l.Chosen].Price)
		}
		for d, v := range most {
			used[tm.Pool][d] += v
		}
		if n := tm.Offers[l.Chosen].Count; n > 0 {
			if counted[[2]int{l.Template, l.Chosen}]++; counted[[2]int{l.Template, l.Chosen}] > n {
				return fmt.Errorf("offer %d used more than %d times", l.Chosen, n)
			}
		}
		price += tm.Offers[l.Chosen].Price
	}
	for i := range p.Pools {
		for d, v := range p.Pools[i].Remaining {
			if v < NoLimit && used[i][d] > v {
				return fmt.Errorf("pool %s: %d of %s used, %d left", p.Pools[i].Name, used[i][d], p.LimitDims[d], v)
			}
		}
	}
	for _, u := range r.Unplaced {
		got[u.Class] += u.Count
	}
	for c := range p.Classes {
		if got[c] != p.Classes[c].Count {
			return fmt.Errorf("class %d: %d pods in, %d out", c, p.Classes[c].Count, got[c])
		}
	}
	if price != r.Price {
		return fmt.Errorf("price %d, launches add up to %d", r.Price, price)
	}
	bound := int64(0)
	for _, b := range r.Bounds {
		bound += b.Total
	}
	if bound > price {
		return fmt.Errorf("bound %d above price %d", bound, price)
	}
	return firstStranded(p, r, free, on)
}

// firstStranded finds a pod that was left out or launched for although room exists.
func firstStranded(p *Problem, r *Result, free [][]int64, on []map[int]int) error {
	fitsNode := func(c, n int) bool {
		if !p.Classes[c].Nodes.Has(n) {
			return false
		}
		for d, v := range p.Classes[c].Need {
			if free[n][d] < 0 || v > free[n][d] {
				return false
			}
		}
		for _, o := range p.Classes[c].Conflicts {
			if on[n][int(o)] > 0 {
				return false
			}
		}
		on[n][c]++
		defer func() { on[n][c]-- }()
		for k, cp := range p.Caps {
			if held, _ := capSum(p, k, on[n], n); slices.Contains(cp.Classes, int32(c)) && held > cp.Max {
				return false
			}
		}
		return true
	}
	check := func(c int, what string) error {
		for n := range p.Nodes {
			if fitsNode(c, n) {
				return fmt.Errorf("class %d is %s but fits node %d", c, what, n)
			}
		}
		return nil
	}
	for _, l := range r.Launches {
		for _, cc := range l.Contents {
			if err := check(cc.Class, "launched for"); err != nil {
				return err
			}
		}
	}
	for _, u := range r.Unplaced {
		if err := check(u.Class, "left out"); err != nil {
			return err
		}
		hits := map[int]bool{}
		for _, h := range u.Limits {
			hits[h.Template] = true
		}
		for t := range p.Templates {
			tm := &p.Templates[t]
			if p.Classes[u.Class].Offers[t] == nil || hits[t] || len(tm.MinValues) > 0 || barred(p, u.Class) {
				continue
			}
			for o, of := range tm.Offers {
				if p.Classes[u.Class].Offers[t].Has(o) && of.Count == 0 && covers(tm.Types[of.Type].Alloc, p.Classes[u.Class].Need) {
					return fmt.Errorf("class %d left out of template %s without a limit", u.Class, tm.Name)
				}
			}
		}
	}
	return nil
}

// capSum is what contents count in a cap, and whether they do at all; on existing node
// n what it carries is added, and a cap of new nodes counts nothing there.
func capSum(p *Problem, k int, m map[int]int, n int) (held int, some bool) {
	cp := &p.Caps[k]
	if n >= 0 && cp.New {
		return 0, false
	}
	for i, c := range cp.Classes {
		w := 1
		if cp.Weight != nil {
			w = int(cp.Weight[i])
		}
		held += w * m[int(c)]
		some = some || m[int(c)] > 0
	}
	if n >= 0 && cp.Used != nil {
		held += int(cp.Used[n])
	}
	return held, some
}

// barred reports whether a cap keeps even one pod of a class off a new node.
func barred(p *Problem, c int) bool {
	for k := range p.Caps {
		if held, some := capSum(p, k, map[int]int{c: 1}, -1); some && held > p.Caps[k].Max {
			return true
		}
	}
	return false
}

func TestRankOffersIsCompareOffers(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		p := draw(t, size{types: 12, classes: 1, perClass: 1, templates: 1, counted: true})
		tm := &p.Templates[0]
		if rapid.Bool().Draw(t, "dear") && len(tm.Offers) > 0 {
			tm.Offers[len(tm.Offers)-1].Price = 1 << 50
		}
		got := rankOffers(tm)
		want := slices.Clone(got)
		slices.Sort(want)
		slices.SortFunc(want, func(a, b int) int { return compareOffers(tm, a, b) })
		if !slices.Equal(got, want) {
			t.Fatalf("got %v, want %v", got, want)
		}
	})
}
