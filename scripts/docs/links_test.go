package main

import (
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"kerf.sh/kerf/internal/config"
	"kerf.sh/kerf/internal/doctor"
	"kerf.sh/kerf/internal/plan"
)

// texts are what people read: the pages of docs and those at the root.
func texts(t *testing.T) map[string]string {
	t.Helper()
	root := filepath.Join("..", "..")
	out := map[string]string{}
	for _, pattern := range []string{"*.md", "docs/*.md", "docs/adr/*.md"} {
		files, err := filepath.Glob(filepath.Join(root, pattern))
		if err != nil || len(files) == 0 {
			t.Fatalf("%s: %v", pattern, err)
		}
		for _, f := range files {
			text, err := os.ReadFile(f)
			if err != nil {
				t.Fatal(err)
			}
			out[f] = string(text)
		}
	}
	return out
}

func read(t *testing.T, file string) string {
	t.Helper()
	text, err := os.ReadFile(filepath.Join("..", "..", file))
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

var (
	link    = regexp.MustCompile(`\]\(([^)\s]+)\)`)
	command = regexp.MustCompile("(?:`|^|&& |then )make ([a-z][a-z0-9-]*)")
	event   = regexp.MustCompile(`EVENT=(events/[^\s` + "`" + `'"]+)`)
	target  = regexp.MustCompile(`(?m)^([a-z][a-z0-9-]*):`)
	context = regexp.MustCompile(`-c ([A-Za-z_]+)=`)
	key     = regexp.MustCompile("(?m)^\\| `([A-Za-z]+)` \\|")
	setting = regexp.MustCompile(`\bKERF_[A-Z_]+\b`)
	code    = regexp.MustCompile("`([A-Z][a-z]+[A-Za-z]*)`")
)

// TestTextsDoNotRot: what the pages point at is there: files, targets of the Makefile,
// payloads, keys of the context, settings.
func TestTextsDoNotRot(t *testing.T) {
	makefile := read(t, "Makefile")
	var targets, keys, settings []string
	for _, m := range target.FindAllStringSubmatch(makefile, -1) {
		targets = append(targets, m[1])
	}
	for _, m := range key.FindAllStringSubmatch(read(t, "docs/stack.md"), -1) {
		keys = append(keys, m[1])
	}
	for _, s := range config.Table() {
		keys, settings = append(keys, s.Key), append(settings, s.Key)
	}
	settings = append(settings, "KERF_KUBERNETES", "KERF_EMULATOR")
	for file, text := range texts(t) {
		bad := func(format string, args ...any) { t.Helper(); t.Errorf(file+": "+format, args...) }
		for _, m := range link.FindAllStringSubmatch(text, -1) {
			to, _, _ := strings.Cut(m[1], "#")
			if to == "" || strings.Contains(to, "://") || strings.HasPrefix(to, "mailto:") {
				continue
			}
			if _, err := os.Stat(filepath.Join(filepath.Dir(file), to)); err != nil {
				bad("there is no %s", to)
			}
		}
		for line := range strings.Lines(text) {
			for _, m := range command.FindAllStringSubmatch(line, -1) {
				if !slices.Contains(targets, m[1]) {
					bad("there is no target %s: %s", m[1], strings.TrimSpace(line))
				}
			}
		}
		for _, m := range event.FindAllStringSubmatch(text, -1) {
			if _, err := os.Stat(filepath.Join("..", "..", m[1])); err != nil {
				bad("there is no %s", m[1])
			}
		}
		for _, m := range context.FindAllStringSubmatch(text, -1) {
			if !slices.Contains(append(keys, "key", "KEY"), m[1]) {
				bad("there is no key %s of the context", m[1])
			}
		}
		for _, m := range setting.FindAllString(text, -1) {
			if !slices.Contains(settings, m) {
				bad("there is no setting %s", m)
			}
		}
	}
}

// TestSymptoms: a code in the page on troubleshooting is one that somebody may see.
func TestSymptoms(t *testing.T) {
	var known []string
	for _, c := range doctor.Codes() {
		known = append(known, string(c))
	}
	for _, c := range plan.Codes() {
		known = append(known, string(c.Code))
	}
	// What others say: kubelet, EC2, CloudFormation, our alarms, an outcome of a sweep.
	known = append(known, "NotReady", "SchedulingDisabled", "Unauthorized", "UnauthorizedOperation", "VcpuLimitExceeded", "MaxSpotInstanceCountExceeded",
		"InsufficientFreeAddressesInSubnet", "RequestLimitExceeded", "MassRemoval", "Refused", "NoTick", "WorkDied", "Cluster", "NoticeDeadLettersUrl", "WorkDeadLettersUrl")
	for _, m := range code.FindAllStringSubmatch(read(t, "docs/troubleshooting.md"), -1) {
		if !slices.Contains(known, m[1]) {
			t.Errorf("nobody says %s", m[1])
		}
	}
}
