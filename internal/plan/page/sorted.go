package page

import (
	"cmp"
	"fmt"
	"html/template"
	"slices"
	"strings"

	"kerf.sh/kerf/internal/plan"
	"kerf.sh/kerf/internal/snapshot"
)

// maxRows is how many rows a table of the page has at most; past that JSON is the better
// form.
const maxRows = 1000

// openRows is how many rows are shown at once; longer tables are folded.
const openRows = 40

// sorted is a table that its reader sorts, without a script: every row carries its rank by
// each key, and the key that is chosen (a radio button) says which rank is its order.
type sorted struct {
	ID, Title string
	Keys      []string
	Columns   []string
	Rows      []sortedRow
	More      int // rows that are left out
	Open      bool
	Total     int
}

type sortedRow struct {
	Cells []cell
	// Ranks are custom properties of CSS, numbers of ours alone.
	Ranks template.CSS
	by    []int64 // by key, ascending; ties by name
	name  string
}

type cell struct {
	Text, Label, Class string
}

// newSorted ranks rows. Of too many those stay that come first by the key cut.
func newSorted(t sorted, cut int) *sorted {
	if len(t.Rows) == 0 {
		return nil
	}
	byKey := func(k int) func(a, b sortedRow) int {
		return func(a, b sortedRow) int {
			return cmp.Or(cmp.Compare(a.by[k], b.by[k]), strings.Compare(a.name, b.name))
		}
	}
	t.Total = len(t.Rows)
	if t.Total > maxRows {
		slices.SortStableFunc(t.Rows, byKey(cut))
		t.Rows, t.More = t.Rows[:maxRows], t.Total-maxRows
	}
	ranks := make([]strings.Builder, len(t.Rows))
	for k := range t.Keys {
		order := make([]int, len(t.Rows))
		for i := range order {
			order[i] = i
		}
		less := byKey(k)
		slices.SortStableFunc(order, func(a, b int) int { return less(t.Rows[a], t.Rows[b]) })
		for rank, i := range order {
			fmt.Fprintf(&ranks[i], "--k%d:%d;", k, rank)
		}
	}
	for i := range t.Rows {
		t.Rows[i].Ranks = template.CSS(ranks[i].String())
		for k := range t.Rows[i].Cells {
			t.Rows[i].Cells[k].Label = t.Columns[k]
		}
	}
	slices.SortStableFunc(t.Rows, byKey(0))
	t.Open = len(t.Rows) <= openRows
	return &t
}

// used are the shares of cpu and memory in use, in hundredths of a percent and as words.
func used(use, of snapshot.Resources) (cpu, memory int64, texts [2]string) {
	share := func(a, b int64) int64 { return int64(percent(a, b)*100 + 0.5) }
	cpu, memory = share(use.CPU, of.CPU), share(use.Memory, of.Memory)
	for i, v := range []int64{cpu, memory} {
		texts[i] = fmt.Sprintf("%d %%", (v+50)/100)
	}
	return cpu, memory, texts
}

// nodesTable are all nodes: those that are there, on their way, and new.
func nodesTable(p *plan.Plan) *sorted {
	t := sorted{ID: "nodes", Title: "All nodes", Keys: []string{"name", "price", "free cpu", "free memory", "pods", "state"},
		Columns: []string{"name", "pool", "type", "capacity", "zone", "cpu", "memory", "pods", "per hour", "state"}}
	states := []string{"there", "on its way", "new", "going"}
	add := func(name, pool, typ, capacity, zone, price string, micro int64, use, of snapshot.Resources, pods, state int) {
		cpu, memory, text := used(use, of)
		t.Rows = append(t.Rows, sortedRow{name: name, by: []int64{0, -micro, cpu, memory, int64(pods), int64(-state)}, Cells: []cell{
			{Text: name, Class: "name"}, {Text: pool}, {Text: typ}, {Text: capacity}, {Text: zone},
			{Text: text[0], Class: "num"}, {Text: text[1], Class: "num"}, {Text: fmt.Sprint(pods), Class: "num"}, {Text: price, Class: "num"}, {Text: states[state]},
		}})
	}
	for i := range p.Nodes {
		n := &p.Nodes[i]
		price, state := plan.Dollars(n.Price), 0
		if !n.PriceKnown {
			price = "unknown"
		}
		if n.InFlight {
			state = 1
		}
		if n.Going {
			state = 3
		}
		add(n.Name, n.NodePool, n.InstanceType, n.CapacityType, n.Zone, price, n.Price, n.Used.Add(n.Added), n.Allocatable, n.Pods+n.Placed, state)
	}
	for i := range p.Launches {
		l := &p.Launches[i]
		add(l.Name, l.NodePool, l.Chosen.InstanceType, l.Chosen.CapacityType, l.Chosen.Zone, plan.Dollars(l.Chosen.Price), l.Chosen.Price, l.Requests, l.Allocatable, len(l.Pods), 2)
	}
	return newSorted(t, 1)
}

// podsTable are the pods that the plan is about, and what becomes of each.
func podsTable(p *plan.Plan) *sorted {
	t := sorted{ID: "pods", Title: "Pods of this plan", Keys: []string{"name", "cpu", "memory", "outcome"}, Columns: []string{"pod", "cpu", "memory", "outcome", "node or reason"}}
	outcomes := []string{"cannot run", "not planned", "new node", "node that is there", "moves"}
	at := map[string]int{}
	where := map[string]string{}
	set := func(pod string, outcome int, node string) { at[pod], where[pod] = outcome, node }
	for i := range p.Verdicts {
		v := &p.Verdicts[i]
		if pod, ok := strings.CutPrefix(v.Object, "pod/"); ok {
			outcome := 0
			if plan.Info(v.Code).Kind == plan.KindNotPlanned {
				outcome = 1
			}
			set(pod, outcome, string(v.Code))
		}
	}
	for i := range p.Placements {
		set(p.Placements[i].Pod, 3, p.Placements[i].Node)
	}
	for i := range p.Launches {
		for _, pod := range p.Launches[i].Pods {
			set(pod, 2, p.Launches[i].Name)
		}
	}
	for i := range p.Displaced {
		d := &p.Displaced[i]
		set(d.Pod, 4, d.To)
	}
	for i := range p.Pods {
		u := &p.Pods[i]
		outcome, ok := at[u.Ref]
		if !ok || u.Buffer {
			continue
		}
		class := ""
		if outcome == 0 {
			class = "bad"
		}
		t.Rows = append(t.Rows, sortedRow{name: u.Ref, by: []int64{0, -u.Requests.CPU, -u.Requests.Memory, int64(outcome)}, Cells: []cell{
			{Text: u.Ref, Class: "name"}, {Text: snapshot.FormatQuantity(snapshot.CPU, u.Requests.CPU), Class: "num"},
			{Text: snapshot.FormatQuantity(snapshot.Memory, u.Requests.Memory), Class: "num"}, {Text: outcomes[outcome], Class: class}, {Text: where[u.Ref], Class: "where"},
		}})
	}
	return newSorted(t, 3)
}
