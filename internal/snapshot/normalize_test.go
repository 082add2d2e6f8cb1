package snapshot

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"reflect"
	"testing"
	"time"

	"pgregory.net/rapid"
)

// crowded has, in every list, objects that share namespace and name, so that each
// level of the order decides somewhere.
func crowded() *Snapshot {
	s := &Snapshot{Region: "us-east-1", Incomplete: []string{"b", "a", "b"}}
	each := func(f func(ns, name, uid string, n int64)) {
		for i, ns := range []string{"", "a", "b"} {
			for j, name := range []string{"x", "y", "x"} {
				f(ns, name, fmt.Sprint(j%2), int64(10*i+j))
			}
		}
	}
	each(func(ns, name, uid string, n int64) {
		r := Resources{CPU: n}
		s.Pods = append(s.Pods, Pod{Namespace: ns, Name: name, UID: uid, Spec: PodSpec{Requests: r}})
		s.Nodes = append(s.Nodes, Node{Name: name, UID: uid, Capacity: r})
		s.NodePools = append(s.NodePools, NodePool{Name: name, UID: uid, Weight: int32(n)})
		s.NodeClaims = append(s.NodeClaims, NodeClaim{Name: name, UID: uid, Capacity: r})
		s.NodeClasses = append(s.NodeClasses, NodeClass{Name: name, UID: uid, Generation: n})
		s.DaemonSets = append(s.DaemonSets, DaemonSet{Namespace: ns, Name: name, UID: uid, Template: PodTemplate{Spec: PodSpec{Requests: r}}})
		s.Workloads = append(s.Workloads, Workload{Kind: []string{"Job", "Deployment"}[n%2], Namespace: ns, Name: name, UID: uid, Replicas: n})
		s.Namespaces = append(s.Namespaces, Namespace{Name: name, Labels: map[string]string{"n": fmt.Sprint(n)}})
		s.LimitRanges = append(s.LimitRanges, LimitRange{Namespace: ns, Name: name, Limits: []LimitRangeItem{{Max: map[string]int64{CPU: n}}}})
		s.RuntimeClasses = append(s.RuntimeClasses, RuntimeClass{Name: name, Overhead: r})
		s.Priorities = append(s.Priorities, PriorityClass{Name: name, Value: int32(n)})
		s.Claims = append(s.Claims, PersistentVolumeClaim{Namespace: ns, Name: name, Phase: fmt.Sprint(n)})
		s.Volumes = append(s.Volumes, PersistentVolume{Name: name, Handle: fmt.Sprint(n)})
		s.StorageClasses = append(s.StorageClasses, StorageClass{Name: name, Provisioner: fmt.Sprint(n)})
		s.CSINodes = append(s.CSINodes, CSINode{Name: name, Drivers: map[string]int64{"d": n}})
		s.Attachments = append(s.Attachments, VolumeAttachment{Name: name, Node: fmt.Sprint(n)})
		s.Remarks = append(s.Remarks, Remark{Object: ns + "/" + name, Code: "EmulatedAdmission", Detail: fmt.Sprint(n)})
		s.Unadmitted = append(s.Unadmitted, Unadmitted{Kind: []string{"Pod", "DaemonSet"}[n%2], Namespace: ns, Name: name, Priority: int32(n)})
		s.Overlays = append(s.Overlays, NodeOverlay{Name: name, UID: uid, Weight: int32(n)})
		s.Buffers = append(s.Buffers, CapacityBuffer{Namespace: ns, Name: name, UID: uid, Limits: map[string]int64{CPU: n}})
		s.PodTemplates = append(s.PodTemplates, PodTemplateObject{Namespace: ns, Name: name, Template: PodTemplate{Spec: PodSpec{Requests: r}}})
		s.Nominations = append(s.Nominations, Nomination{Namespace: ns, Pod: name, UID: uid, Node: fmt.Sprint(n)})
		s.Shortages = append(s.Shortages, Shortage{InstanceType: name, Zone: ns, ReservationID: uid, Until: time.Unix(n, 0).UTC(), Code: fmt.Sprint(n)})
		s.Setbacks = append(s.Setbacks, Setback{InstanceType: name, Zone: ns, ReservationID: uid, Failures: int(n), Failed: time.Unix(n, 0).UTC()})
		s.Rests = append(s.Rests, Rest{Node: ns + name + uid, Why: fmt.Sprint(n), Until: time.Unix(n, 0).UTC()})
		s.Learned = append(s.Learned, LearnedSize{InstanceType: name, ImageID: ns, Shape: uid, Allocatable: r})
		s.Budgets = append(s.Budgets, PodDisruptionBudget{Namespace: ns, Name: name, DisruptionsAllowed: int32(n)})
	})
	return s
}

func shuffle(s *Snapshot, seed uint64) {
	r := rand.New(rand.NewPCG(seed, 0))
	v := reflect.ValueOf(s).Elem()
	for i := range v.NumField() {
		if f := v.Field(i); f.Kind() == reflect.Slice {
			r.Shuffle(f.Len(), reflect.Swapper(f.Interface()))
		}
	}
}

func asJSON(t interface{ Fatal(...any) }, s *Snapshot) string {
	b, err := json.MarshalIndent(s, "", " ")
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}

func TestNormalize(t *testing.T) {
	v := reflect.ValueOf(crowded()).Elem()
	for i := range v.NumField() {
		if f := v.Field(i); f.Kind() == reflect.Slice && f.Len() < 3 {
			t.Errorf("the crowded snapshot has too few %s", v.Type().Field(i).Name)
		}
	}
	sorted := crowded()
	sorted.Normalize()
	want := asJSON(t, sorted)
	sorted.Normalize()
	if asJSON(t, sorted) != want {
		t.Error("normalizing twice is not normalizing once")
	}
	rapid.Check(t, func(t *rapid.T) {
		s := crowded()
		shuffle(s, rapid.Uint64().Draw(t, "seed"))
		s.Normalize()
		if got := asJSON(t, s); got != want {
			t.Fatalf("another order in is another order out:\n%s\nwant\n%s", got, want)
		}
	})
	for i := 1; i < len(sorted.Pods); i++ {
		a, b := sorted.Pods[i-1], sorted.Pods[i]
		if a.Ref() > b.Ref() {
			t.Errorf("%s comes before %s", a.Ref(), b.Ref())
		}
	}
	if got := fmt.Sprint(sorted.Incomplete); got != "[a b]" {
		t.Error(got)
	}
	// The law can fail: a list that is left as it came is noticed, each one.
	for i := range v.NumField() {
		field := v.Type().Field(i).Name
		if v.Field(i).Kind() != reflect.Slice {
			continue
		}
		noticed := false
		for seed := range uint64(10) {
			s, asCame := crowded(), crowded()
			shuffle(s, seed)
			shuffle(asCame, seed)
			s.Normalize()
			reflect.ValueOf(s).Elem().FieldByName(field).Set(reflect.ValueOf(*asCame).FieldByName(field))
			noticed = noticed || asJSON(t, s) != want
		}
		if !noticed {
			t.Errorf("%s: nobody would see that it is not sorted", field)
		}
	}
}

func BenchmarkNormalize(b *testing.B) {
	for b.Loop() {
		s := &Snapshot{Pods: make([]Pod, 40_000)}
		for i := range s.Pods {
			s.Pods[i].Name = fmt.Sprint((i * 7919) % 40_000)
		}
		s.Normalize()
	}
}
