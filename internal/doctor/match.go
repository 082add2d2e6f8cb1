package doctor

import (
	"fmt"
	"maps"
	"slices"
	"strings"
)

// glob matches as EC2's filters do: * is any text, ? any character, and a backslash takes
// their meaning from them.
func glob(pattern, s string) bool {
	for pattern != "" {
		switch c := pattern[0]; {
		case c == '*':
			for i := 0; i <= len(s); i++ {
				if glob(pattern[1:], s[i:]) {
					return true
				}
			}
			return false
		case s == "":
			return false
		case c == '?':
		case c == '\\' && len(pattern) > 1:
			pattern = pattern[1:]
			if pattern[0] != s[0] {
				return false
			}
		case c != s[0]:
			return false
		}
		pattern, s = pattern[1:], s[1:]
	}
	return s == ""
}

// matches reports whether a term selects what has an id, a name and tags.
func (t *Term) matches(id, name string, tags map[string]string) bool {
	switch {
	case t.ID != "":
		return t.ID == id
	case t.Name != "":
		return glob(t.Name, name)
	}
	for k, v := range t.Tags {
		have, ok := tags[k]
		if !ok || v != "*" && !glob(v, have) {
			return false
		}
	}
	return len(t.Tags) > 0
}

func (t *Term) String() string {
	switch {
	case t.ID != "":
		return "id " + t.ID
	case t.Name != "":
		return "name " + t.Name
	}
	var out []string
	for _, k := range slices.Sorted(maps.Keys(t.Tags)) {
		out = append(out, k+"="+t.Tags[k])
	}
	return "tags " + strings.Join(out, ", ")
}

// tagged is what a term is held against.
type tagged struct {
	id, name string
	tags     map[string]string
}

// near says how far a term is from what there is: for each tag, what has it otherwise.
func (t *Term) near(all []tagged, what string) string {
	if len(all) == 0 {
		return "there is no " + what + " in the cluster's VPC"
	}
	have := fmt.Sprintf("there are %s: ", count(len(all), what))
	switch {
	case t.ID != "":
		return have + "none has that id"
	case t.Name != "":
		var names []string
		for _, x := range all {
			names = append(names, x.name)
		}
		slices.Sort(names)
		return have + some(slices.Compact(names), 4)
	}
	var parts []string
	for _, k := range slices.Sorted(maps.Keys(t.Tags)) {
		values, right := map[string]int{}, 0
		for _, x := range all {
			if v, ok := x.tags[k]; ok {
				values[v]++
				if t.Tags[k] == "*" || glob(t.Tags[k], v) {
					right++
				}
			}
		}
		switch {
		case len(values) == 0:
			parts = append(parts, "none has a tag "+k)
		case right == 0:
			var others []string
			for _, v := range slices.Sorted(maps.Keys(values)) {
				others = append(others, fmt.Sprintf("%d with %q", values[v], v))
			}
			parts = append(parts, "tag "+k+" is there "+some(others, 4))
		default:
			parts = append(parts, fmt.Sprintf("%d have %s=%s", right, k, t.Tags[k]))
		}
	}
	return have + strings.Join(parts, "; ")
}

// tagging gives what a term selects the tags that it lacks, "" where that is no way.
func (w *walk) tagging(t *Term, ids []string) string {
	if len(t.Tags) == 0 || len(ids) == 0 || slices.ContainsFunc(slices.Collect(maps.Values(t.Tags)), func(v string) bool { return strings.ContainsAny(v, "*?\\") }) {
		return ""
	}
	var tags []string
	for _, k := range slices.Sorted(maps.Keys(t.Tags)) {
		tags = append(tags, "Key="+k+",Value="+t.Tags[k])
	}
	return w.aws("ec2 create-tags --resources %s --tags %s", strings.Join(ids, " "), strings.Join(tags, " "))
}
