package plan

import (
	"fmt"
	"slices"
	"strings"

	"kerf.sh/kerf/internal/snapshot"
)

// Describe adds what reports show but plans do not need: Pods, Notes of launches, the
// daemonset share of Nodes, and which of them are going. The snapshot is the one that the plan was made on.
func Describe(p *Plan, s *snapshot.Snapshot) { describe(p, s, mentioned(p)) }

// mentioned are the pods that a plan names.
func mentioned(p *Plan) map[string]bool {
	named := map[string]bool{}
	for i := range p.Launches {
		for _, ref := range p.Launches[i].Pods {
			named[ref] = true
		}
	}
	for i := range p.Placements {
		named[p.Placements[i].Pod] = true
	}
	for i := range p.Displaced {
		named[p.Displaced[i].Pod] = true
	}
	for i := range p.Verdicts {
		if ref, ok := strings.CutPrefix(p.Verdicts[i].Object, "pod/"); ok {
			named[ref] = true
		}
	}
	return named
}

// describe tells a plan about the named pods, which it forgets.
func describe(p *Plan, s *snapshot.Snapshot, named map[string]bool) {
	daemons := map[string]snapshot.Resources{}
	p.Pods = slices.DeleteFunc(p.Pods, func(u PodUse) bool { return !u.Buffer })
	for i := range s.Pods {
		pod := &s.Pods[i]
		if pod.NodeName != "" && !pod.Terminal() && pod.Owner != nil && pod.Owner.Kind == "DaemonSet" {
			daemons[pod.NodeName] = daemons[pod.NodeName].Add(pod.Spec.Requests)
		}
		if ref := pod.Ref(); named[ref] {
			p.Pods = append(p.Pods, PodUse{Ref: ref, Workload: workload(pod), Requests: pod.Spec.Requests, Node: pod.NodeName})
			delete(named, ref)
		}
	}
	slices.SortFunc(p.Pods, func(a, b PodUse) int { return strings.Compare(a.Ref, b.Ref) })
	noteLaunches(p, s)
	p.countMoving()
	going := s.Going()
	for i := range p.Nodes {
		n := &p.Nodes[i]
		n.Going = going[n.Name]
		if n.Daemons.IsZero() {
			n.Daemons = daemons[n.Name]
		}
	}
}

// countMoving counts the pods that leave nodes that are going.
func (p *Plan) countMoving() {
	launches := make(map[string]bool, len(p.Launches))
	for i := range p.Launches {
		launches[p.Launches[i].Name] = true
	}
	p.Moving.Pods, p.Moving.Placed = len(p.Displaced), 0
	for i := range p.Displaced {
		if !launches[p.Displaced[i].To] {
			p.Moving.Placed++
		}
	}
	m := p.Lookup()
	for i := range p.Verdicts {
		ref, ok := strings.CutPrefix(p.Verdicts[i].Object, "pod/")
		if u := m[ref]; ok && u != nil && u.Node != "" && Info(p.Verdicts[i].Code).Kind == KindCannotRun {
			p.Moving.Pods++
		}
	}
}

// workload names what a person would say a pod belongs to.
func workload(p *snapshot.Pod) string {
	name := ""
	switch {
	case p.Owner == nil:
		name = numbered(p.Name)
	case p.Owner.Kind == "ReplicaSet":
		name = p.Owner.Name
		if hash := p.Labels["pod-template-hash"]; hash != "" {
			name = strings.TrimSuffix(name, "-"+hash)
		} else if i := strings.LastIndexByte(name, '-'); i > 0 && isHash(name[i+1:]) {
			name = name[:i]
		}
	default:
		name = p.Owner.Name
	}
	return p.Namespace + "/" + name
}

// isHash reports whether a suffix looks like the hash that a Deployment gives its
// ReplicaSets: 6 to 10 characters of Kubernetes' safe alphabet.
func isHash(s string) bool {
	return len(s) >= 6 && len(s) <= 10 && strings.Trim(s, "bcdfghjklmnpqrstvwxz2456789") == ""
}

// numbered replaces a trailing number by a star: "run-17" becomes "run-*".
func numbered(name string) string {
	bare := strings.TrimRight(name, "0123456789")
	if len(bare) == len(name) || len(bare) < 2 || bare[len(bare)-1] != '-' {
		return name
	}
	return bare + "*"
}

// Only returns the plan reduced to what concerns one object (pod/NS/NAME,
// node/NAME, nodepool/NAME), with an explanation: the one the planner gave, or one
// made from what the plan says. Summary and bounds stay those of the whole plan.
func (p *Plan) Only(object string) *Plan {
	out := *p
	out.Memory = nil
	kind, name, _ := strings.Cut(object, "/")
	inPool := func(pool string) bool { return kind == "nodepool" && pool == name }
	out.Launches = keep(p.Launches, func(l *Launch) bool {
		return inPool(l.NodePool) || kind == "node" && l.Name == name || kind == "pod" && slices.Contains(l.Pods, name)
	})
	out.Placements = keep(p.Placements, func(v *Placement) bool {
		return kind == "pod" && v.Pod == name || kind == "node" && v.Node == name
	})
	out.Displaced = keep(p.Displaced, func(d *Displaced) bool {
		return kind == "pod" && d.Pod == name || kind == "node" && (d.From == name || d.To == name)
	})
	out.Nodes = keep(p.Nodes, func(n *NodeUse) bool {
		return inPool(n.NodePool) || kind == "node" && n.Name == name ||
			slices.ContainsFunc(out.Placements, func(v Placement) bool { return v.Node == n.Name })
	})
	out.Verdicts = keep(p.Verdicts, func(v *Verdict) bool {
		return v.Object == object || kind == "nodepool" && slices.ContainsFunc(v.Pools, func(w PoolVerdict) bool { return w.NodePool == name })
	})
	out.Warnings = keep(p.Warnings, func(w *Warning) bool { return w.Object == object || w.Object == "" })
	if out.Explained == nil {
		out.Explained = explainFromPlan(&out, object)
	}
	if p.Diff != nil {
		out.Diff = p.Diff.only(kind, name)
	}
	return &out
}

// only is the comparison reduced to what concerns one object, its sides left whole.
func (d *Diff) only(kind, name string) *Diff {
	out := *d
	inPool := func(pool string) bool { return kind == "nodepool" && pool == name }
	out.Launches = keep(d.Launches, func(l *LaunchDiff) bool { return inPool(l.NodePool) })
	out.Nodes = keep(d.Nodes, func(n *NodeDiff) bool { return inPool(n.Node.NodePool) || kind == "node" && n.Node.Name == name })
	out.Pods = keep(d.Pods, func(p *PodDiff) bool {
		if kind == "pod" {
			return p.Pod == name
		}
		for _, f := range []*Fate{&p.Before, &p.After} {
			if inPool(f.NodePool) || kind == "node" && (f.Node == name || f.From == name) {
				return true
			}
		}
		return false
	})
	return &out
}

func keep[T any](in []T, f func(*T) bool) []T {
	var out []T
	for i := range in {
		if f(&in[i]) {
			out = append(out, in[i])
		}
	}
	return out
}

// explainFromPlan says about an object what the (reduced) plan says.
func explainFromPlan(p *Plan, object string) *Explanation {
	e := &Explanation{Object: object}
	for i := range p.Verdicts {
		v := &p.Verdicts[i]
		l := Line{Text: string(v.Code) + ": " + v.Detail}
		if v.Object != object {
			l.Text = v.Object + " " + l.Text
		}
		for _, w := range v.Pools {
			l.Children = append(l.Children, Line{Text: "nodepool " + w.NodePool + ": " + string(w.Code) + ": " + w.Detail})
		}
		e.Lines = append(e.Lines, l)
	}
	for _, v := range p.Placements {
		e.Lines = append(e.Lines, Line{Text: "pod " + v.Pod + " goes to node " + v.Node})
	}
	m := p.Lookup()
	for i := range p.Launches {
		l := &p.Launches[i]
		line := Line{Text: fmt.Sprintf("launch %s in nodepool %s: %s %s in %s at %s per hour for %s", l.Name, l.NodePool,
			l.Chosen.InstanceType, l.Chosen.CapacityType, l.Chosen.Zone, Dollars(l.Chosen.Price), Count(len(l.Pods), "pod"))}
		line.Children = append(line.Children, Line{Text: Options(l)})
		for _, s := range l.Shares(true) {
			line.Children = append(line.Children, Line{Text: fmt.Sprintf("%s: %s of %s, %s, daemonsets %s", s.Resource,
				Rounded(s.Resource, s.Daemons+s.Used+s.Added), Rounded(s.Resource, s.Total), s.Percent(), Rounded(s.Resource, s.Daemons))})
		}
		for _, g := range m.Groups(l.Pods) {
			text := g.Label()
			if ask := g.Ask(); ask != "" {
				text += " (" + ask + ")"
			}
			line.Children = append(line.Children, Line{Text: text})
		}
		e.Lines = append(e.Lines, line)
	}
	if len(e.Lines) == 0 {
		e.Lines = []Line{{Text: "the plan changes nothing about it"}}
	}
	return e
}

// CompareWarnings orders warnings by code, object, detail.
func CompareWarnings(a, b Warning) int {
	if c := strings.Compare(string(a.Code), string(b.Code)); c != 0 {
		return c
	}
	if c := strings.Compare(a.Object, b.Object); c != 0 {
		return c
	}
	return strings.Compare(a.Detail, b.Detail)
}
