package page

import (
	"bytes"
	_ "embed"
	"fmt"
	"html/template"
	"sync"

	"kerf.sh/kerf/internal/plan"
)

//go:embed page.html.tmpl
var source string

//go:embed page.css
var css string

// parsed is built at the first page, not at start: most runs write none.
var parsed = sync.OnceValues(func() (*template.Template, error) {
	return template.New("page").Funcs(template.FuncMap{
		"css": func() template.CSS { return template.CSS(css) }, // our own file, nothing of the input
	}).Parse(source)
})

// HTML renders the page of a plan; where something was laid over the cluster, what
// that changes is on top. Equal plans give equal bytes.
func HTML(p *plan.Plan) ([]byte, error) { return render(newView(p)) }

// DiffHTML renders the page of a comparison (Plan.Diff) without its plan.
func DiffHTML(p *plan.Plan) ([]byte, error) {
	v := newView(p)
	v.What, v.Outcome, v.DiffOnly = "What would change in", "", true
	v.Warnings = warningsOf(p.Diff.Warnings)
	return render(v)
}

func render(v *view) ([]byte, error) {
	t, err := parsed()
	if err != nil {
		return nil, fmt.Errorf("parse the page's template: %w", err)
	}
	var buf bytes.Buffer
	if err := t.Execute(&buf, v); err != nil {
		return nil, fmt.Errorf("fill the page's template: %w", err)
	}
	return buf.Bytes(), nil
}
