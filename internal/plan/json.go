package plan

import (
	"bytes"
	"encoding/json"
	"math"
	"strconv"
	"time"

	"kerf.sh/kerf/internal/snapshot"
)

// JSON renders a plan as the public contract names it. Prices are dollars per
// hour, exact to the micro-dollar; quantities are Kubernetes strings; lists are
// never null. Equal plans give equal bytes. With indent, one field is on one line.
func JSON(p *Plan, indent bool) ([]byte, error) {
	var buf bytes.Buffer
	enc := json.NewEncoder(&buf)
	enc.SetEscapeHTML(false)
	if indent {
		enc.SetIndent("", "  ")
	}
	if err := enc.Encode(toJSON(p)); err != nil {
		return nil, err
	}
	return buf.Bytes(), nil
}

// dollars writes a price as an exact decimal. A json.Number is written as it is,
// without a call to a method for each of some hundred thousand prices.
func dollars(p snapshot.Price) json.Number { return json.Number(number(p)) }

// rate writes a real number without an exponent, with 12 decimals at most: enough
// to check a bound to the micro-dollar. What is no number is 0.
func rate(f float64) json.Number {
	if math.IsNaN(f) || math.IsInf(f, 0) {
		return "0"
	}
	f = math.Round(f*1e12) / 1e12
	if f == 0 {
		return "0"
	}
	return json.Number(strconv.FormatFloat(f, 'f', -1, 64))
}

type planJSON struct {
	PlanID      string            `json:"planId"`
	Now         time.Time         `json:"now"`
	Cluster     string            `json:"cluster"`
	Region      string            `json:"region"`
	Complete    bool              `json:"complete"`
	Incomplete  []string          `json:"incomplete"`
	Catalogue   catalogueJSON     `json:"catalogue"`
	Summary     summaryJSON       `json:"summary"`
	Bounds      []boundJSON       `json:"bounds"`
	Launches    []launchJSON      `json:"launches"`
	Placements  []placementJSON   `json:"placements"`
	Displaced   []displacedJSON   `json:"displaced"`
	Moves       []moveJSON        `json:"moves"` // none without --consolidate
	Savings     *savingsJSON      `json:"savings,omitempty"`
	Verdicts    []verdictJSON     `json:"verdicts"`
	Warnings    []warningJSON     `json:"warnings"`
	Nodes       []nodeJSON        `json:"nodes"`
	Memory      *memoryJSON       `json:"remembered,omitempty"` // what the ledger has, and the plan has heeded
	Explanation *ExplanationValue `json:"explanation,omitempty"`
	Diff        *diffJSON         `json:"diff,omitempty"` // with whatIf or remove
}

type catalogueJSON struct {
	Region string `json:"region"`
	Date   string `json:"date"`
	Source string `json:"source"`
	Types  int    `json:"types"`
}

type summaryJSON struct {
	PendingPods      int                    `json:"pendingPods"`
	Placed           int                    `json:"placed"`
	Launches         int                    `json:"launches"`
	Unschedulable    int                    `json:"unschedulable"`
	BufferUnits      int                    `json:"bufferUnits,omitempty"`
	BufferMissing    int                    `json:"bufferUnitsMissing,omitempty"`
	PriceBefore      json.Number            `json:"pricePerHourBefore"`
	PriceAfter       json.Number            `json:"pricePerHourAfter"`
	LaunchPrice      json.Number            `json:"launchPricePerHour"`
	LaunchPriceWorst json.Number            `json:"launchPriceWorstPerHour"`
	Committed        json.Number            `json:"launchCommittedPricePerHour,omitempty"`
	LowerBound       json.Number            `json:"launchLowerBoundPerHour"`
	BoundDuals       map[string]json.Number `json:"boundDuals"`
}

type boundJSON struct {
	Pools  []string               `json:"pools"`
	Pods   int                    `json:"pods"`
	Total  json.Number            `json:"pricePerHour"`
	Kind   string                 `json:"kind"`
	Linear json.Number            `json:"linearPricePerHour"`
	Credit *json.Number           `json:"reservedCreditPerHour,omitempty"`
	Demand map[string]json.Number `json:"demand"`
	Duals  map[string]json.Number `json:"duals"`
	Steps  map[string]json.Number `json:"steps"`
	Parts  []boundPartJSON        `json:"parts,omitempty"`
	Prices []podPriceJSON         `json:"podPrices,omitempty"`
}

type boundPartJSON struct {
	Pod    string                 `json:"pod"`
	Pods   int                    `json:"pods"`
	Demand map[string]json.Number `json:"demand"`
	Duals  map[string]json.Number `json:"duals"`
}

type podPriceJSON struct {
	Pod   string      `json:"pod"`
	Price json.Number `json:"pricePerHour"`
}

// boundToJSON gives prices in dollars per hour.
func boundToJSON(b *Bound) boundJSON {
	out := boundJSON{
		Pools: orEmpty(b.Pools), Pods: b.Pods, Total: dollars(b.Total), Kind: b.Kind, Linear: dollars(b.Linear),
		Demand: rates(b.Demand, 1), Duals: rates(b.Duals, 1e-6), Steps: rates(b.Steps, 1),
	}
	if b.Credit > 0 {
		d := dollars(b.Credit)
		out.Credit = &d
	}
	for _, p := range b.Parts {
		out.Parts = append(out.Parts, boundPartJSON{p.Pod, p.Pods, rates(p.Demand, 1), rates(p.Duals, 1e-6)})
	}
	for _, p := range b.Prices {
		out.Prices = append(out.Prices, podPriceJSON{p.Pod, rate(p.Price * 1e-6)})
	}
	return out
}

type offerJSON struct {
	InstanceType string      `json:"instanceType"`
	Zone         string      `json:"zone"`
	CapacityType string      `json:"capacityType"`
	Price        json.Number `json:"pricePerHour"`
	Reservation  string      `json:"reservationId,omitempty"`
	Overlay      string      `json:"priceOverlay,omitempty"`
	ListPrice    json.Number `json:"listPricePerHour,omitempty"`
	Commitment   string      `json:"commitment,omitempty"`
}

type launchJSON struct {
	Name        string            `json:"name"`
	NodePool    string            `json:"nodePool"`
	NodeClass   string            `json:"nodeClass"`
	Pods        []string          `json:"pods"`
	Requests    map[string]string `json:"requests"`
	Daemons     map[string]string `json:"daemonRequests"`
	Allocatable map[string]string `json:"allocatable"`
	Labels      map[string]string `json:"labels"`
	Chosen      offerJSON         `json:"chosen"`
	Worst       json.Number       `json:"worstPricePerHour"`
	Options     []offerJSON       `json:"options"`
	Static      bool              `json:"static,omitempty"`
	Relaxed     []string          `json:"relaxed"`
	Limited     string            `json:"limited,omitempty"`
}

type placementJSON struct {
	Pod       string `json:"pod"`
	Node      string `json:"node"`
	Nominated bool   `json:"nominated,omitempty"`
}

type displacedJSON struct {
	Pod  string `json:"pod"`
	From string `json:"from"`
	To   string `json:"to"`
}

type verdictJSON struct {
	Object string            `json:"object"`
	Code   Code              `json:"code"`
	Detail string            `json:"detail"`
	Pools  []poolVerdictJSON `json:"pools"`
}

type poolVerdictJSON struct {
	NodePool string `json:"nodePool"`
	Code     Code   `json:"code"`
	Detail   string `json:"detail"`
}

type warningJSON struct {
	Object string `json:"object"`
	Code   Code   `json:"code"`
	Detail string `json:"detail"`
}

type nodeJSON struct {
	Name         string            `json:"name"`
	NodePool     string            `json:"nodePool"`
	InstanceType string            `json:"instanceType"`
	Zone         string            `json:"zone"`
	CapacityType string            `json:"capacityType"`
	Price        *json.Number      `json:"pricePerHour"` // null: unknown
	InFlight     bool              `json:"inFlight"`
	Going        bool              `json:"going,omitempty"`
	Pods         int               `json:"pods"`
	Placed       int               `json:"placed"`
	Used         map[string]string `json:"used"`
	Added        map[string]string `json:"added"`
	Allocatable  map[string]string `json:"allocatable"`
}

// ExplanationValue is an Explanation as JSON has it.
type ExplanationValue struct {
	Object string      `json:"object"`
	Lines  []LineValue `json:"lines"`
}

// LineValue is a Line as JSON has it.
type LineValue struct {
	Text     string      `json:"text"`
	Children []LineValue `json:"children,omitempty"`
}

func quantities(r snapshot.Resources) map[string]string {
	out := map[string]string{}
	for _, n := range r.Names() {
		out[n] = Quantity(n, r.Get(n))
	}
	return out
}

func orEmpty[T any](s []T) []T {
	if s == nil {
		return []T{}
	}
	return s
}

func each[A, B any](in []A, f func(*A) B) []B {
	out := make([]B, len(in))
	for i := range in {
		out[i] = f(&in[i])
	}
	return out
}

func toJSON(p *Plan) *planJSON {
	s := &p.Summary
	committed := json.Number("")
	if s.Committed > 0 {
		committed = dollars(s.Committed)
	}
	return &planJSON{
		PlanID: p.ID, Now: p.Now.UTC(), Cluster: p.Cluster, Region: p.Region,
		Complete: p.Complete, Incomplete: orEmpty(p.Incomplete),
		Catalogue: catalogueJSON(p.Catalogue),
		Summary: summaryJSON{
			PendingPods: s.PendingPods, Placed: s.Placed, Launches: s.Launches, Unschedulable: s.Unschedulable,
			BufferUnits: s.BufferUnits, BufferMissing: s.BufferMissing,
			PriceBefore: dollars(s.PriceBefore), PriceAfter: dollars(s.PriceAfter),
			LaunchPrice: dollars(s.LaunchPrice), LaunchPriceWorst: dollars(s.LaunchPriceWorst),
			Committed: committed, LowerBound: dollars(s.LaunchLowerBound), BoundDuals: mainDuals(p.Bounds),
		},
		Bounds:     each(p.Bounds, boundToJSON),
		Launches:   launchesToJSON(p.Launches),
		Placements: each(p.Placements, func(v *Placement) placementJSON { return placementJSON(*v) }),
		Displaced:  each(p.Displaced, func(v *Displaced) displacedJSON { return displacedJSON(*v) }),
		Moves:      each(p.Moves, moveToJSON),
		Savings:    savingsToJSON(p.Savings),
		Verdicts: each(p.Verdicts, func(v *Verdict) verdictJSON {
			return verdictJSON{v.Object, v.Code, v.Detail,
				each(v.Pools, func(w *PoolVerdict) poolVerdictJSON { return poolVerdictJSON(*w) })}
		}),
		Warnings:    each(p.Warnings, func(w *Warning) warningJSON { return warningJSON(*w) }),
		Nodes:       each(p.Nodes, nodeToJSON),
		Memory:      memoryToJSON(p.Memory),
		Explanation: explanationValue(p.Explained),
		Diff:        diffToJSON(p.Diff),
	}
}

func offerToJSON(o *Offer) offerJSON {
	out := offerJSON{InstanceType: o.InstanceType, Zone: o.Zone, CapacityType: o.CapacityType, Price: dollars(o.Price), Reservation: o.ReservationID}
	if o.Overlay != "" || o.Commitment != "" {
		out.Overlay, out.ListPrice, out.Commitment = o.Overlay, dollars(o.ListPrice), o.Commitment
	}
	return out
}

// launchesToJSON converts launches; those that are alike share their lists.
func launchesToJSON(ls []Launch) []launchJSON {
	out := make([]launchJSON, len(ls))
	for i := range ls {
		l := &ls[i]
		labels := l.Labels
		if labels == nil {
			labels = map[string]string{}
		}
		out[i] = launchJSON{
			Name: l.Name, NodePool: l.NodePool, NodeClass: l.NodeClass, Pods: orEmpty(l.Pods),
			Requests: quantities(l.Requests), Daemons: quantities(l.Daemons), Allocatable: quantities(l.Allocatable),
			Labels: labels, Chosen: offerToJSON(&l.Chosen), Worst: dollars(l.Worst),
			Static: l.Static, Relaxed: orEmpty(l.Relaxed), Limited: l.Limited,
		}
		if i > 0 && sameList(ls[i-1].Options, l.Options) {
			out[i].Options = out[i-1].Options
		} else {
			out[i].Options = each(l.Options, offerToJSON)
		}
	}
	return out
}

// sameList reports whether two slices are the same memory.
func sameList(a, b []Offer) bool {
	return len(a) == len(b) && len(a) > 0 && &a[0] == &b[0]
}

func nodeToJSON(n *NodeUse) nodeJSON {
	var price *json.Number
	if n.PriceKnown {
		d := dollars(n.Price)
		price = &d
	}
	return nodeJSON{
		Name: n.Name, NodePool: n.NodePool, InstanceType: n.InstanceType, Zone: n.Zone,
		CapacityType: n.CapacityType, Price: price, InFlight: n.InFlight, Going: n.Going, Pods: n.Pods, Placed: n.Placed,
		Used: quantities(n.Used), Added: quantities(n.Added), Allocatable: quantities(n.Allocatable),
	}
}

func explanationValue(e *Explanation) *ExplanationValue {
	if e == nil {
		return nil
	}
	return &ExplanationValue{Object: e.Object, Lines: lineValues(e.Lines)}
}

func lineValues(lines []Line) []LineValue {
	return each(lines, func(l *Line) LineValue {
		v := LineValue{Text: l.Text}
		if len(l.Children) > 0 {
			v.Children = lineValues(l.Children)
		}
		return v
	})
}

func rates(m map[string]float64, scale float64) map[string]json.Number {
	out := make(map[string]json.Number, len(m))
	for k, v := range m {
		out[k] = rate(v * scale)
	}
	return out
}

// mainDuals are the duals of the dearest bound, in dollars per hour and core, GiB,
// pod. With one market, which is the rule, that is the whole bound; with several,
// "bounds" has them all.
func mainDuals(bounds []Bound) map[string]json.Number {
	out := map[string]json.Number{}
	best := -1
	for i := range bounds {
		if best < 0 || bounds[i].Total > bounds[best].Total {
			best = i
		}
	}
	if best >= 0 {
		out = rates(bounds[best].Duals, 1e-6)
	}
	for _, n := range []string{snapshot.CPU, snapshot.Memory, snapshot.Pods} {
		if _, ok := out[n]; !ok {
			out[n] = "0"
		}
	}
	return out
}
