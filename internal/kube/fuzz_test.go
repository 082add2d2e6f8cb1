package kube

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"

	"sigs.k8s.io/yaml"
)

// FuzzPlainYAML: whatever plainYAML accepts, the full parser accepts too, and
// both read the same.
func FuzzPlainYAML(f *testing.F) {
	for _, s := range plainSeeds {
		f.Add([]byte(s))
	}
	f.Add(podList(2))
	var p plainYAML
	f.Fuzz(func(t *testing.T, doc []byte) {
		got, ok := p.convert(doc)
		if !ok {
			return
		}
		if d := disagreement(doc, got); d != "" {
			t.Fatalf("%q\naccepted as %s\n%s", doc, got, d)
		}
	})
}

// disagreement compares a reading of a document with that of the full parser.
func disagreement(doc, got []byte) string {
	want, err := yaml.YAMLToJSONStrict(doc)
	if err != nil {
		return fmt.Sprintf("full parser: %v", err)
	}
	var a, b any
	if err := json.Unmarshal(got, &a); err != nil {
		return fmt.Sprintf("no JSON: %v", err)
	}
	if err := json.Unmarshal(want, &b); err != nil {
		return err.Error()
	}
	if !reflect.DeepEqual(a, b) {
		return fmt.Sprintf("full parser: %s", want)
	}
	return ""
}

var plainSeeds = []string{
	"a: b\nc:\n- d\n- e: 1\n  f: true\n- 'it''s'\n- \"q\\\"\\n\"\ng: {}\nh: []\ni:\nj: 500m\nk: 0x1f\nl: 1e3\nm: 010\nn: -5\n",
	"a: |\n  x\n   y\n\n  z\n\nb: |-\n  last\n",
	"a:\n  b:\n    c: null\n# comment\n  d: ~\n",
	"- 1\n- - 2\n-\n  a: 1\n-\n",
	"x: --flag=1\ny1: $(VAR)\nz: /path: no\n",
	"f:metadata: {}\na: b # c\n",
	"a: 1.5\nb: 2001-01-01\nc: 10.0.0.1\nd: 1_000\ne: 0b1\nf: 0o7\ng: 1:30\n",
	"a: 'x\n  y'\n", "a: b\n c\n", "a:\n  - b\n - c\n", "a: yes\nb: Off\nc: No\nd: nullx\n",
	"a: [\n", "? a\n: b\n", "a: &x b\nc: *x\n", "<<: {a: b}\n", "a: !!str 1\n", "a: @b\n", "a: %b\n",
	"a: b\na: c\n", "yes: a\n", strings.Repeat("a:\n ", 5), "a: 9223372036854775808\nb: 123456789012345678\n",
}

// TestPlainYAMLIsUsed: the fast way is taken for what it was made for.
func TestPlainYAMLIsUsed(t *testing.T) {
	var p plainYAML
	for _, doc := range []string{string(podList(3)), plainSeeds[1],
		"a: b\nc:\n- d\n- e: 1\n  f: true\n- 'it''s'\n- \"q\\\"\\n\"\ng: {}\nh: []\ni:\nj: 500m\nn1: -5\nip: 10.0.0.1\nargs:\n- --x=y\n"} {
		if _, ok := p.convert([]byte(doc)); !ok {
			t.Errorf("left to the full parser:\n%s", doc)
		}
	}
}

// FuzzRead: no input panics or hangs; what cannot be read is a Problem that names
// the file; what can be read is saved and read again as the same bytes.
func FuzzRead(f *testing.F) {
	transcripts, err := filepath.Glob("testdata/transcripts/*.txt")
	if err != nil || len(transcripts) == 0 {
		f.Fatal("no transcripts", err)
	}
	for _, path := range transcripts {
		text, err := os.ReadFile(path)
		if err != nil {
			f.Fatal(err)
		}
		for _, part := range strings.Split(string(text), "\n\n") {
			if _, input, ok := strings.Cut(part, "\n"); ok {
				input, _, _ = strings.Cut(input, "\n----\n")
				f.Add([]byte(input))
				if raw, err := yaml.YAMLToJSON([]byte(input)); err == nil {
					f.Add(raw)
				}
			}
		}
	}
	f.Add(jsonList(1))
	f.Add([]byte("\x1f\x8b\x08\x00\x00\x00\x00\x00\x00\xff"))
	f.Fuzz(func(t *testing.T, input []byte) {
		s, report, err := Read([]Source{from("fuzz", string(input))}, Options{Now: now, Workloads: true})
		if err != nil {
			if s != nil || report != nil {
				t.Fatal("an error and a result")
			}
			var p *Problem
			if !errors.As(err, &p) || p.File != "fuzz" || p.Message == "" {
				t.Fatalf("not a problem with a place: %v", err)
			}
			return
		}
		for _, l := range report.Left {
			if l.File != "fuzz" || l.Message == "" {
				t.Fatalf("left out without a reason: %+v", l)
			}
		}
		roundTrip(t, s)
	})
}
