package app_test

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/cockroachdb/datadriven"

	"kerf.sh/kerf/internal/app"
)

// run drives the command in this process.
func run(args []string, stdin string) (status int, stdout, stderr string) {
	var out, err bytes.Buffer
	status = app.Main(args, strings.NewReader(stdin), &out, &err, nil)
	return status, out.String(), err.String()
}

// TestCommand: in testdata/command.txt, "plan" takes arguments as a shell would
// split them (the first line of the input, quotes and all left out) and answers
// what is written and the exit status. Lines after the first are standard input.
// @ stands for testdata/files.
func TestCommand(t *testing.T) {
	datadriven.RunTest(t, "testdata/command.txt", func(t *testing.T, d *datadriven.TestData) string {
		line, stdin, _ := strings.Cut(d.Input, "\n")
		dir := t.TempDir()
		in := strings.NewReplacer("@", "testdata/files", "TMP", dir)
		status, stdout, stderr := run(strings.Fields(in.Replace(line)), stdin)
		out := strings.NewReplacer("testdata/files", "@", dir, "TMP")
		var b strings.Builder
		if !d.HasArg("quiet") {
			b.WriteString(grep(t, d, stdout))
		}
		for l := range strings.Lines(stderr) {
			b.WriteString("stderr: " + out.Replace(l))
		}
		fmt.Fprintf(&b, "exit %d\n", status)
		return b.String()
	})
}

func TestSavedSnapshotGivesTheSamePlan(t *testing.T) {
	dir := t.TempDir()
	saved := filepath.Join(dir, "snapshot.json")
	base := []string{"-o", "json", "--catalog", "testdata/files/catalog.json"}
	args := append([]string{"-f", "testdata/files/world.yaml", "--now", "2026-03-04T12:00:00Z", "--seed", "7", "--cluster", "c", "--set", "RESERVED_ENIS=1", "--save-snapshot", saved}, base...)
	status, want, stderr := run(args, "")
	if status != 0 {
		t.Fatalf("exit %d: %s", status, stderr)
	}
	status, got, stderr := run(append([]string{"-f", saved}, base...), "")
	if status != 0 || got != want {
		t.Errorf("exit %d: %s\n%s\nwant\n%s", status, stderr, got, want)
	}
	if files, err := os.ReadDir(dir); err != nil || len(files) != 1 {
		t.Errorf("files are left behind: %v %v", files, err)
	}
	// What is given on the command line wins over what is saved.
	_, other, _ := run(append([]string{"-f", saved, "--cluster", "other"}, base...), "")
	if !strings.Contains(other, `"cluster": "other"`) {
		t.Error("--cluster does not win over the saved name")
	}
}

func TestSavedSnapshotKeepsRemarks(t *testing.T) {
	world := `{apiVersion: v1, kind: LimitRange, metadata: {name: l, namespace: ns}, spec: {limits: [{type: Container, defaultRequest: {cpu: "1"}}]}}
---
{apiVersion: v1, kind: Pod, metadata: {name: a, namespace: ns}, spec: {containers: [{name: c}]}}
---
{apiVersion: v1, kind: Pod, metadata: {name: a, namespace: ns}, spec: {containers: [{name: c}]}}
`
	saved := filepath.Join(t.TempDir(), "snapshot.json")
	base := []string{"-o", "json", "-f"}
	status, want, said := run(append([]string{"--now", "2026-03-04T12:00:00Z", "--save-snapshot", saved}, append(base, "-")...), world)
	if status != 3 || !strings.Contains(want, "EmulatedAdmission") || !strings.Contains(said, "left out: ") {
		t.Fatalf("exit %d: %s\n%s", status, said, want)
	}
	for range 2 { // read, then read what was saved of the reading
		status, got, again := run(append([]string{"--save-snapshot", saved}, append(base, saved)...), "")
		if status != 3 || got != want || again != said {
			t.Errorf("exit %d: %s\n%s\nwant\n%s\n%s", status, again, got, said, want)
		}
	}
}

func TestWorkloadsWithoutPodsAreMentioned(t *testing.T) {
	world := `{apiVersion: apps/v1, kind: Deployment, metadata: {name: a}, spec: {selector: {}, template: {spec: {containers: [{name: c}]}}}}`
	const hint = "1 workload but no pod in the input: --workloads plans the pods that they would have"
	for _, tc := range []struct {
		args []string
		want bool
	}{{[]string{"-f", "-"}, true}, {[]string{"-f", "-", "--workloads"}, false}} {
		if _, _, said := run(tc.args, world); strings.Contains(said, hint) != tc.want {
			t.Errorf("%v: hint wanted: %v; said %s", tc.args, tc.want, said)
		}
	}
}

func TestPoolLeftOutIsNamedWhereItIsMissed(t *testing.T) {
	world := `{apiVersion: karpenter.sh/v1, kind: NodePool, metadata: {name: general}, spec: {disruption: {consolidateAfter: soon}, template: {spec: {requirements: [], nodeClassRef: {group: karpenter.k8s.aws, kind: EC2NodeClass, name: default}}}}}
---
{apiVersion: v1, kind: Pod, metadata: {name: a}, spec: {containers: [{name: c}]}}
`
	status, out, _ := run([]string{"-f", "-", "-o", "json"}, world)
	if status != 3 || !strings.Contains(out, "there is no NodePool, and no existing node can host the pod (left out of the reading: general)") {
		t.Errorf("exit %d: %s", status, out)
	}
}

func TestCatalogueGivesTheRegionThatNobodyNames(t *testing.T) {
	file := filepath.Join(t.TempDir(), "catalog.json")
	if err := os.WriteFile(file, []byte(`{"region": "eu-west-9", "instanceTypes": []}`), 0o600); err != nil {
		t.Fatal(err)
	}
	base := []string{"-f", "testdata/files/world.yaml", "-o", "json", "--catalog", file}
	if _, out, _ := run(base, ""); !strings.Contains(out, `"region": "eu-west-9"`) || strings.Contains(out, "CatalogueOfOtherRegion") {
		t.Error(out)
	}
	if _, out, _ := run(append(base, "--region", "us-east-1"), ""); !strings.Contains(out, `"region": "us-east-1"`) || !strings.Contains(out, "CatalogueOfOtherRegion") {
		t.Error(out)
	}
}

func TestShuffledFilesGiveTheSamePlan(t *testing.T) {
	args := func(files ...string) []string {
		out := []string{"--now", "2026-03-04T12:00:00Z", "-o", "json"}
		for _, f := range files {
			out = append(out, "-f", "testdata/files/"+f)
		}
		return out
	}
	_, a, _ := run(args("world.yaml", "more.yaml"), "")
	_, b, _ := run(args("more.yaml", "world.yaml"), "")
	if a != b || !strings.Contains(a, "ns/extra") {
		t.Errorf("the order of files changes the plan:\n%s\n%s", a, b)
	}
}

type brokenPipe struct{}

func (brokenPipe) Write([]byte) (int, error) { return 0, os.ErrClosed }

func TestAnswerThatCannotBeWritten(t *testing.T) {
	var stderr bytes.Buffer
	status := app.Main([]string{"-f", "testdata/files/world.yaml"}, nil, brokenPipe{}, &stderr, nil)
	if status != 2 || !strings.Contains(stderr.String(), "write the answer") {
		t.Errorf("exit %d: %s", status, &stderr)
	}
	if status := app.Main([]string{"-h"}, nil, brokenPipe{}, &stderr, nil); status != 2 {
		t.Errorf("usage to a broken pipe: exit %d", status)
	}
}

func TestHTMLToFile(t *testing.T) {
	status, out, stderr := run([]string{"-f", "testdata/files/world.yaml", "-o", "html"}, "")
	if status != 0 || !strings.HasPrefix(out, "<!DOCTYPE html>") || !strings.Contains(out, "ns/web-*") {
		t.Errorf("exit %d %s: %.200s", status, stderr, out)
	}
}

// TestRecover: a panic becomes a message that asks for a report, with what a
// report needs, and the status of no plan.
func TestRecover(t *testing.T) {
	var stderr bytes.Buffer
	status := -1
	func() {
		defer app.Recover(&stderr, func(s int) { status = s })
		panic("something that cannot be")
	}()
	for _, want := range []string{"a bug in Kerf", "something that cannot be", "Please report", "TestRecover"} {
		if !strings.Contains(stderr.String(), want) {
			t.Errorf("%q is not in\n%s", want, &stderr)
		}
	}
	if status != 2 {
		t.Errorf("exit %d, want 2", status)
	}
	stderr.Reset()
	func() { defer app.Recover(&stderr, func(int) { t.Error("exit without a panic") }) }()
	if stderr.Len() > 0 {
		t.Errorf("a message without a panic: %s", &stderr)
	}
}
