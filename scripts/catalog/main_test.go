package main

import (
	"bytes"
	"compress/gzip"
	"encoding/json"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"kerf.sh/kerf/internal/catalog"
	"kerf.sh/kerf/internal/snapshot"
)

func convert(t *testing.T, args ...string) *catalog.Catalog {
	t.Helper()
	out := filepath.Join(t.TempDir(), "catalogue.json")
	if err := run(append([]string{"-facts", "testdata/facts.json", "-date", "2026-07-20", "-catalogue", out}, args...)); err != nil {
		t.Fatal(err)
	}
	data, err := os.ReadFile(out)
	if err != nil {
		t.Fatal(err)
	}
	c, err := catalog.Parse(data)
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// TestConvert: a catalogue file made of facts says about each type what the
// embedded table says.
func TestConvert(t *testing.T) {
	got := convert(t)
	class := &snapshot.NodeClass{Name: "default", AMIAlias: "al2023@latest"}
	resolve := func(c *catalog.Catalog) map[string]catalog.Resolved {
		list, err := c.Resolve(class, snapshot.DefaultSettings())
		if err != nil {
			t.Fatal(err)
		}
		out := map[string]catalog.Resolved{}
		for _, r := range list {
			out[r.Type.Name] = r
		}
		return out
	}
	embedded := resolve(catalog.Default())
	converted := resolve(got)
	if len(converted) != 8 {
		t.Errorf("%d types, want 8", len(converted))
	}
	for name, r := range converted {
		e := embedded[name]
		var onDemand []catalog.Offering
		for _, o := range e.Type.Offerings {
			if o.CapacityType == catalog.OnDemand {
				onDemand = append(onDemand, o)
			}
		}
		if diff := cmp.Diff(onDemand, r.Type.Offerings); diff != "" {
			t.Errorf("%s: offerings (-embedded +converted):\n%s", name, diff)
		}
		if diff := cmp.Diff(e.Labels(), r.Labels()); diff != "" {
			t.Errorf("%s: labels (-embedded +converted):\n%s", name, diff)
		}
		e.Type, r.Type = nil, nil
		if diff := cmp.Diff(e, r, cmpopts.IgnoreUnexported(catalog.Resolved{})); diff != "" {
			t.Errorf("%s (-embedded +converted):\n%s", name, diff)
		}
	}
}

func TestConvertWithSpot(t *testing.T) {
	for _, typ := range convert(t, "-spot", "spread").Types {
		for _, o := range typ.Offerings {
			if o.CapacityType != catalog.Spot {
				continue
			}
			onDemand := typ.Offerings[0].Price
			if o.Price < onDemand*35/100 || o.Price > onDemand*45/100+1 || o.Estimated || !o.Available {
				t.Errorf("%s in %s: %+v, on-demand %d", typ.Name, o.Zone, o, onDemand)
			}
		}
		if len(typ.Offerings) != 6 && typ.Offerings[0].Available {
			t.Errorf("%s: %d offerings, want 6", typ.Name, len(typ.Offerings))
		}
	}
}

// TestTableAndGolden: both files are written, and are what the package reads.
func TestTableAndGolden(t *testing.T) {
	dir := t.TempDir()
	table, golden := filepath.Join(dir, "table"), filepath.Join(dir, "golden")
	if err := run([]string{"-facts", "testdata/facts.json", "-date", "2026-07-20", "-table", table, "-golden", golden}); err != nil {
		t.Fatal(err)
	}
	if data, err := os.ReadFile(table); err != nil || len(data) < 100 {
		t.Errorf("table of %d bytes, %v", len(data), err)
	}
	f, err := os.Open(golden)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	z, err := gzip.NewReader(f)
	if err != nil {
		t.Fatal(err)
	}
	text, err := io.ReadAll(z)
	if err != nil {
		t.Fatal(err)
	}
	if !bytes.Contains(text, []byte("\ninf2.24xlarge\t95690\t")) || bytes.Count(text, []byte("\n")) != 9 {
		t.Errorf("golden file:\n%s", text)
	}
}

// TestFactsThatContradict: facts that do not add up are refused, not guessed.
func TestFactsThatContradict(t *testing.T) {
	data, err := os.ReadFile("testdata/facts.json")
	if err != nil {
		t.Fatal(err)
	}
	change := func(change func(m map[string]any)) string {
		var f struct {
			InstanceTypes []map[string]any `json:"instanceTypes"`
		}
		if err := json.Unmarshal(data, &f); err != nil {
			t.Fatal(err)
		}
		change(f.InstanceTypes[0])
		f.InstanceTypes = f.InstanceTypes[:1]
		out, err := json.Marshal(f)
		if err != nil {
			t.Fatal(err)
		}
		return string(out)
	}
	allocatable := func(m map[string]any) map[string]any { return m["allocatable"].(map[string]any) }
	for _, test := range []struct{ facts, want string }{
		{"{", "unexpected end of JSON input"},
		{"{}", "no instanceTypes"},
		{change(func(m map[string]any) { m["zones"] = []string{"us-east-1q"} }), "zone us-east-1q has no id; give one with -zones"},
		{change(func(m map[string]any) { allocatable(m)["pods"] = 31 }), "31 pods do not come from interfaces of"},
		{change(func(m map[string]any) { m["eni"].(map[string]any)["interfaces"] = 7 }), "7 interfaces do not make cards of"},
		{change(func(m map[string]any) { allocatable(m)["extended"].(map[string]any)[catalog.PodENI] = "many" }), "vpc.amazonaws.com/pod-eni: "},
		{change(func(m map[string]any) { m["labels"].(map[string]any)[catalog.LabelClockMHz] = "fast" }), "sustained-clock-speed-mhz: "},
	} {
		path := filepath.Join(t.TempDir(), "facts.json")
		if err := os.WriteFile(path, []byte(test.facts), 0o644); err != nil {
			t.Fatal(err)
		}
		err := run([]string{"-facts", path, "-date", "2026-07-20", "-table", filepath.Join(t.TempDir(), "table")})
		if err == nil || !strings.Contains(err.Error(), test.want) {
			t.Errorf("error %v, want one with %q", err, test.want)
		}
	}
}

func TestFlags(t *testing.T) {
	for _, test := range []struct {
		args []string
		want string
	}{
		{nil, "-facts and -date are required"},
		{[]string{"-facts", "testdata/facts.json", "-date", "2026-07-20"}, "nothing to write: give -table, -golden or -catalogue"},
		{[]string{"-facts", "testdata/none.json", "-date", "2026-07-20", "-table", "x"}, "read facts: "},
		{[]string{"-facts", "testdata/facts.json", "-date", "2026-07-20", "-table", "x", "-zones", "a"}, `read -zones: "a" is not ZONE=ID`},
		{[]string{"-facts", "testdata/facts.json", "-date", "2026-07-20", "-spot", "cheap", "-catalogue", "x"}, `-spot: "cheap" is not none or spread`},
	} {
		if err := run(test.args); err == nil || !strings.HasPrefix(err.Error(), test.want) {
			t.Errorf("%q: error %v, want %s", test.args, err, test.want)
		}
	}
}
