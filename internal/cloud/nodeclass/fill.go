package nodeclass

import (
	"cmp"
	"slices"
	"time"

	"kerf.sh/kerf/internal/snapshot"
)

// Fill lays what a class resolved to over the class of a snapshot, as the planner reads
// it: zones, images, reservations with what is left of them, conditions. A class that was
// resolved at another generation is filled just as well: its Ready condition says so.
func Fill(class *snapshot.NodeClass, r *Resolved, s *Status, now time.Time) {
	class.HasStatus = true
	class.Zones, class.Images, class.Reservations, class.Conditions = nil, nil, nil, nil
	for _, n := range r.Subnets {
		class.Zones = append(class.Zones, snapshot.SubnetZone{Zone: n.Zone, ZoneID: n.ZoneID})
	}
	slices.SortFunc(class.Zones, func(a, b snapshot.SubnetZone) int {
		return cmp.Or(cmp.Compare(a.Zone, b.Zone), cmp.Compare(a.ZoneID, b.ZoneID))
	})
	class.Zones = slices.Compact(class.Zones)
	for _, i := range r.Images {
		class.Images = append(class.Images, snapshot.Image{ID: i.ID, Name: i.Name, Deprecated: i.Deprecated, Requirements: i.Requirements})
	}
	for i := range r.Reservations {
		v := &r.Reservations[i]
		one := snapshot.CapacityReservation{
			ID: v.ID, InstanceType: v.InstanceType, Zone: v.Zone, Type: v.Type, State: v.StateAt(now), Remaining: v.Remaining, Expires: v.Ends,
		}
		class.Reservations = append(class.Reservations, one)
	}
	for _, c := range s.Conditions {
		class.Conditions = append(class.Conditions, snapshot.Condition{
			Type: c.Type, Status: c.Status, Reason: c.Reason, Message: c.Message, ObservedGeneration: c.ObservedGeneration, Since: c.LastTransitionTime,
		})
	}
}
