package provision

import (
	"fmt"
	"slices"
	"strings"

	"kerf.sh/kerf/internal/catalog"
	"kerf.sh/kerf/internal/plan"
	"kerf.sh/kerf/internal/scheduling"
	"kerf.sh/kerf/internal/snapshot"
)

// nodes reports on every node that exists or is in flight, before and after.
func (pl *planner) nodes() {
	type added struct {
		pods int
		use  snapshot.Resources
	}
	plus := map[string]*added{}
	for _, p := range pl.r.Placed {
		name := pl.p.Nodes[p.Node].Name
		a := plus[name]
		if a == nil {
			a = &added{}
			plus[name] = a
		}
		a.pods += p.Count * pl.w.Classes[p.Class].PodsPerUnit()
		a.use = a.use.Add(times(pl.w.Classes[p.Class].Requests, int64(p.Count)))
	}
	unknown := 0
	example := ""
	pl.out.Nodes = make([]plan.NodeUse, 0, len(pl.w.Nodes))
	for i := range pl.w.Nodes {
		n := &pl.w.Nodes[i]
		if n.Launch != nil {
			continue // it is a launch
		}
		u := plan.NodeUse{
			Name: n.Name, NodePool: n.Pool, InFlight: n.InFlight(), Pods: n.Pods, Used: n.Used, Allocatable: n.Allocatable,
			InstanceType: label(n, catalog.LabelInstanceType, "beta.kubernetes.io/instance-type"),
			Zone:         label(n, catalog.LabelZone, "failure-domain.beta.kubernetes.io/zone"),
			CapacityType: capacityType(n),
		}
		var overlay string
		u.Price, overlay, u.PriceKnown = pl.w.Price(n.Pool, u.InstanceType, u.Zone, u.CapacityType)
		pl.overlaid(overlay, "node/"+n.Name, u.Price, -1)
		if !u.PriceKnown {
			unknown++
			if example == "" || n.Name < example {
				example = n.Name
			}
		}
		if a := plus[n.Name]; a != nil {
			u.Placed, u.Added = a.pods, a.use
		}
		if len(n.Nominated) > 0 { // they do not run yet
			u.Used = u.Used.Sub(n.Promised)
			u.Placed, u.Added = u.Placed+len(n.Nominated), u.Added.Add(n.Promised)
		}
		pl.out.Nodes = append(pl.out.Nodes, u)
	}
	slices.SortFunc(pl.out.Nodes, func(a, b plan.NodeUse) int { return strings.Compare(a.Name, b.Name) })
	if unknown > 0 {
		n := pl.out.Nodes[slices.IndexFunc(pl.out.Nodes, func(u plan.NodeUse) bool { return u.Name == example })]
		pl.warn("node/"+example, plan.PriceUnknown, fmt.Sprintf("%s of unknown price, counted as $0 (this one: type %q, zone %q, capacity type %q)",
			plan.Count(unknown, "node"), n.InstanceType, n.Zone, n.CapacityType))
	}
}

// label reads a label of a node, or its old alias.
func label(n *scheduling.Node, key, alias string) string {
	if v := n.Labels[key]; v != "" {
		return v
	}
	return n.Labels[alias]
}

// capacityType also understands what managed node groups write.
func capacityType(n *scheduling.Node) string {
	if v := n.Labels[catalog.LabelCapacityType]; v != "" {
		return v
	}
	switch n.Labels["eks.amazonaws.com/capacityType"] {
	case "SPOT":
		return catalog.Spot
	case "ON_DEMAND":
		return catalog.OnDemand
	}
	if n.Claim == nil && n.Node != nil {
		return catalog.OnDemand
	}
	return ""
}
