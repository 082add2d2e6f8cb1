package requirements

import (
	"iter"
	"maps"
	"slices"
	"strings"

	"kerf.sh/kerf/internal/snapshot"
)

// Set is a collection of requirements, one per key. The zero value is empty and
// allows every node. Copies share their contents: Clone before Add.
type Set struct {
	reqs []Requirement // sorted by key
}

// NewSet collects requirements; those of one key are intersected.
func NewSet(rs ...Requirement) Set {
	s := Set{reqs: make([]Requirement, 0, len(rs))}
	s.Add(rs...)
	return s
}

// Parse builds a Set of selector entries. It fails on the first bad entry with
// the error of New.
func Parse(entries []snapshot.SelectorRequirement) (Set, error) {
	s := Set{reqs: make([]Requirement, 0, len(entries))}
	for _, e := range entries {
		r, err := New(e)
		if err != nil {
			return Set{}, err
		}
		s.Add(r)
	}
	return s, nil
}

// FromLabels requires exactly the given labels. Labels that are aliases of one
// key are intersected. Values are taken as they are.
func FromLabels(labels map[string]string) Set {
	s := Set{reqs: make([]Requirement, 0, len(labels))}
	for k, v := range labels {
		r := of(k)
		r.values = []string{v}
		s.Add(r)
	}
	return s
}

// find is a binary search without the copies that slices.BinarySearchFunc makes.
func (s *Set) find(q *Requirement) (int, bool) {
	lo, hi := 0, len(s.reqs)
	for lo < hi {
		mid := (lo + hi) / 2
		switch c := compareKeys(&s.reqs[mid], q); {
		case c == 0:
			return mid, true
		case c < 0:
			lo = mid + 1
		default:
			hi = mid
		}
	}
	return lo, false
}

// Get returns the requirement of a key, under its normalised name.
func (s Set) Get(key string) (Requirement, bool) {
	q := Requirement{key: key}
	if i, ok := s.find(&q); ok {
		return s.reqs[i], true
	}
	return Requirement{}, false
}

// Keys lists the keys, sorted.
func (s Set) Keys() []string {
	out := make([]string, len(s.reqs))
	for i := range s.reqs {
		out[i] = s.reqs[i].key
	}
	return out
}

// All iterates over the requirements by key.
func (s Set) All() iter.Seq[Requirement] { return slices.Values(s.reqs) }

// Len is the number of keys.
func (s Set) Len() int { return len(s.reqs) }

// Clone returns a copy that can be changed alone.
func (s Set) Clone() Set { return Set{reqs: slices.Clone(s.reqs)} }

// Add narrows the set: requirements of a key that it has are intersected. It
// changes every copy of the set that is not a Clone.
func (s *Set) Add(rs ...Requirement) {
	for k := range rs {
		i, ok := s.find(&rs[k])
		if ok {
			s.reqs[i] = s.reqs[i].Intersect(rs[k])
			continue
		}
		s.reqs = slices.Insert(s.reqs, i, rs[k])
	}
}

// AddSet narrows the set by all of another.
func (s *Set) AddSet(o Set) { s.Add(o.reqs...) }

// Without returns a copy without one key.
func (s Set) Without(key string) Set {
	i, ok := s.find(&Requirement{key: key})
	if !ok {
		return s
	}
	return Set{reqs: slices.Concat(s.reqs[:i], s.reqs[i+1:])}
}

// String lists the requirements by key.
func (s Set) String() string {
	parts := make([]string, len(s.reqs))
	for i := range s.reqs {
		parts[i] = s.reqs[i].String()
	}
	return strings.Join(parts, "; ")
}

// Labels returns the labels that every node of this set has: the single-valued
// requirements.
func (s Set) Labels() map[string]string {
	out := map[string]string{}
	for i := range s.reqs {
		if v, ok := s.reqs[i].Single(); ok {
			out[s.reqs[i].key] = v
		}
	}
	return out
}

// Conflict is why two sets, or a set and a node, do not go together: the first
// key, by name, at which they differ.
type Conflict struct {
	Key string
	// Have is what the receiver of Compatible, or the node, has; Want what is
	// asked of it. Both without the key.
	Have, Want string
	// Hint is a key that was probably meant, "" when none is near.
	Hint string
}

// String is one sentence: `zone: In [c] is wanted, but In [a b] is possible`.
func (c *Conflict) String() string {
	if c == nil {
		return ""
	}
	return c.Key + ": wants " + c.Want + ", has " + c.Have + quoteHint(c.Hint)
}

// Undefined is the Have of a Conflict about a label that is not there.
const Undefined = "no such label"

// Compatible reports whether one node can satisfy both s (a template, a type: what
// is had) and o (a pod: what is wanted); nil means that it can. A key that only o
// has is satisfied by absence (NotIn, DoesNotExist), or when allowUndefined says
// that s leaves it open (WellKnown, when pods meet templates); nil allows none. A
// contradiction within either set is a conflict too.
func (s Set) Compatible(o Set, allowUndefined func(key string) bool) *Conflict {
	have, want := s.firstConflict(o, allowUndefined)
	if have == nil && want == nil {
		return nil
	}
	c := &Conflict{Have: Undefined, Want: "anything"}
	if want != nil {
		c.Key, c.Want = want.key, want.Constraint()
		if want.impossible() {
			c.Want += " (impossible)"
		}
	}
	if have != nil {
		c.Key, c.Have = have.key, have.Constraint()
		if have.impossible() {
			c.Have += " (impossible)"
		}
	} else if !WellKnown(c.Key) {
		c.Hint = nearest(c.Key, slices.Values(append(s.Keys(), wellKnown...)))
	}
	return c
}

// IsCompatible is Compatible without the reason: it allocates nothing.
func (s Set) IsCompatible(o Set, allowUndefined func(key string) bool) bool {
	have, want := s.firstConflict(o, allowUndefined)
	return have == nil && want == nil
}

// firstConflict walks both sorted lists at once.
func (s *Set) firstConflict(o Set, allowUndefined func(key string) bool) (have, want *Requirement) {
	i, j := 0, 0
	for i < len(s.reqs) || j < len(o.reqs) {
		order := 0
		switch {
		case i == len(s.reqs):
			order = 1
		case j == len(o.reqs):
			order = -1
		default:
			order = compareKeys(&s.reqs[i], &o.reqs[j])
		}
		switch {
		case order < 0:
			if s.reqs[i].impossible() {
				return &s.reqs[i], nil
			}
			i++
		case order > 0:
			w := &o.reqs[j]
			if !w.absent && (w.empty() || allowUndefined == nil || !allowUndefined(w.key)) {
				return nil, w
			}
			j++
		default:
			if !overlaps(&s.reqs[i], &o.reqs[j]) {
				return &s.reqs[i], &o.reqs[j]
			}
			i++
			j++
		}
	}
	return nil, nil
}

// MatchesLabels reports whether a node with these labels satisfies s, as
// kube-scheduler decides; nil means that it does. A label that the node has only
// under an alias counts.
func (s Set) MatchesLabels(labels map[string]string) *Conflict {
	r := s.firstMismatch(labels)
	if r == nil {
		return nil
	}
	c := &Conflict{Key: r.key, Have: Undefined, Want: r.Constraint()}
	if v, ok := lookup(labels, r.key); ok {
		c.Have = `"` + v + `"`
	} else if !WellKnown(r.key) {
		c.Hint = nearest(r.key, maps.Keys(labels))
	}
	return c
}

// Matches is MatchesLabels without the reason: it allocates nothing.
func (s Set) Matches(labels map[string]string) bool { return s.firstMismatch(labels) == nil }

func (s *Set) firstMismatch(labels map[string]string) *Requirement {
	for i := range s.reqs {
		r := &s.reqs[i]
		if v, ok := lookup(labels, r.key); ok && !r.has(v) || !ok && !r.absent {
			return r
		}
	}
	return nil
}

func lookup(labels map[string]string, key string) (string, bool) {
	if v, ok := labels[key]; ok {
		return v, true
	}
	for _, alias := range aliasesOf[key] {
		if v, ok := labels[alias]; ok {
			return v, true
		}
	}
	return "", false
}
