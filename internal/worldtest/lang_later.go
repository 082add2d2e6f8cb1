package worldtest

import (
	"fmt"
	"maps"
	"math"
	"slices"
	"strconv"
	"strings"
	"time"

	"kerf.sh/kerf/internal/catalog"
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
//	reservation cr-1 type=m5.large zone=z-a left=2 price=0     in the catalogue; block ends=12:30
//
// A pod of another namespace than default is named by ns=. A class selects reservations
// with reservations=cr-1:m5.large:z-a,... (id, type, zone).
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
	case "reservation":
		return true, w.addReservation(l)
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
		if len(parts) != 3 {
			return nil, fmt.Errorf("reservation %s: want id:type:zone", r)
		}
		out = append(out, obj{
			"id": parts[0], "instanceType": parts[1], "availabilityZone": parts[2],
			"reservationType": "default", "state": "active", "ownerID": "012345678901", "instanceMatchCriteria": "targeted",
		})
	}
	return out, nil
}

// addReservation gives a type of the catalogue a reserved offering.
func (w *World) addReservation(l *opts) error {
	i := slices.IndexFunc(w.Catalog.Types, func(t catalog.InstanceType) bool { return t.Name == l.get("type") })
	if i < 0 {
		return fmt.Errorf("type %s is not in the catalogue", l.get("type"))
	}
	left, err := strconv.ParseInt(l.or("left", "1"), 10, 64)
	if err != nil {
		return fmt.Errorf("option left: %w", err)
	}
	price, err := strconv.ParseFloat(l.or("price", "0"), 64)
	if err != nil {
		return fmt.Errorf("option price: %w", err)
	}
	zone := l.or("zone", "z-a")
	r := &catalog.Reservation{ID: l.name, Type: "default", Remaining: left}
	if l.has("block") {
		r.Type = "capacity-block"
	}
	if l.has("ends") {
		at, err := time.Parse("15:04", l.get("ends"))
		if err != nil {
			return fmt.Errorf("option ends: %w", err)
		}
		r.Expires = time.Date(Clock.Year(), Clock.Month(), Clock.Day(), at.Hour(), at.Minute(), 0, 0, time.UTC)
	}
	t := &w.Catalog.Types[i]
	t.Offerings = append(slices.Clone(t.Offerings), catalog.Offering{
		Zone: zone, ZoneID: ZoneID(zone), CapacityType: catalog.Reserved, Price: int64(math.Round(price * 1e6)), Available: true, Reservation: r,
	})
	return nil
}
