package main

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// A whole run on two workloads, without Karpenter; then its report again from the file.
func TestARunAndItsReportAgain(t *testing.T) {
	dir := t.TempDir()
	var out, log bytes.Buffer
	args := []string{"-smoke", "-karpenter", "0", "-world=false", "-seed", "3", "-drawn", "0", "-check", "-only", "^(mixedweb|uniform)-100, cap 32$", "-out", dir}
	if err := run(args, &out, &log); err != nil {
		t.Fatalf("%v\n%s%s", err, out.String(), log.String())
	}
	for _, want := range []string{"mixedweb-100", "uniform-100", "pass", "not measured"} {
		if !strings.Contains(out.String(), want) {
			t.Errorf("%q is missing in\n%s", want, out.String())
		}
	}
	first, err := os.ReadFile(filepath.Join(dir, "results.md"))
	if err != nil {
		t.Fatal(err)
	}
	again := t.TempDir()
	if err := run([]string{"-from", filepath.Join(dir, "results.json"), "-out", again}, &out, &log); err != nil {
		t.Fatal(err)
	}
	second, err := os.ReadFile(filepath.Join(again, "results.md"))
	if err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(first, second) {
		t.Errorf("the report from the file differs:\n%s\n--- from the run:\n%s", second, first)
	}
}

func TestCheckFailsOnQualityAndOnThatAlone(t *testing.T) {
	const dear = `{"rows": [{"workload": "x", "kind": "memcpu", "pods": 1000, "kerf": {"cpuSeconds": 1, "priceOverBound": 1.5}}]}`
	const slow = `{"rows": [{"workload": "x", "kind": "memcpu", "pods": 50000, "kerf": {"cpuSeconds": 99, "priceOverBound": 1.0}}]}`
	for _, c := range []struct {
		name, content string
		args          []string
		want          error
	}{
		{"dear, checked", dear, []string{"-check"}, errTargets},
		{"dear, not checked", dear, nil, nil},
		{"slow, checked", slow, []string{"-check"}, nil},
	} {
		file := filepath.Join(t.TempDir(), "results.json")
		if err := os.WriteFile(file, []byte(c.content), 0o600); err != nil {
			t.Fatal(err)
		}
		var out, log bytes.Buffer
		if err := run(append(c.args, "-from", file, "-out", t.TempDir()), &out, &log); err != c.want {
			t.Errorf("%s: error %v, want %v\n%s", c.name, err, c.want, out.String())
		}
	}
}
