package scheduling

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"kerf.sh/kerf/internal/snapshot"
)

// NodeMiss is why a node that exists or is in flight does not take a pod.
type NodeMiss struct {
	Node   string
	Detail string
	miss   int64
}

// ExplainNodes says why each node does not take a pod of a class, the nearest
// first. free is what is left on every node, in the order of Nodes. Nodes that
// would take it are left out.
func (w *World) ExplainNodes(class int, free []snapshot.Resources) []NodeMiss {
	c := &w.Classes[class]
	r := &w.Rules[c.Rules]
	var out []NodeMiss
	for i := range w.Nodes {
		if m := w.nodeMiss(c, r, i, free[i]); m.Detail != "" {
			out = append(out, m)
		}
	}
	slices.SortStableFunc(out, func(a, b NodeMiss) int {
		return cmp.Or(cmp.Compare(a.miss, b.miss), strings.Compare(a.Node, b.Node))
	})
	return out
}

func (w *World) nodeMiss(c *Class, r *Rules, i int, free snapshot.Resources) NodeMiss {
	n := &w.Nodes[i]
	m := NodeMiss{Node: n.Name}
	var parts []string
	say := func(miss int64, text string) {
		m.miss += miss
		parts = append(parts, text)
	}
	if n.Closed != "" {
		say(wholeMiss*4, n.Closed)
	}
	for k := range n.Taints {
		if t := &n.Taints[k]; t.Effect != preferNoSchedule && !Tolerates(r.Spec.Tolerations, t) {
			say(wholeMiss, "taint "+taintString(t)+" is not tolerated")
		}
	}
	if text := labelMiss(n, r); text != "" {
		say(wholeMiss, text)
	}
	for _, d := range r.Volumes {
		if !d.metBy(n) {
			say(wholeMiss, d.who()+" demands "+d.String())
		}
	}
	if meets(r.shared, n.noRoom) {
		say(wholeMiss, "it can attach no more volumes")
	}
	if p := firstPortConflict(r.Spec.HostPorts, n.Ports); p != nil {
		say(wholeMiss, "host port "+portString(p)+" is taken")
	}
	needs := w.needs(c, nil)
	for k, d := range w.Dims {
		need, have := needs[k], free.Get(d)
		if text := slotsMiss(d, need, have); text != "" {
			say(max(ratio(need-have, need), 1), text)
			continue
		}
		if have < 0 || need > have {
			say(max(ratio(need-have, need), 1), fmt.Sprintf("needs %s %s, %s left", amount(d, need), d, amount(d, have)))
		}
	}
	m.Detail = strings.Join(parts, "; ")
	return m
}

// labelMiss names the requirement of the alternative that a node comes closest to.
func labelMiss(n *Node, r *Rules) string {
	best, text := -1, ""
	for _, alt := range r.Alternatives {
		failed, first := 0, ""
		for i := range alt {
			v, ok := n.Labels[alt[i].Key()]
			if satisfied(&alt[i], v, ok) {
				continue
			}
			failed++
			if first == "" {
				first = "it wants " + alt[i].String() + ", the node has no such label"
				if ok {
					first = "it wants " + alt[i].String() + ", the node has " + v
				}
			}
		}
		if best < 0 || failed < best {
			best, text = failed, first
		}
	}
	if best < 0 {
		return "its required node affinity has only empty terms, which match no node"
	}
	return text
}
