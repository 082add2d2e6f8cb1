package kube

import (
	"cmp"
	"slices"

	"kerf.sh/kerf/internal/plan"
	"kerf.sh/kerf/internal/snapshot"
)

// finish turns what was gathered into the snapshot, once everything is known.
func (r *reader) finish() {
	s := r.snap
	r.head()
	r.admit()
	if len(s.NodeClaims) > 0 && len(s.Nodes) == 0 {
		s.Incomplete = append(s.Incomplete, "NodeClaims were read but not a single Node: save the nodes too")
	}
	normalize(s)
	slices.SortStableFunc(r.report.Left, func(a, b LeftOut) int {
		return cmp.Or(cmp.Compare(a.File, b.File), cmp.Compare(a.Document, b.Document), cmp.Compare(a.Item, b.Item))
	})
	slices.SortStableFunc(r.report.Warnings, func(a, b plan.Warning) int {
		return cmp.Or(cmp.Compare(a.Object, b.Object), cmp.Compare(a.Code, b.Code), cmp.Compare(a.Detail, b.Detail))
	})
}

// head fills in what objects do not say.
func (r *reader) head() {
	s, o := r.snap, r.opts
	s.Cluster, s.Region, s.Now, s.Seed, s.Settings = o.Cluster, o.Region, o.Now.UTC(), o.Seed, o.Settings
	unset := s.Settings == snapshot.Settings{} || s.Settings == snapshot.DefaultSettings()
	if unset {
		s.Settings = snapshot.DefaultSettings()
	}
}

func byName[T any](list []T, key func(*T) [2]string) {
	slices.SortFunc(list, func(a, b T) int {
		x, y := key(&a), key(&b)
		return cmp.Or(cmp.Compare(x[0], y[0]), cmp.Compare(x[1], y[1]))
	})
}

// normalize sorts every list by namespace and name.
func normalize(s *snapshot.Snapshot) {
	byName(s.Pods, func(p *snapshot.Pod) [2]string { return [2]string{p.Namespace, p.Name} })
	byName(s.Nodes, func(p *snapshot.Node) [2]string { return [2]string{"", p.Name} })
	byName(s.NodePools, func(p *snapshot.NodePool) [2]string { return [2]string{"", p.Name} })
	byName(s.NodeClaims, func(p *snapshot.NodeClaim) [2]string { return [2]string{"", p.Name} })
	byName(s.NodeClasses, func(p *snapshot.NodeClass) [2]string { return [2]string{"", p.Name} })
	byName(s.DaemonSets, func(p *snapshot.DaemonSet) [2]string { return [2]string{p.Namespace, p.Name} })
	byName(s.Workloads, func(p *snapshot.Workload) [2]string { return [2]string{p.Namespace + "/" + p.Kind, p.Name} })
	byName(s.Namespaces, func(p *snapshot.Namespace) [2]string { return [2]string{"", p.Name} })
	byName(s.LimitRanges, func(p *snapshot.LimitRange) [2]string { return [2]string{p.Namespace, p.Name} })
	byName(s.RuntimeClasses, func(p *snapshot.RuntimeClass) [2]string { return [2]string{"", p.Name} })
	byName(s.Priorities, func(p *snapshot.PriorityClass) [2]string { return [2]string{"", p.Name} })
	byName(s.Claims, func(p *snapshot.PersistentVolumeClaim) [2]string { return [2]string{p.Namespace, p.Name} })
	byName(s.Volumes, func(p *snapshot.PersistentVolume) [2]string { return [2]string{"", p.Name} })
	byName(s.StorageClasses, func(p *snapshot.StorageClass) [2]string { return [2]string{"", p.Name} })
	byName(s.CSINodes, func(p *snapshot.CSINode) [2]string { return [2]string{"", p.Name} })
	byName(s.Attachments, func(p *snapshot.VolumeAttachment) [2]string { return [2]string{"", p.Name} })
	byName(s.Budgets, func(p *snapshot.PodDisruptionBudget) [2]string { return [2]string{p.Namespace, p.Name} })
}

type savedHead struct{}
