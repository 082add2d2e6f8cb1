package provision_test

import (
	"testing"

	"kerf.sh/kerf/internal/catalog"
	"kerf.sh/kerf/internal/provision"
	"kerf.sh/kerf/internal/snapshot"
	"kerf.sh/kerf/internal/worldtest"
)

// Reserved capacity comes first and is free at the margin; what it cannot hold
// spills to other offers in the same plan.
func TestReservedCapacitySpills(t *testing.T) {
	s := newSnapshot([]snapshot.NodePool{newPool("a", 0, "c5.large", "m5.large")}, newPod("p1", 1900, 100), newPod("p2", 1900, 100), newPod("p3", 1900, 100))
	s.NodeClasses[0].Reservations = []snapshot.CapacityReservation{{ID: "cr-1", InstanceType: "m5.large", Zone: "z-b", Type: "default", Remaining: 2}}
	p := provision.Plan(s, worldtest.Fixture(), provision.Options{})
	reserved := 0
	for _, l := range p.Launches {
		if l.Chosen.CapacityType == catalog.Reserved {
			reserved++
			if l.Chosen.ReservationID != "cr-1" || l.Labels[catalog.LabelReservationID] != "cr-1" || l.Chosen.Price != 0 {
				t.Errorf("launch %+v", l.Chosen)
			}
		}
	}
	if len(p.Launches) != 3 || reserved != 2 || p.Summary.LaunchPrice != 34_000 {
		t.Errorf("%d launches, %d of them reserved, price %d", len(p.Launches), reserved, p.Summary.LaunchPrice)
	}
}
