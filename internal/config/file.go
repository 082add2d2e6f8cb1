package config

import (
	"errors"
	"fmt"
	"regexp"
	"strings"

	"go.yaml.in/yaml/v3"
)

// assignment is a line KEY=VALUE, with an optional "export".
var assignment = regexp.MustCompile(`^(?:export\s+)?([A-Za-z_][A-Za-z0-9_]*)\s*=(.*)$`)

// ParseSet reads one --set KEY=VALUE.
func ParseSet(s string) (Pair, error) {
	k, v, ok := strings.Cut(s, "=")
	if k = strings.TrimSpace(k); !ok || k == "" {
		return Pair{}, errors.New("want KEY=VALUE")
	}
	return Pair{Key: k, Value: v, From: "--set"}, nil
}

// ParseFile reads a settings file: KEY=VALUE lines (# starts a comment line,
// values may be quoted) or a flat map in YAML or JSON. Errors name the file and
// the line.
func ParseFile(name string, data []byte) ([]Pair, error) {
	text := strings.TrimPrefix(string(data), "\ufeff")
	if isAssignments(text) {
		return parseLines(name, text)
	}
	return parseMap(name, text)
}

// isAssignments looks at the first line that says something.
func isAssignments(text string) bool {
	for line := range strings.Lines(text) {
		line = strings.TrimSpace(line)
		if line == "" || strings.HasPrefix(line, "#") {
			continue
		}
		return assignment.MatchString(line)
	}
	return true
}

func parseLines(name, text string) ([]Pair, error) {
	var pairs []Pair
	var problems []error
	seen := map[string]int{}
	n := 0
	for line := range strings.Lines(text) {
		n++
		line = strings.TrimSpace(line)
		if line == "" || strings.HasPrefix(line, "#") {
			continue
		}
		from := fmt.Sprintf("%s line %d", name, n)
		m := assignment.FindStringSubmatch(line)
		if m == nil {
			problems = append(problems, fmt.Errorf("%s: %q: want KEY=VALUE", from, line))
			continue
		}
		if first, ok := seen[m[1]]; ok {
			problems = append(problems, fmt.Errorf("%s: %s is already set in line %d", from, m[1], first))
			continue
		}
		seen[m[1]] = n
		pairs = append(pairs, Pair{Key: m[1], Value: unquote(m[2]), From: from})
	}
	return pairs, errors.Join(problems...)
}

func unquote(v string) string {
	v = strings.TrimSpace(v)
	if len(v) >= 2 && (v[0] == '"' || v[0] == '\'') && v[len(v)-1] == v[0] {
		return v[1 : len(v)-1]
	}
	return v
}

func parseMap(name, text string) ([]Pair, error) {
	var doc yaml.Node
	if err := yaml.Unmarshal([]byte(text), &doc); err != nil {
		return nil, fmt.Errorf("read settings %s: %w", name, err)
	}
	if len(doc.Content) == 0 {
		return nil, nil
	}
	root := doc.Content[0]
	if root.Tag == "!!null" {
		return nil, nil
	}
	if root.Kind != yaml.MappingNode {
		return nil, fmt.Errorf("read settings %s: line %d: want KEY=VALUE lines or a map of KEY: value", name, root.Line)
	}
	var pairs []Pair
	var problems []error
	seen := map[string]int{}
	for i := 0; i+1 < len(root.Content); i += 2 {
		k, v := root.Content[i], root.Content[i+1]
		from := fmt.Sprintf("%s line %d", name, k.Line)
		if first, ok := seen[k.Value]; ok {
			problems = append(problems, fmt.Errorf("%s: %s is already set in line %d", from, k.Value, first))
			continue
		}
		seen[k.Value] = k.Line
		text, ok := scalar(v)
		if !ok {
			problems = append(problems, fmt.Errorf("%s: %s: want one value, or a map of Gate: true for FEATURE_GATES", from, k.Value))
			continue
		}
		pairs = append(pairs, Pair{Key: k.Value, Value: text, From: from})
	}
	return pairs, errors.Join(problems...)
}

// scalar gives a value as it was written; a map of scalars (FEATURE_GATES) is
// joined as a=b,c=d.
func scalar(n *yaml.Node) (string, bool) {
	switch n.Kind {
	case yaml.ScalarNode:
		if n.Tag == "!!null" {
			return "", true
		}
		return n.Value, true
	case yaml.MappingNode:
		var parts []string
		for i := 0; i+1 < len(n.Content); i += 2 {
			if n.Content[i+1].Kind != yaml.ScalarNode {
				return "", false
			}
			parts = append(parts, n.Content[i].Value+"="+n.Content[i+1].Value)
		}
		return strings.Join(parts, ","), true
	}
	return "", false
}
