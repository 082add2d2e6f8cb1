package catalog

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"kerf.sh/kerf/internal/snapshot"
)

func TestLearn(t *testing.T) {
	const gib = int64(1) << 30
	computed := func() *Resolved {
		return &Resolved{
			Type:        &InstanceType{Name: "m5.large", VCPU: 2},
			Capacity:    snapshot.Resources{CPU: 2000, Memory: 8 * gib, Ephemeral: 20 * gib, Pods: 29, Extended: map[string]int64{NvidiaGPU: 4}},
			Allocatable: snapshot.Resources{CPU: 1930, Memory: 7 * gib, Ephemeral: 17 * gib, Pods: 29, Extended: map[string]int64{NvidiaGPU: 4}},
		}
	}
	size := func(capacity, allocatable snapshot.Resources) Size { return Size{capacity, allocatable} }
	whole := computed().Capacity
	for _, tc := range []struct {
		name string
		is   Size
		// want is allocatable; capacity is as learned.
		want    snapshot.Resources
		changed bool
	}{
		{"the same", size(computed().Capacity, computed().Allocatable), computed().Allocatable, false},
		{"nothing", Size{}, computed().Allocatable, false},
		{"less memory", size(whole, snapshot.Resources{CPU: 1930, Memory: 6 * gib, Pods: 29}), computed().Allocatable.With(snapshot.Memory, 6*gib), true},
		{"more memory", size(whole.With(snapshot.Memory, 9*gib), snapshot.Resources{Memory: 8 * gib}), computed().Allocatable.With(snapshot.Memory, 8*gib), true},
		{"more than there is", size(whole, snapshot.Resources{Memory: 100 * gib}), computed().Allocatable.With(snapshot.Memory, 8*gib), true},
		{"other pods", size(whole.With(snapshot.Pods, 110), snapshot.Resources{Pods: 110}), computed().Allocatable.With(snapshot.Pods, 110), true},
		{"fewer devices", size(whole, snapshot.Resources{Extended: map[string]int64{NvidiaGPU: 3}}), computed().Allocatable.With(NvidiaGPU, 3), true},
		{"more devices", size(whole.With(NvidiaGPU, 16), snapshot.Resources{Extended: map[string]int64{NvidiaGPU: 16}}), computed().Allocatable, false},
		{"devices that are not there yet", size(whole, snapshot.Resources{CPU: 1930, Extended: map[string]int64{NvidiaGPU: 0}}), computed().Allocatable, false},
		{"devices of somebody's plugin", size(whole, snapshot.Resources{Extended: map[string]int64{"example.com/fuse": 20}}), computed().Allocatable, false},
		{"a figure below nothing", size(whole, snapshot.Resources{CPU: -5, Memory: -1}), computed().Allocatable, false},
	} {
		r := computed()
		if got := r.Learn(tc.is); got != tc.changed || got != (r.Computed != nil) {
			t.Errorf("%s: changed %v, computed %v", tc.name, got, r.Computed)
		}
		if diff := cmp.Diff(tc.want, r.Allocatable); diff != "" {
			t.Errorf("%s: %s", tc.name, diff)
		}
		// A node is started with what is computed, whatever one like it turned out to have.
		if r.MaxPods() != 29 || cmp.Diff(computed().KubeReserved(), r.KubeReserved()) != "" {
			t.Errorf("%s: started with %d pods and %+v", tc.name, r.MaxPods(), r.KubeReserved())
		}
		if r.Computed != nil && cmp.Diff(Size{computed().Capacity, computed().Allocatable}, *r.Computed) != "" {
			t.Errorf("%s: computed %+v", tc.name, *r.Computed)
		}
	}
	r := computed()
	r.Unusable, r.Allocatable = "reservations take everything", snapshot.Resources{}
	if r.Learn(Size{whole, whole}) || !r.Allocatable.IsZero() {
		t.Error("a type that cannot be used was learned about")
	}
}
