package report

import (
	"fmt"

	"kerf.sh/kerf/internal/snapshot"
)

// Consolidation is a half-empty cluster, and what the first pass of either side finds.
type Consolidation struct {
	Nodes int            `json:"nodes"`
	Pods  int            `json:"pods"` // of daemonsets left aside
	Price snapshot.Price `json:"priceMicros"`
	Kerf  *WholePass     `json:"kerf"`
	// Karpenter is nil where it was left out.
	Karpenter *FirstCommand `json:"karpenter,omitempty"`
}

// WholePass is what one pass of Kerf finds in the whole cluster.
type WholePass struct {
	Cost
	Considered int            `json:"nodesConsidered"`
	Moves      int            `json:"moves"`
	Removed    int            `json:"nodesRemoved"`
	Added      int            `json:"nodesAdded"`
	Saving     snapshot.Price `json:"savingMicros"`
	// Removals is what a pass saves that launches nothing.
	Removals snapshot.Price `json:"savingByRemovalsMicros"`
	// Floor is a price that no cluster for the same pods goes below.
	Floor snapshot.Price `json:"floorMicros"`
}

// Saved is the saving in percent of a price.
func (p *WholePass) Saved(price snapshot.Price) float64 { return percent(p.Saving, price) }

// FirstCommand is what Karpenter's disruption controller comes to first. Its validation,
// which waits for 15 seconds and plans it again, is left out.
type FirstCommand struct {
	Cost
	Method     string         `json:"method"`
	Considered int            `json:"nodesConsidered"`
	Removed    int            `json:"nodesRemoved"`
	Added      int            `json:"nodesAdded"`
	Saving     snapshot.Price `json:"savingMicros"`
}

func percent(part, whole snapshot.Price) float64 {
	return 100 * float64(part) / float64(max(whole, 1))
}

// consolidation builds the table of half-empty clusters.
func (r *Run) consolidation() *table {
	t := &table{
		head: []string{"nodes", "pods", "$/h", "Kerf considers", "removes", "adds", "saves", "by removals alone", "floor", "CPU ms",
			"Karpenter's first command", "considers", "removes", "adds", "saves", "CPU s"},
		left: map[int]bool{10: true},
	}
	for i := range r.Consolidation {
		c := &r.Consolidation[i]
		cells := []string{fmt.Sprint(c.Nodes), fmt.Sprint(c.Pods), price(c.Price)}
		if k := c.Kerf; k != nil {
			cells = append(cells, fmt.Sprint(k.Considered), fmt.Sprint(k.Removed), fmt.Sprint(k.Added), of(k.Saving, c.Price), of(k.Removals, c.Price),
				of(k.Floor, c.Price), fmt.Sprintf("%.0f", k.CPU*1e3))
		}
		if k := c.Karpenter; k != nil {
			method := k.Method
			if method == "" {
				method = "none"
			}
			cells = append(cells, method, fmt.Sprint(k.Considered), fmt.Sprint(k.Removed), fmt.Sprint(k.Added), of(k.Saving, c.Price), fmt.Sprintf("%.2f", k.CPU))
		}
		for len(cells) < len(t.head) {
			cells = append(cells, "")
		}
		t.rows = append(t.rows, cells)
	}
	return t
}

func of(part, whole snapshot.Price) string { return fmt.Sprintf("%.1f %%", percent(part, whole)) }

// consolidationTargets are the promises about half-empty clusters.
func (r *Run) consolidationTargets() []Target {
	cpu, saved := extreme{}, extreme{}
	for i := range r.Consolidation {
		c := &r.Consolidation[i]
		if c.Kerf == nil {
			continue
		}
		where := fmt.Sprintf("%d nodes, %d pods", c.Nodes, c.Pods)
		if c.Nodes == 5000 {
			cpu = extreme{value: c.Kerf.CPU, where: where, rows: 1}
		}
		v := percent(c.Kerf.Removals, c.Price)
		if saved.rows++; saved.rows == 1 || v < saved.value {
			saved.value, saved.where = v, where
		}
	}
	return []Target{
		cpu.target("CPU of a consolidation pass over 5,000 nodes at 35 % use", "%.2f s", 2, 1, false),
		saved.target("saving of a consolidation pass by removals alone, of what the cluster costs", "%.1f %%", 55, -1, true),
	}
}
