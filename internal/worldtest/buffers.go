package worldtest

import (
	"fmt"

	"kerf.sh/kerf/internal/snapshot"
)

// units are the pods that capacity buffers stand for, where their template is known.
func units(s *snapshot.Snapshot) []snapshot.Pod {
	var out []snapshot.Pod
	if !s.Settings.CapacityBuffer {
		return nil
	}
	for _, b := range s.Buffers {
		var t *snapshot.PodTemplate
		replicas := int64(0)
		for i := range s.PodTemplates {
			if o := &s.PodTemplates[i]; b.PodTemplate != "" && o.Namespace == b.Namespace && o.Name == b.PodTemplate {
				t = &o.Template
			}
		}
		for i := range s.Workloads {
			if o := &s.Workloads[i]; b.Scalable != nil && o.Kind == b.Scalable.Kind && o.Namespace == b.Namespace && o.Name == b.Scalable.Name {
				t, replicas = &o.Template, o.Replicas
			}
		}
		if t == nil || b.Strategy != "" && b.Strategy != "buffer.x-k8s.io/active-capacity" {
			continue
		}
		n, given := int64(0), false
		if b.Replicas != nil {
			n, given = *b.Replicas, true
		}
		if b.Percentage != nil && replicas > 0 {
			given = true
			for share := int64(0); n*100 < replicas**b.Percentage; share++ {
				n++
			}
		}
		for name, limit := range b.Limits {
			if need := t.Spec.Requests.Get(name); need > 0 {
				if most := limit / need; !given || most < n {
					n, given = most, true
				}
			}
		}
		for k := range n {
			p := snapshot.Pod{Namespace: b.Namespace, Name: fmt.Sprint(k + 1), Buffer: b.Name, Labels: t.Labels, Spec: t.Spec}
			p.Spec.Volumes, p.Spec.ResourceClaims, p.Spec.Gates = nil, nil, nil
			out = append(out, p)
		}
	}
	return out
}

// buffers: every unit is in exactly one place, and the summary counts them apart.
func (j *judge) buffers() {
	seen := map[string]int{}
	for i := range j.p.Launches {
		for _, ref := range j.p.Launches[i].Pods {
			seen[ref]++
		}
	}
	for _, pl := range j.p.Placements {
		seen[pl.Pod]++
	}
	missing := 0
	for _, v := range j.p.Verdicts {
		if p := j.pods[v.Object[min(len("pod/"), len(v.Object)):]]; p != nil && p.Buffer != "" {
			seen[p.Ref()]++
			missing++
		}
	}
	n := 0
	for _, ref := range sortedKeys(j.pods) {
		if j.pods[ref].Buffer == "" {
			continue
		}
		n++
		if seen[ref] != 1 {
			j.fail("unit %s is in %d places", ref, seen[ref])
		}
	}
	if s := &j.p.Summary; s.BufferUnits != n || s.BufferMissing != missing {
		j.fail("summary counts %d units of buffers and %d without room, there are %d and %d", s.BufferUnits, s.BufferMissing, n, missing)
	}
}
