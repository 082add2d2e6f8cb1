package config

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"kerf.sh/kerf/internal/plan"
)

// Pair is one key with its value and where it was written ("--set",
// "settings.yaml line 3", "environment").
type Pair struct {
	Key, Value, From string
}

// Load reads the environment of a function, given as KEY=VALUE entries
// (os.Environ), over the defaults.
func Load(environ []string) (Config, error) {
	return apply(Default(), environment(environ), Made)
}

// Environment gives the settings of an environment that a plan depends on, for callers
// that put others over them. All of the environment is checked.
func Environment(environ []string) ([]Pair, error) {
	pairs := environment(environ)
	if _, err := apply(Default(), pairs, Made); err != nil {
		return nil, err
	}
	plan := map[string]bool{}
	for _, s := range planner() {
		plan[s.Key] = true
	}
	return slices.DeleteFunc(pairs, func(p Pair) bool { return !plan[p.Key] }), nil
}

// environment picks the settings. Variables that are neither in the table nor
// start with KERF_ belong to somebody else and are left alone.
func environment(environ []string) []Pair {
	known := map[string]bool{}
	for _, s := range Table() {
		known[s.Key] = true
	}
	var pairs []Pair
	for _, kv := range environ {
		k, v, _ := strings.Cut(kv, "=")
		if known[k] || strings.HasPrefix(k, "KERF_") {
			pairs = append(pairs, Pair{Key: k, Value: v, From: "environment"})
		}
	}
	slices.SortFunc(pairs, func(a, b Pair) int { return strings.Compare(a.Key, b.Key) })
	return pairs
}

// Apply sets pairs that a plan depends on over a configuration, later ones over earlier
// ones, and reports every problem at once. The configuration is only to be used when the
// error is nil. errors.Is(err, ErrNotSupported) holds when some setting belongs to
// a feature that is not there yet.
func Apply(c Config, pairs []Pair) (Config, error) { return apply(c, pairs, Planner) }

// Deploy does the same with what a person may set for the functions of a stack.
func Deploy(c Config, pairs []Pair) (Config, error) { return apply(c, pairs, Function) }

// apply takes settings up to a scope.
func apply(c Config, pairs []Pair, most Scope) (Config, error) {
	rows := map[string]Setting{}
	var keys []string
	for _, s := range Table() {
		rows[s.Key] = s
		if s.Scope <= most {
			keys = append(keys, s.Key)
		}
	}
	other := elsewhere()
	var problems []error
	for _, p := range pairs {
		v := strings.TrimSpace(p.Value)
		s, ok := rows[p.Key]
		switch why, isOther := other[p.Key]; {
		case ok && s.Scope > most:
			problems = append(problems, fmt.Errorf("%s: %s: %s", p.From, p.Key, elsewhereSet(s.Scope)))
		case ok && v == "" && s.Default != "":
			// Karpenter reads an empty variable as "not set"; so do we.
		case ok:
			if err := s.parse(&c, v); err != nil {
				problems = append(problems, fmt.Errorf("%s: %s=%q: %w", p.From, p.Key, v, err))
			}
		case isOther:
			problems = append(problems, fmt.Errorf("%s: %s: %w: %s", p.From, p.Key, ErrNotSupported, why))
		default:
			problems = append(problems, fmt.Errorf("%s: setting %q is not known%s", p.From, p.Key, hint(p.Key, keys)))
		}
	}
	return c, errors.Join(problems...)
}

// elsewhereSet says where a setting of a scope belongs.
func elsewhereSet(s Scope) string {
	if s == Function {
		return "it changes no plan; set it for the functions, as context when the stack is deployed"
	}
	return "the stack sets it itself; leave it out"
}

// FromMap gives the pairs of a map, by key.
func FromMap(m map[string]string, from string) []Pair {
	out := make([]Pair, 0, len(m))
	for _, k := range slices.Sorted(maps.Keys(m)) {
		out = append(out, Pair{Key: k, Value: m[k], From: from})
	}
	return out
}

// hint is "; did you mean A or B?", or the full list when nothing is near.
func hint(word string, known []string) string {
	if near := plan.Nearest(word, known, 2); len(near) > 0 {
		return "; did you mean " + strings.Join(near, " or ") + "?"
	}
	return "; known are " + strings.Join(known, ", ")
}
