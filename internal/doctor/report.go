package doctor

import (
	"fmt"
	"strings"
)

// Status is how a step, or a finding about it, stands.
type Status string

// The statuses, from good to bad.
const (
	// Fine: looked at, nothing found.
	Fine Status = "ok"
	// Note: worth knowing, nothing to mend.
	Note Status = "note"
	// Doubtful: it works, and may not for long, or not for all.
	Doubtful Status = "warning"
	// Unknown: it could not be looked at.
	Unknown Status = "unknown"
	// Broken: pods do not get past this.
	Broken Status = "broken"
)

var order = []Status{Fine, Note, Doubtful, Unknown, Broken}

func worse(a, b Status) Status {
	for _, s := range order {
		if s == a {
			return b
		}
		if s == b {
			return a
		}
	}
	return b
}

// Finding is one thing that was found.
type Finding struct {
	Code   Code   `json:"code"`
	Status Status `json:"status"`
	// Object is what it is about: nodeclass/NAME, role/NAME, ...
	Object string `json:"object,omitempty"`
	// Detail is what shows it, in one sentence.
	Detail string `json:"detail"`
	// Fix are commands that mend it, or words where no command can.
	Fix []string `json:"fix,omitempty"`
}

// Step is one step of the way.
type Step struct {
	Name     string    `json:"name"`
	Title    string    `json:"title"`
	Status   Status    `json:"status"`
	Findings []Finding `json:"findings,omitempty"`
}

// Report is what the doctor says.
type Report struct {
	Cluster string `json:"cluster"`
	Region  string `json:"region,omitempty"`
	Now     string `json:"now"`
	// Broken is the first step that pods do not get past; "" = none was found.
	Broken string `json:"broken,omitempty"`
	// Complete: everything could be looked at.
	Complete bool   `json:"complete"`
	Steps    []Step `json:"steps"`
}

// First is the first finding that pods do not get past, nil when there is none.
func (r *Report) First() *Finding {
	for i := range r.Steps {
		for j := range r.Steps[i].Findings {
			if f := &r.Steps[i].Findings[j]; f.Status == Broken {
				return f
			}
		}
	}
	return nil
}

var marks = map[Status]string{Fine: "ok", Note: "ok", Doubtful: "!", Unknown: "?", Broken: "X"}

// Text is the report for people.
func (r *Report) Text() string {
	var b strings.Builder
	fmt.Fprintf(&b, "%s", r.Cluster)
	if r.Region != "" {
		fmt.Fprintf(&b, " in %s", r.Region)
	}
	fmt.Fprintf(&b, ", %s: from a pending pod to a ready node\n\n", r.Now)
	for i := range r.Steps {
		s := &r.Steps[i]
		fmt.Fprintf(&b, "%-2s  %2d  %s\n", marks[s.Status], i+1, s.Title)
		for _, f := range s.Findings {
			mark := ""
			if s.Status != f.Status && f.Status != Note {
				mark = marks[f.Status] + " "
			}
			object := ""
			if f.Object != "" {
				object = " " + f.Object
			}
			fmt.Fprintf(&b, "        %s%s%s: %s\n", mark, f.Code, object, indent(f.Detail, "          "))
			for _, fix := range f.Fix {
				fmt.Fprintf(&b, "          > %s\n", indent(fix, "            "))
			}
		}
	}
	b.WriteString("\n")
	switch f := r.First(); {
	case f != nil:
		fmt.Fprintf(&b, "The first step that is broken is %q: %s.", r.title(r.Broken), f.Code)
		if len(f.Fix) > 0 {
			b.WriteString(" Begin there, and ask again: what comes after may mend itself.")
		}
		b.WriteString("\n")
	case r.Complete:
		b.WriteString("Nothing is broken.\n")
	default:
		b.WriteString("Nothing that could be looked at is broken. What is marked ? could not be looked at.\n")
	}
	return b.String()
}

func (r *Report) title(name string) string {
	for i := range r.Steps {
		if r.Steps[i].Name == name {
			return r.Steps[i].Title
		}
	}
	return name
}

// indent puts lines after the first one under it.
func indent(s, by string) string { return strings.ReplaceAll(s, "\n", "\n"+by) }
