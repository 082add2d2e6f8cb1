package scheduling

import (
	"cmp"
	"slices"
	"strings"
	"time"

	"kerf.sh/kerf/internal/catalog"
	"kerf.sh/kerf/internal/requirements"
	"kerf.sh/kerf/internal/snapshot"
)

// universe is the catalogue under one NodeClass: every type, every offer, with
// what is wrong about each. Pools of the class choose from it.
type universe struct {
	class *snapshot.NodeClass
	types []catalog.Resolved
	// offers are sorted by (type, zone, capacity type, reservation).
	offers  []offer
	first   []int32   // first offer of each type; one more at the end
	markets []*market // that offers have
	cols    map[string]*column
	byKey   map[string]bool              // labels that some type has
	short   map[int32]*snapshot.Shortage // offers that are short of capacity
	setback map[int32]int64              // offers that went wrong lately: how much dearer they count
}

// offer is a type in a zone as a capacity type.
type offer struct {
	*market
	price  int64
	listed int64 // the catalogue's price, where an overlay sets another
	typ    int32
	at     int32  // of market, in universe.markets
	why    string // why it is not available; "" = it is
}

// market is what offers of many types have in common: there are few.
type market struct {
	zone        string
	zoneID      string
	capacity    string
	reservation string
	blockType   string // default or capacity-block, reserved offers only
	count       int64
	closed      string // why offers there are not available; "" = they are
	overlay     string // names the NodeOverlay that sets the price
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
	b := marketBuilder{u: u, s: s, class: class}
	for i := range types {
		u.first[i] = int32(len(u.offers))
		t := types[i].Type
		for k := range t.Offerings {
			g := &t.Offerings[k]
			u.offers = append(u.offers, u.offer(i, b.of(k, g), g.Price))
		}
		for k := range class.Reservations {
			if r := &class.Reservations[k]; r.InstanceType == t.Name && !hasReservation(u.offers[u.first[i]:], r.ID) {
				u.offers = append(u.offers, u.offer(i, u.addMarket(reservedMarket(s, class, r)), 0))
			}
		}
		b.sort(u.offers[u.first[i]:])
	}
	u.first[len(types)] = int32(len(u.offers))
	return u
}

func (u *universe) offer(typ int, at int32, price int64) offer {
	m := u.markets[at]
	return offer{market: m, price: price, typ: int32(typ), at: at, why: m.closed}
}

func (u *universe) addMarket(p market) int32 {
	u.markets = append(u.markets, &p)
	return int32(len(u.markets) - 1)
}

// marketBuilder finds the markets of offerings. One type after the other has the same.
type marketBuilder struct {
	u     *universe
	s     *snapshot.Snapshot
	class *snapshot.NodeClass
	plain []marketOf // without a reservation
	hint  []int32    // in plain, by position among the offerings of a type
	last  []int32    // markets of the last type, which are sorted
}

// marketOf is the market of all offerings that say the same.
type marketOf struct {
	zone, zoneID, capacity string
	available              bool
	at                     int32
}

func (p *marketOf) is(g *catalog.Offering) bool {
	return p.capacity == g.CapacityType && p.available == g.Available && p.zone == g.Zone && p.zoneID == g.ZoneID
}

// of is the market of the offering at a position among those of its type.
func (b *marketBuilder) of(k int, g *catalog.Offering) int32 {
	if g.Reservation != nil {
		return b.u.addMarket(classMarket(b.s, b.class, g))
	}
	for len(b.hint) <= k {
		b.hint = append(b.hint, 0)
	}
	if h := b.hint[k]; int(h) < len(b.plain) && b.plain[h].is(g) {
		return b.plain[h].at
	}
	for i := range b.plain {
		if b.plain[i].is(g) {
			b.hint[k] = int32(i)
			return b.plain[i].at
		}
	}
	b.hint[k] = int32(len(b.plain))
	at := b.u.addMarket(classMarket(b.s, b.class, g))
	b.plain = append(b.plain, marketOf{g.Zone, g.ZoneID, g.CapacityType, g.Available, at})
	return at
}

// sort puts the offers of a type in order. Those of the catalogue are.
func (b *marketBuilder) sort(own []offer) {
	same := len(own) == len(b.last)
	for i := 0; same && i < len(own); i++ {
		same = own[i].at == b.last[i]
	}
	if same {
		return
	}
	if !slices.IsSortedFunc(own, compareOffers) {
		slices.SortFunc(own, compareOffers)
	}
	b.last = b.last[:0]
	for i := range own {
		b.last = append(b.last, own[i].at)
	}
}

func compareOffers(a, b offer) int {
	return cmp.Or(strings.Compare(a.zone, b.zone), strings.Compare(a.capacity, b.capacity), strings.Compare(a.reservation, b.reservation))
}

func hasReservation(list []offer, id string) bool {
	return slices.ContainsFunc(list, func(o offer) bool { return o.reservation == id })
}

// classMarket is where and as what nodes of a class can have an offering of the catalogue.
func classMarket(s *snapshot.Snapshot, class *snapshot.NodeClass, g *catalog.Offering) market {
	o := market{zone: g.Zone, zoneID: g.ZoneID, capacity: g.CapacityType}
	if !g.Available {
		o.closed = "it is out of capacity or not offered"
	}
	if class.Zones != nil {
		i := slices.IndexFunc(class.Zones, func(z snapshot.SubnetZone) bool { return z.Zone == g.Zone })
		if i < 0 {
			o.closed = "NodeClass " + class.Name + " has no subnet there"
		} else if class.Zones[i].ZoneID != "" {
			o.zoneID = class.Zones[i].ZoneID
		}
	}
	if g.CapacityType != catalog.Reserved {
		return o
	}
	if !s.Settings.ReservedCapacity {
		o.closed = "reserved capacity is switched off"
	}
	if r := g.Reservation; r != nil {
		o.reservation, o.blockType, o.count = r.ID, r.Type, r.Remaining
		switch {
		case r.Remaining <= 0:
			o.closed = "reservation " + r.ID + " is used up"
		case r.Type == "capacity-block" && !r.Expires.IsZero() && r.Expires.Sub(s.Now) < expiringBlock:
			o.closed = "capacity block " + r.ID + " ends soon"
		}
		// A class with a status lists the reservations that it selects.
		if class.HasStatus && !slices.ContainsFunc(class.Reservations, func(c snapshot.CapacityReservation) bool { return c.ID == r.ID }) {
			o.closed = "NodeClass " + class.Name + " does not select reservation " + r.ID
		}
	}
	return o
}

// reservedMarket is a reservation that only the class's status knows. It costs
// nothing more: it is paid for whether used or not.
func reservedMarket(s *snapshot.Snapshot, class *snapshot.NodeClass, r *snapshot.CapacityReservation) market {
	o := market{zone: r.Zone, capacity: catalog.Reserved, reservation: r.ID, blockType: r.Type, count: r.Remaining}
	if i := slices.IndexFunc(class.Zones, func(z snapshot.SubnetZone) bool { return z.Zone == r.Zone }); i >= 0 {
		o.zoneID = class.Zones[i].ZoneID
	} else if class.Zones != nil {
		o.closed = "NodeClass " + class.Name + " has no subnet there"
	}
	switch {
	case !s.Settings.ReservedCapacity:
		o.closed = "reserved capacity is switched off"
	case r.Remaining < 0:
		o.closed = "how many instances reservation " + r.ID + " has left is not known"
	case r.Remaining == 0:
		o.closed = "reservation " + r.ID + " is used up"
	case r.State == "expiring", r.Type == "capacity-block" && !r.Expires.IsZero() && r.Expires.Sub(s.Now) < expiringBlock:
		o.closed = "reservation " + r.ID + " ends soon"
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
		c = newColumn(len(u.markets), func(i int) (string, bool) { return u.markets[i].label(key) })
		ids := make([]int32, len(u.offers))
		for i := range ids {
			ids[i] = c.ids[u.offers[i].at]
		}
		c.ids = ids
	} else {
		c = newColumn(len(u.types), func(i int) (string, bool) {
			return u.types[i].Label(key)
		})
	}
	u.cols[key] = c
	return c
}

// allowed are the markets that every one of some requirements on offers allows.
func (u *universe) allowed(reqs []requirements.Requirement) []bool {
	ok := make([]bool, len(u.markets))
	for i, p := range u.markets {
		ok[i] = true
		for k := range reqs {
			v, has := p.label(reqs[k].Key())
			ok[i] = ok[i] && satisfied(&reqs[k], v, has)
		}
	}
	return ok
}

// label is what a node there has for a label that depends on the offer.
func (o *market) label(key string) (string, bool) {
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
