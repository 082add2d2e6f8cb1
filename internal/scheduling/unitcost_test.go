package scheduling

import (
	"testing"

	"pgregory.net/rapid"

	"kerf.sh/kerf/internal/catalog"
	"kerf.sh/kerf/internal/packing"
	"kerf.sh/kerf/internal/workload"
)

// TestUnitCost: what a unit costs in a cell is what a comparison of all offers says, for
// units of any size, cells of any offers and prices of any scale. The only cell has no cost.
func TestUnitCost(t *testing.T) {
	s := workload.Snapshot(workload.Named(workload.Zonal, 10), true, 0)
	w := New(s, catalog.Default())
	w.Problem()
	tm := &w.Templates[0]
	rapid.Check(t, func(rt *rapid.T) {
		u := *tm.u
		mine := *tm
		mine.u = &u
		u.offers = append([]offer(nil), u.offers...)
		scale := rapid.SampledFrom([]int64{0, 1, 1000, 1_000_000}).Draw(rt, "scale")
		for i := range u.offers {
			u.offers[i].price = u.offers[i].price * scale / 1000
		}
		other := *w
		other.Templates = []Template{mine}
		k := newCosts(&other)
		for range 3 {
			un := &unit{need: []int64{
				rapid.Int64Range(0, 200_000).Draw(rt, "cpu"),
				rapid.Int64Range(0, 1<<rapid.IntRange(20, 45).Draw(rt, "bits")).Draw(rt, "memory"),
				rapid.Int64Range(0, 3).Draw(rt, "pods"),
			}}
			for range 2 {
				bits := packing.NewBitset(len(tm.offers))
				for range rapid.IntRange(1, 60).Draw(rt, "offers") {
					bits.Set(rapid.IntRange(0, len(tm.offers)-1).Draw(rt, "offer"))
				}
				if rapid.Bool().Draw(rt, "all") {
					bits = tm.full
				}
				c := &cell{dom: []int32{0}, offers: []packing.Bitset{bits}}
				want := int64(-1)
				bits.Members(func(o int) {
					share := shareOf(other.left(&other.Templates[0], int(tm.offerType[o])), un.need)
					if share < 0 {
						return
					}
					if v := u.offers[tm.offers[o]].price * share / wholeMiss; want < 0 || v < want {
						want = v
					}
				})
				if got := k.of(un, c); got != want {
					rt.Fatalf("%v costs %d, want %d", un.need, got, want)
				}
				c.dom = []int32{anyDomain}
				if got := k.of(un, c); got != min(want, 0) {
					rt.Fatalf("%v in the only cell costs %d, want %d", un.need, got, min(want, 0))
				}
			}
		}
	})
}
