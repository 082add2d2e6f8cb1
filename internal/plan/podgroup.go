package plan

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"kerf.sh/kerf/internal/snapshot"
)

// PodGroup are pods of one workload that ask for the same, or, where there would
// be too many groups to read, pods of one workload that ask for this much to that
// much.
type PodGroup struct {
	Name string // namespace/workload; the pod's own name when it is alone
	// Requests is what each pod asks for, Most the component-wise maximum where they
	// differ (then Requests is the minimum).
	Requests, Most snapshot.Resources
	Known          bool // Requests are known
	Pods           []string
}

// maxGroups is how many groups of pods are told apart by what they ask for.
const maxGroups = 12

// Label is "shop/web x 12", or just the name of a single pod.
func (g *PodGroup) Label() string {
	if len(g.Pods) == 1 {
		return g.Name
	}
	return fmt.Sprintf("%s x %s", g.Name, thousands(int64(len(g.Pods))))
}

// Ask is what each pod of the group asks for: "500m 1Gi", "2 CPU 4Gi", "100m to 2
// CPU, 1Gi to 4Gi", then what is out of the ordinary by name ("nvidia.com/gpu 1");
// "no requests" when it asks for nothing.
func (g *PodGroup) Ask() string {
	if !g.Known {
		return ""
	}
	var parts []string
	for _, n := range []string{snapshot.CPU, snapshot.Memory} {
		if lo, hi := g.Requests.Get(n), g.Most.Get(n); hi != 0 {
			parts = append(parts, span(ask(n, lo), ask(n, hi)))
		}
	}
	for _, n := range g.Most.Names() {
		switch n {
		case snapshot.CPU, snapshot.Memory, snapshot.Pods:
		case snapshot.EphemeralStorage:
			parts = append(parts, "ephemeral "+span(Rounded(n, g.Requests.Get(n)), Rounded(n, g.Most.Get(n))))
		default:
			parts = append(parts, n+" "+span(Quantity(n, g.Requests.Get(n)), Quantity(n, g.Most.Get(n))))
		}
	}
	switch {
	case len(parts) == 0:
		return "no requests"
	case g.ranged():
		return strings.Join(parts, ", ")
	}
	return strings.Join(parts, " ")
}

// ranged reports whether the pods of the group differ in what they ask for.
func (g *PodGroup) ranged() bool { return signature(g.Requests) != signature(g.Most) }

// ask writes an amount as people write requests, but for crooked ones.
func ask(resource string, v int64) string {
	q := Quantity(resource, v)
	switch {
	case resource == snapshot.CPU && v >= 1000:
		return Rounded(resource, v) + " CPU"
	case len(q) > 8:
		return Rounded(resource, v)
	}
	return q
}

func span(lo, hi string) string {
	if lo == hi {
		return lo
	}
	return lo + " to " + hi
}

// Lookup finds pods by name for the reports of one plan.
type Lookup map[string]*PodUse

// Lookup indexes the pods of a plan.
func (p *Plan) Lookup() Lookup {
	m := make(Lookup, len(p.Pods))
	for i := range p.Pods {
		m[p.Pods[i].Ref] = &p.Pods[i]
	}
	return m
}

// Groups gathers pods by workload and request, the largest group first, then by
// name. Where that gives more than a dozen groups, pods of one workload are one
// group whatever they ask for.
func (m Lookup) Groups(refs []string) []PodGroup {
	out := m.groups(refs, true)
	if len(out) > maxGroups {
		out = m.groups(refs, false)
	}
	return out
}

func (m Lookup) groups(refs []string, bySize bool) []PodGroup {
	var out []PodGroup
	index := map[string]int{}
	for _, ref := range refs {
		g := PodGroup{Name: ref}
		if u := m[ref]; u != nil {
			g.Name, g.Requests, g.Most, g.Known = u.Workload, u.Requests, u.Requests, true
		}
		key := g.Name
		if bySize {
			key += "\x00" + signature(g.Requests)
		}
		i, ok := index[key]
		if !ok {
			i = len(out)
			index[key] = i
			out = append(out, g)
		}
		if !bySize {
			out[i].Requests, out[i].Most = least(out[i].Requests, g.Requests), out[i].Most.Max(g.Requests)
		}
		out[i].Pods = append(out[i].Pods, ref)
	}
	for i := range out {
		slices.Sort(out[i].Pods)
		if len(out[i].Pods) == 1 {
			out[i].Name = out[i].Pods[0]
		}
	}
	slices.SortFunc(out, func(a, b PodGroup) int {
		return cmp.Or(cmp.Compare(len(b.Pods), len(a.Pods)), strings.Compare(a.Name, b.Name), strings.Compare(a.Pods[0], b.Pods[0]))
	})
	return out
}

// least is the component-wise minimum.
func least(a, b snapshot.Resources) snapshot.Resources {
	for _, n := range a.Names() {
		if v := b.Get(n); v < a.Get(n) {
			a = a.With(n, v)
		}
	}
	return a
}

func signature(r snapshot.Resources) string {
	var b strings.Builder
	for _, n := range r.Names() {
		fmt.Fprintf(&b, "%s=%d,", n, r.Get(n))
	}
	return b.String()
}
