package scheduling

import (
	"cmp"
	"math"
	"slices"
	"strconv"
	"strings"

	"kerf.sh/kerf/internal/catalog"
	"kerf.sh/kerf/internal/packing"
	"kerf.sh/kerf/internal/plan"
	"kerf.sh/kerf/internal/snapshot"
)

// cover says which commitment an on-demand offer falls under, and what an hour of it costs
// then. rate 0: under none.
type cover struct {
	purse int // index in World.purses
	rate  int64
}

// purse is what commitments that share an id have left, in micro-dollars per hour.
type purse struct {
	name string
	left int64
}

// commitments finds out what offers of a universe fall under: the commitment at the lowest
// price, where that is below the offer's own.
func (w *World) commitments(u *universe) []cover {
	if covers, ok := w.covers[u]; ok {
		return covers
	}
	if w.covers == nil {
		w.covers = map[*universe][]cover{}
		w.readPurses()
	}
	var out []cover
	var own []int // of type typ
	typ := int32(-1)
	for k := range u.offers {
		o := &u.offers[k]
		if o.capacity != catalog.OnDemand || o.why != "" {
			continue
		}
		t := u.types[o.typ].Type
		if o.typ != typ {
			typ, own = o.typ, w.commitmentsOf(t.Name)
		}
		for _, i := range own {
			rate, ok := w.Catalog.Commitments[i].Rate(t)
			if !ok || rate <= 0 || rate >= o.price || rate > w.purses[w.purseOf[i]].left {
				continue
			}
			if out == nil {
				out = make([]cover, len(u.offers))
			}
			if out[k].rate == 0 || rate < out[k].rate {
				out[k] = cover{w.purseOf[i], rate}
			}
		}
	}
	w.covers[u] = out
	return out
}

// commitmentsOf are those whose scope a type may be in, in their order: there can be one for
// every type.
func (w *World) commitmentsOf(typ string) []int {
	family, _, _ := strings.Cut(typ, ".")
	out := slices.Concat(w.byScope[typ], w.byScope[family], w.byScope["all"])
	slices.Sort(out)
	return out
}

func (w *World) readPurses() {
	w.byScope = map[string][]int{}
	byID := map[string]int{}
	w.purseOf = make([]int, len(w.Catalog.Commitments))
	for i := range w.Catalog.Commitments {
		m := &w.Catalog.Commitments[i]
		w.byScope[m.Scope] = append(w.byScope[m.Scope], i)
		id := m.ID
		if id == "" {
			id = m.Scope + " (" + strconv.Itoa(i+1) + ")"
		}
		at, ok := byID[id]
		if !ok {
			at = len(w.purses)
			byID[id] = at
			w.purses = append(w.purses, purse{cmp.Or(m.ID, m.Scope), m.Remaining})
		}
		w.purseOf[i] = at
	}
}

// Pack packs a problem. With commitments it does so twice: once as if they covered all that
// they could, which tells the nodes that are best had under them; and, after as many of those
// nodes as the commitments have hours for, the rest at list prices.
func (w *World) Pack(p *packing.Problem) *packing.Result {
	q, any := w.discounted(p)
	if !any {
		return w.packOnce(p)
	}
	wish := w.packOnce(q)
	kept := w.affordable(wish)
	if len(kept) == 0 {
		return w.packOnce(p)
	}
	r := w.packOnce(without(p, kept))
	r.Launches = append(kept, r.Launches...)
	slices.SortStableFunc(r.Launches, func(a, b packing.Launch) int { return cmp.Compare(a.Template, b.Template) })
	for i := range kept {
		r.Price += w.coverOf(kept[i].Template, kept[i].Chosen).rate
	}
	// Nothing costs less than where all is covered.
	r.Bounds, r.Exhausted = wish.Bounds, r.Exhausted || wish.Exhausted
	return r
}

func (w *World) coverOf(t, o int) cover {
	tm := &w.Templates[t]
	if covers := w.commitments(tm.u); covers != nil {
		return covers[tm.offers[o]]
	}
	return cover{}
}

// discounted is a problem in which every offer that a commitment could cover costs what it
// does under it.
func (w *World) discounted(p *packing.Problem) (*packing.Problem, bool) {
	// What comes after a plan (room for buffers) does not count on what that has used.
	if len(w.Catalog.Commitments) == 0 || len(w.planned) > 0 {
		return p, false
	}
	q, any := *p, false
	q.Templates = slices.Clone(p.Templates)
	for t := range q.Templates {
		if w.commitments(w.Templates[t].u) == nil {
			continue
		}
		offers := slices.Clone(q.Templates[t].Offers)
		for o := range offers {
			if c := w.coverOf(t, o); c.rate > 0 {
				offers[o].Price, any = c.rate+offers[o].Penalty, true
			}
		}
		q.Templates[t].Offers = offers
	}
	return &q, any
}

// affordable are the launches under commitments that these have hours for, those first that
// save the most for what they use. Their options are what the same commitment covers at no
// more than that.
func (w *World) affordable(wish *packing.Result) []packing.Launch {
	var order []int
	for i := range wish.Launches {
		if l := &wish.Launches[i]; w.coverOf(l.Template, l.Chosen).rate > 0 {
			order = append(order, i)
		}
	}
	worth := func(i int) (list, rate float64) {
		l := &wish.Launches[i]
		tm := &w.Templates[l.Template]
		return float64(tm.u.offers[tm.offers[l.Chosen]].price), float64(w.coverOf(l.Template, l.Chosen).rate)
	}
	slices.SortStableFunc(order, func(a, b int) int {
		la, ra := worth(a)
		lb, rb := worth(b)
		return cmp.Compare(lb*ra, la*rb) // the higher list price for a dollar of commitment first
	})
	left := make([]int64, len(w.purses))
	for i := range left {
		left[i] = w.purses[i].left
	}
	var kept []packing.Launch
	for _, i := range order {
		l := wish.Launches[i]
		chosen := w.coverOf(l.Template, l.Chosen)
		if chosen.rate > left[chosen.purse] {
			continue
		}
		left[chosen.purse] -= chosen.rate
		l.Committed, l.Worst, l.Limited, l.Dear = true, chosen.rate, "", false
		l.Options = slices.DeleteFunc(slices.Clone(l.Options), func(o int) bool {
			c := w.coverOf(l.Template, o)
			return c.rate == 0 || c.purse != chosen.purse || c.rate > chosen.rate
		})
		kept = append(kept, l)
	}
	return kept
}

// without is a problem less some launches: their pods, and what they take of limits.
func without(p *packing.Problem, launches []packing.Launch) *packing.Problem {
	q := *p
	q.Classes = slices.Clone(p.Classes)
	q.Pools = slices.Clone(p.Pools)
	for i := range q.Pools {
		q.Pools[i].Remaining = slices.Clone(q.Pools[i].Remaining)
	}
	for i := range launches {
		l := &launches[i]
		for _, c := range l.Contents {
			q.Classes[c.Class].Count -= c.Count
		}
		tm := &p.Templates[l.Template]
		left := q.Pools[tm.Pool].Remaining
		for k := range left {
			most := int64(0)
			for _, o := range l.Options {
				most = max(most, tm.Types[tm.Offers[o].Type].Capacity[k])
			}
			if left[k] != packing.NoLimit {
				left[k] = max(left[k]-most, math.MinInt64/2)
			}
		}
	}
	return &q
}

// Committed is an offer of a template as it is had under a commitment.
func (w *World) Committed(t, o int) plan.Offer {
	out := w.Templates[t].Offer(o)
	c := w.coverOf(t, o)
	if c.rate == 0 {
		return out
	}
	if out.Overlay == "" {
		out.ListPrice = out.Price
	}
	out.Commitment, out.Price = w.purses[c.purse].name, snapshot.Price(c.rate)
	return out
}
