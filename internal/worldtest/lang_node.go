package worldtest

import (
	"fmt"
	"maps"
	"strconv"
	"strings"
)

// typeLabels are the labels that a node of a fixture type carries: Karpenter's own
// only when the node belongs to a pool.
func (w *World) typeLabels(l *opts) obj {
	labels := obj{labelHostname: l.name, labelOS: "linux", labelArch: l.or("arch", "amd64"), labelRegion: "z"}
	typ := l.get("type")
	if typ != "" {
		labels[labelType] = typ
	}
	zone := l.or("zone", "z-a")
	labels[labelZone], labels[labelZoneID] = zone, ZoneID(zone)
	if l.has("captype") {
		labels[labelCapacity] = l.get("captype")
	}
	if pool := l.get("pool"); pool != "" {
		labels[labelPool], labels[labelClass] = pool, l.or("class", "default")
		if _, ok := labels[labelCapacity]; !ok {
			labels[labelCapacity] = "on-demand"
		}
		if family, size, ok := strings.Cut(typ, "."); ok {
			labels["karpenter.k8s.aws/instance-family"] = family
			labels["karpenter.k8s.aws/instance-size"] = size
			labels["karpenter.k8s.aws/instance-category"] = family[:1]
			labels["karpenter.k8s.aws/instance-generation"] = strings.Trim(family, "abcdefghijklmnopqrstuvwxyz-")
		}
		for _, t := range w.Catalog.Types {
			if t.Name == typ {
				labels[labelArch] = t.Arch
				labels["karpenter.k8s.aws/instance-cpu"] = strconv.FormatInt(t.VCPU, 10)
				labels["karpenter.k8s.aws/instance-memory"] = strconv.FormatInt(t.MemoryMiB, 10)
			}
		}
	}
	maps.Copy(labels, l.pairsOf("labels", "="))
	for _, k := range l.list("nolabels") {
		delete(labels, longKey(k))
	}
	return labels
}

// sizes are capacity and allocatable: of the type, unless the line gives cpu, mem,
// eph, pods or ext.
func (w *World) sizes(l *opts) (capacity, allocatable obj) {
	capacity, allocatable = obj{}, obj{}
	typ := l.get("type")
	for _, t := range w.Catalog.Types {
		if t.Name != typ {
			continue
		}
		a, ok := FixtureAllocatable[typ]
		if !ok {
			a = [3]int64{t.VCPU * 1000, t.MemoryMiB, 110}
		}
		capacity = obj{
			"cpu": strconv.FormatInt(t.VCPU, 10), "memory": fmt.Sprintf("%dMi", t.MemoryMiB),
			"ephemeral-storage": "20Gi", "pods": strconv.FormatInt(a[2], 10),
		}
		allocatable = obj{
			"cpu": fmt.Sprintf("%dm", a[0]), "memory": fmt.Sprintf("%dMi", a[1]),
			"ephemeral-storage": "17Gi", "pods": strconv.FormatInt(a[2], 10),
		}
	}
	for key, name := range map[string]string{"cpu": "cpu", "mem": "memory", "eph": "ephemeral-storage", "pods": "pods"} {
		if l.has(key) {
			allocatable[name] = l.get(key)
			if _, ok := capacity[name]; !ok {
				capacity[name] = l.get(key)
			}
		}
	}
	maps.Copy(allocatable, l.pairsOf("ext", ":"))
	maps.Copy(capacity, l.pairsOf("ext", ":"))
	return capacity, allocatable
}

// nodeManifest is a Node: registered, initialised and ready unless the line says
// otherwise (starting: registered, not initialised; notready; unready: without the taint; cordoned; deleting;
// empty-status: the kubelet has not written its sizes yet).
func (w *World) nodeManifest(l *opts) obj {
	labels := w.typeLabels(l)
	if l.get("pool") != "" {
		labels[labelRegister] = "true"
		if !l.has("starting") {
			labels[labelInit] = "true"
		}
	}
	for _, k := range l.list("nolabels") {
		delete(labels, longKey(k))
	}
	capacity, allocatable := w.sizes(l)
	taints := taintsOf(l.list("taints"))
	ready := "True"
	if l.has("unready") { // the node controller has not tainted it yet
		ready = "False"
	}
	if l.has("notready") {
		ready = "False"
		taints = append(taints, obj{"key": "node.kubernetes.io/not-ready", "effect": "NoSchedule"})
	}
	spec := obj{"providerID": "aws:///z-a/i-" + l.name}
	if l.has("cordoned") {
		spec["unschedulable"] = true
		taints = append(taints, obj{"key": "node.kubernetes.io/unschedulable", "effect": "NoSchedule"})
	}
	if len(taints) > 0 {
		spec["taints"] = taints
	}
	status := obj{"conditions": []obj{{"type": "Ready", "status": ready, "lastTransitionTime": "2026-03-04T11:00:00Z"}}}
	if !l.has("empty-status") {
		status["capacity"], status["allocatable"] = capacity, allocatable
	}
	meta := obj{"name": l.name, "labels": labels, "creationTimestamp": "2026-03-04T11:00:00Z"}
	if l.has("deleting") {
		meta["deletionTimestamp"] = "2026-03-04T11:59:00Z"
	}
	return obj{"apiVersion": "v1", "kind": "Node", "metadata": meta, "spec": spec, "status": status}
}

// claimManifest is a NodeClaim: launched, its node not there yet, unless the line
// says node=NAME (it is) or unlaunched.
func (w *World) claimManifest(l *opts) obj {
	pool := l.get("pool")
	labels := obj{}
	if pool != "" {
		labels = w.typeLabels(l)
		delete(labels, labelHostname)
	}
	capacity, allocatable := w.sizes(l)
	spec := obj{"nodeClassRef": obj{"group": "karpenter.k8s.aws", "kind": "EC2NodeClass", "name": l.or("class", "default")}}
	w.used = w.used || l.or("class", "default") == "default"
	reqs := requirementsOf(l.all("require")...)
	if t := l.get("type"); t != "" {
		reqs = append(reqs, requirement("type="+t))
	}
	if ts := l.list("types"); ts != nil {
		reqs = append(reqs, requirement("type="+strings.Join(ts, "|")))
	}
	spec["requirements"] = reqs
	if t := taintsOf(l.list("taints")); t != nil {
		spec["taints"] = t
	}
	if t := taintsOf(l.list("startup-taints")); t != nil {
		spec["startupTaints"] = t
	}
	condition := func(typ, status string) obj {
		return obj{"type": typ, "status": status, "reason": typ, "message": "", "lastTransitionTime": "2026-03-04T11:59:30Z"}
	}
	status := obj{}
	if l.has("unlaunched") {
		status["conditions"] = []obj{condition("Launched", "Unknown")}
		delete(labels, labelZone)
		delete(labels, labelZoneID)
		if !l.has("type") {
			delete(labels, labelType)
		}
	} else {
		status["providerID"] = "aws:///z-a/i-" + l.or("node", l.name)
		status["capacity"], status["allocatable"] = capacity, allocatable
		status["conditions"] = []obj{condition("Launched", "True")}
	}
	if l.has("node") {
		status["nodeName"] = l.get("node")
	}
	meta := obj{"name": l.name, "labels": labels, "creationTimestamp": "2026-03-04T11:59:00Z"}
	if l.has("deleting") {
		meta["deletionTimestamp"] = "2026-03-04T11:59:00Z"
	}
	return obj{"apiVersion": "karpenter.sh/v1", "kind": "NodeClaim", "metadata": meta, "spec": spec, "status": status}
}
