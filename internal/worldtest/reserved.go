package worldtest

import (
	"slices"
	"time"

	"kerf.sh/kerf/internal/catalog"
	"kerf.sh/kerf/internal/snapshot"
)

// reservationOpen reports whether nodes of a class may be launched on a reserved
// offering; true for offerings of other kinds.
func reservationOpen(s *snapshot.Snapshot, class *snapshot.NodeClass, o *catalog.Offering) bool {
	if o.CapacityType != "reserved" {
		return true
	}
	r := o.Reservation
	if !s.Settings.ReservedCapacity || r == nil || r.Remaining <= 0 {
		return false
	}
	if r.Type == "capacity-block" && !r.Expires.IsZero() && r.Expires.Sub(s.Now) < 40*time.Minute {
		return false
	}
	return !class.HasStatus || slices.ContainsFunc(class.Reservations, func(c snapshot.CapacityReservation) bool { return c.ID == r.ID })
}

// taken counts the launches that are to have an instance of a reservation.
func (j *judge) taken(id string) int64 {
	n := int64(0)
	for i := range j.p.Launches {
		if j.p.Launches[i].Chosen.ReservationID == id {
			n++
		}
	}
	return n
}

// usedUp reports whether the plan takes every instance of the supply's reservation, or
// may take none: one reservation is no choice, which minValues demands.
func (j *judge) usedUp(sup *Supply) bool {
	for _, n := range j.pools[sup.Pool.Name].minValues {
		if n > 0 && sup.Reservation != "" {
			return true
		}
	}
	return sup.Reservation != "" && j.taken(sup.Reservation) >= sup.Left
}

// reservations: no more nodes than a reservation has instances, whichever pools they
// are of, and a node of a reservation has no other option.
func (j *judge) reservations() {
	for i := range j.p.Launches {
		l := &j.p.Launches[i]
		v := j.pools[l.NodePool]
		if v == nil || l.Chosen.ReservationID == "" {
			continue
		}
		if sup := v.find(l.Chosen); sup != nil && j.taken(sup.Reservation) > sup.Left {
			j.fail("launch %s: reservation %s has %d instances, the plan takes %d", l.Name, sup.Reservation, sup.Left, j.taken(sup.Reservation))
		}
		if len(l.Options) != 1 {
			j.fail("launch %s: reserved, with %d options", l.Name, len(l.Options))
		}
	}
}
