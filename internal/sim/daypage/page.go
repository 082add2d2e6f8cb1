package daypage

import (
	"bytes"
	_ "embed"
	"encoding/json"
	"fmt"
	"html/template"
	"strings"
	"time"
)

//go:embed page.html.tmpl
var pageText string

//go:embed page.css
var pageCSS string

//go:embed page.js
var pageJS string

var pageTemplate = template.Must(template.New("day").Funcs(template.FuncMap{
	"dollars": Dollars, "long": Long,
}).Parse(pageText))

// HTML renders a day.
func HTML(d *Day) ([]byte, error) {
	v := newView(d)
	var out bytes.Buffer
	if err := pageTemplate.Execute(&out, v); err != nil {
		return nil, fmt.Errorf("write the page of the day: %w", err)
	}
	return out.Bytes(), nil
}

// view is the page, ready to print.
type view struct {
	*Day
	CSS      template.CSS
	JS       template.JS
	Data     template.JS
	Headline string
	Figures  []figure
	Charts   []chart
	Lanes    []lane
	Hours    []mark
	Bands    []band
	Parts    []part
	Taken    []row
}

type figure struct{ Class, Value, Label, Note string }

// chart is one picture: paths in a box of width by height, labels in percent.
type chart struct {
	Name, Title, Note string
	Shapes            []shape
	Scale             []mark
}

type shape struct {
	Class, Path string
	Label       string // of the legend, "" = none
}

// mark is a label at percent of the width, or of the height from below.
type mark struct {
	At    float64
	Label string
	Class string
}

type band struct {
	At, Wide float64
	Label    string
}

// lane is a row of things that happened.
type lane struct {
	Label, Class string
	Count        string
	Marks        []mark
}

// part is a chapter with its moves.
type part struct {
	Chapter
	When, Until string
	Moves       []row
	Summary     string
}

// row is a move or an interruption as a line.
type row struct {
	When, Tag, Class, What, Detail, Outcome, Gain string
}

func newView(d *Day) *view {
	v := &view{Day: d, CSS: template.CSS(pageCSS), JS: template.JS(pageJS)} //nolint:gosec // both are files of this package
	paid, never, floor := d.Paid(), d.PaidNever(), d.PaidFloor()
	v.Headline = fmt.Sprintf("%s instead of %s: %s less than the same day without consolidation.", Dollars(paid), Dollars(never), percentLess(paid, never))
	lost, moved := 0, 0
	for _, i := range d.Interruptions {
		lost, moved = lost+i.Lost, moved+i.Pods-i.Lost
	}
	removed, back := 0, 0
	for _, m := range d.Moves {
		if m.Back() {
			back++
		} else {
			removed += len(m.Nodes)
		}
	}
	v.Figures = []figure{
		{"strong", Dollars(never - paid), "saved in a day", "against the same day with consolidateAfter: Never"},
		{"", Dollars(floor), "would be the floor", "all pods packed anew every ten minutes, as if moving them were free"},
		{"", Long(d.Kerf.Longest.Long), "was the longest wait", fmt.Sprintf("until a pod ran; 95 %% of %d ran within %s", d.Kerf.Waits, Long(d.Kerf.P95))},
		{class(lost == 0), fmt.Sprintf("%d of %d", moved, moved+lost), "pods left in time", "when EC2 took " + count(len(d.Interruptions), "spot node")},
		{class(d.Image.Joined == 0), count(d.Image.RolledBack, "move"), "taken back from a bad image", fmt.Sprintf("%d instances never joined, %s; no pod was on them", d.Image.Launched, Dollars(d.Image.Cost))},
		{"", count(removed, "node"), "went, each with a reason", fmt.Sprintf("in %s; %d more were taken back", count(len(d.Moves)-back, "move"), back)},
	}
	v.Charts = d.charts()
	v.lanes()
	for at := time.Duration(0); at <= d.Length(); at += 2 * time.Hour {
		m := mark{At: d.percent(at), Label: d.Clock(at)}
		switch {
		case at%(8*time.Hour) == 0:
			m.Class = "main"
		case at%(4*time.Hour) == 0:
			m.Class = "some"
		}
		v.Hours = append(v.Hours, m)
	}
	v.Bands = []band{{At: d.percent(d.BadImage.From), Wide: d.percent(d.BadImage.To - d.BadImage.From), Label: "bad image"}}
	for i := range d.Chapters {
		v.Parts = append(v.Parts, d.part(&d.Chapters[i]))
	}
	for i := range d.Interruptions {
		v.Taken = append(v.Taken, d.taken(&d.Interruptions[i]))
	}
	v.Data = d.data()
	return v
}

func class(good bool) string {
	if good {
		return "good"
	}
	return "bad"
}

// Length is how long the day is.
func (d *Day) Length() time.Duration { return d.Step * time.Duration(len(d.Kerf.Samples)-1) }

// percent is where a time is on the axis.
func (d *Day) percent(at time.Duration) float64 {
	return float64(at*10000/max(d.Length(), 1)) / 100
}

// lanes are the rows of things that happened.
func (v *view) lanes() {
	d := v.Day
	spot := lane{Label: "Spot taken", Class: "spot"}
	for _, i := range d.Interruptions {
		spot.Marks = append(spot.Marks, mark{At: d.percent(i.At), Label: fmt.Sprintf("%s %s taken, %s", d.Clock(i.At), i.Node, count(i.Pods, "pod"))})
	}
	empty, cheaper := lane{Label: "Empty, removed", Class: "empty"}, lane{Label: "Moved to save", Class: "under"}
	drift, back := lane{Label: "New image", Class: "drift"}, lane{Label: "Taken back", Class: "back"}
	for i := range d.Moves {
		m := &d.Moves[i]
		to := &drift
		switch {
		case m.Back():
			to = &back
		case m.Reason == "Empty":
			to = &empty
		case m.Reason == "Underutilized":
			to = &cheaper
		}
		to.Marks = append(to.Marks, mark{At: d.percent(m.At), Label: fmt.Sprintf("%s %s: %s", d.Clock(m.At), strings.Join(m.Nodes, ", "), m.Detail)})
	}
	for _, l := range []lane{spot, empty, cheaper, drift, back} {
		l.Count = fmt.Sprint(len(l.Marks))
		v.Lanes = append(v.Lanes, l)
	}
}

// part is a chapter with the moves that began in it.
func (d *Day) part(c *Chapter) part {
	p := part{Chapter: *c, When: d.Clock(c.From), Until: d.Clock(c.To)}
	var saved int64
	for i := range d.Moves {
		m := &d.Moves[i]
		if m.At < c.From || m.At >= c.To {
			continue
		}
		p.Moves = append(p.Moves, d.row(m))
		if !m.Back() {
			saved += m.Saving
		}
	}
	p.Summary = fmt.Sprintf("%s, %s an hour", count(len(p.Moves), "move"), gain(saved))
	return p
}

// gain is a saving with its sign, from the purse's side.
func gain(saved int64) string {
	sign := "−"
	if saved < 0 {
		sign, saved = "+", -saved
	}
	if saved == 0 {
		return "$0"
	}
	return fmt.Sprintf("%s$%d.%03d", sign, (saved+500)/1_000_000, (saved+500)/1_000%1_000)
}

func (d *Day) row(m *Move) row {
	r := row{When: d.Clock(m.At), Tag: m.Reason, Class: strings.ToLower(m.Reason), What: strings.Join(m.Nodes, " + "), Detail: m.Detail, Gain: gain(m.Saving)}
	if len(m.New) > 0 {
		r.What += " → " + strings.Join(m.New, " + ")
	}
	switch {
	case m.Back():
		r.Class, r.Outcome, r.Gain = "back", "Taken back after "+Long(m.Took)+": "+m.Why, ""
	case m.Open:
		r.Outcome = "Under way when the day ends."
	case m.Pods > 0:
		r.Outcome = fmt.Sprintf("%s moved, done after %s.", count(m.Pods, "pod"), Long(m.Took))
	default:
		r.Outcome = "Done after " + Long(m.Took) + "."
	}
	return r
}

func (d *Day) taken(i *Interruption) row {
	r := row{When: d.Clock(i.At), Tag: "Interrupted", Class: "spot", What: i.Node, Detail: count(i.Pods, "pod") + " on it"}
	if r.Outcome = fmt.Sprintf("Its last pod had left %s after the warning, of two minutes.", Long(i.Empty)); i.Lost > 0 {
		r.Class, r.Outcome = "back", count(i.Lost, "pod")+" were still on it when it ended."
	}
	if len(i.New) > 0 {
		r.Outcome += " Launched meanwhile: " + strings.Join(i.New, ", ") + "."
	}
	return r
}

// data is what the script reads out: every fifth minute or so.
func (d *Day) data() template.JS {
	type point [8]int64
	var rows []point
	for i, s := range d.Kerf.Samples {
		n := d.Never.Samples[i]
		rows = append(rows, point{s.Price / 1000, n.Price / 1000, d.Floor[i] / 1000, int64(s.Nodes()), int64(n.Nodes()), int64(s.Running), int64(s.Pending), int64(s.Spot)})
	}
	raw, err := json.Marshal(map[string]any{"begins": d.Begins.Hour()*60 + d.Begins.Minute(), "step": int(d.Step / time.Minute), "rows": rows})
	if err != nil {
		panic(err) // numbers
	}
	return template.JS(raw) //nolint:gosec // numbers
}
