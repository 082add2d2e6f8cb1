package validate

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/cockroachdb/datadriven"
)

// TestVerdicts runs the command on the manifests of testdata. Each is there, and the module
// realtest asks a real API server about the same files.
//
//	validate FILE [flags]    status, standard output, standard error
func TestVerdicts(t *testing.T) {
	said := map[string]bool{}
	for _, file := range []string{"today.txt", "older.txt", "changes.txt", "command.txt"} {
		datadriven.RunTest(t, filepath.Join("testdata", file), func(t *testing.T, d *datadriven.TestData) string {
			if d.Cmd != "validate" {
				d.Fatalf(t, "want validate")
			}
			var args []string
			for _, a := range d.CmdArgs {
				args = append(args, strings.ReplaceAll(a.String(), "@", "testdata/"))
				if name, ok := strings.CutPrefix(a.Key, "@manifests/"); ok {
					said[name] = true
				}
			}
			return command(d.Input, append([]string{"--validate"}, args...)...)
		})
	}
	files, err := os.ReadDir(filepath.Join("testdata", "manifests"))
	if err != nil || len(files) < 30 {
		t.Fatalf("%d manifests, %v", len(files), err)
	}
	for _, f := range files {
		if !said[f.Name()] {
			t.Errorf("no verdict on %s in a transcript", f.Name())
		}
	}
}

// command is what the command says, and its status.
func command(stdin string, args ...string) string {
	var stdout, stderr bytes.Buffer
	status := Main(args, strings.NewReader(stdin), &stdout, &stderr)
	out := strings.ReplaceAll(stdout.String(), "testdata/manifests/", "")
	if e := strings.ReplaceAll(stderr.String(), "testdata/manifests/", ""); e != "" {
		out += "-- stderr\n" + e
	}
	if status != exitFine {
		out += "-- status " + string(rune('0'+status)) + "\n"
	}
	return out
}

// TestConvertedIsWhatIsValid: what --convert writes gets, when it is read again, the verdict that
// was given before it was written, and nothing in it is old.
func TestConvertedIsWhatIsValid(t *testing.T) {
	files, err := filepath.Glob(filepath.Join("testdata", "manifests", "*.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	converted := 0
	for _, f := range files {
		var out, text, again bytes.Buffer
		before := Main([]string{"--validate", "-f", f, "--convert"}, nil, &out, &text)
		if out.Len() == 0 {
			continue
		}
		converted++
		status := Main([]string{"--validate", "-f", "-"}, &out, &again, &again)
		if status != before || strings.Contains(again.String(), "older API,") {
			t.Errorf("%s: status %d, and of what it was converted to %d:\n%s\n%s", f, before, status, text.String(), again.String())
		}
	}
	if converted < 5 {
		t.Errorf("%d files were converted", converted)
	}
}

func TestWanted(t *testing.T) {
	for _, tt := range []struct {
		args []string
		want bool
	}{{[]string{"--validate", "-f", "x"}, true}, {[]string{"-f", "x", "-validate"}, true}, {[]string{"-f", "x"}, false}} {
		if got := Wanted(tt.args); got != tt.want {
			t.Errorf("%v: %t", tt.args, got)
		}
	}
}
