package snapshot

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

func TestShortage(t *testing.T) {
	at := time.Date(2026, 3, 4, 12, 3, 0, 0, time.UTC)
	for _, tc := range []struct {
		s                             Shortage
		typ, zone, capacity, reserved string
		hits                          bool
		name                          string
	}{
		{Shortage{InstanceType: "m5.large", Zone: "z-a", CapacityType: "spot"}, "m5.large", "z-a", "spot", "", true, "the offer"},
		{Shortage{InstanceType: "m5.large", Zone: "z-a", CapacityType: "spot"}, "m5.large", "z-a", "on-demand", "", false, "another capacity type"},
		{Shortage{InstanceType: "m5.large", Zone: "z-a", CapacityType: "spot"}, "m5.large", "z-b", "spot", "", false, "another zone"},
		{Shortage{InstanceType: "m5.large", Zone: "z-a", CapacityType: "spot"}, "m5.xlarge", "z-a", "spot", "", false, "another type"},
		{Shortage{CapacityType: "spot"}, "m5.xlarge", "z-a", "spot", "", true, "all of spot"},
		{Shortage{CapacityType: "spot"}, "m5.xlarge", "z-a", "on-demand", "", false, "spot alone"},
		{Shortage{Zone: "z-a"}, "m5.xlarge", "z-a", "on-demand", "", true, "a zone"},
		{Shortage{CapacityType: "reserved", ReservationID: "cr-1"}, "m5.large", "z-a", "reserved", "cr-1", true, "a reservation"},
		{Shortage{CapacityType: "reserved", ReservationID: "cr-1"}, "m5.large", "z-a", "reserved", "cr-2", false, "another reservation"},
	} {
		if got := tc.s.Hits(tc.typ, tc.zone, tc.capacity, tc.reserved); got != tc.hits {
			t.Errorf("%s: %s hits %s %s %s %s: %v", tc.name, tc.s.Key(), tc.typ, tc.zone, tc.capacity, tc.reserved, got)
		}
	}
	s := Shortage{Until: at}
	if !s.Live(at.Add(-time.Nanosecond)) || s.Live(at) {
		t.Error("it lasts until its end, and not longer")
	}
}

// TestRememberedOnce: of what is told twice one entry stays, whichever came first.
func TestRememberedOnce(t *testing.T) {
	at := time.Date(2026, 3, 4, 12, 3, 0, 0, time.UTC)
	short, long := Shortage{InstanceType: "a", Until: at, Code: "x"}, Shortage{InstanceType: "a", Until: at.Add(time.Minute), Code: "y"}
	other := Shortage{InstanceType: "b", Until: at, Code: "x"}
	small, large := LearnedSize{InstanceType: "a", Allocatable: Resources{CPU: 1}}, LearnedSize{InstanceType: "a", Allocatable: Resources{CPU: 2}}
	for _, s := range []*Snapshot{
		{Shortages: []Shortage{other, short, long}, Learned: []LearnedSize{small, large}},
		{Shortages: []Shortage{long, short, other}, Learned: []LearnedSize{large, small}},
	} {
		s.Normalize()
		if diff := cmp.Diff([]Shortage{long, other}, s.Shortages); diff != "" {
			t.Error(diff)
		}
		if diff := cmp.Diff([]LearnedSize{small}, s.Learned); diff != "" {
			t.Error(diff)
		}
	}
}
