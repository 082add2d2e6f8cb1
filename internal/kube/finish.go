package kube

import (
	"cmp"
	"maps"
	"slices"
	"strings"

	"kerf.sh/kerf/internal/plan"
	"kerf.sh/kerf/internal/snapshot"
)

// finish turns what was gathered into the snapshot, once everything is known.
func (r *reader) finish() error {
	s := r.snap
	r.surroundings()
	claims := len(s.NodeClaims)
	if r.opts.Remember != nil {
		r.opts.Remember(s, r.head != nil)
	}
	r.take()
	r.readmit()
	r.outdated()
	r.admit()
	r.planWorkloads()
	r.take()                                                                                 // pods of workloads that were planned just now
	if claims > 0 && len(s.NodeClaims) > 0 && len(s.Nodes) == 0 && !r.fed && r.head == nil { // what was saved says itself what it lacks
		s.Incomplete = append(s.Incomplete, "NodeClaims were read but not a single Node: save the nodes too")
	}
	if !r.fed && r.head == nil {
		r.homeless()
	}
	s.Normalize()
	if err := r.changes(); err != nil {
		return err
	}
	slices.SortStableFunc(r.report.Left, func(a, b LeftOut) int {
		return cmp.Or(cmp.Compare(a.File, b.File), cmp.Compare(a.Document, b.Document), cmp.Compare(a.Item, b.Item))
	})
	slices.SortStableFunc(r.report.Warnings, func(a, b plan.Warning) int {
		return cmp.Or(cmp.Compare(a.Object, b.Object), cmp.Compare(a.Code, b.Code), cmp.Compare(a.Detail, b.Detail))
	})
	return nil
}

// homeless says that pods run on nodes of which not one was read: their room is not counted,
// and pods that would fit there get new nodes. No reading of a cluster is like that, but files
// of pods alone are.
func (r *reader) homeless() {
	if len(r.snap.Nodes) > 0 {
		return
	}
	on := map[string]bool{}
	for i := range r.snap.Pods {
		if p := &r.snap.Pods[i]; p.NodeName != "" && !p.Terminal() {
			on[p.NodeName] = true
		}
	}
	if len(on) == 0 {
		return
	}
	names := slices.Sorted(maps.Keys(on))
	r.warn("node/"+names[0], plan.IncompleteReading, "pods run on %s (%s), and not a single Node was read, so room that is there is not planned with: save the nodes too (kubectl get nodes -o yaml)",
		plan.Count(len(names), "node"), strings.Join(names[:min(3, len(names))], ", "))
}

// surroundings fills in what objects do not say: the options, and what a saved
// snapshot says where they are silent.
func (r *reader) surroundings() {
	s, o := r.snap, r.opts
	s.Settings = snapshot.DefaultSettings()
	if h := r.head; h != nil {
		s.Cluster, s.Region, s.Now, s.Seed, s.Settings = h.Cluster, h.Region, h.Now.UTC(), h.Seed, h.Settings
		s.Incomplete = append(s.Incomplete, h.Incomplete...)
		s.Remarks = h.Remarks
	}
	s.Cluster, s.Region = orElse(o.Cluster, s.Cluster), orElse(o.Region, s.Region)
	if !o.Now.IsZero() {
		s.Now = o.Now.UTC()
	}
	if s.Now.IsZero() {
		s.Now = o.Clock.UTC()
	}
	if o.Seed != 0 {
		s.Seed = o.Seed
	}
	if o.Settings != (snapshot.Settings{}) && o.Settings != snapshot.DefaultSettings() {
		s.Settings = o.Settings
	}
	if o.Workloads {
		s.Settings.PlanWorkloads = true
	}
}
