package convert

import (
	"bytes"
	"encoding/json"
	"os"
	"path/filepath"
	"testing"

	"sigs.k8s.io/yaml"
)

// TestMalformed: whatever stands at any place of an old object, there is an answer, and the old
// object is as it was.
func TestMalformed(t *testing.T) {
	tried := 0
	for _, o := range samples(t) {
		for _, with := range []any{nil, "x", 1.5, []any{}, []any{"y"}, map[string]any{}, map[string]any{"z": "y"}} {
			each(o, func(in map[string]any, key string) {
				was := in[key]
				in[key] = with
				before := text(t, o)
				for _, r := range All([]Object{o}) {
					text(t, r)
				}
				if !bytes.Equal(before, text(t, o)) {
					t.Fatalf("the object was changed: %s", before)
				}
				in[key] = was
				tried++
			})
		}
	}
	if tried < 500 {
		t.Errorf("only %d were tried", tried)
	}
}

// TestOnce: what was converted is not old, and is converted into nothing.
func TestOnce(t *testing.T) {
	for _, o := range samples(t) {
		for _, r := range All([]Object{o}) {
			for _, again := range All(r.Objects) {
				if len(again.Objects)+len(again.Notes) > 0 {
					t.Errorf("%v: converted again: %+v", o["metadata"], again)
				}
			}
		}
	}
}

func text(t *testing.T, v any) []byte {
	t.Helper()
	out, err := json.Marshal(v)
	if err != nil {
		t.Fatal(err)
	}
	return out
}

// each calls f with every member of every object in v.
func each(v any, f func(in map[string]any, key string)) {
	switch v := v.(type) {
	case map[string]any:
		for _, k := range sorted(v) {
			f(v, k)
			each(v[k], f)
		}
	case []any:
		for _, e := range v {
			each(e, f)
		}
	}
}

// samples are the old objects among the manifests of the command.
func samples(t *testing.T) (out []Object) {
	t.Helper()
	files, err := filepath.Glob("../../app/validate/testdata/manifests/*.yaml")
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range files {
		all, err := os.ReadFile(f)
		if err != nil {
			t.Fatal(err)
		}
		for doc := range bytes.SplitSeq(all, []byte("\n---\n")) {
			var o Object
			if err := yaml.Unmarshal(doc, &o); err != nil {
				t.Fatal(err)
			}
			apiVersion, _ := o["apiVersion"].(string)
			kind, _ := o["kind"].(string)
			if Old(apiVersion, kind) {
				out = append(out, o)
			}
		}
	}
	if len(out) < 10 {
		t.Fatalf("%d old objects", len(out))
	}
	return out
}
