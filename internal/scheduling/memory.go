package scheduling

import (
	"cmp"
	"fmt"
	"maps"
	"math"
	"math/bits"
	"slices"
	"strings"
	"time"

	"kerf.sh/kerf/internal/catalog"
	"kerf.sh/kerf/internal/lifecycle"
	"kerf.sh/kerf/internal/plan"
	"kerf.sh/kerf/internal/snapshot"
)

// learn puts the sizes that nodes of a class turned out to have in the place of what is
// computed: those of its images and its shape. What all of those fall short by, types that
// have not been seen are supposed to fall short by too.
func (w *World) learn(class *snapshot.NodeClass, types []catalog.Resolved) {
	list := w.Snapshot.Learned
	if len(list) == 0 {
		return
	}
	shape := lifecycle.Shape(class, w.Snapshot.Settings)
	seen := map[string][]turn{}
	for k := range list {
		l := &list[k]
		if l.Shape != shape || l.ImageID == "" {
			continue
		}
		if i, ok := typeNamed(types, l.InstanceType); ok && types[i].Image == l.ImageID {
			was := types[i].Allocatable
			types[i].Learn(catalog.Size{Capacity: l.Capacity, Allocatable: l.Allocatable})
			seen[l.ImageID] = append(seen[l.ImageID], turn{i, was, types[i].Allocatable})
		}
	}
	for _, image := range slices.Sorted(maps.Keys(seen)) {
		if turns := seen[image]; len(turns) > 1 {
			suppose(types, image, turns)
		}
	}
}

// turn is how a type turned out.
type turn struct {
	typ     int
	was, is snapshot.Resources
}

// suppose makes the types of an image that have not been seen smaller by what those that
// have been fall short by, where that is as good as the same for all of them: a share, as
// when an image keeps a part of the memory, or an amount. Otherwise a cluster whose nodes are
// all smaller than computed would try every type there is, one node each. The least that was
// seen is taken, so that nothing is refused for a guess that is too high.
func suppose(types []catalog.Resolved, image string, turns []turn) {
	known := map[int]bool{}
	for _, t := range turns {
		known[t.typ] = true
	}
	for _, name := range []string{snapshot.CPU, snapshot.Memory} {
		share, amount := newSpan(), newSpan()
		for _, t := range turns {
			was, less := t.was.Get(name), t.was.Get(name)-t.is.Get(name)
			if was <= 0 {
				continue
			}
			share.add(mulDiv(less, 1_000_000, was))
			amount.add(less)
		}
		if share.least < leastShare {
			continue // some are as they should be
		}
		for i := range types {
			r := &types[i]
			if known[i] || r.Image != image || r.Unusable != "" {
				continue
			}
			was := r.Allocatable.Get(name)
			less := int64(0)
			switch {
			case share.narrow():
				less = mulDiv(was, share.least, 1_000_000)
			case amount.narrow() && amount.least < was/4:
				less = amount.least
			}
			if less <= 0 {
				continue
			}
			if r.Computed == nil {
				r.Computed = &catalog.Size{Capacity: r.Capacity, Allocatable: r.Allocatable}
			}
			is := was - less
			if name == snapshot.Memory {
				is -= is % (1 << 20) // for whoever reads it
			}
			r.Supposed = len(turns)
			r.Allocatable = r.Allocatable.With(name, is)
		}
	}
}

// leastShare is the part, in millionths, by which every type that was seen must fall short
// before others are supposed to: more than firmware makes a difference (2 %).
const leastShare = 20_000

// span is the least and the most of some figures.
type span struct{ least, most int64 }

func newSpan() span { return span{math.MaxInt64, math.MinInt64} }

func (s *span) add(v int64) { s.least, s.most = min(s.least, v), max(s.most, v) }

// narrow reports whether the figures are as good as one: the most is within a quarter of
// the least.
func (s *span) narrow() bool { return s.most-s.least <= s.least/4 }

// mulDiv is a*b/c for figures whose product may not fit; c is positive.
func mulDiv(a, b, c int64) int64 {
	neg := a < 0
	if neg {
		a = -a
	}
	hi, lo := bits.Mul64(uint64(a), uint64(b))
	q, _ := bits.Div64(hi%uint64(c), lo, uint64(c))
	if neg {
		return -int64(q)
	}
	return int64(q)
}

// turnedOut remarks that what a type gives of a resource is what a node of it turned out to
// have, where that is less than computed; "" when it is not.
func (u *universe) turnedOut(typ, resource string) string {
	i, ok := typeNamed(u.types, typ)
	if !ok || u.types[i].Computed == nil {
		return ""
	}
	is, was := u.types[i].Allocatable.Get(resource), u.types[i].Computed.Allocatable.Get(resource)
	if is >= was {
		return ""
	}
	if n := u.types[i].Supposed; n > 0 {
		return fmt.Sprintf(" (supposed to have %s less than the %s that are computed, as nodes of %s turned out)",
			plan.Quantity(resource, was-is), plan.Quantity(resource, was), plan.Count(n, "other type"))
	}
	return fmt.Sprintf(" (a node of it turned out to have %s less than the %s that are computed)", plan.Quantity(resource, was-is), plan.Quantity(resource, was))
}

func typeNamed(types []catalog.Resolved, name string) (int, bool) {
	return slices.BinarySearchFunc(types, name, func(r catalog.Resolved, name string) int { return strings.Compare(r.Type.Name, name) })
}

// leaveShort takes offers that are short of capacity out of those that are available. Of
// several shortages the one that lasts longest is told.
func (u *universe) leaveShort(s *snapshot.Snapshot) {
	for i := range s.Shortages {
		x := &s.Shortages[i]
		if !x.Live(s.Now) {
			continue
		}
		from, to := int32(0), int32(len(u.offers))
		if x.InstanceType != "" {
			t, ok := typeNamed(u.types, x.InstanceType)
			if !ok {
				continue
			}
			from, to = u.first[t], u.first[t+1]
		}
		for k := from; k < to; k++ {
			o := &u.offers[k]
			had := u.short[k]
			if o.why != "" && had == nil || had != nil && !x.Until.After(had.Until) ||
				!x.Hits(u.types[o.typ].Type.Name, o.zone, o.capacity, o.reservation) {
				continue
			}
			if u.short == nil {
				u.short = map[int32]*snapshot.Shortage{}
			}
			u.short[k] = x
			o.why = fmt.Sprintf("EC2 had no capacity for it (%s), so it is left alone until %s", x.Code, clockTime(x.Until))
		}
	}
}

// clockTime is a time of the day of a plan, which is made within the hour.
func clockTime(t time.Time) string {
	t = t.UTC()
	if t.Second() == 0 && t.Nanosecond() == 0 {
		return t.Format("15:04")
	}
	return t.Format("15:04:05")
}

// shortage says of offers, all of them short of capacity, how many they are, until when
// and why: "6 offers are short of capacity until 12:03 (InsufficientInstanceCapacity)".
// which says more about them, before the verb.
func (u *universe) shortage(offers []int32, which string) string {
	var first, last time.Time
	var codes []string
	for n, k := range offers {
		x := u.short[k]
		if n == 0 || x.Until.Before(first) {
			first = x.Until
		}
		if x.Until.After(last) {
			last = x.Until
		}
		if !slices.Contains(codes, x.Code) {
			codes = append(codes, x.Code)
		}
	}
	slices.Sort(codes)
	verb := " are"
	if len(offers) == 1 {
		verb = " is"
	}
	until := " until " + clockTime(last)
	if !first.Equal(last) {
		until = ", the first until " + clockTime(first) + ", the last until " + clockTime(last)
	}
	return plan.Count(len(offers), "offer") + which + verb + " short of capacity" + until + " (" + strings.Join(codes, ", ") + ")"
}

// Short says how many offers that the pool allows are short of capacity, and until when;
// "" when none is.
func (p *Pool) Short() string {
	if len(p.short) == 0 {
		return ""
	}
	return p.u.shortage(p.short, "")
}

// TurnedOut counts the types that the pool allows and that count as what nodes of them
// turned out to have.
func (p *Pool) TurnedOut() int {
	n := 0
	for _, t := range p.types {
		if p.u.types[t].Computed != nil {
			n++
		}
	}
	return n
}

// also appends a remark.
func also(text string) string {
	if text == "" {
		return ""
	}
	return "; " + text
}

// short are the offers of a pool that would take a pod of a class, were they not short of
// capacity.
func (w *World) short(class, pool int) []int32 {
	p := &w.Pools[pool]
	if len(p.short) == 0 || p.Spec.Replicas != nil {
		return nil
	}
	c := &w.Classes[class]
	w.row(pool, c.Rules)
	x := w.explain[pool]
	need := w.asks(c, nil)
	var out []int32
	for _, k := range x.short[c.Rules] {
		if t := int(x.t.u.offers[k].typ); covers(x.alloc[t*len(need):(t+1)*len(need)], need) {
			out = append(out, k)
		}
	}
	return out
}

// describeShortage says which offers a pod could have and why they are left alone, and
// what there is besides.
func (w *World) describeShortage(class, pool int) string {
	p := &w.Pools[pool]
	text := p.u.shortage(w.short(class, pool), " that would take the pod")
	switch n := len(p.offers); n {
	case 0:
		return text + "; the NodePool has no other"
	case 1:
		return text + "; the one that remains in the NodePool does not take it"
	default:
		return fmt.Sprintf("%s; the %d that remain in the NodePool do not take it", text, n)
	}
}

// shortNote says of a class that rules about other pods keep pending how many offers it
// could have but for a shortage; "" when none.
func (w *World) shortNote(class int) string {
	var parts []string
	for i := range w.Pools {
		if p := &w.Pools[i]; p.Code == "" || p.Code == plan.InsufficientCapacity {
			if offers := w.short(class, i); len(offers) > 0 {
				parts = append(parts, "in NodePool "+p.Spec.Name+" "+p.u.shortage(offers, " that would take the pod"))
			}
		}
	}
	return also(strings.Join(parts, "; "))
}

// Memory is what of the ledger's memory bears on the plan; nil when nothing does.
func (w *World) Memory() *plan.Memory {
	s := w.Snapshot
	if len(s.Shortages)+len(s.Setbacks)+len(s.Learned)+w.kept == 0 {
		return nil
	}
	out := &plan.Memory{Nominated: w.kept, Setbacks: w.setbacks()}
	seen := map[offerName]bool{}
	hit := map[*snapshot.Shortage]int{}
	sizes := map[string]bool{}
	for i := range w.Pools {
		p := &w.Pools[i]
		for _, k := range p.short {
			name := offerName{p.u.types[p.u.offers[k].typ].Type.Name, p.u.offers[k].zone, p.u.offers[k].capacity, p.u.offers[k].reservation}
			if !seen[name] {
				seen[name] = true
				hit[p.u.short[k]]++
			}
		}
		for _, t := range p.types {
			r := &p.u.types[t]
			if key := p.Class.Name + "/" + r.Type.Name; r.Computed != nil && !sizes[key] {
				sizes[key] = true
				if r.Supposed > 0 {
					out.Supposed++
					continue
				}
				out.Learned = append(out.Learned, plan.LearnedSize{
					InstanceType: r.Type.Name, NodeClass: p.Class.Name, ImageID: r.Image, Allocatable: r.Allocatable, Computed: r.Computed.Allocatable,
				})
			}
		}
	}
	for k := range s.Shortages {
		if x := &s.Shortages[k]; hit[x] > 0 {
			out.Shortages = append(out.Shortages, plan.Shortage{
				InstanceType: x.InstanceType, Zone: x.Zone, CapacityType: x.CapacityType, ReservationID: x.ReservationID,
				Until: x.Until, Code: x.Code, Offers: hit[x],
			})
		}
	}
	slices.SortFunc(out.Learned, func(a, b plan.LearnedSize) int {
		return cmp.Or(strings.Compare(a.InstanceType, b.InstanceType), strings.Compare(a.NodeClass, b.NodeClass))
	})
	if len(out.Shortages)+len(out.Setbacks)+len(out.Learned)+out.Nominated == 0 {
		return nil
	}
	return out
}

// offerName is an offer whatever the class.
type offerName struct{ typ, zone, capacity, reservation string }
