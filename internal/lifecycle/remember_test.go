package lifecycle

import (
	"encoding/json"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"kerf.sh/kerf/internal/snapshot"
)

// TestShape: what decides what a node has makes another shape, and nothing else does.
func TestShape(t *testing.T) {
	pods := func(n int64) *int64 { return &n }
	base := func() (*snapshot.NodeClass, *snapshot.Settings) {
		s := snapshot.DefaultSettings()
		return &snapshot.NodeClass{
			Name: "default", AMIFamily: "AL2023", Kubelet: snapshot.Kubelet{MaxPods: pods(50), KubeReserved: map[string]string{"cpu": "1", "memory": "1Gi"}},
			BlockDevices: []snapshot.BlockDevice{{DeviceName: "/dev/xvda", Bytes: 20 << 30}},
			Spec:         []byte(`{"userData":"a","cpuOptions":{"coreCount":2,"threadsPerCore":1},"tags":{"a":"b"}}`),
		}, &s
	}
	c, s := base()
	want := Shape(c, *s)
	if len(want) != 16 {
		t.Errorf("shape %q", want)
	}
	for name, change := range map[string]func(*snapshot.NodeClass, *snapshot.Settings){
		"family":        func(c *snapshot.NodeClass, _ *snapshot.Settings) { c.AMIFamily = "Custom" },
		"max pods":      func(c *snapshot.NodeClass, _ *snapshot.Settings) { c.Kubelet.MaxPods = pods(110) },
		"no max pods":   func(c *snapshot.NodeClass, _ *snapshot.Settings) { c.Kubelet.MaxPods = nil },
		"pods per core": func(c *snapshot.NodeClass, _ *snapshot.Settings) { c.Kubelet.PodsPerCore = pods(10) },
		"kube reserved": func(c *snapshot.NodeClass, _ *snapshot.Settings) { c.Kubelet.KubeReserved["cpu"] = "2" },
		"system reserved": func(c *snapshot.NodeClass, _ *snapshot.Settings) {
			c.Kubelet.SystemReserved = map[string]string{"cpu": "2"}
		},
		"eviction": func(c *snapshot.NodeClass, _ *snapshot.Settings) {
			c.Kubelet.EvictionHard = map[string]string{"memory.available": "1Gi"}
		},
		"disk":           func(c *snapshot.NodeClass, _ *snapshot.Settings) { c.BlockDevices[0].Bytes = 30 << 30 },
		"root":           func(c *snapshot.NodeClass, _ *snapshot.Settings) { c.BlockDevices[0].RootVolume = true },
		"instance store": func(c *snapshot.NodeClass, _ *snapshot.Settings) { c.InstanceStorePolicy = "RAID0" },
		"interfaces": func(c *snapshot.NodeClass, _ *snapshot.Settings) {
			c.NetworkInterfaces = []snapshot.NetworkInterface{{Type: "efa-only"}}
		},
		"nested": func(c *snapshot.NodeClass, _ *snapshot.Settings) { c.NestedVirtualization = true },
		"user data": func(c *snapshot.NodeClass, _ *snapshot.Settings) {
			c.Spec = []byte(`{"userData":"b","cpuOptions":{"coreCount":2,"threadsPerCore":1}}`)
		},
		"CPU options": func(c *snapshot.NodeClass, _ *snapshot.Settings) {
			c.Spec = []byte(`{"userData":"a","cpuOptions":{"coreCount":1,"threadsPerCore":1}}`)
		},
		"no spec":       func(c *snapshot.NodeClass, _ *snapshot.Settings) { c.Spec = nil },
		"reserved ENIs": func(_ *snapshot.NodeClass, s *snapshot.Settings) { s.ReservedENIs = 1 },
	} {
		c, s := base()
		if change(c, s); Shape(c, *s) == want {
			t.Errorf("%s: the same shape", name)
		}
	}
	for name, change := range map[string]func(*snapshot.NodeClass, *snapshot.Settings){
		"nothing":    func(*snapshot.NodeClass, *snapshot.Settings) {},
		"name":       func(c *snapshot.NodeClass, _ *snapshot.Settings) { c.Name = "other" },
		"generation": func(c *snapshot.NodeClass, _ *snapshot.Settings) { c.Generation = 7 },
		"tags": func(c *snapshot.NodeClass, _ *snapshot.Settings) {
			c.Spec = []byte(`{"cpuOptions":{"threadsPerCore":1,"coreCount":2}, "userData":"a"}`)
		},
		"soft eviction": func(c *snapshot.NodeClass, _ *snapshot.Settings) {
			c.Kubelet.EvictionSoft = map[string]string{"memory.available": "1Gi"}
		},
		"images":      func(c *snapshot.NodeClass, _ *snapshot.Settings) { c.Images = []snapshot.Image{{ID: "ami-2"}} },
		"an estimate": func(_ *snapshot.NodeClass, s *snapshot.Settings) { s.VMMemoryOverhead = 0 },
	} {
		c, s := base()
		if change(c, s); Shape(c, *s) != want {
			t.Errorf("%s: another shape", name)
		}
	}
}

// TestInto: what is remembered comes into the snapshot, once however often, and what has
// ended or concerns no class stays out.
func TestInto(t *testing.T) {
	offer := func(typ string) Offer { return Offer{InstanceType: typ, Zone: "z-a", CapacityType: "spot"} }
	size := func(typ, image string, seen time.Time) Learned {
		return Learned{InstanceType: typ, ImageID: image, Shape: "x", Allocatable: snapshot.Resources{CPU: 1}, Seen: seen}
	}
	now := at(30 * time.Minute)
	m := Remembered{
		Records: []Record{{Claim: "c1", Phase: Intended, Created: now, Nominated: []Pod{{Namespace: "a", Name: "p", UID: "1", Since: now, At: now}}}},
		Health: []Health{
			Health{Offer: offer("b")}.Shortage("InsufficientInstanceCapacity", now),
			Health{Offer: offer("a")}.Shortage("UnfulfillableCapacity", now.Add(-ShortageMin)), // just over
			{Offer: offer("c"), Interrupted: []time.Time{now}},
			Health{Offer: Offer{CapacityType: "reserved", ReservationID: "cr-1"}}.Shortage("ReservationCapacityExceeded", now.Add(-time.Minute)),
		},
		Learned: []Learned{
			size("a", "ami-1", now.Add(-LearnedMemory)), size("b", "ami-1", now.Add(time.Second-LearnedMemory)), size("c", "ami-2", now), size("d", "", now),
		},
	}
	s := &snapshot.Snapshot{Now: now, NodeClasses: []snapshot.NodeClass{{Name: "x", Images: []snapshot.Image{{ID: "ami-1"}, {}}}}}
	m.Into(s)
	if diff := cmp.Diff([]snapshot.Shortage{
		{InstanceType: "b", Zone: "z-a", CapacityType: "spot", Until: now.Add(ShortageMin), Code: "InsufficientInstanceCapacity"},
		{CapacityType: "reserved", ReservationID: "cr-1", Until: now.Add(2 * time.Minute), Code: "ReservationCapacityExceeded"},
	}, s.Shortages); diff != "" {
		t.Error(diff)
	}
	if diff := cmp.Diff([]snapshot.LearnedSize{{InstanceType: "b", ImageID: "ami-1", Shape: "x", Allocatable: snapshot.Resources{CPU: 1}}}, s.Learned); diff != "" {
		t.Error(diff)
	}
	if diff := cmp.Diff([]snapshot.Setback{
		{InstanceType: "b", Zone: "z-a", CapacityType: "spot", Failures: 1, Failed: now},
		{InstanceType: "a", Zone: "z-a", CapacityType: "spot", Failures: 1, Failed: now.Add(-ShortageMin)},
		{InstanceType: "c", Zone: "z-a", CapacityType: "spot", Interrupted: []time.Time{now}},
		{CapacityType: "reserved", ReservationID: "cr-1", Failures: 1, Failed: now.Add(-time.Minute)},
	}, s.Setbacks); diff != "" {
		t.Error(diff)
	}
	if len(s.NodeClaims) != 1 || len(s.Nominations) != 1 {
		t.Errorf("%d claims, %d nominations", len(s.NodeClaims), len(s.Nominations))
	}
	once, err := json.Marshal(s)
	if err != nil {
		t.Fatal(err)
	}
	m.Into(s)
	if twice, _ := json.Marshal(s); string(twice) != string(once) {
		t.Errorf("twice:\n%s\nonce:\n%s", twice, once)
	}
}

// TestRememberCompletes: a NodeClaim whose status is late says what its record knows, so
// that its Node is not another node and its room is not more than there will be.
func TestRememberCompletes(t *testing.T) {
	least, most := snapshot.Resources{CPU: 1930, Memory: 3 << 30, Pods: 29}, snapshot.Resources{CPU: 4000, Memory: 16 << 30, Pods: 58}
	launched := snapshot.Resources{CPU: 1930, Memory: 7 << 30, Pods: 29}
	coming := Record{
		Claim: "c", UID: "u", NodePool: "p", Phase: Launching, Created: at(0), Allocatable: least, Reserved: UsageOf(most, 100),
		Spec: Spec{Labels: map[string]string{"team": "a"}},
	}
	running := coming
	running.Phase, running.LaunchedAt, running.Node = Launched, at(time.Minute), "n"
	running.Instance = Instance{ID: "i-1", Type: "m5.large", Zone: "z-a", CapacityType: "spot", ImageID: "ami-1"}
	running.Allocatable, running.Capacity = launched, launched
	doomed := running
	doomed.Doomed = &Doom{Reason: "SpotInterrupted", At: at(2 * time.Minute)}
	draining := running
	draining.Phase, draining.DeletingSince = Draining, at(3*time.Minute)
	now := at(5 * time.Minute)
	object := snapshot.NodeClaim{Name: "c", UID: "u", Labels: map[string]string{"karpenter.sh/nodepool": "p"}}

	of := func(r Record, objects ...snapshot.NodeClaim) snapshot.NodeClaim {
		t.Helper()
		s := &snapshot.Snapshot{NodeClaims: slices.Clone(objects)}
		Remember(s, []Record{r}, now)
		if len(s.NodeClaims) != 1 {
			t.Fatalf("%d claims", len(s.NodeClaims))
		}
		return s.NodeClaims[0]
	}
	for _, objects := range [][]snapshot.NodeClaim{nil, {object}} {
		if c := of(coming, objects...); cmp.Diff(least, c.Allocatable) != "" || cmp.Diff(most, c.Capacity) != "" || c.ProviderID != "" {
			t.Errorf("%d objects: before the launch it has %+v of %+v, %q", len(objects), c.Allocatable, c.Capacity, c.ProviderID)
		}
		c := of(running, objects...)
		if cmp.Diff(launched, c.Allocatable) != "" || cmp.Diff(launched, c.Capacity) != "" || c.ProviderID != "aws:///z-a/i-1" || c.NodeName != "n" ||
			c.ImageID != "ami-1" || c.Labels["node.kubernetes.io/instance-type"] != "m5.large" || c.Labels["karpenter.sh/nodepool"] != "p" || !c.Deleting.IsZero() {
			t.Errorf("%d objects: after the launch: %+v", len(objects), c)
		}
		if c := of(doomed, objects...); !c.Deleting.Equal(now) {
			t.Errorf("%d objects: EC2 takes it, and it is deleting at %s", len(objects), c.Deleting)
		}
		if c := of(draining, objects...); !c.Deleting.Equal(at(3 * time.Minute)) {
			t.Errorf("%d objects: it drains, and is deleting at %s", len(objects), c.Deleting)
		}
	}
	if len(object.Labels) != 1 {
		t.Error("the labels of the object were changed in place")
	}
	told := object
	told.Allocatable, told.Capacity, told.ProviderID = least, least, "aws:///z-a/i-9"
	if c := of(running, told); cmp.Diff(least, c.Allocatable) != "" || c.ProviderID != "aws:///z-a/i-9" {
		t.Errorf("what the object says was replaced: %+v", c)
	}
	other := object
	other.UID = "v"
	if c := of(doomed, other); !c.Deleting.IsZero() || c.ProviderID != "" {
		t.Errorf("an object of somebody else was taken for the record's: %+v", c)
	}
}

// TestNominationsOnce: a pod that two nodes were made for waits for one of them.
func TestNominationsOnce(t *testing.T) {
	now := at(0)
	pod := func(uid string, since time.Time) Pod {
		return Pod{Namespace: "a", Name: "p", UID: uid, Since: since, At: since}
	}
	first := Record{Claim: "c1", Phase: Launched, Created: now, LaunchedAt: now, Nominated: []Pod{pod("1", now), pod("2", now)}}
	second := Record{Claim: "c2", Phase: Intended, Created: at(time.Minute), Nominated: []Pod{pod("1", at(time.Minute))}}
	for _, records := range [][]Record{{first, second}, {second, first}} {
		var got []string
		for _, n := range Nominations(records, at(2*time.Minute)) {
			got = append(got, n.UID+" "+n.Node)
		}
		if diff := cmp.Diff([]string{"1 c2", "2 c1"}, got); diff != "" {
			t.Error(diff)
		}
	}
}

// TestSaw: figures that are nearly the same are the smaller of the two, others the last.
func TestSaw(t *testing.T) {
	of := func(memory, gpus int64) Learned {
		r := snapshot.Resources{CPU: 1930, Memory: memory}
		if gpus > 0 {
			r = r.With("nvidia.com/gpu", gpus)
		}
		return Learned{Capacity: r, Allocatable: r, Seen: at(time.Hour)}
	}
	for _, tc := range []struct {
		name          string
		was, is, want Learned
	}{
		{"nothing was known", Learned{}, of(1000, 1), of(1000, 1)},
		{"nearly the same, more", of(1000, 1), of(1020, 1), of(1000, 1)},
		{"nearly the same, less", of(1000, 1), of(985, 1), of(985, 1)},
		{"more", of(1000, 1), of(1021, 4), of(1021, 4)},
		{"less", of(1000, 4), of(500, 1), of(500, 1)},
		{"a plugin that is not there yet", of(1000, 4), of(1000, 0), of(1000, 4)},
	} {
		if diff := cmp.Diff(tc.want, tc.was.Saw(tc.is)); diff != "" {
			t.Errorf("%s: %s", tc.name, diff)
		}
	}
}
