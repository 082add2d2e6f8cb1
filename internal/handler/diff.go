package handler

import (
	"fmt"
	"slices"

	"kerf.sh/kerf/internal/catalog"
	"kerf.sh/kerf/internal/plan"
	"kerf.sh/kerf/internal/plan/page"
	"kerf.sh/kerf/internal/snapshot"
)

// Refs reads the names of objects to remove; flag says where they were given.
func Refs(flag string, names []string) ([]snapshot.Ref, error) {
	var out []snapshot.Ref
	for _, n := range names {
		r, err := snapshot.ParseRef(n)
		if err != nil {
			return nil, refuse(plan.InvalidRequest, "%s %q: %s", flag, n, err)
		}
		out = append(out, r)
	}
	return out, nil
}

// Unknown refuses the removal of an object that is not there, with near misses.
func Unknown(flag string, ref snapshot.Ref, known []snapshot.Ref) *Refusal {
	names := make([]string, len(known))
	for i, k := range known {
		names[i] = k.String()
	}
	return unknownObject(flag, ref.String(), names)
}

// compared plans on a reading as it is and as it would be. The plan is that of the
// latter, with what differs.
func compared(r *Reading, table *catalog.Catalog, explain string, solve func(*snapshot.Snapshot, *catalog.Catalog, string) *plan.Plan) (*plan.Plan, error) {
	before, after := planOn(r.Before, table, explain, solve), planOn(r, table, explain, solve)
	plan.DescribeWith(before, r.Before.Snapshot, after, r.Snapshot)
	after.Diff = plan.Compare(before, after)
	after.Diff.Changes = r.Changes
	if explain == "" {
		return after, nil
	}
	was, is := objects(r.Before.Snapshot, before), objects(r.Snapshot, after)
	if !slices.Contains(was, explain) && !slices.Contains(is, explain) {
		return nil, unknownObject("explain", explain, is)
	}
	absent := &plan.Explanation{Object: explain, Lines: []plan.Line{{Text: "It is not there."}}}
	one := func(p *plan.Plan, known []string) *plan.Plan {
		switch {
		case !slices.Contains(known, explain):
			p.Explained = absent
		case isLaunch(p, explain):
			p.Explained = nil
		}
		return p.Only(explain)
	}
	out := one(after, is)
	out.Diff.Explained = one(before, was).Explained
	return out, nil
}

// Rendering is how a plan is written.
type Rendering struct {
	Format string // json (default), text, html
	// Diff writes what differs from the plan on what is (Plan.Diff) and not the plan.
	Diff   bool
	Indent bool // of JSON
	Text   plan.TextOptions
}

// Write writes a plan.
func (r *Rendering) Write(p *plan.Plan) (out []byte, err error) {
	switch {
	case r.Format == "text" && r.Diff:
		return []byte(plan.DiffText(p, r.Text)), nil
	case r.Format == "text":
		return []byte(plan.Text(p, r.Text)), nil
	case r.Format == "html":
		write := page.HTML
		if r.Diff {
			write = page.DiffHTML
		}
		if out, err = write(p); err != nil {
			return nil, fmt.Errorf("write the page: %w", err)
		}
		return out, nil
	case r.Diff:
		out, err = p.Diff.JSON(r.Indent)
	default:
		out, err = plan.JSON(p, r.Indent)
	}
	if err != nil {
		return nil, fmt.Errorf("write the plan: %w", err)
	}
	return out, nil
}
