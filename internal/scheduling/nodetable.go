package scheduling

import (
	"slices"

	"kerf.sh/kerf/internal/catalog"
	"kerf.sh/kerf/internal/packing"
	"kerf.sh/kerf/internal/snapshot"
)

// nodeTable answers which nodes pass a set of rules. Only what kube-scheduler
// filters by counts here: required labels, taints that keep pods away, host ports.
type nodeTable struct {
	nodes  []Node
	cols   map[string]*column
	taints [][]snapshot.Taint // distinct sets
	set    []int32            // by node
	open   packing.Bitset     // every node that is a target
}

func (t *nodeTable) init(nodes []Node) {
	t.nodes = nodes
	t.cols = map[string]*column{}
	t.set = make([]int32, len(nodes))
	t.open = packing.NewBitset(len(nodes))
	for i := range nodes {
		n := &nodes[i]
		k := -1
		if i > 0 && slices.Equal(n.Taints, nodes[i-1].Taints) {
			k = int(t.set[i-1])
		} else {
			k = slices.IndexFunc(t.taints, func(s []snapshot.Taint) bool { return slices.Equal(s, n.Taints) })
		}
		if k < 0 {
			k = len(t.taints)
			t.taints = append(t.taints, n.Taints)
		}
		t.set[i] = int32(k)
		t.open.Set(i)
	}
}

func (t *nodeTable) column(key string) *column {
	c := t.cols[key]
	if c == nil {
		c = newColumn(len(t.nodes), func(i int) (string, bool) { return t.nodes[i].label(key) })
		t.cols[key] = c
	}
	return c
}

// label is what the node has for a label, or for the field that node affinity can
// match.
func (n *Node) label(key string) (string, bool) {
	v, ok := n.Labels[key]
	if key == fieldName || !ok && key == catalog.LabelHostname {
		return n.Name, true
	}
	return v, ok
}

// match returns the nodes whose labels and taints pass, closed ones included; nil
// when none does. PreferNoSchedule never keeps a pod away.
func (t *nodeTable) match(r *Rules, tolerates func(*snapshot.Taint) bool) packing.Bitset {
	if len(t.nodes) == 0 || len(r.Alternatives) == 0 {
		return nil
	}
	ok := make([]bool, len(t.taints))
	all, none := true, true
	for k, set := range t.taints {
		ok[k] = !slices.ContainsFunc(set, func(taint snapshot.Taint) bool {
			return taint.Effect != preferNoSchedule && !tolerates(&taint)
		})
		all, none = all && ok[k], none && !ok[k]
	}
	if none {
		return nil
	}
	if all && len(r.Alternatives) == 1 && len(r.Alternatives[0]) == 0 {
		return t.matchVolumes(t.open, r.Volumes)
	}
	out := packing.NewBitset(len(t.nodes))
	any := false
	var conds []condition
	for _, alt := range r.Alternatives {
		conds = conds[:0]
		for i := range alt {
			c := t.column(alt[i].Key())
			conds = append(conds, condition{c, c.table(&alt[i], nil)})
		}
	next:
		for i := range t.nodes {
			if !ok[t.set[i]] {
				continue
			}
			for _, c := range conds {
				if !c.ok[c.col.ids[i]+1] {
					continue next
				}
			}
			out.Set(i)
			any = true
		}
	}
	if !any {
		return nil
	}
	return t.matchVolumes(out, r.Volumes)
}
