package provision

import (
	"crypto/sha256"
	"encoding/hex"
	"slices"
	"strings"
	"time"

	"kerf.sh/kerf/internal/packing"
	"kerf.sh/kerf/internal/plan"
	"kerf.sh/kerf/internal/scheduling"
	"kerf.sh/kerf/internal/snapshot"
)

// buffers makes room for the units of CapacityBuffers, in what the plan leaves on nodes
// and launches, then on nodes of their own. They come after all pods, so that no pod
// loses room to a unit. It returns the planner that planned them, nil without units.
func (pl *planner) buffers() *planner {
	units, remarks := scheduling.Buffers(pl.s)
	pl.out.Warnings = append(pl.out.Warnings, remarks...)
	if len(units) == 0 {
		return nil
	}
	s := pl.carriedOut(units)
	w := scheduling.After(s, pl.w, pl.made)
	p, r := solve(w)
	next := &planner{s: s, c: pl.c, w: w, p: p, r: r, next: make([]int, len(w.Classes)), out: &plan.Plan{}, after: pl}
	next.placements()
	next.launches()
	next.enlarge()
	missing := next.missingUnits()

	out := pl.out
	out.Placements = append(out.Placements, next.out.Placements...)
	slices.SortFunc(out.Placements, func(a, b plan.Placement) int { return strings.Compare(a.Pod, b.Pod) })
	out.Launches = append(out.Launches, next.out.Launches...)
	slices.SortStableFunc(out.Launches, func(a, b plan.Launch) int { return strings.Compare(a.NodePool, b.NodePool) })
	out.Verdicts = append(out.Verdicts, missing...)
	slices.SortFunc(out.Verdicts, func(a, b plan.Verdict) int { return strings.Compare(a.Object, b.Object) })
	for _, warn := range w.Warnings {
		if strings.HasPrefix(warn.Object, "pod/buffer/") {
			pl.warn(warn.Object, warn.Code, warn.Detail)
		}
	}
	for i := range units {
		u := &units[i]
		out.Pods = append(out.Pods, plan.PodUse{Ref: u.Ref(), Workload: "buffer/" + u.Namespace + "/" + u.Buffer, Requests: u.Spec.Requests, Buffer: true})
	}
	out.Summary.BufferUnits, out.Summary.BufferMissing = len(units), len(missing)
	return next
}

// carriedOut is the snapshot as if the plan had been carried out: pods are where it puts
// them, those that it does not place are left aside, and units wait for a place.
func (pl *planner) carriedOut(units []snapshot.Pod) *snapshot.Snapshot {
	to := map[string]string{}
	for _, p := range pl.out.Placements {
		to[p.Pod] = p.Node
	}
	for i := range pl.out.Launches {
		for _, ref := range pl.out.Launches[i].Pods {
			to[ref] = pl.out.Launches[i].Name
		}
	}
	for _, d := range pl.out.Displaced {
		to[d.Pod] = d.To
	}
	going := pl.s.Going()
	s := *pl.s
	s.Nominations = nil
	s.Pods = make([]snapshot.Pod, 0, len(pl.s.Pods)+len(units))
	for i := range pl.s.Pods {
		p := pl.s.Pods[i]
		node, moved := to[p.Ref()]
		if moved {
			p.NodeName, p.NominatedNode, p.Deleting = node, "", time.Time{}
		}
		if p.NodeName != "" && (moved || !going[p.NodeName]) {
			s.Pods = append(s.Pods, p)
		}
	}
	s.Pods = append(s.Pods, units...)
	return &s
}

// enlarge adds units to the launches that have room left for them: the options that
// hold both remain.
func (pl *planner) enlarge() {
	byName := map[string]*plan.Launch{}
	for i := range pl.after.out.Launches {
		l := &pl.after.out.Launches[i]
		byName[l.Name] = l
	}
	use := map[string]*plan.NodeUse{}
	for i := range pl.after.out.Nodes {
		n := &pl.after.out.Nodes[i]
		use[n.Name] = n
	}
	for i := range pl.w.Nodes {
		n := &pl.w.Nodes[i]
		c, l := pl.static[i], byName[n.Name]
		if n.Launch == nil || c == nil || l == nil {
			continue
		}
		made, _ := pl.w.StaticLaunch(pl.p, n, c.classes)
		l.Options, l.Worst = nil, made.Worst
		for _, o := range made.Options {
			l.Options = append(l.Options, n.Launch.Template.Offer(o))
		}
		slices.SortFunc(l.Options, compareOffers)
		l.Requests = l.Requests.Add(c.use)
		for _, k := range c.pods {
			l.Pods = append(l.Pods, pl.ref(k))
		}
		slices.Sort(l.Pods)
	}
	for _, p := range pl.r.Placed {
		if n := use[pl.p.Nodes[p.Node].Name]; n != nil {
			n.Placed += p.Count * pl.w.Classes[p.Class].PodsPerUnit()
			n.Added = n.Added.Add(times(pl.w.Classes[p.Class].Requests, int64(p.Count)))
		}
	}
}

// missingUnits are the verdicts of units that got no room.
func (pl *planner) missingUnits() []plan.Verdict {
	out := slices.Clone(pl.w.Refused)
	for i := range pl.r.Unplaced {
		u := &pl.r.Unplaced[i]
		v := pl.verdict(u.Class, u.Limits)
		for _, k := range pl.take(u.Class, u.Count) {
			v.Object = "pod/" + pl.ref(k)
			out = append(out, v)
		}
	}
	return out
}

// launchesBefore counts the launches of a pool in the plan that this one adds to.
func (pl *planner) launchesBefore(pool string) int {
	n := 0
	if pl.after != nil {
		for i := range pl.after.out.Launches {
			if pl.after.out.Launches[i].NodePool == pool {
				n++
			}
		}
	}
	return n
}

// launched remembers a launch for what is planned after it.
func (pl *planner) launched(name string, t *scheduling.Template, l *packing.Launch) {
	if len(pl.s.Buffers) == 0 || pl.after != nil {
		return
	}
	pl.made = append(pl.made, scheduling.PlannedNode{Name: name, Template: t, Chosen: l.Chosen, Options: l.Options})
}

// joinIDs is the identity of a plan that was made in two parts.
func joinIDs(a, b string) string {
	sum := sha256.Sum256([]byte(a + b))
	return hex.EncodeToString(sum[:12])
}
