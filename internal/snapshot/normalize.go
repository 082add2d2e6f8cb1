package snapshot

import (
	"bytes"
	"cmp"
	"encoding/json"
	"slices"
)

// Normalize sorts every list of the snapshot by namespace and name, then by kind,
// UID and content, so that what was read in another order is the same bytes. Order
// inside an object means something and stays. It is the reader's last step: the
// snapshot must not be in use yet.
func (s *Snapshot) Normalize() {
	slices.Sort(s.Incomplete)
	s.Incomplete = slices.Compact(s.Incomplete)
	slices.SortFunc(s.Remarks, func(a, b Remark) int {
		return cmp.Or(cmp.Compare(a.Object, b.Object), cmp.Compare(a.Code, b.Code), cmp.Compare(a.Detail, b.Detail))
	})
	normalize(s.Unadmitted, func(u *Unadmitted) id { return id{u.Namespace, u.Name, u.Kind, ""} })
	normalize(s.Pods, func(p *Pod) id { return id{p.Namespace, p.Name, "", p.UID} })
	normalize(s.Nodes, func(n *Node) id { return id{"", n.Name, "", n.UID} })
	normalize(s.NodePools, func(p *NodePool) id { return id{"", p.Name, "", p.UID} })
	normalize(s.NodeClaims, func(c *NodeClaim) id { return id{"", c.Name, "", c.UID} })
	normalize(s.NodeClasses, func(c *NodeClass) id { return id{"", c.Name, "", c.UID} })
	normalize(s.DaemonSets, func(d *DaemonSet) id { return id{d.Namespace, d.Name, "", d.UID} })
	normalize(s.Workloads, func(w *Workload) id { return id{w.Namespace, w.Name, w.Kind, w.UID} })
	normalize(s.Namespaces, func(n *Namespace) id { return id{name: n.Name} })
	normalize(s.LimitRanges, func(l *LimitRange) id { return id{namespace: l.Namespace, name: l.Name} })
	normalize(s.RuntimeClasses, func(r *RuntimeClass) id { return id{name: r.Name} })
	normalize(s.Priorities, func(p *PriorityClass) id { return id{name: p.Name} })
	normalize(s.Claims, func(c *PersistentVolumeClaim) id { return id{namespace: c.Namespace, name: c.Name} })
	normalize(s.Volumes, func(v *PersistentVolume) id { return id{name: v.Name} })
	normalize(s.StorageClasses, func(c *StorageClass) id { return id{name: c.Name} })
	normalize(s.CSINodes, func(n *CSINode) id { return id{name: n.Name} })
	normalize(s.Attachments, func(a *VolumeAttachment) id { return id{name: a.Name} })
	normalize(s.Overlays, func(o *NodeOverlay) id { return id{"", o.Name, "", o.UID} })
	normalize(s.Buffers, func(b *CapacityBuffer) id { return id{b.Namespace, b.Name, "", b.UID} })
	normalize(s.PodTemplates, func(t *PodTemplateObject) id { return id{namespace: t.Namespace, name: t.Name} })
	normalize(s.Budgets, func(b *PodDisruptionBudget) id { return id{namespace: b.Namespace, name: b.Name} })
	s.normalizeRemembered()
}

// id is what an object is sorted by before its content.
type id struct{ namespace, name, kind, uid string }

func (a id) compare(b id) int {
	return cmp.Or(
		cmp.Compare(a.namespace, b.namespace),
		cmp.Compare(a.name, b.name),
		cmp.Compare(a.kind, b.kind),
		cmp.Compare(a.uid, b.uid),
	)
}

// normalize sorts by index, because objects are large and move once this way.
func normalize[T any](list []T, key func(*T) id) {
	type entry struct {
		id
		at int
	}
	entries := make([]entry, len(list))
	for i := range list {
		entries[i] = entry{key(&list[i]), i}
	}
	compare := func(a, b entry) int {
		if c := a.id.compare(b.id); c != 0 || a.at == b.at {
			return c
		}
		return bytes.Compare(content(&list[a.at]), content(&list[b.at]))
	}
	if slices.IsSortedFunc(entries, compare) {
		return
	}
	slices.SortFunc(entries, compare)
	sorted := make([]T, len(list))
	for i, e := range entries {
		sorted[i] = list[e.at]
	}
	copy(list, sorted)
}

// content is only asked for of two objects that should not both exist.
func content[T any](v *T) []byte {
	b, err := json.Marshal(v)
	if err != nil {
		return nil // snapshot types hold nothing that JSON cannot
	}
	return b
}
