package sim

import (
	"bytes"
	"fmt"
	"io"

	"kerf.sh/kerf/internal/catalog"
	"kerf.sh/kerf/internal/kube"
	"kerf.sh/kerf/internal/plan"
	"kerf.sh/kerf/internal/provision"
	"kerf.sh/kerf/internal/snapshot"
)

// planned: the plan program, given the snapshot as it is stored and the same catalogue,
// makes the same plan of it, byte for byte.
func (c *checks) planned(s *snapshot.Snapshot, table *catalog.Catalog, made *plan.Plan) {
	c.w.stats.Plans++
	c.w.stats.Launches += len(made.Launches)
	for i := range made.Launches {
		l := &made.Launches[i]
		c.w.tracef("    plan %s launches %s as %s for %v, %d options", made.ID[:8], l.Name, l.Chosen.InstanceType, l.Pods, len(l.Options))
	}
	for _, p := range made.Placements {
		c.w.tracef("    plan %s places %s on %s (nominated %v)", made.ID[:8], p.Pod, p.Node, p.Nominated)
	}
	for _, d := range made.Displaced {
		c.w.tracef("    plan %s moves %s from %s to %s", made.ID[:8], d.Pod, d.From, d.To)
	}
	if c.sparing > 0 && c.w.stats.Plans%c.sparing != 0 {
		return
	}
	var stored bytes.Buffer
	if err := kube.Save(&stored, s); err != nil {
		c.w.broken("SamePlan", "the snapshot of plan %s cannot be saved: %v", made.ID, err)
		return
	}
	again, _, err := kube.Read([]kube.Source{{Name: "stored", Open: func() (io.ReadCloser, error) { return io.NopCloser(&stored), nil }}}, kube.Options{})
	if err != nil {
		c.w.broken("SamePlan", "the stored snapshot of plan %s cannot be read: %v", made.ID, err)
		return
	}
	p := provision.Plan(again, table, provision.Options{})
	if p.ID != made.ID {
		c.w.broken("SamePlan", "the plan is %s, the plan program makes %s of its snapshot", made.ID, p.ID)
		return
	}
	if a, b := actions(made), actions(p); a != b {
		c.w.broken("SamePlan", "plan %s: the plan program makes other actions: %s", made.ID, difference(a, b))
	}
}

// actions are what a plan does, as text.
func actions(p *plan.Plan) string {
	var b bytes.Buffer
	for i := range p.Launches {
		fmt.Fprintf(&b, "%+v\n", p.Launches[i])
	}
	for i := range p.Placements {
		fmt.Fprintf(&b, "%+v\n", p.Placements[i])
	}
	for i := range p.Verdicts {
		fmt.Fprintf(&b, "%+v\n", p.Verdicts[i])
	}
	return b.String()
}

func difference(a, b string) string {
	for i := range min(len(a), len(b)) {
		if a[i] != b[i] {
			from := max(0, i-80)
			return fmt.Sprintf("%q and %q", a[from:min(len(a), i+80)], b[from:min(len(b), i+80)])
		}
	}
	return fmt.Sprintf("%d and %d bytes", len(a), len(b))
}
