package handler

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"kerf.sh/kerf/internal/catalog"
	"kerf.sh/kerf/internal/plan"
	"kerf.sh/kerf/internal/snapshot"
)

// Make plans on a reading. table is nil for the embedded table of the snapshot's
// region, or, when there is none, the default one with a warning that says so.
// explain names one object or is empty; an object that is not there is a *Refusal
// with near misses. The plan carries the warnings of the reading, and one for
// every object that was left out. Of a reading with something laid over it the plan
// is that of what would be, with what differs from the one on what is.
func Make(r *Reading, table *catalog.Catalog, explain string,
	solve func(*snapshot.Snapshot, *catalog.Catalog, string) *plan.Plan) (*plan.Plan, error) {
	if r.Before != nil {
		return compared(r, table, explain, solve)
	}
	s := r.Snapshot
	p := planOn(r, table, explain, solve)
	plan.Describe(p, s)
	if explain == "" {
		return p, nil
	}
	known := objects(s, p)
	if !slices.Contains(known, explain) {
		return nil, unknownObject("explain", explain, known)
	}
	if isLaunch(p, explain) {
		p.Explained = nil // the planner explains what is there; of its launches the plan says all
	}
	return p.Only(explain), nil
}

// Solver makes a plan; explain names one object or is empty.
type Solver = func(s *snapshot.Snapshot, c *catalog.Catalog, explain string) *plan.Plan

// WithMoves is a solver that also says which nodes could go. On an incomplete reading none
// can: what was not read may be what runs there.
func WithMoves(solve Solver, moves func(*snapshot.Snapshot, *catalog.Catalog, *plan.Plan)) Solver {
	return func(s *snapshot.Snapshot, c *catalog.Catalog, explain string) *plan.Plan {
		p := solve(s, c, explain)
		if p.Complete {
			moves(s, c, p)
		}
		return p
	}
}

// planOn plans on a reading, and adds what the reading had to say.
func planOn(r *Reading, table *catalog.Catalog, explain string, solve func(*snapshot.Snapshot, *catalog.Catalog, string) *plan.Plan) *plan.Plan {
	s := r.Snapshot
	var extra []plan.Warning
	if table == nil {
		var ok bool
		if table, ok = catalog.Embedded(s.Region); !ok {
			table = catalog.Default()
			extra = append(extra, plan.Warning{Code: plan.CatalogueOfOther, Detail: fmt.Sprintf(
				"no table of region %q: types, zones and prices of %s (%s) are used instead; --catalog gives another table", s.Region, table.Region, table.Date)})
		}
	}
	p := solve(s, table, explain)
	if extra != nil { // the core says the same, without the way out
		p.Warnings = slices.DeleteFunc(p.Warnings, func(w plan.Warning) bool { return w.Code == plan.CatalogueOfOther })
	}
	for _, w := range slices.Concat(extra, r.Warnings, r.Left) {
		if !slices.Contains(p.Warnings, w) {
			p.Warnings = append(p.Warnings, w)
		}
	}
	slices.SortStableFunc(p.Warnings, plan.CompareWarnings)
	if len(r.Left) > 0 {
		p.Complete = false
		p.Incomplete = append(p.Incomplete, plan.Count(len(r.Left), "object")+" left out")
	}
	return p
}

func isLaunch(p *plan.Plan, object string) bool {
	return slices.ContainsFunc(p.Launches, func(l plan.Launch) bool { return object == "node/"+l.Name })
}

// CheckObject reports whether a name has the form pod/NS/NAME, node/NAME or
// nodepool/NAME.
func CheckObject(name string) error {
	parts := strings.Split(name, "/")
	ok := !slices.Contains(parts, "")
	switch parts[0] {
	case "pod":
		ok = ok && len(parts) == 3
	case "node", "nodepool":
		ok = ok && len(parts) == 2
	default:
		ok = false
	}
	if !ok {
		return errors.New("want pod/NAMESPACE/NAME, node/NAME or nodepool/NAME")
	}
	return nil
}

// objects lists everything that can be explained, sorted.
func objects(s *snapshot.Snapshot, p *plan.Plan) []string {
	set := map[string]bool{}
	for i := range s.Pods {
		set["pod/"+s.Pods[i].Ref()] = true
	}
	for i := range s.Nodes {
		set["node/"+s.Nodes[i].Name] = true
	}
	for i := range s.NodeClaims {
		set["node/"+s.NodeClaims[i].Name] = true
	}
	for i := range s.NodePools {
		set["nodepool/"+s.NodePools[i].Name] = true
	}
	for i := range p.Launches {
		set["node/"+p.Launches[i].Name] = true
		for _, pod := range p.Launches[i].Pods {
			set["pod/"+pod] = true
		}
	}
	for i := range p.Verdicts {
		set[p.Verdicts[i].Object] = true
	}
	return slices.Sorted(maps.Keys(set))
}

func unknownObject(flag, name string, known []string) *Refusal {
	kind, bare, _ := strings.Cut(name, "/")
	var same []string
	for _, k := range known {
		if strings.HasPrefix(k, kind+"/") {
			same = append(same, k)
		}
	}
	msg := fmt.Sprintf("%s: there is no %s %s in the input", flag, kind, bare)
	near := plan.Nearest(name, same, 3)
	if len(near) == 0 {
		// A right name in another namespace is the commonest slip.
		base := name[strings.LastIndex(name, "/")+1:]
		for _, k := range same {
			if strings.HasSuffix(k, "/"+base) && len(near) < 3 {
				near = append(near, k)
			}
		}
	}
	switch {
	case len(near) > 0:
		msg += "; did you mean " + strings.Join(near, " or ") + "?"
	case len(same) == 0:
		msg += ", nor any other " + kind
	case len(same) == 1:
		msg += "; there is only " + same[0]
	case len(same) <= 8:
		msg += "; there are " + strings.Join(same, ", ")
	default:
		msg += fmt.Sprintf("; there are %d others, %s the first", len(same), same[0])
	}
	return refuse(plan.InvalidRequest, "%s", msg)
}

func joinGates(gates map[string]bool) string {
	var parts []string
	for _, k := range slices.Sorted(maps.Keys(gates)) {
		parts = append(parts, fmt.Sprintf("%s=%t", k, gates[k]))
	}
	return strings.Join(parts, ",")
}
