package plan

import (
	"bytes"
	"encoding/json"
)

// JSON renders a comparison as the public contract names it. Prices are dollars per
// hour, lists are sorted and never null. Equal comparisons give equal bytes.
func (d *Diff) JSON(indent bool) ([]byte, error) {
	var buf bytes.Buffer
	enc := json.NewEncoder(&buf)
	enc.SetEscapeHTML(false)
	if indent {
		enc.SetIndent("", "  ")
	}
	if err := enc.Encode(diffToJSON(d)); err != nil {
		return nil, err
	}
	return buf.Bytes(), nil
}

type diffJSON struct {
	Changes           []changeJSON      `json:"changes"`
	Before            sideJSON          `json:"before"`
	After             sideJSON          `json:"after"`
	Delta             json.Number       `json:"pricePerHourDelta"`
	LaunchDelta       json.Number       `json:"launchPricePerHourDelta"`
	Counts            map[PodChange]int `json:"podCounts"`
	Launches          []launchDiffJSON  `json:"launches"`
	Nodes             []nodeDiffJSON    `json:"nodes"`
	Pods              []podDiffJSON     `json:"pods"`
	Warnings          []warningJSON     `json:"warnings"` // that the first plan does not have
	ExplanationBefore *ExplanationValue `json:"explanationBefore,omitempty"`
}

type changeJSON struct {
	Object string     `json:"object"`
	Kind   ChangeKind `json:"change"`
	With   []string   `json:"with"`
	Note   string     `json:"note,omitempty"`
}

// sideJSON is the summary of a plan with what nodes that are going change.
type sideJSON struct {
	PlanID           string      `json:"planId"`
	Complete         bool        `json:"complete"`
	PendingPods      int         `json:"pendingPods"`
	Placed           int         `json:"placed"`
	Launches         int         `json:"launches"`
	Unschedulable    int         `json:"unschedulable"`
	BufferUnits      int         `json:"bufferUnits"`
	BufferMissing    int         `json:"bufferUnitsMissing"`
	PriceBefore      json.Number `json:"pricePerHourBefore"`
	PriceAfter       json.Number `json:"pricePerHourAfter"`
	GoingNodes       int         `json:"goingNodes"`
	HeldNodes        int         `json:"heldNodes"`
	GoingPrice       json.Number `json:"goingPricePerHour"`
	Settled          json.Number `json:"pricePerHourSettled"`
	LaunchPrice      json.Number `json:"launchPricePerHour"`
	LaunchPriceWorst json.Number `json:"launchPriceWorstPerHour"`
	LowerBound       json.Number `json:"launchLowerBoundPerHour"`
}

type launchDiffJSON struct {
	NodePool     string      `json:"nodePool"`
	InstanceType string      `json:"instanceType"`
	Zone         string      `json:"zone"`
	CapacityType string      `json:"capacityType"`
	Reservation  string      `json:"reservationId,omitempty"`
	Price        json.Number `json:"pricePerHour"`
	Before       int         `json:"before"`
	After        int         `json:"after"`
	Delta        json.Number `json:"pricePerHourDelta"`
}

type nodeDiffJSON struct {
	Name         string       `json:"name"`
	Kind         ChangeKind   `json:"change"`
	NodePool     string       `json:"nodePool"`
	InstanceType string       `json:"instanceType"`
	Zone         string       `json:"zone"`
	CapacityType string       `json:"capacityType"`
	Price        *json.Number `json:"pricePerHour"` // null: unknown
	Blockers     []string     `json:"blockers"`
}

type podDiffJSON struct {
	Pod      string    `json:"pod"`
	Workload string    `json:"workload"`
	Change   PodChange `json:"change"`
	Before   fateJSON  `json:"before"`
	After    fateJSON  `json:"after"`
}

type fateJSON struct {
	State        FateState `json:"state"`
	Node         string    `json:"node,omitempty"`
	NodePool     string    `json:"nodePool,omitempty"`
	InstanceType string    `json:"instanceType,omitempty"`
	Zone         string    `json:"zone,omitempty"`
	CapacityType string    `json:"capacityType,omitempty"`
	Code         Code      `json:"code,omitempty"`
	Nearest      Code      `json:"nearestCode,omitempty"` // of the nearest pool, where code only sums up
	Detail       string    `json:"detail,omitempty"`
	From         string    `json:"from,omitempty"` // the node that it has to leave
}

func diffToJSON(d *Diff) *diffJSON {
	if d == nil {
		return nil
	}
	out := &diffJSON{
		Changes: each(d.Changes, func(c *Change) changeJSON { return changeJSON{c.Object, c.Kind, orEmpty(c.With), c.Note} }),
		Before:  sideToJSON(&d.Before), After: sideToJSON(&d.After),
		Delta:       dollars(d.PriceDelta()),
		LaunchDelta: dollars(d.After.Summary.LaunchPrice - d.Before.Summary.LaunchPrice),
		Counts:      map[PodChange]int{},
		Launches: each(d.Launches, func(l *LaunchDiff) launchDiffJSON {
			return launchDiffJSON{l.NodePool, l.Offer.InstanceType, l.Offer.Zone, l.Offer.CapacityType, l.Offer.ReservationID,
				dollars(l.Offer.Price), l.Before, l.After, dollars(l.Delta())}
		}),
		Nodes: each(d.Nodes, func(n *NodeDiff) nodeDiffJSON {
			use := nodeToJSON(&n.Node)
			return nodeDiffJSON{use.Name, n.Kind, use.NodePool, use.InstanceType, use.Zone, use.CapacityType, use.Price, orEmpty(n.Blockers)}
		}),
		Pods: each(d.Pods, func(p *PodDiff) podDiffJSON {
			return podDiffJSON{p.Pod, p.Workload, p.Change, fateToJSON(&p.Before), fateToJSON(&p.After)}
		}),
		Warnings:          each(d.Warnings, func(w *Warning) warningJSON { return warningJSON(*w) }),
		ExplanationBefore: explanationValue(d.Explained),
	}
	for _, c := range podChanges {
		out.Counts[c.change] = d.Count(c.change)
	}
	return out
}

func sideToJSON(s *Side) sideJSON {
	m := &s.Summary
	return sideJSON{
		PlanID: s.ID, Complete: s.Complete,
		PendingPods: m.PendingPods, Placed: m.Placed, Launches: m.Launches, Unschedulable: m.Unschedulable,
		BufferUnits: m.BufferUnits, BufferMissing: m.BufferMissing,
		PriceBefore: dollars(m.PriceBefore), PriceAfter: dollars(m.PriceAfter), GoingNodes: s.Going, HeldNodes: s.Held, GoingPrice: dollars(s.GoingPrice),
		Settled: dollars(s.Settled()), LaunchPrice: dollars(m.LaunchPrice), LaunchPriceWorst: dollars(m.LaunchPriceWorst),
		LowerBound: dollars(m.LaunchLowerBound),
	}
}

func fateToJSON(f *Fate) fateJSON {
	out := fateJSON{State: f.State, Node: f.Node, NodePool: f.NodePool, InstanceType: f.Offer.InstanceType, Zone: f.Offer.Zone,
		CapacityType: f.Offer.CapacityType, Code: f.Code, Detail: f.Detail, From: f.From}
	if f.Telling != f.Code {
		out.Nearest = f.Telling
	}
	return out
}
