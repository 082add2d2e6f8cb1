package kube

import (
	"maps"

	"kerf.sh/kerf/internal/snapshot"
)

// draft is a pod or a template that waits for the defaults of admission.
type draft struct {
	namespace string
	need      *needs
	at        place
	ref       string
	field     string
	spec      func() *snapshot.PodSpec
}

// admit applies admission to all drafts: RuntimeClass, PriorityClass, LimitRange,
// limits into requests.
func (r *reader) admit() {
	ranges := map[string][]*snapshot.LimitRange{}
	for i := range r.snap.LimitRanges {
		lr := &r.snap.LimitRanges[i]
		ranges[lr.Namespace] = append(ranges[lr.Namespace], lr)
	}
	runtimes := map[string]*snapshot.RuntimeClass{}
	for i := range r.snap.RuntimeClasses {
		runtimes[r.snap.RuntimeClasses[i].Name] = &r.snap.RuntimeClasses[i]
	}
	priorities := map[string]*snapshot.PriorityClass{}
	var global *snapshot.PriorityClass
	for i := range r.snap.Priorities {
		p := &r.snap.Priorities[i]
		priorities[p.Name] = p
		if p.GlobalDefault && (global == nil || p.Value < global.Value) {
			global = p
		}
	}
	for _, d := range r.drafts {
		s := d.spec()
		d.need.defaults(ranges[d.namespace])
		s.Requests = d.need.requests()
		if rc := runtimes[s.RuntimeClass]; rc != nil {
			if d.need.overhead == nil {
				s.Requests = s.Requests.Add(rc.Overhead)
			}
			s.NodeSelector = merged(s.NodeSelector, rc.NodeSelector)
			s.Tolerations = append(s.Tolerations[:len(s.Tolerations):len(s.Tolerations)], rc.Tolerations...)
		}
		switch p := priorities[s.PriorityClass]; {
		case p != nil:
			s.Priority = p.Value
		case s.PriorityClass == "" && s.Priority == 0 && global != nil:
			s.Priority, s.PriorityClass = global.Value, global.Name
		}
	}
	r.drafts = nil
}

func merged(a, b map[string]string) map[string]string {
	if len(b) == 0 {
		return a
	}
	out := maps.Clone(a)
	if out == nil {
		out = map[string]string{}
	}
	for k, v := range b {
		if _, ok := out[k]; !ok {
			out[k] = v
		}
	}
	return out
}
