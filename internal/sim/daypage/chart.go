package daypage

import (
	"fmt"
	"strings"
)

// Pictures are drawn into a box of this size, and stretched.
const (
	wide = 1440
	high = 200
)

// charts are the pictures of the day. All have the same axis of time.
func (d *Day) charts() []chart {
	k, n := d.Kerf.Samples, d.Never.Samples
	price := chart{Name: "price", Title: "What the nodes cost, an hour"}
	top := d.scale(&price, func(v int64) string { return fmt.Sprintf("$%d", v/1_000_000) }, 1_000_000, func(i int) int64 { return max(k[i].Price, n[i].Price, d.Floor[i]) })
	price.Shapes = []shape{
		{"gap", d.area(top, func(i int) int64 { return n[i].Price }, func(i int) int64 { return k[i].Price }), ""},
		{"never", d.line(top, func(i int) int64 { return n[i].Price }), "never consolidate"},
		{"floor", d.line(top, func(i int) int64 { return d.Floor[i] }), "floor"},
		{"kerf", d.line(top, func(i int) int64 { return k[i].Price }), "with consolidation"},
	}
	nodes := chart{Name: "nodes", Title: "Nodes"}
	top = d.scale(&nodes, func(v int64) string { return fmt.Sprint(v) }, 10, func(i int) int64 { return int64(max(k[i].Nodes(), n[i].Nodes())) })
	spot := func(i int) int64 { return int64(k[i].Spot) }
	ready := func(i int) int64 { return int64(k[i].Spot + k[i].OnDemand) }
	all := func(i int) int64 { return int64(k[i].Nodes()) }
	zero := func(int) int64 { return 0 }
	nodes.Shapes = []shape{
		{"spot", d.area(top, spot, zero), "spot"},
		{"od", d.area(top, ready, spot), "on-demand"},
		{"starting", d.area(top, all, ready), "starting"},
		{"never", d.line(top, func(i int) int64 { return int64(n[i].Nodes()) }), "never consolidate"},
	}
	pods := chart{Name: "pods", Title: "Pods"}
	running := func(i int) int64 { return int64(k[i].Running) }
	both := func(i int) int64 { return int64(k[i].Running + k[i].Pending) }
	top = d.scale(&pods, func(v int64) string { return fmt.Sprint(v) }, 20, both)
	pods.Shapes = []shape{
		{"running", d.area(top, running, zero), "running"},
		{"pending", d.area(top, both, running), "pending"},
	}
	return []chart{price, nodes, pods}
}

// scale chooses the top of a picture, a multiple of step above all values, and labels it.
func (d *Day) scale(c *chart, label func(int64) string, step int64, at func(i int) int64) (top int64) {
	for i := range d.Kerf.Samples {
		top = max(top, at(i))
	}
	for top > 5*step {
		step *= 2
	}
	top = (top/step + 1) * step
	for v := int64(0); v <= top; v += step {
		c.Scale = append(c.Scale, mark{At: float64(v*1000/top) / 10, Label: label(v)})
	}
	return top
}

func (d *Day) x(i int) int { return i * wide / max(1, len(d.Kerf.Samples)-1) }

func y(v, top int64) string {
	t := (top - v) * high * 10 / max(1, top)
	if t%10 == 0 {
		return fmt.Sprint(t / 10)
	}
	return fmt.Sprintf("%d.%d", t/10, t%10)
}

// line is a curve of steps: what a sample says holds until the next one.
func (d *Day) line(top int64, at func(i int) int64) string {
	var b strings.Builder
	d.steps(&b, "M", top, at)
	return b.String()
}

func (d *Day) steps(b *strings.Builder, first string, top int64, at func(i int) int64) {
	last := ""
	for i := range d.Kerf.Samples {
		v := y(at(i), top)
		switch {
		case i == 0:
			fmt.Fprintf(b, "%s%d %s", first, d.x(i), v)
		case v != last:
			fmt.Fprintf(b, "H%dV%s", d.x(i), v)
		}
		last = v
	}
	fmt.Fprintf(b, "H%d", wide)
}

// area is what is between two curves of steps.
func (d *Day) area(top int64, upper, lower func(i int) int64) string {
	var b strings.Builder
	d.steps(&b, "M", top, upper)
	last := ""
	for i := len(d.Kerf.Samples) - 1; i >= 0; i-- {
		v := y(lower(i), top)
		if i == len(d.Kerf.Samples)-1 {
			fmt.Fprintf(&b, "V%s", v)
		} else if v != last { // it held from here to the right
			fmt.Fprintf(&b, "H%dV%s", d.x(i+1), v)
		}
		last = v
	}
	b.WriteString("H0Z")
	return b.String()
}
