package main

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"path"
	"regexp"
	"slices"
	"strings"
)

// rule is a pattern that no line of some files may match.
type rule struct {
	pattern *regexp.Regexp
	applies func(file string) bool
	why     string
}

var rules = []rule{
	{regexp.MustCompile(`\b(TODO|FIXME|XXX)\b`), source, "unfinished work: finish it, or file an issue"},
	{regexp.MustCompile(`\b[tb]\.(Skip|Skipf|SkipNow)\(|\btesting\.Short\(\)`), goTest, "a test that can skip itself proves nothing"},
	{regexp.MustCompile(`(^|[\s"'=(:])/(work|tmp|root|home|farm)/`), anywhere, "a path of one machine"},
	{regexp.MustCompile(`\b(proxy\.golang\.org|registry\.npmjs\.org|pypi\.org|files\.pythonhosted\.org|static\.crates\.io|repo1?\.maven\.org|deb\.debian\.org)\b`), anywhere, "the host of a registry: the ordinary clients know it"},
	{regexp.MustCompile(`[ \t]+$`), goOrShell, "trailing space"},
}

func source(f string) bool    { return goOrShell(f) || path.Base(f) == "Makefile" }
func goTest(f string) bool    { return strings.HasSuffix(f, "_test.go") }
func goOrShell(f string) bool { return strings.HasSuffix(f, ".go") || strings.HasSuffix(f, ".sh") }
func anywhere(f string) bool {
	return path.Base(f) != "go.sum" && !strings.HasPrefix(f, "events/")
}

// own is this folder: it has to write the words that it looks for.
const own = "scripts/lint/"

// checkFiles applies the rules to the named files. The answer is "file:line: why".
func checkFiles(root fs.FS, files map[string]bool) ([]string, error) {
	var out []string
	for _, name := range slices.Sorted(maps.Keys(files)) {
		if strings.HasPrefix(name, own) {
			continue
		}
		data, err := fs.ReadFile(root, name)
		if errors.Is(err, fs.ErrNotExist) {
			continue // deleted, not yet committed
		}
		if err != nil {
			return nil, err
		}
		if bytes.IndexByte(data[:min(len(data), 8000)], 0) >= 0 {
			continue // binary
		}
		n := 0
		for line := range bytes.Lines(data) {
			n++
			text := strings.TrimRight(string(line), "\n")
			for _, r := range rules {
				if r.applies(name) && r.pattern.MatchString(text) {
					out = append(out, fmt.Sprintf("%s:%d: %s: %s", name, n, r.why, strings.TrimSpace(clip(text))))
				}
			}
		}
		if strings.HasSuffix(name, ".md") {
			out = append(out, deadLinks(name, data, files)...)
		}
	}
	return out, nil
}

// link is the target of an inline Markdown link.
var link = regexp.MustCompile(`\]\(([^)\s]+)\)`)

// deadLinks reports links to files of the repository that are not there.
func deadLinks(name string, data []byte, files map[string]bool) []string {
	var out []string
	for _, m := range link.FindAllSubmatch(data, -1) {
		target, _, _ := strings.Cut(string(m[1]), "#")
		if target == "" || strings.Contains(target, "://") || strings.HasPrefix(target, "mailto:") {
			continue
		}
		p := path.Join(path.Dir(name), target)
		if !files[p] && !folder(p, files) {
			out = append(out, fmt.Sprintf("%s: links to %s, which does not exist", name, target))
		}
	}
	return out
}

func folder(p string, files map[string]bool) bool {
	for f := range files {
		if strings.HasPrefix(f, p+"/") {
			return true
		}
	}
	return false
}

func clip(s string) string {
	if len(s) > 120 {
		return s[:120] + "..."
	}
	return s
}
