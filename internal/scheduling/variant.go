package scheduling

import (
	"cmp"
	"maps"
	"slices"
	"strings"

	"kerf.sh/kerf/internal/requirements"
)

// variants are the label sets of a pool's templates. The first has the default of
// every open label; more are made for the values that pending pods ask for, and
// for combinations of them, so that pods that agree can share a node.
func (w *World) variants(p *Pool) []map[string]string {
	base := map[string]string{}
	for k, v := range p.labels {
		base[k] = v
	}
	for _, o := range p.open {
		if !o.absent {
			base[o.key] = o.def
		}
	}
	out := []map[string]string{base}
	if len(p.open) == 0 {
		return out
	}
	asked := w.assignments(p)
	for _, a := range asked {
		m := make(map[string]string, len(base)+len(a))
		for k, v := range base {
			m[k] = v
		}
		for i, v := range a {
			if v.set {
				m[p.open[i].key] = v.value
			}
		}
		if !slices.ContainsFunc(out, func(o map[string]string) bool { return maps.Equal(o, m) }) {
			out = append(out, m)
		}
	}
	return out
}

// assigned is a value given to an open label.
type assigned struct {
	set   bool
	value string
}

// Bounds on how many templates one pool becomes.
const (
	maxValuesPerAlternative = 16
	maxMergedAssignments    = 64
)

// assignments are the values of open labels that pending pods ask for, one entry
// per open label, sorted and distinct.
func (w *World) assignments(p *Pool) [][]assigned {
	seen := map[string]bool{}
	var out [][]assigned
	add := func(a []assigned) bool {
		var b strings.Builder
		any := false
		for _, v := range a {
			if v.set {
				any = true
				b.WriteByte('=')
				b.WriteString(v.value)
			}
			b.WriteByte(';')
		}
		if !any || seen[b.String()] {
			return false
		}
		seen[b.String()] = true
		out = append(out, a)
		return true
	}
	for _, a := range w.spreadValues(p) {
		add(a)
	}
	for i := range w.Rules {
		if w.Rules[i].refused != "" {
			continue
		}
		for _, alt := range w.Rules[i].forNew() {
			for _, a := range askedValues(p, alt) {
				add(a)
			}
			for _, also := range w.preferred(i) {
				for _, a := range askedValues(p, slices.Concat(alt, also)) {
					add(a)
				}
			}
			for _, d := range w.Rules[i].Volumes {
				for _, term := range d.Terms {
					for _, a := range askedValues(p, slices.Concat(alt, term)) {
						add(a)
					}
				}
			}
		}
	}
	for i := 0; i < len(out) && len(out) < maxMergedAssignments; i++ {
		for k := 0; k < i && len(out) < maxMergedAssignments; k++ {
			if m, ok := merge(out[i], out[k]); ok {
				add(m)
			}
		}
	}
	slices.SortFunc(out, func(a, b []assigned) int {
		for i := range a {
			if a[i].set != b[i].set {
				if a[i].set {
					return 1
				}
				return -1
			}
			if c := cmp.Compare(a[i].value, b[i].value); c != 0 {
				return c
			}
		}
		return 0
	})
	return out
}

// spreadValues are the values of open labels over which pods are spread: the pool can
// bring each of them as a domain.
func (w *World) spreadValues(p *Pool) [][]assigned {
	if w.topo == nil {
		return nil
	}
	var out [][]assigned
	for i := range p.open {
		o := &p.open[i]
		if !slices.ContainsFunc(w.topo.terms, func(t term) bool { return t.key == o.key }) {
			continue
		}
		values, complement := o.req.Values()
		if complement {
			continue
		}
		for _, v := range values[:min(len(values), maxValuesPerAlternative)] {
			a := make([]assigned, len(p.open))
			a[i] = assigned{true, v}
			out = append(out, a)
		}
	}
	return out
}

// preferred are the preferred node affinity terms of a rules-key that are valid.
func (w *World) preferred(rules int) [][]requirements.Requirement {
	r := &w.Rules[rules]
	if w.Snapshot.Settings.IgnorePreferences {
		return nil
	}
	var out [][]requirements.Requirement
	for i := range r.Spec.Preferred {
		if alt, ok := preferredAlternative(r, i); ok {
			out = append(out, alt)
		}
	}
	return out
}

// askedValues are the ways in which one alternative of a pod fixes open labels.
// Labels whose default will do stay open.
func askedValues(p *Pool, alt []requirements.Requirement) [][]assigned {
	list := [][]assigned{make([]assigned, len(p.open))}
	for i := range p.open {
		o := &p.open[i]
		r, asked := o.req, false
		for k := range alt {
			if alt[k].Key() == o.key {
				r, asked = r.Intersect(alt[k]), true
			}
		}
		if !asked || o.absent && r.AllowsAbsent() {
			continue
		}
		values, complement := r.Values()
		if complement {
			if !o.absent && r.Has(o.def) {
				continue
			}
			v, ok := r.Any()
			if !ok {
				return nil
			}
			values = []string{v}
		}
		if len(values) == 0 {
			return nil
		}
		var next [][]assigned
		for _, a := range list {
			for _, v := range values {
				if len(next) == maxValuesPerAlternative {
					break
				}
				b := slices.Clone(a)
				b[i] = assigned{true, v}
				next = append(next, b)
			}
		}
		list = next
	}
	return list
}

// merge joins two assignments that do not contradict each other.
func merge(a, b []assigned) ([]assigned, bool) {
	out := slices.Clone(a)
	for i := range b {
		switch {
		case !b[i].set:
		case !out[i].set:
			out[i] = b[i]
		case out[i].value != b[i].value:
			return nil, false
		}
	}
	return out, true
}
