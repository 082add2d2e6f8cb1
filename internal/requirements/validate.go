package requirements

import (
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	"kerf.sh/kerf/internal/snapshot"
)

// Limits of the NodePool schema (karpenter.sh/v1).
const (
	maxRequirements = 100
	maxLabels       = 100
	maxMinValues    = 50
	maxKeyLength    = 316
)

// ValidatePool returns everything that makes a NodePool's requirements, template
// labels and taints invalid, in field order; nil when they are valid. Each error
// names the field, the value and what to do. It judges what Karpenter's schema
// and its runtime validation judge. Requirements of one key that contradict each
// other are valid: the pool just has no instance types.
func ValidatePool(reqs []snapshot.SelectorRequirement, templateLabels map[string]string, taints, startupTaints []snapshot.Taint) []error {
	var errs []error
	bad := func(field, format string, args ...any) {
		errs = append(errs, fmt.Errorf(field+": "+format, args...))
	}
	if len(templateLabels) > maxLabels {
		bad("spec.template.metadata.labels", "%d labels, more than %d: remove some", len(templateLabels), maxLabels)
	}
	for _, k := range slices.Sorted(maps.Keys(templateLabels)) {
		for _, msg := range checkPoolLabel(k, templateLabels[k]) {
			bad("spec.template.metadata.labels["+k+"]", "%s", msg)
		}
	}
	if len(reqs) > maxRequirements {
		bad("spec.template.spec.requirements", "%d requirements, more than %d: remove some", len(reqs), maxRequirements)
	}
	for i, r := range reqs {
		for _, msg := range checkPoolRequirement(r) {
			bad("spec.template.spec.requirements["+strconv.Itoa(i)+"]", "%s", msg)
		}
	}
	seen := map[[2]string]string{}
	for _, list := range []struct {
		field  string
		taints []snapshot.Taint
	}{{"spec.template.spec.taints", taints}, {"spec.template.spec.startupTaints", startupTaints}} {
		for i, t := range list.taints {
			field := list.field + "[" + strconv.Itoa(i) + "]"
			for _, msg := range checkTaint(t) {
				bad(field, "%s", msg)
			}
			id := [2]string{t.Key, t.Effect}
			if first, ok := seen[id]; ok {
				bad(field, "taint %s:%s repeats %s: remove one", t.Key, t.Effect, first)
			} else {
				seen[id] = field
			}
		}
	}
	return errs
}

func checkPoolLabel(key, value string) []string {
	var out []string
	if msg := checkLabelKey(key); msg != "" {
		out = append(out, fmt.Sprintf("label key %q: %s", key, msg))
	}
	if msg := checkLabelValue(value); msg != "" {
		out = append(out, fmt.Sprintf("value %q: %s", value, msg))
	}
	if key == labelNodePool {
		out = append(out, "label "+key+" is set by the autoscaler: remove it")
	}
	if err := Restricted(key); err != nil {
		out = append(out, err.Error())
	}
	return out
}

func checkPoolRequirement(r snapshot.SelectorRequirement) []string {
	var out []string
	if len(r.Key) > maxKeyLength {
		out = append(out, fmt.Sprintf("label key has %d characters, more than %d", len(r.Key), maxKeyLength))
	}
	if r.MinValues > maxMinValues {
		out = append(out, fmt.Sprintf("%s: minValues %d is more than %d: lower it", r.Key, r.MinValues, maxMinValues))
	}
	if _, err := New(r); err != nil {
		out = append(out, err.Error())
	}
	key := Normalize(r.Key)
	if key == labelNodePool {
		out = append(out, "label "+key+" is set by the autoscaler: remove the requirement")
	}
	if err := Restricted(key); err != nil {
		out = append(out, err.Error())
	}
	if r.Operator == OpIn {
		out = append(out, checkKnownValues(key, r)...)
	}
	return out
}

// checkKnownValues: only when no value is known is the pool invalid; an unknown
// value next to a known one just never matches.
func checkKnownValues(key string, r snapshot.SelectorRequirement) []string {
	all, closed := knownValues[key]
	if !closed || len(r.Values) == 0 {
		return nil
	}
	n := 0
	for _, v := range sortedUnique(r.Values) {
		if slices.Contains(all, v) {
			n++
		}
	}
	switch {
	case n == 0:
		return []string{fmt.Sprintf("%s In %q: no known value: use %s", r.Key, r.Values, strings.Join(all, ", "))}
	case n < r.MinValues:
		return []string{fmt.Sprintf("%s In %q: %d known values, fewer than minValues %d: use more of %s", r.Key, r.Values, n, r.MinValues, strings.Join(all, ", "))}
	}
	return nil
}

func checkTaint(t snapshot.Taint) []string {
	var out []string
	if msg := checkLabelKey(t.Key); msg != "" {
		out = append(out, fmt.Sprintf("taint key %q: %s", t.Key, msg))
	}
	if msg := checkLabelValue(t.Value); msg != "" {
		out = append(out, fmt.Sprintf("taint %s: value %q: %s", t.Key, t.Value, msg))
	}
	switch t.Effect {
	case "NoSchedule", "PreferNoSchedule", "NoExecute":
	default:
		out = append(out, fmt.Sprintf("taint %s: effect %q: use NoSchedule, PreferNoSchedule or NoExecute", t.Key, t.Effect))
	}
	return out
}
