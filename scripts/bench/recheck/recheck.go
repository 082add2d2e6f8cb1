// Package recheck verifies a plan from nothing but the pods that were asked for and
// the market: it shares no code with the planner.
package recheck

import (
	"fmt"
	"math/big"
	"slices"

	"kerf.sh/kerf/internal/plan"
	"kerf.sh/kerf/internal/snapshot"
	"kerf.sh/kerf/scripts/bench/bound"
	"kerf.sh/kerf/scripts/bench/market"
)

// maxFaults limits how many faults of one plan are listed.
const maxFaults = 10

// Faults collects what is wrong with a plan.
type Faults struct {
	List []string
	More int // beyond the listed ones
}

func (f *Faults) addf(format string, args ...any) {
	if len(f.List) == maxFaults {
		f.More++
		return
	}
	f.List = append(f.List, fmt.Sprintf(format, args...))
}

// Demand is the sum of requests of pods, and that there must be a node at all.
func Demand(pods []snapshot.Pod) bound.Vector {
	sum := bound.Vector{bound.Nodes: 1}
	for i := range pods {
		sum = plus(sum, needs(&pods[i]))
	}
	return sum
}

func needs(p *snapshot.Pod) bound.Vector {
	return bound.Vector{bound.CPU: p.Spec.Requests.CPU, bound.Memory: p.Spec.Requests.Memory, bound.Pods: 1}
}

func plus(a, b bound.Vector) bound.Vector {
	for r := range a {
		a[r] += b[r]
	}
	return a
}

func fits(a, b bound.Vector) bool {
	for r := range a {
		if a[r] > b[r] {
			return false
		}
	}
	return true
}

// Plan checks that every pod is in exactly one launch or verdict, that the pods of a
// launch fit every option of it, that every option is on sale at the price given,
// that the chosen offer is an option, and that the sums are right.
func Plan(pods []snapshot.Pod, p *plan.Plan, view market.View) Faults {
	var f Faults
	byRef := make(map[string]*snapshot.Pod, len(pods))
	for i := range pods {
		byRef[pods[i].Ref()] = &pods[i]
	}
	seen := make(map[string]string, len(pods))
	place := func(ref, where string) *snapshot.Pod {
		pod := byRef[ref]
		switch {
		case pod == nil:
			f.addf("%s holds %s, which is no pod of the workload", where, ref)
		case seen[ref] != "":
			f.addf("pod %s is in %s and in %s", ref, seen[ref], where)
		}
		seen[ref] = where
		return pod
	}
	var price, worst snapshot.Price
	for i := range p.Launches {
		l := &p.Launches[i]
		var sum bound.Vector
		for _, ref := range l.Pods {
			if pod := place(ref, l.Name); pod != nil {
				sum = plus(sum, needs(pod))
			}
		}
		if len(l.Pods) == 0 {
			f.addf("launch %s has no pod", l.Name)
		}
		launch(&f, l, sum, view)
		price += l.Chosen.Price
		worst += l.Worst
	}
	for _, pl := range p.Placements {
		place(pl.Pod, "node "+pl.Node)
		f.addf("pod %s is placed on %s, but there is no node", pl.Pod, pl.Node)
	}
	for _, v := range p.Verdicts {
		if ref, ok := cutPod(v.Object); ok && byRef[ref] != nil {
			place(ref, "a verdict ("+string(v.Code)+")")
		}
	}
	for i := range pods {
		if seen[pods[i].Ref()] == "" {
			f.addf("pod %s is nowhere in the plan", pods[i].Ref())
		}
	}
	s := p.Summary
	if s.LaunchPrice != price || s.LaunchPriceWorst != worst || s.Launches != len(p.Launches) || s.PendingPods != len(pods) {
		f.addf("summary says %d launches for %d (worst %d) and %d pods; they are %d for %d (worst %d) and %d",
			s.Launches, s.LaunchPrice, s.LaunchPriceWorst, s.PendingPods, len(p.Launches), price, worst, len(pods))
	}
	return f
}

func cutPod(object string) (string, bool) {
	const prefix = "pod/"
	if len(object) > len(prefix) && object[:len(prefix)] == prefix {
		return object[len(prefix):], true
	}
	return "", false
}

// launch checks one launch whose pods need sum.
func launch(f *Faults, l *plan.Launch, sum bound.Vector, view market.View) {
	if !slices.Contains(l.Options, l.Chosen) {
		f.addf("launch %s: the chosen %s in %s (%s) is not among its options", l.Name, l.Chosen.InstanceType, l.Chosen.Zone, l.Chosen.CapacityType)
	}
	worst := snapshot.Price(0)
	seen := map[market.Offer]bool{}
	for _, o := range l.Options {
		offer := market.Offer{Type: o.InstanceType, Zone: o.Zone, CapacityType: o.CapacityType}
		price, ok := view.Prices[offer]
		switch {
		case !ok:
			f.addf("launch %s: the pool does not allow option %v", l.Name, offer)
		case price != o.Price:
			f.addf("launch %s: option %v costs %d, the plan says %d", l.Name, offer, price, o.Price)
		case !fits(sum, view.Room[o.InstanceType]):
			f.addf("launch %s: its pods need %v, option %s has room for %v", l.Name, sum, o.InstanceType, view.Room[o.InstanceType])
		}
		if seen[offer] {
			f.addf("launch %s: option %v comes twice", l.Name, offer)
		}
		seen[offer] = true
		worst = max(worst, o.Price)
	}
	if l.Worst != worst {
		f.addf("launch %s: its dearest option costs %d, the plan says %d", l.Name, worst, l.Worst)
	}
}

// tolerance is how far what the plan's duals prove may stay below the independent
// relaxation.
const tolerance = 0.001

// Independent is what the independent solver found for the same demand.
type Independent struct {
	// Columns are what pods can use of each type, capped by the demand.
	Columns []bound.Column
	// Low is the relaxation without the cap, which every bound must come to; High the
	// best fractional purchase with the cap, which no duals can prove more than.
	Low  snapshot.Price
	High float64
	// Best is the highest bound that was proven by any means.
	Best snapshot.Price
	// Zones are the columns of each zone where the plan's bounds are for one zone each.
	Zones [][]bound.Column
}

// Bounds checks the plan's own lower bound. Its resource prices must be feasible for
// all columns and prove what the independent relaxation does, within the tolerance;
// its total must not exceed the price of the plan. Whether the independent solver
// proves as much is told by Confirmed.
func Bounds(p *plan.Plan, demand bound.Vector, ind Independent) Faults {
	var f Faults
	var total snapshot.Price
	proven := new(big.Rat)
	for i, b := range p.Bounds {
		total += b.Total
		duals, ok := exact(b.Duals)
		if !ok {
			f.addf("bound %d has a dual that is negative or not a number: %v", i, b.Duals)
			continue
		}
		markets := ind.Zones
		if len(markets) == 0 {
			markets = [][]bound.Column{ind.Columns}
		}
		if faults := undercut(markets, duals); len(faults) == len(markets) { // it holds nowhere
			f.addf("bound %d: %s", i, faults[0])
		}
		proven.Add(proven, bound.Worth(demand, duals))
	}
	if total != p.Summary.LaunchLowerBound {
		f.addf("summary says the bound is %d, the bounds add up to %d", p.Summary.LaunchLowerBound, total)
	}
	if v, _ := proven.Float64(); len(p.Bounds) == 1 && (v < float64(ind.Low)*(1-tolerance) || v > (ind.High+1)*(1+tolerance/1000)) {
		f.addf("the plan's duals prove %.0f, the independent relaxation is %d (%.0f when nodes are capped by the demand)", v, ind.Low, ind.High)
	}
	if total > p.Summary.LaunchPrice {
		f.addf("the plan's bound %d exceeds its own price %d", total, p.Summary.LaunchPrice)
	}
	return f
}

// undercut says, market by market, which column is worth more at resource prices than
// it costs, if any is.
func undercut(markets [][]bound.Column, duals [bound.Rows]*big.Rat) []string {
	var out []string
	for _, columns := range markets {
		for _, c := range columns {
			if worth := bound.Worth(c.Gives, duals); worth.Cmp(loosely(c.Price)) > 0 {
				out = append(out, fmt.Sprintf("at its duals what pods can use of a %s is worth %s, but it costs %d", c.Name, worth.FloatString(3), c.Price))
				break
			}
		}
	}
	return out
}

// Confirmed reports whether the independent solver proves as high a bound as the plan
// claims. A claim beyond that need not be wrong: the planner may know more ways to
// prove.
func Confirmed(p *plan.Plan, ind Independent) bool { return p.Summary.LaunchLowerBound <= ind.Best+1 }

// exact converts duals from micro-dollars per core and GiB to raw units.
func exact(duals map[string]float64) (d [bound.Rows]*big.Rat, ok bool) {
	for _, v := range duals {
		if !(v >= 0) || v > 1e15 {
			return d, false
		}
	}
	d[bound.CPU] = new(big.Rat).Quo(rat(duals[snapshot.CPU]), big.NewRat(1000, 1))
	d[bound.Memory] = new(big.Rat).Quo(rat(duals[snapshot.Memory]), big.NewRat(1<<30, 1))
	d[bound.Pods] = rat(duals[snapshot.Pods])
	d[bound.Nodes] = rat(duals[snapshot.Nodes])
	return d, true
}

func rat(v float64) *big.Rat { return new(big.Rat).SetFloat64(v) }

// loosely allows a price the rounding of a unit conversion in floating point: a few
// parts in 10^15.
func loosely(price snapshot.Price) *big.Rat {
	r := new(big.Rat).SetInt64(price)
	return r.Mul(r, big.NewRat(1_000_000_000_000+1, 1_000_000_000_000))
}
