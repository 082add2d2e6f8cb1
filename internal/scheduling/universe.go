package scheduling

import (
	"cmp"
	"slices"
	"strings"
	"time"

	"kerf.sh/kerf/internal/catalog"
	"kerf.sh/kerf/internal/snapshot"
)

// universe is the catalogue under one NodeClass: every type, every offer, with
// what is wrong about each. Pools of the class choose from it.
type universe struct {
	class *snapshot.NodeClass
	types []catalog.Resolved
	// offers are sorted by (type, zone, capacity type, reservation).
	offers []offer
	first  []int32 // first offer of each type; one more at the end
	cols   map[string]*column
	byKey  map[string]bool // labels that some type has
}

// offer is a type in a zone as a capacity type.
type offer struct {
	typ         int32
	zone        string
	zoneID      string
	capacity    string
	price       int64
	reservation string
	blockType   string // default or capacity-block, reserved offers only
	count       int64
	why         string // why it is not available; "" = it is
	// overlay names the NodeOverlay that sets the price; listed is the catalogue's.
	overlay string
	listed  int64
}

// expiringBlock is how long before its end a capacity block takes no new node
// (Karpenter: a block expires 40 minutes early).
const expiringBlock = 40 * time.Minute

func newUniverse(s *snapshot.Snapshot, class *snapshot.NodeClass, types []catalog.Resolved) *universe {
	u := &universe{class: class, types: types, cols: map[string]*column{}, byKey: map[string]bool{}}
	n := 0
	for i := range types {
		n += len(types[i].Type.Offerings)
	}
	u.offers = make([]offer, 0, n+len(class.Reservations))
	u.first = make([]int32, len(types)+1)
	for i := range types {
		u.first[i] = int32(len(u.offers))
		t := types[i].Type
		for k := range t.Offerings {
			u.offers = append(u.offers, classOffer(s, class, int32(i), &t.Offerings[k]))
		}
		added := false
		for k := range class.Reservations {
			if r := &class.Reservations[k]; r.InstanceType == t.Name && !hasReservation(u.offers[u.first[i]:], r.ID) {
				u.offers = append(u.offers, reservedOffer(s, class, int32(i), r))
				added = true
			}
		}
		own := u.offers[u.first[i]:]
		if added || !slices.IsSortedFunc(own, compareOffers) {
			slices.SortFunc(own, compareOffers)
		}
	}
	u.first[len(types)] = int32(len(u.offers))
	return u
}

func compareOffers(a, b offer) int {
	return cmp.Or(strings.Compare(a.zone, b.zone), strings.Compare(a.capacity, b.capacity), strings.Compare(a.reservation, b.reservation))
}

func hasReservation(list []offer, id string) bool {
	return slices.ContainsFunc(list, func(o offer) bool { return o.reservation == id })
}

// classOffer is an offering of the catalogue as nodes of a class can have it.
func classOffer(s *snapshot.Snapshot, class *snapshot.NodeClass, typ int32, g *catalog.Offering) offer {
	o := offer{typ: typ, zone: g.Zone, zoneID: g.ZoneID, capacity: g.CapacityType, price: g.Price}
	if !g.Available {
		o.why = "it is out of capacity or not offered"
	}
	if class.Zones != nil {
		i := slices.IndexFunc(class.Zones, func(z snapshot.SubnetZone) bool { return z.Zone == g.Zone })
		if i < 0 {
			o.why = "NodeClass " + class.Name + " has no subnet there"
		} else if class.Zones[i].ZoneID != "" {
			o.zoneID = class.Zones[i].ZoneID
		}
	}
	if g.CapacityType != catalog.Reserved {
		return o
	}
	if !s.Settings.ReservedCapacity {
		o.why = "reserved capacity is switched off"
	}
	if r := g.Reservation; r != nil {
		o.reservation, o.blockType, o.count = r.ID, r.Type, r.Remaining
		switch {
		case r.Remaining <= 0:
			o.why = "reservation " + r.ID + " is used up"
		case r.Type == "capacity-block" && !r.Expires.IsZero() && r.Expires.Sub(s.Now) < expiringBlock:
			o.why = "capacity block " + r.ID + " ends soon"
		}
		// A class with a status lists the reservations that it selects.
		if class.HasStatus && !slices.ContainsFunc(class.Reservations, func(c snapshot.CapacityReservation) bool { return c.ID == r.ID }) {
			o.why = "NodeClass " + class.Name + " does not select reservation " + r.ID
		}
	}
	return o
}

// reservedOffer is a reservation that only the class's status knows. It costs
// nothing more: it is paid for whether used or not.
func reservedOffer(s *snapshot.Snapshot, class *snapshot.NodeClass, typ int32, r *snapshot.CapacityReservation) offer {
	o := offer{typ: typ, zone: r.Zone, capacity: catalog.Reserved, reservation: r.ID, blockType: r.Type, count: r.Remaining}
	if i := slices.IndexFunc(class.Zones, func(z snapshot.SubnetZone) bool { return z.Zone == r.Zone }); i >= 0 {
		o.zoneID = class.Zones[i].ZoneID
	} else if class.Zones != nil {
		o.why = "NodeClass " + class.Name + " has no subnet there"
	}
	switch {
	case !s.Settings.ReservedCapacity:
		o.why = "reserved capacity is switched off"
	case r.Remaining < 0:
		o.why = "how many instances reservation " + r.ID + " has left is not known"
	case r.Remaining == 0:
		o.why = "reservation " + r.ID + " is used up"
	case r.State == "expiring", r.Type == "capacity-block" && !r.Expires.IsZero() && r.Expires.Sub(s.Now) < expiringBlock:
		o.why = "reservation " + r.ID + " ends soon"
	}
	return o
}

// offerKey reports whether a label depends on the offer rather than on the type.
func offerKey(key string) bool {
	switch key {
	case catalog.LabelZone, catalog.LabelZoneID, catalog.LabelCapacityType,
		catalog.LabelReservationID, catalog.LabelReservationType, catalog.LabelReservationInterruptible:
		return true
	}
	return false
}

// typeKey reports whether some type of the universe has the label.
func (u *universe) typeKey(key string) bool {
	has, known := u.byKey[key]
	if !known {
		for i := range u.types {
			if _, has = u.types[i].Label(key); has {
				break
			}
		}
		u.byKey[key] = has
	}
	return has
}

// column returns a label over the types, or over the offers if it depends on them.
func (u *universe) column(key string) *column {
	if c := u.cols[key]; c != nil {
		return c
	}
	var c *column
	if offerKey(key) {
		c = newColumn(len(u.offers), func(i int) (string, bool) { return u.offers[i].label(key) })
	} else {
		c = newColumn(len(u.types), func(i int) (string, bool) {
			return u.types[i].Label(key)
		})
	}
	u.cols[key] = c
	return c
}

// label is what a node of the offer has for a label that depends on it.
func (o *offer) label(key string) (string, bool) {
	v := ""
	switch key {
	case catalog.LabelZone:
		v = o.zone
	case catalog.LabelZoneID:
		v = o.zoneID
	case catalog.LabelCapacityType:
		v = o.capacity
	case catalog.LabelReservationID:
		v = o.reservation
	case catalog.LabelReservationType:
		v = o.blockType
	}
	return v, v != ""
}
