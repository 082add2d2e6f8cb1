package main

import (
	"strings"
	"testing"
	"testing/fstest"
)

// TestRules proves of each rule that it finds something, and where it looks away.
func TestRules(t *testing.T) {
	tests := []struct {
		name, file, text string
		want             string // part of the one finding; "" = none
	}{
		{"unfinished work", "internal/kube/a.go", "package a\n// TODO: more\n", "internal/kube/a.go:2: unfinished work"},
		{"unfinished work in the Makefile", "Makefile", "# FIXME\n", "Makefile:1: unfinished work"},
		{"prose may speak of it", "README.md", "no TODO is left\n", ""},
		{"a skipped test", "internal/kube/a_test.go", "\tt.Skip(\"slow\")\n", "a test that can skip itself"},
		{"a short test", "internal/kube/a_test.go", "\tif testing.Short() {\n", "a test that can skip itself"},
		{"another Skip", "internal/kube/a.go", "\tdec.Skip()\n", ""},
		{"a machine's path", "docs/a.md", "see /work/main/x\n", "docs/a.md:1: a path of one machine"},
		{"a machine's path in quotes", "internal/kube/a.go", "\tp := \"/tmp/x\"\n", "a path of one machine"},
		{"a path in the repository", "docs/a.md", "see internal/work/main and https://example.com/tmp/x\n", ""},
		{"a registry", "Makefile", "GOPROXY=https://proxy.golang.org\n", "the host of a registry"},
		{"a registry in a world", "events/worlds/a.yaml", "image: registry.npmjs.org/x\n", ""},
		{"trailing space", "internal/kube/a.go", "package a \n", "trailing space"},
		{"a dead link", "docs/a.md", "[x](../other.md)\n", "docs/a.md: links to ../other.md, which does not exist"},
		{"links that hold", "docs/a.md", "[x](b.md#part) [y](#part) [z](https://example.com/x.md) [d](../internal/kube)\n", ""},
		{"a binary file", "docs/a.png", "\x00TODO /tmp/x \n", ""},
		{"this folder", "scripts/lint/words.go", "// TODO /tmp/x \n", ""},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			files := map[string]bool{tt.file: true, "docs/b.md": true, "internal/kube/doc.go": true, "deleted.go": true}
			got, err := checkFiles(fstest.MapFS{
				tt.file:                {Data: []byte(tt.text)},
				"docs/b.md":            {Data: []byte("text\n")},
				"internal/kube/doc.go": {Data: []byte("package kube\n")},
			}, files)
			if err != nil {
				t.Fatal(err)
			}
			if tt.want == "" && len(got) > 0 || tt.want != "" && (len(got) != 1 || !strings.Contains(got[0], tt.want)) {
				t.Errorf("got %q, want %q", got, tt.want)
			}
		})
	}
}
