package worldtest

import (
	"fmt"
	"maps"
	"strconv"
	"strings"
	"time"

	"kerf.sh/kerf/internal/snapshot"
)

// addFeature adds what the optional features read; false when the line is none of it.
//
//	overlay gpu weight=10 require=instance-family=g6f price=0.5 adjust=-10% capacity=nvidia.com/gpu:1
//	buffer spare template=unit replicas=3 limits=cpu:4        or workload=Deployment/web percentage=20
//	template unit cpu=1 mem=1Gi ...                            a PodTemplate: the options of pod
//	workload web kind=Deployment replicas=10 cpu=1 ...         the options of pod
//	nomination web node=n1 until=12:05                         what the ledger remembers of a pod
//
// A pod of another namespace than default is named by ns=. A class's reservations are
// reservations=cr-1:m5.large:z-a:2,... (id, type, zone, how many are left).
func (w *World) addFeature(l *opts) (bool, error) {
	var m obj
	var err error
	switch l.kind {
	case "overlay":
		m = overlayManifest(l)
	case "buffer":
		m, err = bufferManifest(l)
	case "template":
		m, err = podTemplateManifest(l)
	case "workload":
		m, err = workloadManifest(l)
	case "nomination":
		return true, w.addNomination(l)
	default:
		return false, nil
	}
	if err != nil {
		return true, err
	}
	return true, w.add(m)
}

func (l *opts) number(key string, into obj, field string) error {
	if !l.has(key) {
		return nil
	}
	n, err := strconv.Atoi(l.get(key))
	if err != nil {
		return fmt.Errorf("option %s: %w", key, err)
	}
	into[field] = n
	return nil
}

func overlayManifest(l *opts) obj {
	reqs := requirementsOf(l.all("require")...)
	if reqs == nil {
		reqs = []obj{}
	}
	spec := obj{"requirements": reqs}
	if err := l.number("weight", spec, "weight"); err != nil {
		panic(err)
	}
	for key, field := range map[string]string{"price": "price", "adjust": "priceAdjustment"} {
		if l.has(key) {
			spec[field] = l.get(key)
		}
	}
	if l.has("capacity") {
		spec["capacity"] = l.pairsOf("capacity", ":")
	}
	return obj{"apiVersion": "karpenter.sh/v1alpha1", "kind": "NodeOverlay", "metadata": obj{"name": l.name}, "spec": spec}
}

func bufferManifest(l *opts) (obj, error) {
	spec := obj{}
	for _, key := range []string{"replicas", "percentage"} {
		if err := l.number(key, spec, key); err != nil {
			return nil, err
		}
	}
	if l.has("template") {
		spec["podTemplateRef"] = obj{"name": l.get("template")}
	}
	if kind, name, ok := strings.Cut(l.get("workload"), "/"); ok {
		spec["scalableRef"] = obj{"kind": kind, "name": name}
		if l.has("group") {
			spec["scalableRef"].(obj)["apiGroup"] = l.get("group")
		}
	}
	if l.has("strategy") {
		spec["provisioningStrategy"] = l.get("strategy")
	}
	if l.has("limits") {
		spec["limits"] = l.pairsOf("limits", ":")
	}
	meta := obj{"name": l.name, "namespace": l.or("ns", "default")}
	return obj{"apiVersion": "autoscaling.x-k8s.io/v1beta1", "kind": "CapacityBuffer", "metadata": meta, "spec": spec}, nil
}

// template is a pod template: labels and spec of a pod line.
func template(l *opts) (obj, error) {
	pod, err := podManifest(l, l.name)
	if err != nil {
		return nil, err
	}
	meta := obj{}
	maps.Copy(meta, pod["metadata"].(obj))
	delete(meta, "name")
	delete(meta, "namespace")
	return obj{"metadata": meta, "spec": pod["spec"]}, nil
}

func podTemplateManifest(l *opts) (obj, error) {
	t, err := template(l)
	if err != nil {
		return nil, err
	}
	meta := obj{"name": l.name, "namespace": l.or("ns", "default")}
	return obj{"apiVersion": "v1", "kind": "PodTemplate", "metadata": meta, "template": t}, nil
}

func workloadManifest(l *opts) (obj, error) {
	t, err := template(l)
	if err != nil {
		return nil, err
	}
	kind, version := l.or("kind", "Deployment"), "apps/v1"
	spec := obj{"template": t, "selector": obj{"matchLabels": obj{"app": l.name}}}
	field := "replicas"
	if kind == "Job" {
		version, field = "batch/v1", "parallelism"
		delete(spec, "selector")
	}
	if err := l.number("replicas", spec, field); err != nil {
		return nil, err
	}
	meta := obj{"name": l.name, "namespace": l.or("ns", "default")}
	return obj{"apiVersion": version, "kind": kind, "metadata": meta, "spec": spec}, nil
}

func (w *World) addNomination(l *opts) error {
	n := snapshot.Nomination{Namespace: l.or("ns", "default"), Pod: l.name, UID: l.get("uid"), Node: l.get("node")}
	if l.has("until") {
		at, err := time.Parse("15:04", l.get("until"))
		if err != nil {
			return fmt.Errorf("option until: %w", err)
		}
		n.Until = time.Date(Clock.Year(), Clock.Month(), Clock.Day(), at.Hour(), at.Minute(), 0, 0, time.UTC)
	}
	w.nominations = append(w.nominations, n)
	return nil
}

// reservationsOf are the capacity reservations of a class line.
func reservationsOf(l *opts) ([]obj, error) {
	var out []obj
	for _, r := range l.list("reservations") {
		parts := strings.Split(r, ":")
		if len(parts) < 4 {
			return nil, fmt.Errorf("reservation %s: want id:type:zone:count", r)
		}
		n, err := strconv.Atoi(parts[3])
		if err != nil {
			return nil, fmt.Errorf("reservation %s: %w", r, err)
		}
		one := obj{
			"id": parts[0], "instanceType": parts[1], "availabilityZone": parts[2], "availableInstanceCount": n,
			"reservationType": "default", "state": "active", "ownerID": "012345678901", "instanceMatchCriteria": "targeted",
		}
		if len(parts) > 4 {
			one["reservationType"] = parts[4]
		}
		out = append(out, one)
	}
	return out, nil
}
