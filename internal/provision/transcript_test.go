package provision_test

import (
	"bytes"
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/cockroachdb/datadriven"

	"kerf.sh/kerf/internal/kube"
	"kerf.sh/kerf/internal/plan"
	"kerf.sh/kerf/internal/provision"
	"kerf.sh/kerf/internal/worldtest"
)

// TestTranscripts runs the transcripts of testdata: small clusters in lines (the
// language is that of worldtest.World), commands, and the plan that is right. The
// right plans were worked out by hand: run with -rewrite only to see a difference,
// and read it before believing it.
//
//	plan [detail] [options] [bound] [usage]   plan the lines of the input as a new
//	                                          world, or the current one if there are none
//	world                                     a new world, not planned yet
//	add                                       more lines, then plan
//	yaml                                      more manifests, as YAML
//	remove                                    take objects away (Kind/name), then plan
//	explain OBJ                               the verdict tree of one object
//
// Every plan is judged by worldtest.Check as well.
func TestTranscripts(t *testing.T) {
	datadriven.Walk(t, "testdata", func(t *testing.T, path string) {
		if !strings.HasSuffix(path, ".txt") {
			return
		}
		w := worldtest.NewWorld()
		var broken []string // reported at the end: an error would stop the file here
		datadriven.RunTest(t, path, func(t *testing.T, d *datadriven.TestData) string {
			out, bad, err := command(&w, d)
			for _, b := range bad {
				broken = append(broken, d.Pos+": "+b)
			}
			if err != nil {
				return "error: " + err.Error() + "\n"
			}
			return out
		})
		for _, b := range broken {
			t.Error(b)
		}
	})
}

func command(w **worldtest.World, d *datadriven.TestData) (out string, broken []string, err error) {
	switch d.Cmd {
	case "world":
		*w = worldtest.NewWorld()
		return "", nil, (*w).Exec(d.Input)
	case "yaml":
		(*w).AddYAML(d.Input)
		return "", nil, nil
	case "explain":
		out, err = explain(*w, d.CmdArgs[0].Key)
		return out, nil, err
	case "plan":
		if strings.TrimSpace(d.Input) != "" {
			*w = worldtest.NewWorld()
		}
		err = (*w).Exec(d.Input)
	case "add":
		err = (*w).Exec(d.Input)
	case "remove":
		for _, ref := range strings.Fields(d.Input) {
			err = errors.Join(err, (*w).Remove(ref))
		}
	default:
		err = fmt.Errorf("command %q is not known", d.Cmd)
	}
	if err != nil {
		return "", nil, err
	}
	return planOf(d, *w)
}

func planOf(d *datadriven.TestData, w *worldtest.World) (out string, broken []string, err error) {
	show := worldtest.Show{
		Detail: d.HasArg("detail"), Options: d.HasArg("options"), Bound: d.HasArg("bound"), Usage: d.HasArg("usage"),
	}
	s, report, err := w.Snapshot()
	if err != nil {
		return "", nil, err
	}
	p := provision.Plan(s, w.Catalog, provision.Options{})
	broken = worldtest.Check(s, w.Catalog, p)
	first, err := plan.JSON(p, true)
	if err != nil {
		return "", nil, err
	}
	again, err := plan.JSON(provision.Plan(s, w.Catalog, provision.Options{}), true)
	if err != nil {
		return "", nil, err
	}
	if !bytes.Equal(first, again) {
		broken = append(broken, "two plans of one snapshot differ")
	}
	out = readRemarks(report, show) + worldtest.Describe(p, show)
	for _, b := range broken {
		out += "BROKEN RULE: " + b + "\n"
	}
	return out, broken, nil
}

// readRemarks says what reading left out or had to remark.
func readRemarks(r *kube.Report, show worldtest.Show) string {
	var b strings.Builder
	for _, l := range r.Left {
		fmt.Fprintf(&b, "left out %s: %s: %s\n", l.Object, l.Field, l.Message)
	}
	if show.Detail {
		for _, x := range r.Warnings {
			fmt.Fprintf(&b, "read %s: %s: %s\n", x.Object, x.Code, x.Detail)
		}
	}
	return b.String()
}

func explain(w *worldtest.World, object string) (string, error) {
	s, _, err := w.Snapshot()
	if err != nil {
		return "", err
	}
	p := provision.Plan(s, w.Catalog, provision.Options{Explain: object})
	if p.Explained == nil {
		return "nothing to explain\n", nil
	}
	var b strings.Builder
	fmt.Fprintf(&b, "%s\n", p.Explained.Object)
	writeLines(&b, p.Explained.Lines, "  ")
	return b.String(), nil
}

func writeLines(b *strings.Builder, lines []plan.Line, indent string) {
	for _, l := range lines {
		fmt.Fprintf(b, "%s%s\n", indent, l.Text)
		writeLines(b, l.Children, indent+"  ")
	}
}
