package kube

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/cockroachdb/datadriven"
	"sigs.k8s.io/yaml"

	"kerf.sh/kerf/internal/snapshot"
)

// TestTranscripts runs testdata/*.txt. Commands:
//
//	read [workloads] [file=NAME]   the input is a source; prints what became of it
//	file NAME [overlay]            the input is kept for a later readall
//	readall [workloads]            reads the files kept, in order, and forgets them
//	whatif [workloads] [remove=(KIND/NAME,...)]   reads them with the overlays among them; prints
//	                               what came of the changed cluster
func TestTranscripts(t *testing.T) {
	datadriven.Walk(t, "testdata/transcripts", func(t *testing.T, path string) {
		var kept, overlays []Source
		datadriven.RunTest(t, path, func(t *testing.T, d *datadriven.TestData) string {
			name := "in.yaml"
			d.MaybeScanArgs(t, "file", &name)
			o := Options{Now: now, Workloads: d.HasArg("workloads")}
			switch d.Cmd {
			case "read":
				return outcome(t, []Source{from(name, d.Input)}, o)
			case "file":
				s := from(d.CmdArgs[0].Key, d.Input)
				if d.HasArg("overlay") {
					overlays = append(overlays, s)
				} else {
					kept = append(kept, s)
				}
				return ""
			case "whatif":
				ov := Overlay{Sources: overlays}
				if arg, ok := d.Arg("remove"); ok {
					for _, name := range arg.Vals {
						ref, err := snapshot.ParseRef(name)
						if err != nil {
							t.Fatal(err)
						}
						ov.Remove = append(ov.Remove, ref)
					}
				}
				sources := kept
				kept, overlays = nil, nil
				_, after, err := ReadWhatIf(sources, ov, o)
				if err != nil {
					after = &Reading{}
				}
				return printed(t, after.Snapshot, after.Report, err)
			case "readall":
				sources := kept
				kept = nil
				return outcome(t, sources, o)
			}
			d.Fatalf(t, "unknown command %s", d.Cmd)
			return ""
		})
	})
}

// outcome renders what Read makes of sources. The snapshot is printed as YAML,
// the spec of a NodeClass as JSON.
func outcome(t *testing.T, sources []Source, o Options) string {
	t.Helper()
	s, report, err := Read(sources, o)
	return printed(t, s, report, err)
}

func printed(t *testing.T, s *snapshot.Snapshot, report *Report, err error) string {
	t.Helper()
	var b strings.Builder
	if err != nil {
		if s != nil || report != nil {
			t.Errorf("an error and a result")
		}
		fmt.Fprintf(&b, "error: %s\n", strings.ReplaceAll(err.Error(), "\n", "\nerror: "))
		return b.String()
	}
	raw, err := json.Marshal(s)
	if err != nil {
		t.Fatal(err)
	}
	var tree map[string]any
	if err := json.Unmarshal(raw, &tree); err != nil {
		t.Fatal(err)
	}
	for _, head := range []string{"settings", "now", "region"} {
		delete(tree, head)
	}
	if classes, ok := tree["nodeClasses"].([]any); ok {
		for i := range classes {
			classes[i].(map[string]any)["spec"] = string(s.NodeClasses[i].Spec)
		}
	}
	if len(tree) > 0 {
		out, err := yaml.Marshal(tree)
		if err != nil {
			t.Fatal(err)
		}
		b.Write(out)
	}
	counts := func(title string, m map[string]int) {
		for _, k := range slices.Sorted(maps.Keys(m)) {
			fmt.Fprintf(&b, "%s: %s %d\n", title, k, m[k])
		}
	}
	counts("read", report.Objects)
	counts("ignored", report.Ignored)
	for _, l := range report.Left {
		fmt.Fprintf(&b, "left out: %s\n", l.Error())
	}
	for _, w := range report.Warnings {
		fmt.Fprintf(&b, "warning: %s %s: %s\n", w.Object, w.Code, w.Detail)
	}
	for _, c := range report.Changes {
		fmt.Fprintf(&b, "change: %s %s", c.Object, c.Kind)
		if len(c.With) > 0 {
			fmt.Fprintf(&b, " with %s", strings.Join(c.With, ", "))
		}
		if c.Note != "" {
			fmt.Fprintf(&b, " (%s)", c.Note)
		}
		b.WriteByte('\n')
	}
	roundTrip(t, s)
	return b.String()
}

// roundTrip saves, reads and saves again: the bytes must be equal.
func roundTrip(t *testing.T, s *snapshot.Snapshot) {
	t.Helper()
	var first, second strings.Builder
	if err := Save(&first, s); err != nil {
		t.Fatal(err)
	}
	again, report, err := Read([]Source{from("saved.json", first.String())}, Options{})
	if err != nil {
		t.Fatalf("read what was saved: %v", err)
	}
	if len(report.Left)+len(report.Warnings) > 0 {
		t.Fatalf("read what was saved: %+v", report)
	}
	if err := Save(&second, again); err != nil {
		t.Fatal(err)
	}
	if first.String() != second.String() {
		t.Fatalf("saved:\n%s\nread and saved again:\n%s", &first, &second)
	}
}
