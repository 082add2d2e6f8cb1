package scheduling

import (
	"cmp"
	"math/bits"
	"slices"
	"strings"

	"kerf.sh/kerf/internal/packing"
	"kerf.sh/kerf/internal/plan"
)

// Reason is why one pool cannot host a pod of a class.
type Reason struct {
	plan.PoolVerdict
	// Rules is how many rules stand in the way together, Miss how far off the pod
	// is, in parts per million: reasons with fewer rules and a smaller miss are
	// nearer.
	Rules int
	Miss  int64
}

// far orders pools that cannot launch at all after those that a pod nearly fits.
const far = 1 << 20

// Explain says why each pool cannot host one more pod of a class, the nearest
// first. hits are the limits that packing met. The reason is the smallest set of
// rules without which some offer of the pool would take the pod: usually one.
func (w *World) Explain(class int, hits []packing.LimitHit, exhausted bool) []Reason {
	out := make([]Reason, 0, len(w.Pools))
	for i := range w.Pools {
		p := &w.Pools[i]
		r := Reason{PoolVerdict: plan.PoolVerdict{NodePool: p.Spec.Name, Code: p.Code, Detail: p.Detail}, Rules: far}
		switch {
		case p.Code == plan.InsufficientCapacity && p.Spec.Replicas != nil:
			r.Code, r.Detail = plan.NodePoolStatic, "a static pool launches none for pods"
		case p.Code == "" || p.Code == plan.InsufficientCapacity:
			r = w.explainIn(class, i, hits, exhausted)
			r.NodePool = p.Spec.Name
		}
		out = append(out, r)
	}
	slices.SortStableFunc(out, func(a, b Reason) int {
		return cmp.Or(cmp.Compare(a.Rules, b.Rules), cmp.Compare(a.Miss, b.Miss), strings.Compare(a.NodePool, b.NodePool))
	})
	return out
}

// candidate is a type compared with what a pod needs.
type candidate struct {
	typ    int
	n      nearest
	short  int // resources of which there is too little
	rules  int
	miss   int64
	excess int // pool-only failures
}

// shortfall is one resource of which a type has too little.
type shortfall struct {
	resource   string
	need, have int64
}

func (w *World) explainIn(class, pool int, hits []packing.LimitHit, exhausted bool) Reason {
	best := w.nearestIn(class, pool)
	switch {
	case best.typ < 0:
		return Reason{PoolVerdict: plan.PoolVerdict{Code: plan.NoInstanceTypeFits, Detail: "the catalogue has no type"}, Rules: far}
	case best.rules == 0:
		return w.explainFree(class, pool, hits, exhausted)
	}
	out := Reason{Rules: best.rules, Miss: best.miss}
	out.Code, out.Detail = w.describe(w.explain[pool], pool, class, &best)
	return out
}

// nearestIn finds the type on which the fewest rules stand in the way of a pod, by
// the smallest miss; typ is -1 when there is no type at all.
func (w *World) nearestIn(class, pool int) candidate {
	c := &w.Classes[class]
	row := w.row(pool, c.Rules)
	x := w.explain[pool]
	need := w.asks(c, nil)
	best := candidate{typ: -1}
	for i := range row {
		if row[i].offer < 0 {
			continue
		}
		k := x.weigh(need, i, row[i])
		if best.typ < 0 || k.before(&best) {
			best = k
		}
	}
	return best
}

func (k *candidate) before(o *candidate) bool {
	return cmp.Or(cmp.Compare(k.excess, o.excess), cmp.Compare(k.rules, o.rules), cmp.Compare(k.miss, o.miss)) < 0
}

// Misses of rules that are not a matter of degree, so that reasons can be ordered.
const (
	wholeMiss = 1_000_000
	taintMiss = wholeMiss * 9 / 10 // one toleration mends it
	offerMiss = wholeMiss / 2      // capacity comes and goes
)

// weigh counts what of a type stands in the way of a pod that needs so much.
func (x *explainTable) weigh(need []int64, typ int, n nearest) candidate {
	k := candidate{typ: typ, n: n, excess: bits.OnesCount64(n.poolOnly)}
	k.rules = bits.OnesCount64(n.mask)
	k.miss = int64(k.rules)*wholeMiss - int64(bits.OnesCount64(n.mask&x.tainted))*(wholeMiss-taintMiss)
	if n.mask&noOffer != 0 {
		k.miss -= wholeMiss - offerMiss
	}
	if n.mask == shortOffer {
		k.miss = 0 // nothing is nearer than what passes by itself
	}
	have := x.alloc[typ*len(need):]
	for d, v := range need {
		if v > have[d] {
			k.short++
			k.rules++
			k.miss += ratio(v-have[d], v)
		}
	}
	if k.short > 0 && n.mask == shortOffer { // too small, whether it can be had or not
		k.n.mask = 0
		k.rules--
	}
	return k
}

// ratio is short/need in parts per million, without overflow.
func ratio(short, need int64) int64 {
	for short > 1<<40 {
		short, need = short>>10, need>>10
	}
	return short * wholeMiss / max(need, 1)
}
