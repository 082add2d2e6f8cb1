// Package market is what both sides of the benchmark buy from: the embedded table of
// instance types with spot prices that never change, seen through the one pool.
//
// It reads the pool's meaning from the benchmark's own parameters (spot, size cap),
// not through the planner's requirement algebra, so that checks built on it are
// independent of the planner.
package market

import (
	"fmt"
	"slices"
	"strconv"

	"kerf.sh/kerf/internal/catalog"
	"kerf.sh/kerf/internal/snapshot"
	"kerf.sh/kerf/internal/workload"
	"kerf.sh/kerf/scripts/bench/bound"
)

// Variant is a form of the pool.
type Variant struct {
	Spot bool `json:"spot"`
	// CapVCPU is the largest node, 0 = open.
	CapVCPU int `json:"capVCPU"`
}

// Variants lists the four forms that are measured.
func Variants() []Variant {
	return []Variant{{}, {CapVCPU: 32}, {Spot: true}, {Spot: true, CapVCPU: 32}}
}

// String is "open", "cap 32", "open, spot" or "cap 32, spot".
func (v Variant) String() string {
	s := "open"
	if v.CapVCPU > 0 {
		s = fmt.Sprintf("cap %d", v.CapVCPU)
	}
	if v.Spot {
		s += ", spot"
	}
	return s
}

// Market is every instance type under the benchmark's class, priced.
type Market struct {
	// Catalog is the table that the planner gets.
	Catalog *catalog.Catalog
	// Types are the types that can be launched at all.
	Types []catalog.Resolved
}

// New prices a catalogue: every type that has an on-demand price is offered in each
// zone of the class, on demand and as spot.
func New(table *catalog.Catalog) (*Market, error) {
	c := *table
	c.Types = nil
	c.Zones = nil
	c.Source = table.Source + "; zones and spot prices of the benchmark"
	for _, z := range workload.Zones() {
		c.Zones = append(c.Zones, z.Zone)
	}
	for _, t := range table.Types {
		price := onDemand(&t)
		if price == 0 {
			continue
		}
		t.Offerings = nil
		for _, z := range workload.Zones() {
			t.Offerings = append(t.Offerings,
				catalog.Offering{Zone: z.Zone, ZoneID: z.ZoneID, CapacityType: catalog.OnDemand, Price: price, Available: true},
				catalog.Offering{Zone: z.Zone, ZoneID: z.ZoneID, CapacityType: catalog.Spot, Price: workload.SpotPrice(t.Name, z.Zone, price), Available: true})
		}
		c.Types = append(c.Types, t)
	}
	class := workload.NodeClass()
	types, err := c.Resolve(&class, snapshot.DefaultSettings())
	if err != nil {
		return nil, fmt.Errorf("resolve the class: %w", err)
	}
	types = slices.DeleteFunc(types, func(r catalog.Resolved) bool { return r.Unusable != "" })
	if len(types) == 0 {
		return nil, fmt.Errorf("the table of %s has no type with an on-demand price", table.Region)
	}
	return &Market{Catalog: &c, Types: types}, nil
}

// onDemand is the lowest on-demand price of a type, 0 when it has none.
func onDemand(t *catalog.InstanceType) snapshot.Price {
	best := snapshot.Price(0)
	for _, o := range t.Offerings {
		if o.CapacityType == catalog.OnDemand && o.Price > 0 && (best == 0 || o.Price < best) {
			best = o.Price
		}
	}
	return best
}

// Offer is one thing to buy.
type Offer struct{ Type, Zone, CapacityType string }

// View is the market as the pool of a variant sees it.
type View struct {
	Prices map[Offer]snapshot.Price
	// Room is what a node of a type gives to pods: allocatable less daemonset pods.
	Room map[string]bound.Vector
	// Columns are the types at their cheapest allowed offer, sorted by name.
	Columns []bound.Column
}

// View selects what the pool of a variant may buy.
func (m *Market) View(v Variant) View {
	var daemons bound.Vector
	for _, d := range workload.DaemonSets() {
		r := d.Template.Spec.Requests
		daemons[bound.CPU] += r.CPU
		daemons[bound.Memory] += r.Memory
		daemons[bound.Pods]++
	}
	view := View{Prices: map[Offer]snapshot.Price{}, Room: map[string]bound.Vector{}}
	for i := range m.Types {
		t := &m.Types[i]
		if !allows(v, t) {
			continue
		}
		room := bound.Vector{
			t.Allocatable.CPU - daemons[bound.CPU],
			t.Allocatable.Memory - daemons[bound.Memory],
			t.Allocatable.Pods - daemons[bound.Pods],
			1,
		}
		cheapest := snapshot.Price(0)
		for _, o := range t.Type.Offerings {
			if o.CapacityType == catalog.Spot && !v.Spot {
				continue
			}
			view.Prices[Offer{t.Type.Name, o.Zone, o.CapacityType}] = o.Price
			if cheapest == 0 || o.Price < cheapest {
				cheapest = o.Price
			}
		}
		view.Room[t.Type.Name] = room
		view.Columns = append(view.Columns, bound.Column{Name: t.Type.Name, Gives: room, Price: cheapest})
	}
	return view
}

// InZone are the columns at their cheapest allowed offer in one zone.
func (v View) InZone(zone string) []bound.Column {
	var out []bound.Column
	for _, c := range v.Columns {
		c.Price = 0
		for _, capacity := range []string{catalog.OnDemand, catalog.Spot} {
			if p, ok := v.Prices[Offer{c.Name, zone, capacity}]; ok && (c.Price == 0 || p < c.Price) {
				c.Price = p
			}
		}
		if c.Price > 0 {
			out = append(out, c)
		}
	}
	return out
}

// allows says what the requirements of workload.Pool mean.
func allows(v Variant, t *catalog.Resolved) bool {
	labels := t.Labels()
	switch labels["karpenter.k8s.aws/instance-category"] {
	case "c", "m", "r":
	default:
		return false
	}
	generation, err := strconv.Atoi(labels["karpenter.k8s.aws/instance-generation"])
	return err == nil && generation > 2 && (v.CapVCPU == 0 || t.Type.VCPU <= int64(v.CapVCPU)) &&
		(t.Type.Arch == "amd64" || t.Type.Arch == "arm64")
}
