package handler

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"kerf.sh/kerf/internal/cloud/launch"
	"kerf.sh/kerf/internal/execute"
	"kerf.sh/kerf/internal/kube/api"
	"kerf.sh/kerf/internal/lifecycle"
	"kerf.sh/kerf/internal/plan"
	"kerf.sh/kerf/internal/provision"
	"kerf.sh/kerf/internal/scheduling"
	"kerf.sh/kerf/internal/snapshot"
)

// pass reads, plans and launches once, under the lease. again: another plan may do what
// this one could not.
func (h *Sweep) pass(ctx context.Context, lease *lifecycle.Lease, was hopeless, rep *SweepReport) (again bool, err error) {
	alive, err := h.Cluster.Leases(ctx, KarpenterLease)
	if err != nil {
		return false, fmt.Errorf("look whether Karpenter runs: %w", err)
	}
	if holder, yes := Alive(alive, h.Now()); yes {
		rep.Outcome, rep.Detail = "Refused", "Karpenter runs in this cluster ("+holder+"): stop it, then Kerf takes over"
		return false, nil
	}
	w, err := h.read(ctx, rep)
	if err != nil {
		return false, err
	}
	if len(w.snap.Incomplete) > 0 {
		rep.Outcome, rep.Detail = "Incomplete", "nothing is done on an incomplete reading: "+strings.Join(w.snap.Incomplete, "; ")
		return false, nil
	}
	rep.warn(h.deleted(ctx, w))
	p := provision.Plan(w.snap, w.facts.Catalog, provision.Options{})
	rep.PlanID = p.ID
	rep.Placed, rep.Unschedulable = p.Summary.Placed, p.Summary.Unschedulable
	met := rep.shortages
	claims, err := h.commit(ctx, lease, w, p, rep)
	rep.warn(h.relieve(ctx, w, p, claims))
	if err != nil {
		return false, err
	}
	h.tell(ctx, w, p, rep)
	rep.warn(h.writeHopeless(ctx, was, w, p, rep))
	// Planning again is of use where something was found to be short: then other things are
	// planned for. Without that, the same would be refused again.
	short := rep.shortages > met
	capacity := slices.ContainsFunc(rep.Failed, func(f execute.Failed) bool { return f.Capacity })
	return short && capacity && rep.Left == 0, nil
}

// reading is what one pass decides on.
type reading struct {
	snap    *snapshot.Snapshot
	facts   *Facts
	known   lifecycle.Remembered
	classes map[string]execute.Class
	avoid   []launch.Shortage
}

// read reads the cluster, then what is remembered of it: a record that was written between
// the two is of a node that the other does not show yet, and counts as coming.
func (h *Sweep) read(ctx context.Context, rep *SweepReport) (*reading, error) {
	now := h.Now()
	s, warnings, err := h.Cluster.Read(ctx, now)
	if err != nil {
		return nil, fmt.Errorf("read the cluster: %w", err)
	}
	for _, w := range warnings {
		if w.Code != "" && strings.HasPrefix(w.Object, "nodepool/") {
			rep.Warnings = append(rep.Warnings, w.Object+": "+w.Detail)
		}
	}
	w := &reading{snap: s, classes: map[string]execute.Class{}}
	if w.known, err = h.Memory.Remember(ctx); err != nil {
		return nil, err
	}
	if w.known.Records, err = h.dropStale(ctx, s, w.known.Records); err != nil {
		return nil, err
	}
	if w.facts, err = LoadFacts(ctx, h.Memory, h.Region, now, h.Facts); err != nil {
		return nil, err
	}
	for _, x := range w.facts.Warnings {
		rep.Warnings = append(rep.Warnings, x.Detail)
	}
	for i := range s.Nodes {
		unshut(&s.Nodes[i])
	}
	s.Incomplete = plausible(s, w.known.Records)
	if rep.Stale = w.facts.Fill(s); len(rep.Stale) > 0 && h.Resolve != nil {
		rep.warn(h.Resolve(ctx, rep.Stale))
	}
	w.known.Into(s) // knows by the images of classes which learned sizes matter
	for i := range s.NodeClasses {
		if c, ok := w.facts.Class(&s.NodeClasses[i]); ok && c.Class != nil {
			w.classes[s.NodeClasses[i].Name] = execute.Class{Class: c.Class, Resolved: c.Resolved}
		}
	}
	if w.avoid, err = h.readAvoid(ctx, now); err != nil {
		return nil, err
	}
	for _, r := range w.known.Records {
		if r.Phase.Live() && r.Phase.Before(lifecycle.Initialized) {
			rep.InFlight++
		}
	}
	s.Normalize()
	return w, nil
}

// plausible are the reasons why a reading is incomplete, but for one that our own records
// explain: the first nodes of a cluster have no Node yet.
func plausible(s *snapshot.Snapshot, records []lifecycle.Record) []string {
	young := map[string]bool{}
	for _, r := range records {
		if r.Phase.Before(lifecycle.Registered) || !r.Phase.Live() && r.RegisteredAt.IsZero() {
			young[r.Claim] = true
		}
	}
	for i := range s.NodeClaims {
		if !young[s.NodeClaims[i].Name] {
			return s.Incomplete
		}
	}
	return slices.DeleteFunc(slices.Clone(s.Incomplete), func(why string) bool { return strings.HasPrefix(why, api.NoNodes) })
}

// dropStale cancels intents of passes that ended before they could ask for anything: only
// the holder of the lease launches, and that is not theirs any more. Their pods are planned
// anew at once, and nothing waits for a NodeClaim that was made for one of them: it goes,
// also if its record had not come to know of it.
func (h *Sweep) dropStale(ctx context.Context, s *snapshot.Snapshot, records []lifecycle.Record) ([]lifecycle.Record, error) {
	var kept []lifecycle.Record
	for _, r := range records {
		if r.Phase != lifecycle.Intended || r.Attempt != "" {
			kept = append(kept, r)
			continue
		}
		made := slices.IndexFunc(s.NodeClaims, func(c snapshot.NodeClaim) bool { return c.Name == r.Claim && c.ProviderID == "" })
		if made >= 0 && r.UID == "" {
			r.UID = s.NodeClaims[made].UID
		}
		if err := h.Executor.Cancel(ctx, r, "the pass that wanted it ended before it asked for an instance"); err != nil {
			return nil, err
		}
		if made >= 0 && s.NodeClaims[made].UID == r.UID {
			s.NodeClaims = slices.Delete(s.NodeClaims, made, made+1)
		}
	}
	return kept, nil
}

// deleted has nodes looked after whose NodeClaims somebody has deleted. Nothing tells of that:
// whoever reads all NodeClaims sees it, and housekeeping once a minute.
func (h *Sweep) deleted(ctx context.Context, w *reading) error {
	used := map[string]bool{}
	for i := range w.known.Records {
		// One that EC2 takes only counts as deleted, and is looked after.
		if r := &w.known.Records[i]; r.UID != "" && r.Phase == lifecycle.Initialized && r.Doomed == nil {
			used[r.UID] = true
		}
	}
	gone := func(c snapshot.NodeClaim) bool { return used[c.UID] && !c.Deleting.IsZero() }
	if h.Executor.Begun == nil || !slices.ContainsFunc(w.snap.NodeClaims, gone) {
		return nil
	}
	return h.Executor.Begun(ctx)
}

// commit writes down and launches what the plan wants, and returns what the launches are
// called.
func (h *Sweep) commit(ctx context.Context, lease *lifecycle.Lease, w *reading, p *plan.Plan, rep *SweepReport) (claims map[string]string, err error) {
	if len(p.Launches) == 0 && len(p.Placements) == 0 {
		rep.Outcome = "Nothing"
		return nil, nil
	}
	where := ""
	if h.Journal != nil {
		var err error
		if where, err = h.Journal(ctx, w.snap, w.facts.Catalog, p); err != nil {
			rep.warn(fmt.Errorf("keep the snapshot of plan %s: %w", p.ID, err))
		}
	}
	if len(p.Placements) > 0 {
		rep.Outcome = "Placed"
		rep.warn(h.Executor.Nominate(ctx, p, w.snap, w.known.Records))
	}
	if len(p.Launches) == 0 {
		return nil, nil
	}
	order := &execute.Order{
		Plan: p, Snapshot: w.snap, Types: scheduling.PoolTypes(w.snap, w.facts.Catalog), Classes: w.classes, Lease: *lease,
		Avoid: w.avoid, Taken: taken(w.known), Reservations: w.snap.Settings.ReservedCapacity,
	}
	got, err := h.Executor.Launch(ctx, order)
	*lease = order.Lease
	rep.shortages += len(got.Shortages)
	rep.Launched += got.Launched
	if rep.Outcome = "Launched"; rep.Launched == 0 {
		rep.Outcome = "NotLaunched"
	}
	rep.Calls += got.Calls
	rep.Failed = got.Failed
	rep.Left = got.Left
	for _, r := range got.Records {
		rep.LaunchPrice += r.Instance.Price
	}
	for _, e := range got.Errors {
		rep.warn(e)
	}
	for _, name := range got.Lost {
		rep.Warnings = append(rep.Warnings, "launch "+name+": its NodePool or EC2NodeClass is not resolved any more")
	}
	rep.warn(h.writeAvoid(ctx, w.avoid, got.Shortages))
	rep.warn(h.decide(ctx, p, got, where))
	return got.Claims, err
}

// decide appends to the decision log.
func (h *Sweep) decide(ctx context.Context, p *plan.Plan, got *execute.Report, where string) error {
	d := lifecycle.Decision{
		At: h.Now(), ID: p.ID, Kind: "Launch", Before: p.Summary.PriceBefore, After: p.Summary.PriceAfter, Snapshot: where,
		Why: fmt.Sprintf("%s pending, %s wanted, %d launched, %d failed", plan.Count(p.Summary.PendingPods, "pod"), plan.Count(len(p.Launches), "node"), got.Launched, len(got.Failed)),
	}
	for _, r := range got.Records {
		d.Objects = append(d.Objects, "nodeclaim/"+r.Claim+" "+r.Instance.ID+" "+r.Instance.Type+" "+r.Instance.Zone)
	}
	return h.Memory.Decide(ctx, d)
}

// taken are the addresses of subnets that launches under way will need and EC2 does not
// count yet.
func taken(known lifecycle.Remembered) map[string]int64 {
	out := map[string]int64{}
	for _, a := range known.Attempts {
		if a.State == lifecycle.Settled {
			continue
		}
		r, err := launch.Decode(a.Request)
		if err != nil {
			continue
		}
		for id, n := range r.Addresses() {
			out[id] += n
		}
	}
	return out
}

// avoidNote remembers shortages that are not of single offers: of subnets, reservations,
// placement groups and whole capacity types.
const avoidNote = "avoid"

type avoided struct {
	launch.Shortage
	Until time.Time `json:"until"`
}

func (h *Sweep) readAvoid(ctx context.Context, now time.Time) ([]launch.Shortage, error) {
	list, _, err := readNote[[]avoided](ctx, h.Memory, avoidNote)
	if err != nil {
		return nil, err
	}
	var out []launch.Shortage
	for _, a := range list {
		if now.Before(a.Until) {
			out = append(out, a.Shortage)
		}
	}
	return out, nil
}

func (h *Sweep) writeAvoid(ctx context.Context, was, met []launch.Shortage) error {
	met = slices.DeleteFunc(slices.Clone(met), func(s launch.Shortage) bool { return s.Scope == launch.ScopeOffer })
	if len(met) == 0 {
		return nil
	}
	list, note, err := readNote[[]avoided](ctx, h.Memory, avoidNote)
	if err != nil {
		return err
	}
	now := h.Now()
	list = slices.DeleteFunc(list, func(a avoided) bool { return !now.Before(a.Until) })
	until := now.Add(launch.ShortageTTLSeconds * time.Second)
	for _, s := range met {
		i := slices.IndexFunc(list, func(a avoided) bool { return a.Key() == s.Key() })
		if i < 0 {
			list = append(list, avoided{s, until})
			continue
		}
		list[i].Until = until
	}
	note.Until = until
	err = saveNote(ctx, h.Memory, note, list)
	if errors.Is(err, lifecycle.ErrChanged) {
		return nil // somebody else met one too; this one is met again
	}
	return err
}
