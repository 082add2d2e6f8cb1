package kube

import (
	corev1 "k8s.io/api/core/v1"

	"kerf.sh/kerf/internal/plan"
	"kerf.sh/kerf/internal/snapshot"
)

// draft is a pod or a template that waits for the defaults of admission.
type draft struct {
	object object // raw is nil
	need   needs
	// field is the path of the pod spec in the object.
	field string
	list  draftList
	index int // -1: the object is not there any more
}

type draftList uint8

const (
	draftPod draftList = iota
	draftDaemonSet
	draftWorkload
	draftTemplate
)

func (r *reader) spec(d *draft) *snapshot.PodSpec {
	switch d.list {
	case draftDaemonSet:
		return &r.snap.DaemonSets[d.index].Template.Spec
	case draftWorkload:
		return &r.snap.Workloads[d.index].Template.Spec
	case draftTemplate:
		return &r.snap.PodTemplates[d.index].Template.Spec
	}
	return &r.snap.Pods[d.index].Spec
}

// draft remembers the object that was added last to its list.
func (r *reader) draft(o object, need needs, field string, list draftList, length int) {
	o.raw, o.typed = nil, nil
	r.drafts = append(r.drafts, draft{object: o, need: need, field: field, list: list, index: length - 1})
}

// builtIn are the priority classes that every cluster has.
var builtIn = map[string]int32{
	"system-node-critical":    2_000_001_000,
	"system-cluster-critical": 2_000_000_000,
}

// admission is what the API server adds to a pod, from everything that was read.
type admission struct {
	ranges     map[string][]snapshot.LimitRange
	runtimes   map[string]*snapshot.RuntimeClass
	priorities map[string]int32
	global     *snapshot.PriorityClass
}

func newAdmission(s *snapshot.Snapshot) *admission {
	a := &admission{
		ranges:     map[string][]snapshot.LimitRange{},
		runtimes:   map[string]*snapshot.RuntimeClass{},
		priorities: map[string]int32{},
	}
	for name, value := range builtIn {
		a.priorities[name] = value
	}
	for _, lr := range s.LimitRanges {
		a.ranges[lr.Namespace] = append(a.ranges[lr.Namespace], lr)
	}
	for i := range s.RuntimeClasses {
		a.runtimes[s.RuntimeClasses[i].Name] = &s.RuntimeClasses[i]
	}
	for i := range s.Priorities {
		p := &s.Priorities[i]
		a.priorities[p.Name] = p.Value
		// Of several defaults the API server takes the smallest.
		if p.GlobalDefault && (a.global == nil || p.Value < a.global.Value || p.Value == a.global.Value && p.Name < a.global.Name) {
			a.global = p
		}
	}
	return a
}

// admit applies admission to all drafts. It runs when everything was read.
func (r *reader) admit() {
	a := newAdmission(r.snap)
	rejected := map[draftList]map[int]bool{}
	for i := range r.drafts {
		d := &r.drafts[i]
		if d.index < 0 {
			continue // replaced or removed
		}
		said := unadmitted(d, r.spec(d))
		if err := r.admitOne(a, d); err != nil {
			r.leave(d.object.at.problem(d.object.ref(), err.field, err.message))
			if rejected[d.list] == nil {
				rejected[d.list] = map[int]bool{}
			}
			rejected[d.list][d.index] = true
			r.report.Objects[d.object.kind]--
		} else if r.opts.Unadmitted || len(r.unadmitted) > 0 {
			r.snap.Unadmitted = append(r.snap.Unadmitted, said)
		}
	}
	r.drafts = nil
	r.snap.Pods = without(r.snap.Pods, rejected[draftPod])
	r.snap.DaemonSets = without(r.snap.DaemonSets, rejected[draftDaemonSet])
	r.snap.Workloads = without(r.snap.Workloads, rejected[draftWorkload])
	r.snap.PodTemplates = without(r.snap.PodTemplates, rejected[draftTemplate])
}

func without[T any](list []T, gone map[int]bool) []T {
	if len(gone) == 0 {
		return list
	}
	out := list[:0]
	for i := range list {
		if !gone[i] {
			out = append(out, list[i])
		}
	}
	return out
}

func (r *reader) admitOne(a *admission, d *draft) *fieldError {
	s := r.spec(d)
	ref := d.object.warningRef()
	withoutRanges := d.need
	withoutRanges.admit(nil)
	before := withoutRanges.requests()
	d.need.admit(a.ranges[d.object.namespace])
	s.Requests = d.need.requests()
	if s.Requests.String() != before.String() {
		r.warn(ref, plan.EmulatedAdmission, "requests are %s under the LimitRange of namespace %s, %s as written",
			s.Requests, d.object.namespace, before)
	}
	if s.RuntimeClass != "" {
		rc := a.runtimes[s.RuntimeClass]
		if rc == nil {
			r.warn(ref, plan.EmulatedAdmission, "runtime class %s is not among the objects: its overhead and node selector are not known", s.RuntimeClass)
		} else {
			use := *rc
			if d.need.overhead != nil {
				use.Overhead = snapshot.Resources{} // the pod carries it
			}
			if err := s.ApplyRuntimeClass(&use); err != nil {
				return refusedf(d.field, "%v", err)
			}
		}
	}
	switch value, known := a.priorities[s.PriorityClass]; {
	case known:
		s.Priority = value
	case s.PriorityClass != "":
		r.warn(ref, plan.EmulatedAdmission, "priority class %s is not among the objects: its value is not known", s.PriorityClass)
	case s.Priority == 0 && a.global != nil:
		s.Priority, s.PriorityClass = a.global.Value, a.global.Name
	}
	return nil
}

// warningRef is "pod/team-a/web", as verdicts and warnings name objects.
func (o object) warningRef() string {
	kind := map[string]string{
		"Pod": "pod", "DaemonSet": "daemonset", "Deployment": "deployment", "ReplicaSet": "replicaset",
		"StatefulSet": "statefulset", "Job": "job", "NodePool": "nodepool", "EC2NodeClass": "nodeclass",
		"NodeOverlay": "nodeoverlay", "CapacityBuffer": "capacitybuffer", "PodTemplate": "podtemplate",
	}[o.kind]
	if kind == "" {
		kind = o.kind
	}
	if o.namespace != "" {
		return kind + "/" + o.namespace + "/" + o.name
	}
	return kind + "/" + o.name
}

// live reports whether a pod went through admission: it has a UID or a status.
func live(p *corev1.Pod) bool {
	return p.UID != "" || p.Status.Phase != "" || len(p.Status.Conditions) > 0
}
