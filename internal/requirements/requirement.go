package requirements

import (
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"

	"kerf.sh/kerf/internal/snapshot"
)

// Operators of a requirement. Gte and Lte are NodePool operators: Kubernetes does
// not accept them in a pod.
const (
	OpIn           = "In"
	OpNotIn        = "NotIn"
	OpExists       = "Exists"
	OpDoesNotExist = "DoesNotExist"
	OpGt           = "Gt"
	OpLt           = "Lt"
	OpGte          = "Gte"
	OpLte          = "Lte"
)

// operators in the order in which error messages list them.
const operators = "In, NotIn, Exists, DoesNotExist, Gt, Lt, Gte, Lte"

// Requirement is what is allowed of one label: a list of values (allow-list), or
// every value but some (deny-list, complement), within optional bounds; and
// whether the label may be absent. It is a value: methods never change it and it
// may be copied freely. The zero value allows nothing; build with New or In.
type Requirement struct {
	key        string
	rank       uint8    // of a well-known key among them, from 1; 0 = another key
	values     []string // sorted, unique, shared between copies, never written
	lo, hi     int64    // inclusive, when bounded; lo >= 0
	minValues  int
	complement bool // values are denied instead of allowed
	bounded    bool // only with complement: an allow-list is filtered instead
	absent     bool // the label may be absent
}

// New builds the requirement of one selector entry. Alias keys are normalised.
// The error names key, operator and value: an unknown operator, In without values,
// a bound that is not one whole number from 0 that fits 64 bits (kube-scheduler and
// Karpenter take no sign either), values that no label can have, fewer values than
// minValues. As in Karpenter, NotIn without values allows everything and values of
// Exists and DoesNotExist are ignored.
func New(r snapshot.SelectorRequirement) (Requirement, error) {
	q := of(r.Key)
	q.minValues = r.MinValues
	if msg := checkLabelKey(q.key); msg != "" {
		return Requirement{}, fmt.Errorf("label key %q: %s", r.Key, msg)
	}
	if r.MinValues < 0 {
		return Requirement{}, fmt.Errorf("%s %s: minValues %d is negative: use 1 to 50, or leave it out", r.Key, r.Operator, r.MinValues)
	}
	switch r.Operator {
	case OpIn, OpNotIn:
		if len(r.Values) == 0 && r.Operator == OpIn {
			return Requirement{}, fmt.Errorf("%s In: no values given: list at least one", r.Key)
		}
		for _, v := range r.Values {
			if msg := checkLabelValue(v); msg != "" {
				return Requirement{}, fmt.Errorf("%s %s: value %q: %s", r.Key, r.Operator, v, msg)
			}
		}
		q.values = sortedUnique(r.Values)
		if r.Operator == OpNotIn {
			q.complement, q.absent = true, true
			break
		}
		if len(q.values) < r.MinValues {
			return Requirement{}, fmt.Errorf("%s In: %d distinct values, fewer than minValues %d: list more values or lower minValues",
				r.Key, len(q.values), r.MinValues)
		}
	case OpExists, OpDoesNotExist:
		q.complement = r.Operator == OpExists
		q.absent = r.Operator == OpDoesNotExist
	case OpGt, OpLt, OpGte, OpLte:
		if len(r.Values) != 1 {
			return Requirement{}, fmt.Errorf("%s %s: takes exactly one whole number, got %q", r.Key, r.Operator, r.Values)
		}
		n, ok := number(r.Values[0])
		if !ok {
			return Requirement{}, fmt.Errorf("%s %s: value %q: use a whole number from 0 that fits 64 bits", r.Key, r.Operator, r.Values[0])
		}
		q = bound(q, r.Operator, n)
	default:
		return Requirement{}, fmt.Errorf("%s: unknown operator %q: use one of %s", r.Key, r.Operator, operators)
	}
	return q, nil
}

// bound narrows an unbounded q to one bound, n >= 0. Gt of the largest int64 and Lt
// of 0 allow nothing.
func bound(q Requirement, op string, n int64) Requirement {
	q.complement, q.bounded, q.lo, q.hi = true, true, 0, math.MaxInt64
	switch op {
	case OpGt:
		if n == math.MaxInt64 {
			q.lo, q.hi = n, -1
		} else {
			q.lo = n + 1
		}
	case OpGte:
		q.lo = n
	case OpLt:
		q.hi = n - 1
	case OpLte:
		q.hi = n
	}
	return q
}

// of begins a requirement of a key: it allows nothing yet.
func of(key string) Requirement {
	key = Normalize(key)
	i, known := slices.BinarySearch(wellKnown, key)
	if !known {
		return Requirement{key: key}
	}
	return Requirement{key: key, rank: uint8(i + 1)}
}

// compareKeys is strings.Compare of the keys, without reading those of two
// well-known keys: these begin alike and are most of what is compared.
func compareKeys(a, b *Requirement) int {
	if a.rank != 0 && b.rank != 0 {
		return int(a.rank) - int(b.rank)
	}
	return strings.Compare(a.key, b.key)
}

// In allows exactly the given values. Without values it allows nothing.
func In(key string, values ...string) Requirement {
	q := of(key)
	q.values = sortedUnique(values)
	return q
}

// NotIn allows absence and every value but the given ones.
func NotIn(key string, values ...string) Requirement {
	q := In(key, values...)
	q.complement, q.absent = true, true
	return q
}

// Exists allows every value.
func Exists(key string) Requirement {
	q := of(key)
	q.complement = true
	return q
}

// DoesNotExist allows absence only.
func DoesNotExist(key string) Requirement {
	q := of(key)
	q.absent = true
	return q
}

func sortedUnique(values []string) []string {
	if len(values) == 0 {
		return nil
	}
	out := slices.Clone(values)
	slices.Sort(out)
	return slices.Compact(out)
}

// Key is the label's name, normalised.
func (r Requirement) Key() string { return r.key }

// Has reports whether the label may have this value.
func (r Requirement) Has(value string) bool { return r.has(value) }

func (r *Requirement) has(value string) bool {
	if _, listed := slices.BinarySearch(r.values, value); listed == r.complement {
		return false
	}
	return r.inBounds(value)
}

func (r *Requirement) inBounds(value string) bool {
	if !r.bounded {
		return true
	}
	n, ok := number(value)
	return ok && n >= r.lo && n <= r.hi
}

// number reads a label value, or a bound, as kube-scheduler does for Gt and Lt. No
// label value has a sign.
func number(s string) (int64, bool) {
	if s == "" || s[0] < '0' || s[0] > '9' {
		return 0, false
	}
	n, err := strconv.ParseInt(s, 10, 64)
	return n, err == nil
}

// AllowsAbsent reports whether a node without the label satisfies the
// requirement: NotIn and DoesNotExist, and what is left of them.
func (r Requirement) AllowsAbsent() bool { return r.absent }

// Empty reports whether no value is possible. DoesNotExist is empty too; see
// Impossible.
func (r Requirement) Empty() bool { return r.empty() }

func (r *Requirement) empty() bool {
	if r.complement {
		return r.bounded && r.lo > r.hi
	}
	return len(r.values) == 0
}

// Impossible reports whether nothing satisfies the requirement, neither a value
// nor absence: a contradiction, like In [a] met with In [b].
func (r Requirement) Impossible() bool { return r.impossible() }

func (r *Requirement) impossible() bool { return !r.absent && r.empty() }

// Values returns the allowed values, or with complement the denied ones, sorted.
// The slice is shared: do not write to it.
func (r Requirement) Values() (values []string, complement bool) { return r.values, r.complement }

// Bounds returns the inclusive bounds; ok is false when there are none. An
// allow-list has none: it holds only the values within.
func (r Requirement) Bounds() (lo, hi int64, ok bool) { return r.lo, r.hi, r.bounded }

// MinValues is how many distinct values must stay possible; 0 when not asked.
func (r Requirement) MinValues() int { return r.minValues }

// WithMinValues returns r asking for n distinct values.
func (r Requirement) WithMinValues(n int) Requirement {
	r.minValues = n
	return r
}

// Single returns the value of an allow-list of one: such a requirement is the
// label of the node (Karpenter: single-valued requirements become labels).
func (r Requirement) Single() (string, bool) {
	if r.complement || len(r.values) != 1 {
		return "", false
	}
	return r.values[0], true
}

// Any returns an allowed value, the same one every time: the first of an
// allow-list, the smallest free number from the lower bound (or 1) otherwise.
// False when no value is possible.
func (r Requirement) Any() (string, bool) {
	if r.empty() {
		return "", false
	}
	if !r.complement {
		return r.values[0], true
	}
	lo, hi := int64(1), int64(math.MaxInt64)
	if r.bounded {
		lo, hi = r.lo, r.hi
	}
	// Among len(values)+1 numbers one is not denied; a range shorter than that is
	// gone through again with leading zeros, which are other values of the same
	// number.
	for pad := ""; ; pad += "0" {
		n := lo
		for range len(r.values) + 1 {
			v := pad + strconv.FormatInt(n, 10)
			if _, denied := slices.BinarySearch(r.values, v); !denied {
				return v, true
			}
			if n == hi {
				break
			}
			n++
		}
	}
}

// Intersect returns what both allow. Keys must be equal: the receiver's is kept.
// minValues is the larger one.
func (r Requirement) Intersect(o Requirement) Requirement {
	out := r
	out.minValues = max(r.minValues, o.minValues)
	out.absent = r.absent && o.absent
	switch {
	case r.complement && o.complement:
		out.values = union(r.values, o.values)
		if o.bounded {
			if r.bounded {
				out.lo, out.hi = max(r.lo, o.lo), min(r.hi, o.hi)
			} else {
				out.bounded, out.lo, out.hi = true, o.lo, o.hi
			}
		}
		return out
	case r.complement:
		out.values = filter(o.values, &r)
	default:
		out.values = filter(r.values, &o)
	}
	out.complement, out.bounded, out.lo, out.hi = false, false, 0, 0
	return out
}

// filter keeps the values that r has; it allocates only when some go.
func filter(values []string, r *Requirement) []string {
	for i, v := range values {
		if r.has(v) {
			continue
		}
		var out []string
		if rest := values[i+1:]; len(rest) > 0 || i > 0 {
			out = append(make([]string, 0, len(values)-1), values[:i]...)
			for _, w := range rest {
				if r.has(w) {
					out = append(out, w)
				}
			}
		}
		return out
	}
	return values
}

func union(a, b []string) []string {
	if len(a) == 0 {
		return b
	}
	if len(b) == 0 || slices.Equal(a, b) {
		return a
	}
	return sortedUnique(slices.Concat(a, b))
}

// overlaps reports whether something satisfies both, without building it.
func overlaps(a, b *Requirement) bool {
	if a.absent && b.absent {
		return true
	}
	if a.complement {
		a, b = b, a
	}
	if a.complement {
		switch {
		case a.bounded && b.bounded:
			return max(a.lo, b.lo) <= min(a.hi, b.hi)
		case a.bounded:
			return a.lo <= a.hi
		case b.bounded:
			return b.lo <= b.hi
		}
		return true
	}
	for _, v := range a.values {
		if b.has(v) {
			return true
		}
	}
	return false
}

// String is the requirement as people write it: "kubernetes.io/arch In [amd64]",
// "karpenter.k8s.aws/instance-cpu Gte 9, Lte 23".
func (r Requirement) String() string { return r.key + " " + r.Constraint() }

// maxShown is how many values a message lists.
const maxShown = 6

// Constraint is String without the key.
func (r Requirement) Constraint() string {
	var parts []string
	switch {
	case !r.complement && len(r.values) == 0 && r.absent:
		parts = append(parts, OpDoesNotExist)
	case !r.complement:
		parts = append(parts, OpIn+" "+list(r.values))
	case len(r.values) > 0:
		// NotIn alone allows absence; met with Exists it does not.
		if !r.absent && !r.bounded {
			parts = append(parts, OpExists)
		}
		parts = append(parts, OpNotIn+" "+list(r.values))
	case !r.bounded:
		// NotIn without values: anything, absence too.
		if r.absent {
			parts = append(parts, OpNotIn+" []")
		} else {
			parts = append(parts, OpExists)
		}
	}
	if r.bounded {
		if r.lo > 0 || r.hi == math.MaxInt64 {
			parts = append(parts, OpGte+" "+strconv.FormatInt(r.lo, 10))
		}
		if r.hi < math.MaxInt64 {
			parts = append(parts, OpLte+" "+strconv.FormatInt(r.hi, 10))
		}
	}
	if r.minValues > 0 {
		parts = append(parts, "minValues "+strconv.Itoa(r.minValues))
	}
	return strings.Join(parts, ", ")
}

func list(values []string) string {
	if len(values) > maxShown {
		return fmt.Sprintf("[%s and %d more]", strings.Join(values[:maxShown], " "), len(values)-maxShown)
	}
	return "[" + strings.Join(values, " ") + "]"
}
