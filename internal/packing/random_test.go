package packing

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"
)

// size bounds a drawn problem.
type size struct {
	types, classes, perClass, nodes, templates     int
	limits, conflicts, minValues, weights, counted bool
	caps                                           bool // caps, and classes kept apart
}

// draw makes a problem: types in a few families and sizes, zones, two capacity types,
// classes with random rules.
func draw(t *rapid.T, z size) *Problem {
	p := &Problem{Dims: []string{"cpu", "memory", "pods"}, OptionPriceCap: 118, Work: 400_000}
	if rapid.Bool().Draw(t, "extra") {
		p.Dims = append(p.Dims, "gpu")
	}
	d := len(p.Dims)
	p.LimitDims = []string{"cpu", "nodes"}
	pools := rapid.IntRange(1, z.templates).Draw(t, "templates")
	for i := range pools {
		pl := Pool{Name: fmt.Sprint("p", i), Remaining: []int64{NoLimit, NoLimit}}
		if z.weights {
			pl.Weight = int32(rapid.IntRange(0, 2).Draw(t, "weight"))
		}
		if z.limits && rapid.Bool().Draw(t, "limited") {
			pl.Remaining[rapid.IntRange(0, 1).Draw(t, "dim")] = int64(rapid.IntRange(0, 12).Draw(t, "limit"))
		}
		p.Pools = append(p.Pools, pl)
		tm := Template{Name: pl.Name, Pool: i}
		n := rapid.IntRange(1, z.types).Draw(t, "types")
		for k := range n {
			cpu := int64(rapid.IntRange(1, 16).Draw(t, "cpu"))
			mem := int64(rapid.IntRange(1, 32).Draw(t, "mem"))
			a := []int64{cpu*1000 - 70, mem*1024 - 300, int64(rapid.IntRange(2, 12).Draw(t, "slots"))}
			if d == 4 {
				a = append(a, int64(rapid.SampledFrom([]int{0, 0, 1, 4}).Draw(t, "gpus")))
			}
			base := cpu*30 + mem*4 + int64(rapid.IntRange(0, 20).Draw(t, "extraPrice"))
			tm.Types = append(tm.Types, Type{
				Name: fmt.Sprintf("t%02d", k), Family: fmt.Sprint("f", k%3), Alloc: a, Capacity: []int64{cpu, 1},
				Exotic: rapid.IntRange(0, 5).Draw(t, "exotic") == 0,
			})
			for _, zone := range []string{"a", "b"} {
				for _, ct := range []string{"on-demand", "spot"} {
					if rapid.IntRange(0, 3).Draw(t, "offered") == 0 {
						continue
					}
					price := base * 10
					if ct == "spot" {
						price = base * int64(rapid.IntRange(3, 6).Draw(t, "spot"))
					}
					o := Offer{Type: k, Price: price, Market: &Market{Zone: zone, Capacity: ct, Rank: 1}}
					if z.counted && rapid.IntRange(0, 9).Draw(t, "reserved") == 0 {
						o.Rank, o.Count, o.Price = 0, int64(rapid.IntRange(1, 2).Draw(t, "left")), 1
					}
					tm.Offers = append(tm.Offers, o)
				}
			}
		}
		if z.minValues && rapid.IntRange(0, 2).Draw(t, "min") == 0 {
			mv := MinValues{Key: "family", Min: rapid.IntRange(1, 2).Draw(t, "minValues")}
			for k := range tm.Types {
				mv.Values = append(mv.Values, []int32{int32(k % 3)})
			}
			tm.MinValues = []MinValues{mv}
		}
		p.Templates = append(p.Templates, tm)
	}
	for range rapid.IntRange(0, z.nodes).Draw(t, "nodes") {
		free := []int64{int64(rapid.IntRange(-1, 8).Draw(t, "freeCPU")) * 500, int64(rapid.IntRange(0, 16).Draw(t, "freeMem")) * 512, int64(rapid.IntRange(0, 5).Draw(t, "freePods"))}
		if d == 4 {
			free = append(free, 0)
		}
		p.Nodes = append(p.Nodes, Node{Name: fmt.Sprint("n", len(p.Nodes)), Free: free})
	}
	n := rapid.IntRange(1, z.classes).Draw(t, "classes")
	for c := range n {
		need := []int64{int64(rapid.IntRange(0, 12).Draw(t, "needCPU")) * 250, int64(rapid.IntRange(0, 12).Draw(t, "needMem")) * 512, 1}
		if d == 4 {
			need = append(need, int64(rapid.SampledFrom([]int{0, 0, 0, 1}).Draw(t, "needGPU")))
		}
		cl := Class{Count: rapid.IntRange(1, z.perClass).Draw(t, "count"), Need: need}
		zone := rapid.SampledFrom([]string{"", "", "a", "b"}).Draw(t, "zone")
		ct := rapid.SampledFrom([]string{"", "", "", "on-demand"}).Draw(t, "capacity")
		for i := range p.Templates {
			if rapid.IntRange(0, 5).Draw(t, "refused") == 0 {
				cl.Offers = append(cl.Offers, nil)
				continue
			}
			tm := &p.Templates[i]
			set, some := NewBitset(len(tm.Offers)), false
			for o, of := range tm.Offers {
				if (zone == "" || of.Zone == zone) && (ct == "" || of.Capacity == ct) {
					set.Set(o)
					some = true
				}
			}
			if !some {
				set = nil
			}
			cl.Offers = append(cl.Offers, set)
		}
		cl.Nodes = NewBitset(len(p.Nodes))
		for i := range p.Nodes {
			if rapid.IntRange(0, 3).Draw(t, "node") > 0 {
				cl.Nodes.Set(i)
			}
		}
		p.Classes = append(p.Classes, cl)
		if z.conflicts && rapid.IntRange(0, 4).Draw(t, "port") == 0 {
			o := rapid.IntRange(0, c).Draw(t, "with")
			p.Classes[c].Conflicts = append(p.Classes[c].Conflicts, int32(o))
			if o != c {
				p.Classes[o].Conflicts = append(p.Classes[o].Conflicts, int32(c))
			}
		}
		if z.caps && rapid.IntRange(0, 4).Draw(t, "apart") == 0 {
			o := rapid.IntRange(0, c).Draw(t, "from")
			p.Classes[c].Apart = append(p.Classes[c].Apart, int32(o))
			if o != c {
				p.Classes[o].Apart = append(p.Classes[o].Apart, int32(c))
			}
		}
	}
	if z.caps {
		for range rapid.IntRange(0, 4).Draw(t, "caps") {
			p.Caps = append(p.Caps, drawCap(t, p))
		}
	}
	return p
}

func drawCap(t *rapid.T, p *Problem) Cap {
	cp := Cap{Max: rapid.SampledFrom([]int{0, 1, 1, 1, 2, 2, 3, 4}).Draw(t, "max"), New: rapid.IntRange(0, 2).Draw(t, "new") == 0}
	weighted := rapid.IntRange(0, 2).Draw(t, "weighted") == 0
	for c := range p.Classes {
		if rapid.IntRange(0, 2).Draw(t, "member") > 0 {
			continue
		}
		cp.Classes = append(cp.Classes, int32(c))
		if weighted {
			cp.Weight = append(cp.Weight, int32(rapid.IntRange(1, 3).Draw(t, "counts")))
		}
	}
	if len(p.Nodes) > 0 && rapid.Bool().Draw(t, "used") {
		for range p.Nodes {
			cp.Used = append(cp.Used, int32(rapid.IntRange(0, 3).Draw(t, "carried")))
		}
	}
	return cp
}

func TestNoRuleBroken(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		p := draw(t, size{types: 8, classes: 12, perClass: 12, nodes: 4, templates: 3, limits: true, conflicts: true, minValues: true, weights: true, counted: true, caps: true})
		r := Solve(p)
		if err := verify(p, r); err != nil {
			t.Fatalf("%v\n%s\n%+v", err, describe(p), *r)
		}
	})
}

// brute is the least price of launches for all pods, over every split between nodes
// and every partition, by plain recursion over pods; -1 if some pod has no place.
func brute(p *Problem) int64 {
	var pods []int
	for c := range p.Classes {
		for range p.Classes[c].Count {
			pods = append(pods, c)
		}
	}
	// allowed reports whether rules between pods let contents share a node (< 0: a new one).
	allowed := func(set []int, node int) bool {
		m := map[int]int{}
		for _, c := range set {
			m[c]++
		}
		for k := range p.Caps {
			if held, some := capSum(p, k, m, node); some && held > p.Caps[k].Max {
				return false
			}
		}
		for i, a := range set {
			for j, b := range set {
				if i != j && (slices.Contains(p.Classes[a].Conflicts, int32(b)) || (node < 0 && slices.Contains(p.Classes[a].Apart, int32(b)))) {
					return false
				}
			}
		}
		return true
	}
	exoticOnly := make([]bool, len(p.Classes))
	cheapest := func(set []int) int64 {
		exotic := len(set) == 0
		for _, c := range set {
			exotic = exotic || exoticOnly[c]
		}
		best := int64(-1)
		if !allowed(set, -1) {
			return -1
		}
		for t := range p.Templates {
			tm := &p.Templates[t]
			for o, of := range tm.Offers {
				ok := !tm.Types[of.Type].Exotic || exotic
				for d := range p.Dims {
					sum := int64(0)
					for _, c := range set {
						sum += p.Classes[c].Need[d]
					}
					ok = ok && sum <= tm.Types[of.Type].Alloc[d]
				}
				for _, c := range set {
					ok = ok && p.Classes[c].Offers[t] != nil && p.Classes[c].Offers[t].Has(o)
				}
				if ok && (best < 0 || of.Price < best) {
					best = of.Price
				}
			}
		}
		return best
	}
	for c := range p.Classes {
		exoticOnly[c] = cheapest([]int{c}) < 0
	}
	best := int64(-1)
	nodes := make([][]int, len(p.Nodes))
	var groups [][]int
	room := func(n, c int) bool {
		if !p.Classes[c].Nodes.Has(n) {
			return false
		}
		for d := range p.Dims {
			sum := p.Classes[c].Need[d]
			for _, x := range nodes[n] {
				sum += p.Classes[x].Need[d]
			}
			if p.Nodes[n].Free[d] < 0 || sum > p.Nodes[n].Free[d] {
				return false
			}
		}
		return allowed(append(slices.Clone(nodes[n]), c), n)
	}
	var walk func(i int)
	walk = func(i int) {
		if i == len(pods) {
			sum := int64(0)
			for _, g := range groups {
				v := cheapest(g)
				if v < 0 {
					return
				}
				sum += v
			}
			if best < 0 || sum < best {
				best = sum
			}
			return
		}
		c := pods[i]
		for n := range nodes {
			if room(n, c) {
				nodes[n] = append(nodes[n], c)
				walk(i + 1)
				nodes[n] = nodes[n][:len(nodes[n])-1]
			}
		}
		for g := range groups {
			if !allowed(append(slices.Clone(groups[g]), c), -1) {
				continue
			}
			groups[g] = append(groups[g], c)
			walk(i + 1)
			groups[g] = groups[g][:len(groups[g])-1]
		}
		groups = append(groups, []int{c})
		walk(i + 1)
		groups = groups[:len(groups)-1]
	}
	walk(0)
	return best
}

func TestSmallIsExact(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		p := draw(t, size{types: 6, classes: 4, perClass: 2, nodes: 2, templates: 2, conflicts: true, caps: true})
		r := Solve(p)
		if err := verify(p, r); err != nil {
			t.Fatal(err)
		}
		want := brute(p)
		if want < 0 {
			if len(r.Unplaced) == 0 {
				t.Fatalf("all placed, brute force finds no way")
			}
			return
		}
		if len(r.Unplaced) > 0 || r.Price != want {
			t.Fatalf("price %d with %d unplaced, brute force %d", r.Price, len(r.Unplaced), want)
		}
	})
}

func TestSameTwice(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		p := draw(t, size{types: 8, classes: 12, perClass: 30, nodes: 3, templates: 2, limits: true})
		if a, b := fmt.Sprint(*Solve(p)), fmt.Sprint(*Solve(p)); a != b {
			t.Fatalf("%s\n%s", a, b)
		}
	})
}

// describe prints a problem so that a failure can be read.
func describe(p *Problem) string {
	var b strings.Builder
	for i := range p.Templates {
		tm := &p.Templates[i]
		fmt.Fprintf(&b, "template %s pool %+v min %+v\n", tm.Name, p.Pools[tm.Pool], tm.MinValues)
		for _, ty := range tm.Types {
			fmt.Fprintf(&b, "  type %+v\n", ty)
		}
		for o, of := range tm.Offers {
			fmt.Fprintf(&b, "  offer %d %+v\n", o, of)
		}
	}
	for i := range p.Nodes {
		fmt.Fprintf(&b, "node %+v\n", p.Nodes[i])
	}
	for i := range p.Classes {
		fmt.Fprintf(&b, "class %d %+v\n", i, p.Classes[i])
	}
	for i := range p.Caps {
		fmt.Fprintf(&b, "cap %+v\n", p.Caps[i])
	}
	return b.String()
}

// TestNoRuleBrokenInBulk is TestNoRuleBroken for many pods, which take other ways.
func TestNoRuleBrokenInBulk(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		z := size{types: 5, classes: 24, perClass: 60, nodes: 3, templates: 2, conflicts: true, caps: true}
		if rapid.Bool().Draw(t, "few") {
			z.classes, z.perClass = 8, 200
		}
		p := draw(t, z)
		if err := verify(p, Solve(p)); err != nil {
			t.Fatalf("%v\n%s", err, describe(p))
		}
	})
}
