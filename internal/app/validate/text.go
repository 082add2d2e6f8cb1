package validate

import (
	"fmt"
	"strings"

	"kerf.sh/kerf/internal/kube"
	"kerf.sh/kerf/internal/plan"
)

// text is the answer for people: a block for each object that is not simply valid.
func (r *report) text(verbose bool) string {
	var b strings.Builder
	for i := range r.Objects {
		r.Objects[i].write(&b, "", verbose)
	}
	fmt.Fprintf(&b, "%s: %d valid, %d refused, %d of an older API\n", plan.Count(len(r.Objects), "object"), r.Valid, r.Refused, r.Old)
	if r.Ignored > 0 {
		fmt.Fprintf(&b, "%s of other kinds not looked at\n", plan.Count(r.Ignored, "object"))
	}
	return b.String()
}

func (j *judged) write(b *strings.Builder, indent string, verbose bool) {
	at := (&kube.Problem{File: j.File, Document: j.Document, Item: j.Item, Line: j.Line}).Place()
	if at != "" {
		at += ": "
	}
	verdict := j.Verdict
	if verdict == old {
		verdict = "older API, not served any more"
	}
	fmt.Fprintf(b, "%s%s%s (%s): %s\n", indent, at, j.Object, j.APIVersion, verdict)
	for _, c := range j.Causes {
		fmt.Fprintf(b, "%s  %s\n", indent, c.text())
	}
	for _, w := range j.Warnings {
		fmt.Fprintf(b, "%s  warning: %s\n", indent, w)
	}
	for _, f := range j.Fields {
		if s := f.text(); verbose || s != "" {
			if s == "" {
				s = f.From + " is the same"
			}
			fmt.Fprintf(b, "%s  %s\n", indent, s)
		}
	}
	for i := range j.Converted {
		if c := &j.Converted[i]; verbose || c.Verdict != valid {
			fmt.Fprintf(b, "%s  becomes:\n", indent)
			c.write(b, indent+"    ", verbose)
		} else {
			fmt.Fprintf(b, "%s  becomes %s, valid\n", indent, c.Object)
		}
	}
}

func (c *cause) text() string {
	s := c.Message
	if c.Field != "" && (c.By != "api" || !strings.HasPrefix(s, "unknown field ")) {
		s = c.Field + ": " + s
	}
	if c.Hint != "" {
		s += ": " + c.Hint
	}
	if c.By == "kerf" {
		s = "Kerf: " + s
	}
	return s
}

// text is one line: where a field went, or what to do about it.
func (m *moved) text() string {
	var s string
	switch {
	case m.Lost:
		s = "! " + m.From
	case m.From == "" && m.To == "":
		return "! " + m.Text
	case m.From == "":
		s = "+ " + m.To
	case m.From == m.To:
		s = "~ " + m.From
	default:
		s = m.From + " -> " + m.To
	}
	if m.Text != "" {
		s += ": " + m.Text
	}
	return s
}
