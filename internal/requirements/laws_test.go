package requirements

import (
	"fmt"
	"math"
	"slices"
	"strconv"
	"testing"

	"pgregory.net/rapid"

	"kerf.sh/kerf/internal/snapshot"
)

// universe has every value that the generated requirements mention, the numbers
// around their bounds, a value that none mentions, and numbers with leading
// zeros: no generated deny-list empties a range of them.
var universe = []string{
	"", "a", "b", "c", "other",
	"0", "1", "2", "3", "4", "5", "6", "7", "00", "01", "02", "03", "04", "05", "06", "003", "9223372036854775807",
}

// algebra is what the laws are about, so that mutants can be held against them.
type algebra struct {
	new       func(snapshot.SelectorRequirement) (Requirement, error)
	intersect func(a, b Requirement) Requirement
	has       func(r Requirement, v string) bool
	overlaps  func(a, b Requirement) bool
	empty     func(a Requirement) bool
}

func (x algebra) make(e snapshot.SelectorRequirement) Requirement {
	r, err := x.new(e)
	if err != nil {
		panic(err)
	}
	return r
}

var exact = algebra{
	new:       New,
	intersect: Requirement.Intersect,
	has:       Requirement.Has,
	overlaps:  func(a, b Requirement) bool { return overlaps(&a, &b) },
	empty:     Requirement.Empty,
}

func equal(a, b Requirement) bool {
	return a.key == b.key && slices.Equal(a.values, b.values) && a.complement == b.complement && a.absent == b.absent &&
		a.bounded == b.bounded && a.lo == b.lo && a.hi == b.hi && a.minValues == b.minValues
}

// entries is one draw: three requirements of one key.
type entries [3]snapshot.SelectorRequirement

func genEntry(t *rapid.T, key string) snapshot.SelectorRequirement {
	e := snapshot.SelectorRequirement{
		Key:      key,
		Operator: rapid.SampledFrom([]string{OpIn, OpNotIn, OpExists, OpDoesNotExist, OpGt, OpLt, OpGte, OpLte}).Draw(t, "operator"),
	}
	switch e.Operator {
	case OpIn, OpNotIn:
		e.Values = rapid.SliceOfN(rapid.SampledFrom([]string{"a", "b", "c", "1", "2", "3", "4", "03", ""}), 1, 5).Draw(t, "values")
	case OpGt, OpLt, OpGte, OpLte:
		e.Values = []string{rapid.SampledFrom([]string{"0", "1", "2", "3", "4", "5", "9223372036854775807"}).Draw(t, "bound")}
	}
	if e.Operator != OpIn {
		e.MinValues = rapid.IntRange(0, 3).Draw(t, "minValues")
	}
	return e
}

var genEntries = rapid.Custom(func(t *rapid.T) entries {
	return entries{genEntry(t, "k"), genEntry(t, "k"), genEntry(t, "k")}
})

// laws return what is broken, "" when nothing is.
var laws = map[string]func(x algebra, e entries) string{
	"an entry allows what kube-scheduler allows": func(x algebra, e entries) string {
		r := x.make(e[0])
		for _, v := range universe {
			if got, want := x.has(r, v), scheduler(e[0], v); got != want {
				return fmt.Sprintf("%v: has %q is %v", e[0], v, got)
			}
		}
		if want := e[0].Operator == OpNotIn || e[0].Operator == OpDoesNotExist; r.AllowsAbsent() != want {
			return fmt.Sprintf("%v: AllowsAbsent is %v", e[0], !want)
		}
		return ""
	},
	"intersection allows what both allow": func(x algebra, e entries) string {
		a, b := x.make(e[0]), x.make(e[1])
		both := x.intersect(a, b)
		for _, v := range universe {
			if x.has(both, v) != (x.has(a, v) && x.has(b, v)) {
				return fmt.Sprintf("%v and %v: has %q is %v", a, b, v, x.has(both, v))
			}
		}
		if both.AllowsAbsent() != (a.AllowsAbsent() && b.AllowsAbsent()) {
			return fmt.Sprintf("%v and %v: AllowsAbsent is %v", a, b, both.AllowsAbsent())
		}
		return ""
	},
	"intersection commutes": func(x algebra, e entries) string {
		a, b := x.make(e[0]), x.make(e[1])
		if ab, ba := x.intersect(a, b), x.intersect(b, a); !equal(ab, ba) {
			return fmt.Sprintf("%v is not %v", ab, ba)
		}
		return ""
	},
	"intersection is associative": func(x algebra, e entries) string {
		a, b, c := x.make(e[0]), x.make(e[1]), x.make(e[2])
		left, right := x.intersect(x.intersect(a, b), c), x.intersect(a, x.intersect(b, c))
		if !equal(left, right) {
			return fmt.Sprintf("%v is not %v", left, right)
		}
		return ""
	},
	"intersection is idempotent": func(x algebra, e entries) string {
		a := x.make(e[0])
		if aa := x.intersect(a, a); !equal(aa, a) {
			return fmt.Sprintf("%v is not %v", aa, a)
		}
		return ""
	},
	"empty means no value": func(x algebra, e entries) string {
		a := x.intersect(x.make(e[0]), x.make(e[1]))
		exists := slices.ContainsFunc(universe, func(v string) bool { return x.has(a, v) })
		if x.empty(a) == exists {
			return fmt.Sprintf("%v: empty is %v", a, x.empty(a))
		}
		if v, ok := a.Any(); ok != exists || ok && !x.has(a, v) {
			return fmt.Sprintf("%v: any is %q, %v", a, v, ok)
		}
		return ""
	},
	"overlap means a common value or absence": func(x algebra, e entries) string {
		a, b := x.make(e[0]), x.intersect(x.make(e[1]), x.make(e[2]))
		exists := a.AllowsAbsent() && b.AllowsAbsent() ||
			slices.ContainsFunc(universe, func(v string) bool { return x.has(a, v) && x.has(b, v) })
		if x.overlaps(a, b) != exists {
			return fmt.Sprintf("%v and %v: overlaps is %v", a, b, !exists)
		}
		return ""
	},
}

// scheduler is kube-scheduler's rule of one entry on a node that has the label,
// with NodePools' Gte and Lte.
func scheduler(e snapshot.SelectorRequirement, value string) bool {
	switch e.Operator {
	case OpIn:
		return slices.Contains(e.Values, value)
	case OpNotIn:
		return !slices.Contains(e.Values, value)
	case OpExists:
		return true
	case OpDoesNotExist:
		return false
	}
	v, err := strconv.ParseInt(value, 10, 64)
	if err != nil {
		return false
	}
	bound, _ := strconv.ParseInt(e.Values[0], 10, 64)
	return map[string]bool{OpGt: v > bound, OpGte: v >= bound, OpLt: v < bound, OpLte: v <= bound}[e.Operator]
}

func TestLaws(t *testing.T) {
	for name, law := range laws {
		t.Run(name, func(t *testing.T) {
			rapid.Check(t, func(t *rapid.T) {
				if broken := law(exact, genEntries.Draw(t, "entries")); broken != "" {
					t.Fatal(broken)
				}
			})
		})
	}
}

// mutants are algebras with one thing wrong, and the law that each must break.
var mutants = map[string]struct {
	law    string
	mutate func(x *algebra)
}{
	"Gt is inclusive": {"an entry allows what kube-scheduler allows", func(x *algebra) {
		x.new = func(e snapshot.SelectorRequirement) (Requirement, error) {
			if e.Operator == OpGt {
				e.Operator = OpGte
			}
			return New(e)
		}
	}},
	"Gt overflows": {"an entry allows what kube-scheduler allows", func(x *algebra) {
		x.new = func(e snapshot.SelectorRequirement) (Requirement, error) {
			r, err := New(e)
			if r.hi == -1 {
				r.lo, r.hi = 0, math.MaxInt64
			}
			return r, err
		}
	}},
	"NotIn needs the label": {"an entry allows what kube-scheduler allows", func(x *algebra) {
		x.new = func(e snapshot.SelectorRequirement) (Requirement, error) {
			r, err := New(e)
			r.absent = r.absent && e.Operator == OpDoesNotExist
			return r, err
		}
	}},
	"the later bound replaces the earlier": {"intersection allows what both allow", func(x *algebra) {
		x.intersect = func(a, b Requirement) Requirement {
			out := a.Intersect(b)
			if out.bounded && b.bounded {
				out.lo, out.hi = b.lo, b.hi
			}
			return out
		}
	}},
	"absence of either is enough": {"intersection allows what both allow", func(x *algebra) {
		x.intersect = func(a, b Requirement) Requirement {
			out := a.Intersect(b)
			out.absent = a.absent || b.absent
			return out
		}
	}},
	"an allow-list ignores bounds": {"intersection allows what both allow", func(x *algebra) {
		x.intersect = func(a, b Requirement) Requirement {
			if !a.complement {
				b.bounded = false
			}
			return a.Intersect(b)
		}
	}},
	"minValues of the first": {"intersection commutes", func(x *algebra) {
		x.intersect = func(a, b Requirement) Requirement { return a.Intersect(b).WithMinValues(a.minValues) }
	}},
	"denied values of the first": {"intersection commutes", func(x *algebra) {
		x.intersect = func(a, b Requirement) Requirement {
			out := a.Intersect(b)
			if out.complement {
				out.values = a.values
			}
			return out
		}
	}},
	"an empty range becomes DoesNotExist": {"intersection is associative", func(x *algebra) {
		x.intersect = func(a, b Requirement) Requirement {
			out := a.Intersect(b)
			if out.bounded && out.lo > out.hi {
				return DoesNotExist(out.key).WithMinValues(out.minValues)
			}
			return out
		}
	}},
	"minValues add up": {"intersection is idempotent", func(x *algebra) {
		x.intersect = func(a, b Requirement) Requirement { return a.Intersect(b).WithMinValues(a.minValues + b.minValues) }
	}},
	"empty bounds are not seen": {"empty means no value", func(x *algebra) {
		x.empty = func(a Requirement) bool { return !a.complement && len(a.values) == 0 }
	}},
	"two deny-lists always overlap": {"overlap means a common value or absence", func(x *algebra) {
		x.overlaps = func(a, b Requirement) bool { return a.complement && b.complement || overlaps(&a, &b) }
	}},
	"absence is not common": {"overlap means a common value or absence", func(x *algebra) {
		x.overlaps = func(a, b Requirement) bool {
			a.absent = false
			return overlaps(&a, &b)
		}
	}},
}

// samples draws the same values every time.
func samples[T any](g *rapid.Generator[T]) []T {
	out := make([]T, 3000)
	for i := range out {
		out[i] = g.Example(i)
	}
	return out
}

func TestMutantsBreakLaws(t *testing.T) {
	drawn := samples(genEntries)
	broken := map[string]bool{}
	for name, m := range mutants {
		x := exact
		m.mutate(&x)
		broken[m.law] = true
		if !slices.ContainsFunc(drawn, func(e entries) bool { return laws[m.law](x, e) != "" }) {
			t.Errorf("%s: keeps the law that %s", name, m.law)
		}
	}
	for law := range laws {
		if !broken[law] {
			t.Errorf("no mutant breaks the law that %s", law)
		}
	}
}

// pair is two sets over three keys, one of them well-known.
type pair struct {
	have, want []snapshot.SelectorRequirement
}

var genPair = rapid.Custom(func(t *rapid.T) pair {
	draw := func(name string) []snapshot.SelectorRequirement {
		return rapid.SliceOfN(rapid.Custom(func(t *rapid.T) snapshot.SelectorRequirement {
			e := genEntry(t, rapid.SampledFrom([]string{"k", cpu}).Draw(t, "key"))
			e.MinValues = 0
			return e
		}), 0, 4).Draw(t, name)
	}
	return pair{draw("have"), draw("want")}
})

// compatibleLaw: have and want are compatible exactly when labels exist that
// satisfy both; a label that have does not mention is absent, unless it is open.
func compatibleLaw(compatible func(have, want Set) bool, p pair) string {
	have, err := Parse(p.have)
	if err != nil {
		panic(err)
	}
	want, err := Parse(p.want)
	if err != nil {
		panic(err)
	}
	if got := compatible(have, want); got != labelsExist(have, want) {
		return fmt.Sprintf("have %v, want %v: compatible is %v", have, want, got)
	}
	return ""
}

func labelsExist(have, want Set) bool {
	for i := range len(universe) + 1 {
		for j := range len(universe) + 1 {
			labels := map[string]string{}
			if i < len(universe) {
				labels["k"] = universe[i]
			}
			if j < len(universe) {
				labels[cpu] = universe[j]
			}
			if _, defined := have.Get("k"); !defined && i < len(universe) {
				continue
			}
			if have.MatchesLabels(labels) == nil && want.MatchesLabels(labels) == nil {
				return true
			}
		}
	}
	return false
}

func TestCompatibleMeansLabelsExist(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		p := genPair.Draw(t, "pair")
		for name, f := range map[string]func(have, want Set) bool{
			"IsCompatible": func(have, want Set) bool { return have.IsCompatible(want, WellKnown) },
			"Compatible":   func(have, want Set) bool { return have.Compatible(want, WellKnown) == nil },
		} {
			if broken := compatibleLaw(f, p); broken != "" {
				t.Fatal(name, broken)
			}
		}
	})
	drawn := samples(genPair)
	for name, mutant := range map[string]func(have, want Set) bool{
		"undefined keys are all open": func(have, want Set) bool {
			return have.IsCompatible(want, func(string) bool { return true })
		},
		"no undefined key is open": func(have, want Set) bool { return have.IsCompatible(want, nil) },
		"contradictions of one side are not seen": func(have, want Set) bool {
			for _, k := range have.Keys() {
				if _, ok := want.Get(k); !ok {
					have = have.Without(k)
				}
			}
			return have.IsCompatible(want, func(key string) bool {
				return WellKnown(key)
			})
		},
		"only the first key counts": func(have, want Set) bool {
			if len(want.reqs) > 1 {
				want.reqs = want.reqs[:1]
			}
			return have.IsCompatible(want, WellKnown)
		},
	} {
		if !slices.ContainsFunc(drawn, func(p pair) bool { return compatibleLaw(mutant, p) != "" }) {
			t.Errorf("%s: keeps the law", name)
		}
	}
}
