package provision

import (
	"cmp"
	"slices"
	"strconv"
	"strings"

	"kerf.sh/kerf/internal/catalog"
	"kerf.sh/kerf/internal/packing"
	"kerf.sh/kerf/internal/plan"
	"kerf.sh/kerf/internal/scheduling"
	"kerf.sh/kerf/internal/snapshot"
)

// Options of one plan.
type Options struct {
	// Explain names an object whose verdict tree is wanted: pod/NAMESPACE/NAME,
	// node/NAME or nodepool/NAME; "" = none.
	Explain string
}

// planner holds what is needed while a plan is written.
type planner struct {
	s    *snapshot.Snapshot
	c    *catalog.Catalog
	w    *scheduling.World
	p    *packing.Problem
	r    *packing.Result
	out  *plan.Plan
	next []int // pods of each class given away so far
	// static is what the plan puts on nodes that static pools are short of, by target.
	static map[int]*staticContents
	forced []plan.Bound    // of their launches
	few    map[string]*few // launches with few options, by pool
	priced map[string]*priced
	made   []scheduling.PlannedNode // the launches, for what is planned after them
	after  *planner                 // the plan that this one adds to; nil for most
}

// maxRounds is how often a problem is packed again with what was found out: pods that
// got no place lose a preference, pods that must be spread are dealt anew.
const maxRounds = 12

// Plan decides where the pending pods of a snapshot run: on nodes that exist or
// are in flight, on nodes to launch, or nowhere, with the reason. It changes
// neither argument, and equal arguments give equal plans.
func Plan(s *snapshot.Snapshot, c *catalog.Catalog, opts Options) *plan.Plan {
	w := scheduling.New(s, c)
	p, r := solve(w)
	for n, try := 0, w.HandOver(r); try != nil && n < maxHandOvers; n++ {
		q, t := solve(try)
		if left(try, t) < left(w, r) {
			w, p, r = try, q, t
		}
		try = try.HandOver(t)
	}
	return Write(s, c, w, p, r, opts)
}

// maxHandOvers is how often a claim that is for one pod is handed on, because the pod
// that had it got no place.
const maxHandOvers = 6

// left counts the pods without a place.
func left(w *scheduling.World, r *packing.Result) int {
	n := len(w.Refused)
	for _, u := range r.Unplaced {
		n += u.Count * w.Classes[u.Class].PodsPerUnit()
	}
	return n
}

// solve packs until another round would change nothing, and answers with the best of
// the rounds: the most pods placed, then the least price.
func solve(w *scheduling.World) (*packing.Problem, *packing.Result) {
	var best *round
	for n := 1; ; n++ {
		p := w.Problem()
		r := w.Pack(p)
		again := n < maxRounds && w.Revise(r)
		w.Enforce(p, r)
		this := &round{w.Classes, p, r, 0}
		this.left = left(w, r)
		// Of rounds alike the last one knows most about what is in the way.
		if best == nil || this.left < best.left || this.left == best.left && r.Price <= best.r.Price {
			best = this
		}
		if !again {
			w.Classes = best.classes
			return best.p, best.r
		}
	}
}

// round is one packing.
type round struct {
	classes []scheduling.Class
	p       *packing.Problem
	r       *packing.Result
	left    int // pods without a place
}

// Write turns a packing into the plan that people read: classes become pods again,
// sets become verdicts, duals become prices per core and GiB. It is the last part of
// Plan, apart so that it can be measured alone.
func Write(s *snapshot.Snapshot, c *catalog.Catalog, w *scheduling.World, p *packing.Problem, r *packing.Result, opts Options) *plan.Plan {
	pl := &planner{s: s, c: c, w: w, p: p, r: r, next: make([]int, len(w.Classes))}
	pl.out = &plan.Plan{
		Now: s.Now, Cluster: s.Cluster, Region: s.Region,
		Complete: len(s.Incomplete) == 0, Incomplete: s.Incomplete,
		Catalogue: plan.CatalogueInfo{Region: c.Region, Date: c.Date, Source: c.Source, Types: len(c.Types)},
	}
	pl.placements()
	pl.launches()
	pl.unplaced()
	pl.nodes()
	pl.bounds()
	pl.out.Memory = pl.w.Memory()
	units := pl.buffers()
	pl.warnings()
	pl.summary()
	slices.SortFunc(pl.out.Displaced, func(a, b plan.Displaced) int { return strings.Compare(a.Pod, b.Pod) })
	pl.out.ID = identity(s, c, w, p)
	explain := pl.explain
	if units != nil {
		pl.out.ID = joinIDs(pl.out.ID, identity(units.s, c, units.w, units.p))
		if strings.HasPrefix(opts.Explain, "pod/buffer/") {
			units.out, explain = pl.out, units.explain
		}
	}
	if opts.Explain != "" {
		pl.out.Explained = explain(opts.Explain)
	}
	return pl.out
}

// take gives away the next n pods of a class, in the order of names.
func (pl *planner) take(class, n int) []int32 {
	n *= pl.w.Classes[class].PodsPerUnit()
	from := pl.next[class]
	pl.next[class] += n
	return pl.w.Classes[class].Pods[from:pl.next[class]]
}

func (pl *planner) ref(pod int32) string { return pl.s.Pods[pod].Ref() }

// sortedRefs names pods, sorted. It sorts the list too, as snapshots are sorted nearly the
// way names of pods are; and all names are one piece of memory.
func (pl *planner) sortedRefs(pods []int32) []string {
	slices.Sort(pods)
	n := 0
	for _, i := range pods {
		p := &pl.s.Pods[i]
		n += len(p.Namespace) + 1 + len(p.Name)
	}
	var all strings.Builder
	all.Grow(n)
	ends := make([]int, len(pods))
	for k, i := range pods {
		if p := &pl.s.Pods[i]; p.Buffer == "" {
			all.WriteString(p.Namespace)
			all.WriteByte('/')
			all.WriteString(p.Name)
		} else {
			all.WriteString(p.Ref())
		}
		ends[k] = all.Len()
	}
	text := all.String()
	out := make([]string, len(pods))
	from := 0
	for k, to := range ends {
		out[k] = text[from:to]
		from = to
	}
	if !slices.IsSorted(out) {
		slices.Sort(out)
	}
	return out
}

func (pl *planner) placements() {
	total := len(pl.w.Nominated)
	for _, p := range pl.r.Placed {
		total += p.Count * pl.w.Classes[p.Class].PodsPerUnit()
	}
	if total == 0 {
		return
	}
	pl.out.Placements = make([]plan.Placement, 0, total)
	for _, n := range pl.w.Nominated {
		if !pl.displace(n.Pod, n.Node) {
			pl.out.Placements = append(pl.out.Placements, plan.Placement{Pod: pl.ref(n.Pod), Node: n.Node, Nominated: true})
		}
	}
	for _, p := range pl.r.Placed {
		node := pl.p.Nodes[p.Node].Name
		if pl.w.Nodes[pl.w.Targets[p.Node]].Launch != nil {
			pl.onStatic(p)
			continue
		}
		for _, i := range pl.take(p.Class, p.Count) {
			if !pl.displace(i, node) {
				pl.out.Placements = append(pl.out.Placements, plan.Placement{Pod: pl.ref(i), Node: node})
			}
		}
	}
	slices.SortFunc(pl.out.Placements, func(a, b plan.Placement) int { return strings.Compare(a.Pod, b.Pod) })
}

func (pl *planner) launches() {
	perPool := make([]int, len(pl.w.Pools))
	for i := range pl.w.Pools {
		perPool[i] = pl.launchesBefore(pl.w.Pools[i].Spec.Name)
	}
	pl.out.Launches = make([]plan.Launch, 0, len(pl.r.Launches))
	var prev *packing.Launch
	for i := range pl.r.Launches {
		l := &pl.r.Launches[i]
		t := &pl.w.Templates[l.Template]
		pool := &pl.w.Pools[t.Pool]
		perPool[t.Pool]++
		out := plan.Launch{
			Name:     pool.Spec.Name + "-" + strconv.Itoa(perPool[t.Pool]),
			NodePool: pool.Spec.Name, NodeClass: pool.Class.Name,
			Daemons: t.Daemons(l.Chosen), Allocatable: t.Type(l.Chosen).Allocatable,
			Chosen: pl.chosen(l, l.Chosen), Worst: l.Worst,
		}
		out.Limited = pl.limited(out.NodePool, out.Name, l.Limited, l.Dear)
		// Launches that are alike share labels and options, as in the result.
		if prev != nil && prev.Template == l.Template && prev.Chosen == l.Chosen {
			out.Labels = pl.out.Launches[i-1].Labels
		} else {
			out.Labels = t.NodeLabels(l.Chosen)
		}
		if prev != nil && prev.Template == l.Template && prev.Committed == l.Committed && sameInts(prev.Options, l.Options) {
			out.Options = pl.out.Launches[i-1].Options
		} else {
			out.Options = pl.options(l)
		}
		out.Requests = out.Daemons
		pods := 0
		for _, c := range l.Contents {
			pods += c.Count * pl.w.Classes[c.Class].PodsPerUnit()
		}
		taken := make([]int32, 0, pods)
		for _, c := range l.Contents {
			pods := pl.take(c.Class, c.Count)
			taken = append(taken, pods...)
			for _, k := range pods {
				pl.displace(k, out.Name)
			}
			for _, what := range pl.w.Relaxations(c.Class, l.Template) {
				out.Relaxed = append(out.Relaxed, pl.relaxed(pods)+": "+what)
			}
			out.Requests = out.Requests.Add(times(pl.w.Classes[c.Class].Requests, int64(c.Count)))
		}
		out.Pods = pl.sortedRefs(taken)
		out.Relaxed = append(out.Relaxed, fewerValues(&pl.p.Templates[l.Template], l.Options)...)
		pl.out.Launches = append(pl.out.Launches, out)
		pl.launched(out.Name, t, l)
		prev = l
	}
	if pl.after == nil {
		pl.staticLaunches()
	}
	// By pool; within one the numbers go up already.
	slices.SortStableFunc(pl.out.Launches, func(a, b plan.Launch) int { return strings.Compare(a.NodePool, b.NodePool) })
}

// displace records the move of a pod that runs on a node that is going; false for
// a pod that is just pending.
func (pl *planner) displace(pod int32, to string) bool {
	from := pl.s.Pods[pod].NodeName
	if from == "" {
		return false
	}
	pl.out.Displaced = append(pl.out.Displaced, plan.Displaced{Pod: pl.ref(pod), From: from, To: to})
	return true
}

// relaxed says which pods had a preference dropped.
func (pl *planner) relaxed(pods []int32) string {
	if len(pods) == 1 {
		return pl.ref(pods[0])
	}
	return pl.ref(pods[0]) + " and " + strconv.Itoa(len(pods)-1) + " more"
}

func sameInts(a, b []int) bool {
	return len(a) == len(b) && (len(a) == 0 || &a[0] == &b[0] || slices.Equal(a, b))
}

// chosen is an offer as a launch has it.
func (pl *planner) chosen(l *packing.Launch, o int) plan.Offer {
	if l.Committed {
		return pl.w.Committed(l.Template, o)
	}
	return pl.offer(l.Template, o)
}

func (pl *planner) offer(template, o int) plan.Offer {
	return pl.w.Templates[template].Offer(o)
}

func (pl *planner) options(l *packing.Launch) []plan.Offer {
	out := make([]plan.Offer, len(l.Options))
	for i, o := range l.Options {
		out[i] = pl.chosen(l, o)
	}
	slices.SortFunc(out, compareOffers)
	return out
}

func compareOffers(a, b plan.Offer) int {
	return cmp.Or(cmp.Compare(a.Price, b.Price), strings.Compare(a.InstanceType, b.InstanceType),
		strings.Compare(a.Zone, b.Zone), strings.Compare(a.CapacityType, b.CapacityType), strings.Compare(a.ReservationID, b.ReservationID))
}

// times multiplies a request, saturating.
func times(r snapshot.Resources, n int64) snapshot.Resources {
	mul := func(v int64) int64 {
		if v > snapshot.MaxQuantity/max(n, 1) {
			return snapshot.MaxQuantity
		}
		return v * n
	}
	out := snapshot.Resources{CPU: mul(r.CPU), Memory: mul(r.Memory), Ephemeral: mul(r.Ephemeral), Pods: mul(r.Pods)}
	for k, v := range r.Extended {
		if out.Extended == nil {
			out.Extended = make(map[string]int64, len(r.Extended))
		}
		out.Extended[k] = mul(v)
	}
	return out
}

// warnings sorts what was remarked on.
func (pl *planner) warnings() {
	if pl.s.Region != "" && pl.c.Region != "" && pl.s.Region != pl.c.Region {
		pl.warn("", plan.CatalogueOfOther, "the cluster is in "+pl.s.Region+", but types and prices are those of "+pl.c.Region)
	}
	pl.warnOverlaid()
	pl.warnFewOptions()
	pl.out.Warnings = append(pl.out.Warnings, pl.w.Warnings...)
	slices.SortFunc(pl.out.Warnings, func(a, b plan.Warning) int {
		return cmp.Or(strings.Compare(a.Object, b.Object), cmp.Compare(a.Code, b.Code), strings.Compare(a.Detail, b.Detail))
	})
	pl.out.Warnings = slices.Compact(pl.out.Warnings)
}

func (pl *planner) warn(object string, code plan.Code, detail string) {
	pl.out.Warnings = append(pl.out.Warnings, plan.Warning{Object: object, Code: code, Detail: detail})
}

func (pl *planner) summary() {
	s := &pl.out.Summary
	s.Launches = len(pl.out.Launches)
	for i := range pl.out.Placements {
		if !plan.IsUnit(pl.out.Placements[i].Pod) {
			s.Placed++
		}
	}
	for i := range pl.out.Launches {
		l := &pl.out.Launches[i]
		s.LaunchPrice += l.Chosen.Price
		s.LaunchPriceWorst += l.Worst
		if l.Chosen.Commitment != "" {
			s.Committed += l.Chosen.Price
		}
	}
	s.PendingPods, s.Unschedulable = len(pl.w.Refused), len(pl.w.Refused)
	for i := range pl.w.Classes {
		s.PendingPods += len(pl.w.Classes[i].Pods)
	}
	for i := range pl.r.Unplaced {
		s.Unschedulable += pl.r.Unplaced[i].Count * pl.w.Classes[pl.r.Unplaced[i].Class].PodsPerUnit()
	}
	s.PendingPods -= pl.w.Displaced
	for _, n := range pl.w.Nominated {
		if pl.s.Pods[n.Pod].NodeName == "" {
			s.PendingPods++
		}
	}
	for i := range pl.out.Nodes {
		s.PriceBefore += pl.out.Nodes[i].Price
	}
	s.PriceAfter = s.PriceBefore + s.LaunchPrice
	for i := range pl.out.Bounds {
		s.LaunchLowerBound += pl.out.Bounds[i].Total
	}
}
