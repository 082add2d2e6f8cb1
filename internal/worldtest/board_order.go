package worldtest

import (
	"cmp"
	"fmt"
	"math/rand/v2"
	"slices"

	"kerf.sh/kerf/internal/snapshot"
)

// seat tries orders in which every placement is accepted, and returns what is in the
// way of the pods that are left over in the best one; nil when there is an order.
func (b *board) seat(want []seating) []string {
	var least []string
	for n := range orders + 2 {
		order := inOrder(want, n)
		for _, at := range b.sites {
			at.pods = slices.Clone(at.bound)
		}
		switch n {
		case orders:
			order = b.patient(order)
		case orders + 1:
			order = b.careful(order)
		default:
			order = b.greedy(order)
		}
		if len(order) == 0 {
			return nil
		}
		if least == nil || len(order) < len(least) {
			least = nil
			for _, s := range order {
				least = append(least, fmt.Sprintf("pod %s on %s: %s", s.pod.Ref(), s.at.name, b.refuses(s.pod, s.at)))
			}
		}
	}
	return least
}

// greedy places pods in an order, again and again until none can be placed any more, and
// returns those that are left.
func (b *board) greedy(order []seating) []seating {
	for progress := true; progress; {
		progress = false
		order = slices.DeleteFunc(order, func(s seating) bool {
			if b.refuses(s.pod, s.at) != "" {
				return false
			}
			s.at.pods = append(s.at.pods, s.pod)
			progress = true
			return true
		})
	}
	return order
}

// patient places pods that do not mind only when none that has a spread constraint can
// be placed.
func (b *board) patient(order []seating) []seating {
	slices.SortStableFunc(order, func(a, c seating) int { return -cmp.Compare(len(a.pod.Spec.Spread), len(c.pod.Spec.Spread)) })
	for {
		i := slices.IndexFunc(order, func(s seating) bool { return b.refuses(s.pod, s.at) == "" })
		if i < 0 {
			return order
		}
		order[i].at.pods = append(order[i].at.pods, order[i].pod)
		order = slices.Delete(order, i, i+1)
	}
}

// careful places each time the pod after which the others are the least in the way of
// each other; of equal ones, one that has spread constraints.
func (b *board) careful(order []seating) []seating {
	slices.SortStableFunc(order, func(a, c seating) int { return -cmp.Compare(len(a.pod.Spec.Spread), len(c.pod.Spec.Spread)) })
	for {
		best, least := -1, 0
		for i, s := range order {
			if b.refuses(s.pod, s.at) != "" {
				continue
			}
			s.at.pods = append(s.at.pods, s.pod)
			excess := 0
			for k, o := range order {
				if k != i && (best < 0 || excess < least) {
					excess += b.excess(o.pod, o.at)
				}
			}
			s.at.pods = s.at.pods[:len(s.at.pods)-1]
			if best < 0 || excess < least {
				best, least = i, excess
			}
		}
		if best < 0 {
			return order
		}
		order[best].at.pods = append(order[best].at.pods, order[best].pod)
		order = slices.Delete(order, best, best+1)
	}
}

// excess is by how much a placement is refused: by how many pods a domain has too many,
// or 1.
func (b *board) excess(p *snapshot.Pod, at *site) int {
	n := 0
	for i := range p.Spec.Spread {
		c := &p.Spec.Spread[i]
		domain, ok := labelValue(at.labels, c.TopologyKey)
		if c.WhenUnsatisfiable == "ScheduleAnyway" || !ok || b.skip[aboutSpread] {
			continue
		}
		counts := b.counts(p, c, p.Spec.Spread)
		if b.reach != nil {
			for _, d := range b.reach(p, c) {
				counts[d] += 0
			}
		}
		least := -1
		for _, k := range counts {
			if least < 0 || k < least {
				least = k
			}
		}
		n += max(0, counts[domain]+1-max(0, least)-int(c.MaxSkew))
	}
	if n == 0 && b.refuses(p, at) != "" {
		return 1
	}
	return n
}

// orders is how many orders are tried before those with more thought; pods that wait for others
// are tried again in each of them.
const orders = 4

// inOrder is the n-th order: pods with the most terms first, with the fewest first, and
// then any.
func inOrder(want []seating, n int) []seating {
	out := slices.Clone(want)
	terms := func(s seating) int {
		return len(s.pod.Spec.Affinity) + len(s.pod.Spec.Anti) + len(s.pod.Spec.Spread)
	}
	slices.SortFunc(out, func(a, b seating) int {
		by := cmp.Compare(terms(b), terms(a))
		if n == 1 {
			by = -by
		}
		return cmp.Or(by, cmp.Compare(a.pod.Ref(), b.pod.Ref()))
	})
	if n > 1 {
		r := rand.New(rand.NewPCG(uint64(n), 5))
		r.Shuffle(len(out), func(i, j int) { out[i], out[j] = out[j], out[i] })
	}
	return out
}
