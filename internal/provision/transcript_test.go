package provision_test

import (
	"bytes"
	"fmt"
	"strings"
	"testing"

	"github.com/cockroachdb/datadriven"

	"kerf.sh/kerf/internal/kube"
	"kerf.sh/kerf/internal/plan"
	"kerf.sh/kerf/internal/provision"
	"kerf.sh/kerf/internal/snapshot"
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
		datadriven.RunTest(t, path, func(t *testing.T, d *datadriven.TestData) string {
			out, err := command(t, &w, d)
			if err != nil {
				return "error: " + err.Error() + "\n"
			}
			return out
		})
	})
}

func command(t *testing.T, w **worldtest.World, d *datadriven.TestData) (string, error) {
	show := worldtest.Show{
		Detail: d.HasArg("detail"), Options: d.HasArg("options"), Bound: d.HasArg("bound"), Usage: d.HasArg("usage"),
	}
	switch d.Cmd {
	case "world":
		*w = worldtest.NewWorld()
		return "", (*w).Exec(d.Input)
	case "yaml":
		(*w).AddYAML(d.Input)
		return "", nil
	case "plan":
		if strings.TrimSpace(d.Input) != "" {
			*w = worldtest.NewWorld()
			if err := (*w).Exec(d.Input); err != nil {
				return "", err
			}
		}
		return planOf(t, d, *w, show)
	case "add":
		if err := (*w).Exec(d.Input); err != nil {
			return "", err
		}
		return planOf(t, d, *w, show)
	case "remove":
		for _, ref := range strings.Fields(d.Input) {
			if err := (*w).Remove(ref); err != nil {
				return "", err
			}
		}
		return planOf(t, d, *w, show)
	case "explain":
		return explain(*w, d.CmdArgs[0].Key)
	}
	return "", fmt.Errorf("command %q is not known", d.Cmd)
}

func planOf(t *testing.T, d *datadriven.TestData, w *worldtest.World, show worldtest.Show) (string, error) {
	s, report, err := w.Snapshot()
	if err != nil {
		return "", err
	}
	p := provision.Plan(s, w.Catalog, provision.Options{})
	out := readRemarks(report, show) + worldtest.Describe(p, show)
	for _, bad := range worldtest.Check(s, w.Catalog, p) {
		t.Errorf("%s: %s", d.Pos, bad)
		out += "BROKEN RULE: " + bad + "\n"
	}
	again := provision.Plan(s, w.Catalog, provision.Options{})
	if !bytes.Equal(bytesOf(t, p), bytesOf(t, again)) {
		t.Errorf("%s: two plans of one snapshot differ", d.Pos)
	}
	return out, nil
}

// bytesOf is the plan as its users get it.
func bytesOf(t interface{ Fatal(...any) }, p *plan.Plan) []byte {
	data, err := plan.JSON(p, true)
	if err != nil {
		t.Fatal(err)
	}
	return data
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

// judgePlan fails the test for every rule that a plan of the snapshot breaks.
func judgePlan(t interface {
	Helper()
	Errorf(string, ...any)
}, s *snapshot.Snapshot, w *worldtest.World, p *plan.Plan) {
	t.Helper()
	for _, bad := range worldtest.Check(s, w.Catalog, p) {
		t.Errorf("%s", bad)
	}
}
