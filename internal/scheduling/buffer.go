package scheduling

import (
	"fmt"
	"math"
	"slices"
	"strconv"

	"kerf.sh/kerf/internal/packing"
	"kerf.sh/kerf/internal/plan"
	"kerf.sh/kerf/internal/snapshot"
)

// Buffers are the units of all CapacityBuffers as pods (Karpenter: virtual pods of the
// alpha feature CapacityBuffer), and what there is to remark on. A unit asks for what a
// pod of the buffer's template or workload asks for, has the lowest priority and no
// volumes. Units are sorted by namespace, buffer and number.
func Buffers(s *snapshot.Snapshot) ([]snapshot.Pod, []plan.Warning) {
	var pods []snapshot.Pod
	var remarks []plan.Warning
	for i := range s.Buffers {
		b := &s.Buffers[i]
		warn := func(code plan.Code, format string, args ...any) {
			remarks = append(remarks, plan.Warning{Object: "capacitybuffer/" + b.Namespace + "/" + b.Name, Code: code, Detail: fmt.Sprintf(format, args...)})
		}
		if !s.Settings.CapacityBuffer {
			warn(plan.FeatureOff, "%s", gateOff("it", "CapacityBuffer"))
			continue
		}
		if b.Strategy != "" && b.Strategy != snapshot.ActiveCapacity {
			warn(plan.BufferUnresolved, "spec.provisioningStrategy %q is not one that keeps nodes: want %s", b.Strategy, snapshot.ActiveCapacity)
			continue
		}
		template, replicas, problem := bufferShape(s, b)
		if problem != "" {
			warn(plan.BufferUnresolved, "%s", problem)
			continue
		}
		n := bufferUnits(b, &template.Spec.Requests, replicas)
		if n > maxUnits {
			warn(plan.StepLimit, "%d units are wanted, %d are planned: the most of one buffer", n, maxUnits)
			n = maxUnits
		}
		spec := template.Spec
		spec.Volumes, spec.ResourceClaims, spec.Gates, spec.SchedulerName = nil, nil, nil, ""
		spec.Priority = math.MinInt32
		for k := range n {
			pods = append(pods, snapshot.Pod{
				Namespace: b.Namespace, Name: strconv.FormatInt(k+1, 10), Buffer: b.Name,
				Labels: template.Labels, Annotations: template.Annotations, Spec: spec,
			})
		}
	}
	return pods, remarks
}

// maxUnits is the most units of one buffer that a plan makes room for.
const maxUnits = 10_000

// bufferShape finds the template of a buffer's units, and the replicas of the workload
// that a percentage is of.
func bufferShape(s *snapshot.Snapshot, b *snapshot.CapacityBuffer) (*snapshot.PodTemplate, int64, string) {
	switch {
	case b.PodTemplate != "":
		for i := range s.PodTemplates {
			if t := &s.PodTemplates[i]; t.Namespace == b.Namespace && t.Name == b.PodTemplate {
				return &t.Template, 0, ""
			}
		}
		return nil, 0, "PodTemplate " + b.Namespace + "/" + b.PodTemplate + " is not among the objects"
	case b.Scalable != nil:
		group := map[string]string{"Deployment": "apps", "ReplicaSet": "apps", "StatefulSet": "apps", "Job": "batch"}[b.Scalable.Kind]
		if group == "" || b.Scalable.Group != "" && b.Scalable.Group != group {
			return nil, 0, fmt.Sprintf("spec.scalableRef: %s of group %q is no Deployment, ReplicaSet, StatefulSet or Job", b.Scalable.Kind, b.Scalable.Group)
		}
		for i := range s.Workloads {
			if w := &s.Workloads[i]; w.Kind == b.Scalable.Kind && w.Namespace == b.Namespace && w.Name == b.Scalable.Name {
				return &w.Template, w.Replicas, ""
			}
		}
		return nil, 0, b.Scalable.Kind + " " + b.Namespace + "/" + b.Scalable.Name + " is not among the objects"
	}
	return nil, 0, "neither spec.podTemplateRef nor spec.scalableRef is set"
}

// bufferUnits is how many units a buffer wants: the larger of replicas and the
// percentage, at most what its limits hold; the limits alone where neither is given.
func bufferUnits(b *snapshot.CapacityBuffer, unit *snapshot.Resources, replicas int64) int64 {
	n, sized := int64(0), false
	if b.Replicas != nil {
		n, sized = *b.Replicas, true
	}
	if b.Percentage != nil && replicas > 0 {
		share := snapshot.Clamp(replicas)
		if p := *b.Percentage; p > 0 && share > snapshot.MaxQuantity/p {
			share = snapshot.MaxQuantity
		} else {
			share = (share*p + 99) / 100
		}
		n, sized = max(n, share), true
	}
	most, bounded := int64(math.MaxInt64), false
	for name, limit := range b.Limits {
		if need := unit.Get(name); need > 0 {
			most, bounded = min(most, max(0, limit)/need), true
		}
	}
	switch {
	case !bounded:
		return n
	case !sized:
		return most
	}
	return min(n, most)
}

// PlannedNode is a launch of a plan, as a node for what is planned after it.
type PlannedNode struct {
	Name     string
	Template *Template
	Chosen   int
	Options  []int // offers that it may be launched as, Chosen among them
}

// After applies the rules to a snapshot in which a plan has been carried out so far as
// pods are concerned: those that it placed are on their nodes, and its launches are
// nodes.
func After(s *snapshot.Snapshot, w *World, launches []PlannedNode) *World {
	out := &World{Snapshot: s, Catalog: w.Catalog, universes: w.universes}
	for i := range launches {
		l := &launches[i]
		typ := l.Template.Type(l.Chosen)
		n := Node{
			Name: l.Name, Launch: &Static{Pool: l.Template.Pool, Template: l.Template, Offer: l.Chosen, among: l.Options},
			Pool: w.Pools[l.Template.Pool].Spec.Name, Labels: l.Template.NodeLabels(l.Chosen), Taints: l.Template.taints,
			Capacity: typ.Capacity, Allocatable: typ.Allocatable,
		}
		for _, o := range l.Options { // limits count the largest
			n.Capacity = n.Capacity.Max(l.Template.Type(o).Capacity)
		}
		out.takeReserved(l.Template, l.Chosen)
		out.planned = append(out.planned, n)
	}
	out.read()
	return out
}

// sealed reports whether a planned node takes no more pods, because its options must
// all remain: minValues counts them.
func (w *World) sealed(n *Node) bool {
	if n.Launch == nil || n.Launch.among == nil {
		return false
	}
	return slices.ContainsFunc(w.Pools[n.Launch.Pool].Spec.Requirements, func(r snapshot.SelectorRequirement) bool { return r.MinValues > 0 })
}

// dealt reports whether a rule about other pods may have decided where pods of a class
// go.
func (w *World) dealt(class int) bool {
	r := w.Classes[class].Rules
	return w.topo != nil && r < len(w.topo.carry) && (w.topo.carry[r].hard() || len(w.topo.matched[r]) > 0)
}

// amongOptions are the offers that a node may still be launched as.
func (l *Static) amongOptions() packing.Bitset {
	if l.among == nil {
		return l.Template.full.Clone()
	}
	out := packing.NewBitset(len(l.Template.offers))
	for _, o := range l.among {
		out.Set(o)
	}
	return out
}
