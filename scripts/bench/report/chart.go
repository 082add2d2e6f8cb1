package report

import (
	"fmt"
	"html"
	"io"
	"math"
	"strings"
)

// Geometry of the chart, in pixels.
const (
	chartWidth = 1080
	labelRight = 132
	priceLeft  = 144
	priceWidth = 330
	cpuLeft    = 580
	cpuWidth   = 400
	barHeight  = 11
	rowHeight  = 31
	fontFamily = "system-ui, -apple-system, 'Segoe UI', Helvetica, Arial, sans-serif"

	kerfColour      = "#0f766e"
	karpenterColour = "#c2703d"
	inkColour       = "#1f2933"
	faintColour     = "#7b8794"
	gridColour      = "#e4e7eb"
)

// The CPU axis runs from 100 microseconds to 1,000 seconds.
const cpuLow, cpuHigh = 1e-4, 1e3

type chart struct {
	strings.Builder
	y     int
	worst float64 // right end of the price axis
}

func (c *chart) text(x, y int, size int, colour, anchor, s string) {
	fmt.Fprintf(c, `<text x="%d" y="%d" font-size="%d" fill="%s" text-anchor="%s">%s</text>`+"\n", x, y, size, colour, anchor, html.EscapeString(s))
}

func (c *chart) bar(x, y int, width float64, colour, value string) {
	w := max(width, 1)
	fmt.Fprintf(c, `<rect x="%d" y="%d" width="%.1f" height="%d" fill="%s"/>`+"\n", x, y, w, barHeight, colour)
	c.text(x+int(w)+4, y+barHeight-1, 10, inkColour, "start", value)
}

func (c *chart) line(x, top, bottom int, colour string) {
	fmt.Fprintf(c, `<line x1="%d" y1="%d" x2="%d" y2="%d" stroke="%s"/>`+"\n", x, top, x, bottom, colour)
}

func (c *chart) priceX(ratio float64) float64 {
	return (max(ratio, 1) - 1) / (c.worst - 1) * priceWidth
}

func cpuX(seconds float64) float64 {
	v := math.Log10(min(max(seconds, cpuLow), cpuHigh) / cpuLow)
	return v / math.Log10(cpuHigh/cpuLow) * cpuWidth
}

// Chart writes the published on-demand workloads as an SVG picture: on the left
// price over bound (bars begin at the bound), on the right CPU time on a log scale.
func (r *Run) Chart(w io.Writer) error {
	groups := map[string][]*Row{}
	var order []string
	c := &chart{worst: 1.5}
	rows := 0
	for i := range r.Rows {
		row := &r.Rows[i]
		if row.Drawn || row.Pool.Spot || row.Kerf == nil && row.Karpenter == nil {
			continue
		}
		g := "Open pool, on demand"
		if row.Pool.CapVCPU > 0 {
			g = fmt.Sprintf("Pool capped at %d vCPU, on demand", row.Pool.CapVCPU)
		}
		if groups[g] == nil {
			order = append(order, g)
		}
		groups[g] = append(groups[g], row)
		rows++
		if row.Karpenter != nil {
			c.worst = max(c.worst, row.Karpenter.Ratio)
		}
		if row.Kerf != nil {
			c.worst = max(c.worst, row.Kerf.Ratio)
		}
	}
	c.worst = math.Ceil(c.worst*4) / 4
	height := 96 + rows*rowHeight + len(order)*74
	fmt.Fprintf(c, `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 %d %d" width="%d" height="%d" font-family="%s" role="img" aria-label="Price over bound and CPU time, Kerf and Karpenter">`+"\n",
		chartWidth, height, chartWidth, height, fontFamily)
	fmt.Fprintf(c, `<rect width="%d" height="%d" fill="#ffffff"/>`+"\n", chartWidth, height)
	c.text(24, 34, 19, inkColour, "start", "Kerf and Karpenter's scheduler on the same pods, types and prices")
	c.text(24, 54, 12, faintColour, "start", fmt.Sprintf("%s. Karpenter %s, one worker. CPU of the whole process, garbage collection included.", r.Date, r.Karpenter))
	c.bar(24, 68, 12, kerfColour, "Kerf")
	c.bar(84, 68, 12, karpenterColour, "Karpenter (no bar: not run, it takes too long)")
	c.y = 96
	for _, g := range order {
		c.group(g, groups[g])
	}
	c.WriteString("</svg>\n")
	_, err := io.WriteString(w, c.String())
	return err
}

func (c *chart) group(title string, rows []*Row) {
	c.y += 24
	c.text(24, c.y, 15, inkColour, "start", title)
	c.y += 18
	c.text(priceLeft, c.y, 11, faintColour, "start", "price / lower bound (1 = bound)")
	c.text(cpuLeft, c.y, 11, faintColour, "start", "CPU time, logarithmic")
	top, bottom := c.y+6, c.y+10+len(rows)*rowHeight
	for v := 1.0; v <= c.worst+1e-9; v += 0.25 {
		x := priceLeft + int(c.priceX(v))
		c.line(x, top, bottom, gridColour)
		c.text(x, bottom+12, 10, faintColour, "middle", fmt.Sprintf("%.2f", v))
	}
	for i, name := range []string{"0.1 ms", "1 ms", "10 ms", "0.1 s", "1 s", "10 s", "100 s", "1000 s"} {
		x := cpuLeft + int(cpuX(cpuLow*math.Pow10(i)))
		c.line(x, top, bottom, gridColour)
		c.text(x, bottom+12, 10, faintColour, "middle", name)
	}
	for i, row := range rows {
		c.row(c.y+10+i*rowHeight, row)
	}
	c.y = bottom + 22
}

func (c *chart) row(y int, row *Row) {
	c.text(labelRight, y+barHeight+4, 11, inkColour, "end", row.Workload)
	if k := row.Kerf; k != nil {
		c.bar(priceLeft, y, c.priceX(k.Ratio), kerfColour, fmt.Sprintf("%.3f", k.Ratio))
		c.bar(cpuLeft, y, cpuX(k.CPU), kerfColour, duration(k.CPU))
	}
	y += barHeight + 1
	k := row.Karpenter
	switch {
	case k == nil: // the key explains it
	case k.Ratio == 0:
		c.text(priceLeft+4, y+barHeight-1, 10, faintColour, "start", fmt.Sprintf("%d pods left at the time limit", k.Unscheduled))
		c.bar(cpuLeft, y, cpuX(k.CPU), karpenterColour, "> "+duration(k.CPU))
	default:
		c.bar(priceLeft, y, c.priceX(k.Ratio), karpenterColour, fmt.Sprintf("%.3f", k.Ratio))
		label := duration(k.CPU)
		if ratio := row.CPURatio(); ratio > 0 {
			label += fmt.Sprintf(" (%.0f x)", ratio)
		}
		c.bar(cpuLeft, y, cpuX(k.CPU), karpenterColour, label)
	}
}

func duration(seconds float64) string {
	switch {
	case seconds < 1e-3:
		return fmt.Sprintf("%.2f ms", seconds*1e3)
	case seconds < 0.1:
		return fmt.Sprintf("%.1f ms", seconds*1e3)
	}
	return fmt.Sprintf("%.2f s", seconds)
}
