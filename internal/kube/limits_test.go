package kube

import (
	"fmt"
	"io"
	"runtime"
	"strings"
	"testing"

	"kerf.sh/kerf/internal/plan"
)

// repeated is a source of head, n times body, and tail, made while it is read.
func repeated(name, head, body string, n int, tail string) Source {
	return Source{Name: name, Open: func() (io.ReadCloser, error) {
		return io.NopCloser(io.MultiReader(strings.NewReader(head), &repeater{text: body, left: n}, strings.NewReader(tail))), nil
	}}
}

type repeater struct {
	text string
	at   int
	left int
}

func (r *repeater) Read(p []byte) (int, error) {
	n := 0
	for n < len(p) && r.left > 0 {
		c := copy(p[n:], r.text[r.at:])
		n += c
		if r.at += c; r.at == len(r.text) {
			r.at, r.left = 0, r.left-1
		}
	}
	if n == 0 {
		return 0, io.EOF
	}
	return n, nil
}

// TestTooLarge: what passes a limit says which one and what to do, and nothing is
// held in memory beyond it.
func TestTooLarge(t *testing.T) {
	const mib = 1 << 20
	line := strings.Repeat("x", 1022) + "\n"
	for name, tt := range map[string]struct {
		source Source
		want   string
	}{
		"one YAML document of 200 MB": {
			repeated("a.yaml", "apiVersion: v1\nkind: ConfigMap\ndata:\n", "  k: "+line, 200*1000, ""),
			"a.yaml: document 1 (line 1): the document is larger than 16 MiB; separate its objects with --- or save them as a List in block style",
		},
		"one line of 200 MB": {
			repeated("a.yaml", "a: ", line[:1000], 200*1000, "\n"),
			"a.yaml (line 1): a line of more than 16 MiB",
		},
		"one JSON object of 200 MB": {
			repeated("a.json", `{"apiVersion":"v1","data":"`, line[:1000], 200*1000, `"}`),
			"a.json: document 1 (line 1): the object is larger than 16 MiB",
		},
		"one JSON object of many fields": {
			repeated("a.json", `{"a":1`, `,"k":"`+line[:1000]+`"`, 200*1000, `}`),
			"a.json: document 1 (line 1): the object is larger than 16 MiB",
		},
		"one item of a JSON List": {
			repeated("a.json", `{"apiVersion":"v1","kind":"List","items":[{"a":"`, line[:1000], 200*1000, `"}]}`),
			"a.json: document 1, item 1 (line 1): the object is larger than 16 MiB",
		},
		"one item of a YAML List": {
			repeated("a.yaml", "apiVersion: v1\nitems:\n- apiVersion: v1\n", "  k: "+line, 200*1000, "kind: List\n"),
			"a.yaml: document 1, item 1 (line 3): the item is larger than 16 MiB",
		},
		"items that have no kind until the end": {
			repeated("a.json", `{"items":[{}`, `,{"a":"`+line[:1000]+`"}`, 200*1000, `],"kind":"PodList"}`),
			"kind: more than 16 MiB of items without a kind",
		},
		"a YAML List with much beside its items": {
			repeated("a.yaml", "apiVersion: v1\nitems:\n"+strings.Repeat("- kind: A\n  apiVersion: v1\n", 1+mib/27), "k: "+line, 200*1000, ""),
			"a.yaml: document 1 (line 1): the List holds more than 16 MiB beside its items",
		},
		"brackets": {
			repeated("a.json", "", "[", 200*mib, ""),
			"a.json: document 1 (line 1): the object is larger than 16 MiB",
		},
		"braces in YAML": {
			repeated("a.yaml", "a: ", "{", 1*mib, ""),
			"a.yaml: document 1 (line 1): no valid YAML: exceeded max depth of 10000",
		},
	} {
		t.Run(name, func(t *testing.T) {
			s, _, err := Read([]Source{tt.source}, Options{})
			if s != nil || !strings.HasSuffix(message(err), tt.want) {
				t.Errorf("error %q, want %q", message(err), tt.want)
			}
		})
	}
}

// TestManyContainers: a pod with 300 containers is an ordinary pod.
func TestManyContainers(t *testing.T) {
	var b strings.Builder
	b.WriteString("apiVersion: v1\nkind: Pod\nmetadata: {name: many}\nspec:\n  containers:\n")
	for i := range 300 {
		fmt.Fprintf(&b, "  - {name: c%d, resources: {requests: {cpu: 10m, memory: 1Mi}}}\n", i)
	}
	s, _, err := Read([]Source{from("x", b.String())}, Options{})
	if err != nil {
		t.Fatal(err)
	}
	if got := s.Pods[0].Spec.Requests; got.CPU != 3000 || got.Memory != 300<<20 {
		t.Errorf("requests %v", got)
	}
}

// TestManyProblems: reading stops after 20, and says so.
func TestManyProblems(t *testing.T) {
	_, _, err := Read([]Source{repeated("x", "", "---\nkind: Pod\n", 1000, "")}, Options{})
	lines := strings.Split(message(err), "\n")
	if len(lines) != 21 || lines[20] != "(reading stopped after 20 problems)" || !strings.HasPrefix(lines[19], "x: document 20 (line 40): ") {
		t.Errorf("%d lines, the last %q, %q", len(lines), lines[len(lines)-2], lines[len(lines)-1])
	}
}

// TestManyReplicas: an absurd number of replicas is capped, with a warning.
func TestManyReplicas(t *testing.T) {
	s, report, err := Read([]Source{from("x", "apiVersion: apps/v1\nkind: Deployment\nmetadata: {name: d}\nspec: {replicas: 2000000000, template: {spec: {containers: []}}}\n")}, Options{Workloads: true})
	if err != nil {
		t.Fatal(err)
	}
	want := plan.Warning{Object: "deployment/default/d", Code: plan.StepLimit, Detail: "10000 pods are planned for its 2000000000 replicas: the most of one workload"}
	if len(s.Pods) != 10_000 || len(report.Warnings) != 1 || report.Warnings[0] != want {
		t.Errorf("%d pods, warnings %v", len(s.Pods), report.Warnings)
	}
}

// TestLargeInput: 200 MB of pods are read, in a fraction of that.
func TestLargeInput(t *testing.T) {
	pod := "- apiVersion: v1\n  kind: ConfigMap\n  metadata:\n    name: x\n  data:\n    text: |\n" + strings.Repeat("      0123456789 and so on\n", 400)
	n := 200_000_000 / len(pod)
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	_, report, err := Read([]Source{repeated("big.yaml", "apiVersion: v1\nitems:\n", pod, n, "kind: List\n")}, Options{})
	if err != nil {
		t.Fatal(err)
	}
	runtime.ReadMemStats(&after)
	if report.Ignored["ConfigMap"] != n {
		t.Errorf("%d objects, want %d", report.Ignored["ConfigMap"], n)
	}
	if grown := int64(after.HeapSys) - int64(before.HeapSys); grown > 64<<20 {
		t.Errorf("the heap grew by %d MiB", grown>>20)
	}
}
