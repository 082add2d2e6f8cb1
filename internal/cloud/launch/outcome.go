package launch

import (
	"cmp"
	"slices"
	"strings"

	"kerf.sh/kerf/internal/catalog"
	"kerf.sh/kerf/internal/cloud/awserr"
)

// Answer is what CreateFleet answered, in our own words.
type Answer struct {
	FleetID   string
	Instances []AnswerInstances
	Errors    []AnswerError
}

// AnswerInstances are instances of one override.
type AnswerInstances struct {
	IDs                []string
	Type, Zone, Subnet string
	Template           string
	Lifecycle          string // spot, on-demand, ...
}

// AnswerError is why an override gave no instance, or fewer than asked for.
type AnswerError struct {
	Code, Message      string
	Type, Zone, Subnet string
	Lifecycle          string
}

// Instance is a launched instance with the claim that owns it.
type Instance struct {
	Claim         string `json:"claim"`
	ID            string `json:"id"`
	Type          string `json:"type"`
	Zone          string `json:"zone"`
	Subnet        string `json:"subnet,omitempty"`
	CapacityType  string `json:"capacityType"`
	ReservationID string `json:"reservationID,omitempty"`
	Price         int64  `json:"price"` // micro-dollars per hour, as it was planned
}

// ProviderID is the id that the node of an instance has.
func (i *Instance) ProviderID() string { return "aws:///" + i.Zone + "/" + i.ID }

// Failure is why an override could not be had.
type Failure struct {
	Kind    awserr.Kind `json:"kind"`
	Code    string      `json:"code"`
	Message string      `json:"message"` // with the permission or the field, when known
	// Reason is the reason of the NodeClaim's condition Launched (Karpenter's names).
	Reason string `json:"reason"`
	// Field is the field of the EC2NodeClass that is to blame, "" when none is.
	Field        string `json:"field,omitempty"`
	Permission   string `json:"permission,omitempty"`
	Type         string `json:"type,omitempty"`
	Zone         string `json:"zone,omitempty"`
	Subnet       string `json:"subnet,omitempty"`
	CapacityType string `json:"capacityType"`
}

// Scope is how far a shortage reaches.
type Scope string

// Scopes of shortages.
const (
	ScopeOffer        Scope = "offer"        // one type in one zone as one capacity type
	ScopeCapacityType Scope = "capacityType" // all of a capacity type (account-wide)
	ScopeSubnet       Scope = "subnet"
	ScopeReservation  Scope = "reservation"
	ScopePlacement    Scope = "placement" // a placement group in a zone
)

// Shortage is something to remember, for ShortageTTL, so that no other launch runs into it.
type Shortage struct {
	Scope        Scope  `json:"scope"`
	Type         string `json:"type,omitempty"`
	Zone         string `json:"zone,omitempty"`
	CapacityType string `json:"capacityType,omitempty"`
	ID           string `json:"id,omitempty"` // of subnet, reservation or placement group
	Code         string `json:"code"`
}

// ShortageTTLSeconds is how long Karpenter avoids what was short (unavailable offerings).
const ShortageTTLSeconds = 180

// Key identifies a shortage; equal things have equal keys, whatever the code.
func (s *Shortage) Key() string {
	return strings.Join([]string{string(s.Scope), s.CapacityType, s.Type, s.Zone, s.ID}, "#")
}

// Outcome is what came of an attempt.
type Outcome struct {
	FleetID   string     `json:"fleetID,omitempty"`
	Instances []Instance `json:"instances,omitempty"` // by id
	// Unserved are the claims that got nothing, in order.
	Unserved []string `json:"unserved,omitempty"`
	// Surplus are ids beyond the claims. EC2 gives none; should it, they must go.
	Surplus   []string   `json:"surplus,omitempty"`
	Failures  []Failure  `json:"failures,omitempty"`  // each once, by kind and offer
	Shortages []Shortage `json:"shortages,omitempty"` // by key
}

// Short reports whether every failure is a shortage: then the claims that got nothing are
// given up at once and another offer is tried, instead of repeating the request.
func (o *Outcome) Short() bool {
	return len(o.Failures) > 0 && !slices.ContainsFunc(o.Failures, func(f Failure) bool { return !f.Kind.Short() })
}

// Read judges an answer. Instances pair with claims by order: sorted ids with the claims
// as they stand, so that whoever reads the answer, or finds all instances by the tag of
// the attempt, comes to the same owners.
func Read(r *Request, a *Answer) *Outcome {
	out := &Outcome{FleetID: a.FleetID}
	from := map[string]*AnswerInstances{}
	var ids []string
	for i := range a.Instances {
		for _, id := range a.Instances[i].IDs {
			from[id] = &a.Instances[i]
			ids = append(ids, id)
		}
	}
	owned, surplus, unserved := Pair(r.Claims, ids)
	for _, p := range owned {
		got := from[p.ID]
		out.Instances = append(out.Instances, instance(r, p, got.Type, got.Zone, got.Subnet))
	}
	out.Surplus, out.Unserved = surplus, unserved
	for _, e := range a.Errors {
		f := readFailure(r, e)
		if !slices.Contains(out.Failures, f) {
			out.Failures = append(out.Failures, f)
		}
		if s, ok := f.shortage(r); ok {
			out.Shortages = append(out.Shortages, s)
		}
	}
	out.sort()
	return out
}

// ReadError is the outcome of a call that failed as a whole; nil when it is not known what
// became of it (no answer, throttled before or after): then the attempt stays open and the
// stored request is repeated.
func ReadError(r *Request, e *awserr.Error) *Outcome {
	switch e.Kind {
	case awserr.Transient, awserr.Throttled, awserr.TemplateNotFound, awserr.Mismatch:
		return nil
	}
	f := failureOf(e)
	f.CapacityType = r.CapacityType
	out := &Outcome{Unserved: slices.Clone(r.Claims), Failures: []Failure{f}}
	if s, ok := f.shortage(r); ok {
		out.Shortages = []Shortage{s}
	}
	return out
}

func instance(r *Request, p Owned, typ, zone, subnet string) Instance {
	out := Instance{Claim: p.Claim, ID: p.ID, Type: typ, Zone: zone, Subnet: subnet, CapacityType: r.CapacityType}
	if o := r.Offer(typ, zone); o != nil {
		out.Price, out.ReservationID = o.Price, o.ReservationID
		out.Subnet = cmp.Or(subnet, o.Subnet)
	}
	return out
}

// Owned is an instance id with the claim that owns it.
type Owned struct{ Claim, ID string }

// Pair gives sorted ids to claims in their order. Ids must be all that the attempt made,
// instances that are gone already included: with one missing the later ones would change
// owners.
func Pair(claims, ids []string) (owned []Owned, surplus, unserved []string) {
	sorted := slices.Clone(ids)
	slices.Sort(sorted)
	sorted = slices.Compact(sorted)
	for i, id := range sorted {
		if i < len(claims) {
			owned = append(owned, Owned{claims[i], id})
		} else {
			surplus = append(surplus, id)
		}
	}
	if len(sorted) < len(claims) {
		unserved = slices.Clone(claims[len(sorted):])
	}
	return owned, surplus, unserved
}

func (o *Outcome) sort() {
	slices.SortFunc(o.Failures, func(a, b Failure) int {
		return cmp.Or(cmp.Compare(a.Kind, b.Kind), cmp.Compare(a.Type, b.Type), cmp.Compare(a.Zone, b.Zone), cmp.Compare(a.Code, b.Code), cmp.Compare(a.Message, b.Message))
	})
	slices.SortFunc(o.Shortages, func(a, b Shortage) int { return cmp.Compare(a.Key(), b.Key()) })
	o.Shortages = slices.CompactFunc(o.Shortages, func(a, b Shortage) bool { return a.Key() == b.Key() })
}

func readFailure(r *Request, e AnswerError) Failure {
	f := failureOf(awserr.New(e.Code, e.Message))
	f.Type, f.Zone, f.Subnet, f.CapacityType = e.Type, e.Zone, e.Subnet, r.CapacityType
	if o := r.Offer(e.Type, e.Zone); o != nil && f.Subnet == "" {
		f.Subnet = o.Subnet
	}
	if f.Kind == awserr.Invalid && f.Field == "" && r.CapacityType == catalog.Reserved {
		f.Field = "spec.capacityReservationSelectorTerms"
	}
	return f
}

// shortage is what a failure says about others' launches.
func (f *Failure) shortage(r *Request) (Shortage, bool) {
	s := Shortage{CapacityType: f.CapacityType, Code: f.Code}
	switch f.Kind {
	case awserr.SpotLimit, awserr.SpotRole:
		s.Scope = ScopeCapacityType
		s.CapacityType = catalog.Spot
	case awserr.SubnetFull:
		s.Scope, s.CapacityType, s.ID, s.Zone = ScopeSubnet, "", f.Subnet, f.Zone
		return s, s.ID != ""
	case awserr.FleetLimit:
		return s, false // says nothing about any offer
	case awserr.ReservationFull:
		o := r.Offer(f.Type, f.Zone)
		if o == nil || o.ReservationID == "" {
			return s, false
		}
		s.Scope, s.ID = ScopeReservation, o.ReservationID
	case awserr.PlacementFull:
		s.Scope, s.CapacityType, s.Zone, s.ID = ScopePlacement, "", f.Zone, r.PlacementGroup
		return s, s.Zone != ""
	case awserr.Capacity, awserr.VCPULimit:
		if o := r.Offer(f.Type, f.Zone); o != nil && o.ReservationID != "" {
			s.Scope, s.ID = ScopeReservation, o.ReservationID
			return s, true
		}
		s.Scope, s.Type, s.Zone = ScopeOffer, f.Type, f.Zone
		return s, s.Type != "" && s.Zone != ""
	default:
		return s, false
	}
	return s, true
}

// Avoid are the offers and subnets that shortages leave.
type Avoid struct {
	offers, capacityTypes, reservations, zones map[string]bool
	// Subnets that had no free address (nodeclass.ZoneSubnets: full).
	Subnets map[string]bool
}

// NewAvoid reads shortages that are still fresh; group is the placement group of the class.
func NewAvoid(shortages []Shortage, group string) *Avoid {
	a := &Avoid{map[string]bool{}, map[string]bool{}, map[string]bool{}, map[string]bool{}, map[string]bool{}}
	for _, s := range shortages {
		switch s.Scope {
		case ScopeOffer:
			a.offers[s.Key()] = true
		case ScopeCapacityType:
			a.capacityTypes[s.CapacityType] = true
		case ScopeSubnet:
			a.Subnets[s.ID] = true
		case ScopeReservation:
			a.reservations[s.ID] = true
		case ScopePlacement:
			if group != "" && (s.ID == "" || s.ID == group) {
				a.zones[s.Zone] = true
			}
		}
	}
	return a
}

// Offer reports whether an offer is to be avoided. Subnets are not looked at: a zone with
// another subnet is fine (nodeclass.ZoneSubnets decides).
func (a *Avoid) Offer(typ, zone, capacityType, reservation string) bool {
	s := Shortage{Scope: ScopeOffer, Type: typ, Zone: zone, CapacityType: capacityType}
	return a.offers[s.Key()] || a.capacityTypes[capacityType] || a.zones[zone] || reservation != "" && a.reservations[reservation]
}
