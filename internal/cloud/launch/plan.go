package launch

import (
	"cmp"
	"fmt"
	"maps"
	"math"
	"slices"
	"time"

	"kerf.sh/kerf/internal/catalog"
	"kerf.sh/kerf/internal/cloud/nodeclass"
	"kerf.sh/kerf/internal/cloud/userdata"
	"kerf.sh/kerf/internal/plan"
	"kerf.sh/kerf/internal/snapshot"
)

// Limits of one request. Sixty types is Karpenter's limit; EC2 takes fifty templates.
const (
	maxTypes     = 60
	maxTemplates = 50
)

// Type is what a launch has to know of an instance type under the class.
type Type struct {
	Name    string
	ImageID string // the image that boots it (catalog.Resolved.Image)
	MaxPods int64
	EFA     int32 // interfaces that can be EFA
	// KubeReserved is what the planner took off for the kubelet, as quantities; the node
	// is started with it.
	KubeReserved map[string]string
}

// TypeOf is a type as the planner resolved it under the class.
func TypeOf(r *catalog.Resolved) Type {
	reserved := r.KubeReserved()
	out := Type{
		Name: r.Type.Name, ImageID: r.Image, MaxPods: r.MaxPods(), EFA: int32(min(r.Capacity.Get(catalog.EFA), math.MaxInt32)),
		KubeReserved: map[string]string{},
	}
	for _, name := range []string{snapshot.CPU, snapshot.Memory, snapshot.EphemeralStorage} {
		out.KubeReserved[name] = snapshot.FormatQuantity(name, reserved.Get(name))
	}
	return out
}

// Input is one attempt to launch: nodes that are all alike.
type Input struct {
	Attempt  string   // attempt id; token of the request and tag of everything it makes
	Claims   []string // in order; the i-th gets the i-th instance id
	Cluster  userdata.Cluster
	Region   string
	Pool     string
	Class    *nodeclass.Class
	Resolved *nodeclass.Resolved
	// Offers are what may be launched, each available as far as is known. Types has every
	// type that they name.
	Offers []plan.Offer
	Types  map[string]Type
	// Subnets is the subnet of each zone (nodeclass.ZoneSubnets).
	Subnets map[string]nodeclass.Subnet
	Labels  map[string]string // of the claims
	Taints  []snapshot.Taint  // taints and startup taints of the pool; unregistered is added
	// RequestsEFA and RequestsEnclave: the pods ask for them.
	RequestsEFA, RequestsEnclave bool
	Tenancy                      string // dedicated, or "" for default
	// Reservations: the gate ReservedCapacity is on; without it nothing is said about
	// reservations, and open ones match by themselves.
	Reservations bool
	// MinValues: a requirement of the pool has minValues; then spot offers above the
	// on-demand price stay, because dropping them could break it. Relaxed: it was relaxed;
	// then the class's context is left out.
	MinValues, MinValuesRelaxed bool
	Isolated                    bool // region without IPv6 metadata endpoint
	Now                         time.Time
}

// Planned is what is to be done for an attempt: make sure that the templates exist, then
// send the request.
type Planned struct {
	Templates []Template
	Request   Request
	// Used are the offers in the request, of one capacity type; Left are the others, for
	// an attempt that follows should this one find nothing.
	Used, Left []plan.Offer
}

// UnregisteredTaint is on every node until it is registered (Karpenter: same).
var UnregisteredTaint = snapshot.Taint{Key: "karpenter.sh/unregistered", Effect: "NoExecute"}

// labelSkipSync tells whoever registers the node that the kubelet sets the taints itself.
const labelSkipSync = "karpenter.sh/do-not-sync-taints"

// Plan makes the request of an attempt. The error is a *nodeclass.Refusal when a field of
// the class is to blame, a *NoOffer when none of the offers can be asked for.
func Plan(in Input) (*Planned, error) {
	if len(in.Claims) == 0 || in.Attempt == "" {
		return nil, fmt.Errorf("plan launch %q: it has %d claims; both an id and claims are needed", in.Attempt, len(in.Claims))
	}
	use, left, err := in.choose()
	if err != nil {
		return nil, err
	}
	out := &Planned{Left: left}
	b := &buckets{in: &in, ct: use[0].CapacityType, at: map[string]int{}, seen: map[string]bool{}}
	types := map[string]bool{}
	for _, o := range use {
		if !types[o.InstanceType] && len(types) == maxTypes {
			out.Left = append(out.Left, o)
			continue
		}
		added, err := b.add(o)
		if err != nil {
			return nil, err
		}
		if !added {
			out.Left = append(out.Left, o)
			continue
		}
		types[o.InstanceType] = true
		out.Used = append(out.Used, o)
	}
	out.Templates = b.templates
	out.Request = in.request(b)
	return out, nil
}

// NoOffer says why none of the offers of a launch can be asked for.
type NoOffer struct {
	Offers int
	// NoSubnet are the zones of offers that have no subnet with a free address.
	NoSubnet []string
	Untyped  []string // types that no image of the class boots
	UsedUp   []string // reservations that are full, expiring or not the class's
}

func (e *NoOffer) Error() string {
	switch {
	case e.Offers == 0:
		return "the launch has no offer left"
	case len(e.NoSubnet) > 0:
		return fmt.Sprintf("none of %d offers can be launched: no subnet of the class has a free address in %v", e.Offers, e.NoSubnet)
	case len(e.UsedUp) > 0:
		return fmt.Sprintf("none of %d offers can be launched: the reservations %v are used up, expiring, or not the class's", e.Offers, e.UsedUp)
	}
	return fmt.Sprintf("none of %d offers can be launched: no image of the class boots %v", e.Offers, e.Untyped)
}

// choose are the offers that go into the request: those of the first capacity type of
// reserved, spot, on-demand that has any (Karpenter: one capacity type a request), by
// price, each type and zone once.
func (in *Input) choose() (use, left []plan.Offer, err error) {
	no := &NoOffer{Offers: len(in.Offers)}
	by := map[string][]plan.Offer{}
	for _, o := range in.Offers {
		if _, ok := in.Subnets[o.Zone]; !ok {
			no.NoSubnet = append(no.NoSubnet, o.Zone)
			continue
		}
		if t, ok := in.Types[o.InstanceType]; !ok || t.ImageID == "" {
			no.Untyped = append(no.Untyped, o.InstanceType)
			continue
		}
		if o.CapacityType == catalog.Reserved && in.reservation(o.ReservationID) == nil {
			no.UsedUp = append(no.UsedUp, o.ReservationID)
			continue
		}
		by[o.CapacityType] = append(by[o.CapacityType], o)
	}
	for _, offers := range by {
		slices.SortFunc(offers, compareOffers)
	}
	if spot, od := by[catalog.Spot], by[catalog.OnDemand]; !in.MinValues && len(spot) > 0 && len(od) > 0 {
		// Spot above the cheapest on-demand offer is never bought (Karpenter: spot price filter).
		by[catalog.Spot] = slices.DeleteFunc(spot, func(o plan.Offer) bool { return o.Price > od[0].Price })
	}
	kept := in.oneReservationClass(by[catalog.Reserved])
	for _, o := range by[catalog.Reserved] {
		if !slices.Contains(kept, o) {
			left = append(left, o)
		}
	}
	by[catalog.Reserved] = kept
	for _, ct := range []string{catalog.Reserved, catalog.Spot, catalog.OnDemand} {
		if len(use) == 0 {
			use = by[ct]
		} else {
			left = append(left, by[ct]...)
		}
	}
	if len(use) == 0 {
		for _, list := range []*[]string{&no.NoSubnet, &no.Untyped, &no.UsedUp} {
			slices.Sort(*list)
			*list = slices.Compact(*list)
		}
		return nil, nil, no
	}
	return use, left, nil
}

func compareOffers(a, b plan.Offer) int {
	return cmp.Or(cmp.Compare(a.Price, b.Price), cmp.Compare(a.InstanceType, b.InstanceType),
		cmp.Compare(a.Zone, b.Zone), cmp.Compare(a.CapacityType, b.CapacityType), cmp.Compare(a.ReservationID, b.ReservationID))
}

func (in *Input) reservation(id string) *nodeclass.Reservation {
	for i := range in.Resolved.Reservations {
		if r := &in.Resolved.Reservations[i]; r.ID == id && r.Usable(in.Now) {
			return r
		}
	}
	return nil
}

// oneReservationClass keeps offers of one kind of reservation: the cheapest, on a tie
// default before capacity blocks before interruptible ones; of capacity blocks one type
// with one block; of others the reservation of each type and zone with most left
// (Karpenter: launch filters).
func (in *Input) oneReservationClass(offers []plan.Offer) []plan.Offer {
	if len(offers) == 0 {
		return nil
	}
	rank := func(o plan.Offer) int {
		switch r := in.reservation(o.ReservationID); {
		case r.Type == nodeclass.ReservationBlock:
			return 1
		case r.Interruptible:
			return 2
		}
		return 0
	}
	best := slices.MinFunc(offers, func(a, b plan.Offer) int {
		return cmp.Or(cmp.Compare(a.Price, b.Price), cmp.Compare(rank(a), rank(b)), compareOffers(a, b))
	})
	if rank(best) == 1 {
		return []plan.Offer{best}
	}
	most := map[string]plan.Offer{}
	for _, o := range offers {
		if rank(o) != rank(best) {
			continue
		}
		key := o.InstanceType + "/" + o.Zone
		was, ok := most[key]
		if !ok || in.reservation(o.ReservationID).Remaining > in.reservation(was.ReservationID).Remaining {
			most[key] = o
		}
	}
	out := make([]plan.Offer, 0, len(most))
	for _, key := range slices.Sorted(maps.Keys(most)) {
		out = append(out, most[key])
	}
	slices.SortFunc(out, compareOffers)
	return out
}
