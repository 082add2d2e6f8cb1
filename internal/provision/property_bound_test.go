package provision_test

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"

	"kerf.sh/kerf/internal/packing"
	"kerf.sh/kerf/internal/worldtest"
)

// solver is packing.Solve, or something that claims to be as good.
type solver func(*packing.Problem) *packing.Result

// smallProblem draws a packing problem of at most seven pods: one market, no limits.
func smallProblem(seed uint64) *packing.Problem {
	r := rand.New(rand.NewPCG(seed, 1))
	p := &packing.Problem{
		Dims: []string{"cpu", "memory", "pods"}, OptionPriceCap: 118, Work: 4_000_000,
		Pools: []packing.Pool{{Name: "a"}},
	}
	if r.IntN(3) == 0 {
		p.Dims = append(p.Dims, "example.com/device")
	}
	for t := range 1 + r.IntN(2) {
		p.Templates = append(p.Templates, smallTemplate(r, len(p.Dims), fmt.Sprintf("t%d", t)))
	}
	pods := 1 + r.IntN(7)
	for pods > 0 {
		n := 1 + r.IntN(pods)
		pods -= n
		c := packing.Class{Count: n, Need: []int64{int64(r.IntN(5)) * 250, int64(r.IntN(6)) * 512, 1}, Nodes: packing.NewBitset(0)}
		if r.IntN(4) == 0 {
			c.Need[0], c.Need[1] = int64(r.IntN(2000)), int64(r.IntN(4000)) // no common step
		}
		if len(p.Dims) > 3 {
			c.Need = append(c.Need, int64(r.IntN(5)/3))
		}
		for t := range p.Templates {
			offers := packing.NewBitset(len(p.Templates[t].Offers))
			for o := range p.Templates[t].Offers {
				if r.IntN(5) > 0 {
					offers.Set(o)
				}
			}
			if r.IntN(8) == 0 && len(p.Templates) > 1 {
				offers = nil
			}
			c.Offers = append(c.Offers, offers)
		}
		p.Classes = append(p.Classes, c)
	}
	if r.IntN(3) == 0 {
		a, b := r.IntN(len(p.Classes)), r.IntN(len(p.Classes))
		p.Classes[a].Conflicts = append(p.Classes[a].Conflicts, int32(b))
		if a != b {
			p.Classes[b].Conflicts = append(p.Classes[b].Conflicts, int32(a))
		}
	}
	for range r.IntN(4) - 1 {
		cp := packing.Cap{Max: 1 + r.IntN(3), New: r.IntN(3) == 0}
		weighted := r.IntN(3) == 0
		for c := range p.Classes {
			if r.IntN(2) == 0 {
				cp.Classes = append(cp.Classes, int32(c))
				if weighted {
					cp.Weight = append(cp.Weight, int32(1+r.IntN(cp.Max)))
				}
			}
		}
		p.Caps = append(p.Caps, cp)
	}
	if r.IntN(4) == 0 {
		a, b := r.IntN(len(p.Classes)), r.IntN(len(p.Classes))
		p.Classes[a].Apart = append(p.Classes[a].Apart, int32(b))
		if a != b {
			p.Classes[b].Apart = append(p.Classes[b].Apart, int32(a))
		}
	}
	return p
}

func smallTemplate(r *rand.Rand, dims int, name string) packing.Template {
	t := packing.Template{Name: name}
	for i := range 1 + r.IntN(3) {
		cores := 1 + r.IntN(4)
		gib := cores * (1 + r.IntN(4))
		ty := packing.Type{
			Name: fmt.Sprintf("%s-type%d", name, i), Family: "f",
			Alloc: []int64{int64(cores*1000 - r.IntN(100)), int64(gib*1024 - r.IntN(500)), int64(2 + r.IntN(6))},
		}
		if dims > 3 {
			ty.Alloc = append(ty.Alloc, int64(r.IntN(3)))
		}
		t.Types = append(t.Types, ty)
		for z := range 1 + r.IntN(2) {
			price := int64(cores*20_000+gib*4_000) * int64(70+r.IntN(60)) / 100
			t.Offers = append(t.Offers, packing.Offer{Type: i, Price: price, Market: &packing.Market{Zone: fmt.Sprintf("z%d", z), Capacity: "spot", Rank: 1}})
		}
	}
	return t
}

// lowerBound: what the result claims as a bound is one, and can be proved with the
// duals that it gives; and in small cases the price is the least there is.
func lowerBound(p *packing.Problem, solve solver) []string {
	r := solve(p)
	bad := worldtest.CheckBounds(p, r)
	count := make([]int, len(p.Classes))
	for _, l := range r.Launches {
		for _, cc := range l.Contents {
			count[cc.Class] += cc.Count
		}
	}
	least, ok := worldtest.CheapestPacking(p, count)
	if !ok {
		return append(bad, "a launch holds pods that fit no offer")
	}
	bound := int64(0)
	for _, b := range r.Bounds {
		bound += b.Total
	}
	if bound > least {
		bad = append(bad, fmt.Sprintf("bound %d is above the least price %d", bound, least))
	}
	if r.Price < least {
		bad = append(bad, fmt.Sprintf("price %d is below the least price %d", r.Price, least))
	}
	return bad
}

// leastPrice: the price is the least there is, and everything that fits is placed.
func leastPrice(p *packing.Problem, solve solver) []string {
	r := solve(p)
	count := make([]int, len(p.Classes))
	for c := range p.Classes {
		alone := make([]int, len(p.Classes))
		alone[c] = 1
		if _, ok := worldtest.CheapestPacking(p, alone); ok {
			count[c] = p.Classes[c].Count
		}
	}
	least, _ := worldtest.CheapestPacking(p, count)
	if r.Price != least {
		return []string{fmt.Sprintf("price %d, brute force finds %d", r.Price, least)}
	}
	return nil
}

const smallCases = 10_000

// The bound is a bound, and proved, in 10,000 small cases.
func TestPropertyBound(t *testing.T) { checkSmall(t, lowerBound) }

// The price is the least there is in the same cases.
func TestPropertyLeastPrice(t *testing.T) { checkSmall(t, leastPrice) }

func checkSmall(t *testing.T, guard func(*packing.Problem, solver) []string) {
	failed := 0
	for seed := range uint64(smallCases) {
		if bad := guard(smallProblem(seed), packing.Solve); len(bad) > 0 {
			if failed++; failed <= 5 {
				t.Errorf("case %d:\n%s", seed, strings.Join(bad, "\n"))
			}
		}
	}
	if failed > 0 {
		t.Errorf("%d of %d cases", failed, smallCases)
	}
}
