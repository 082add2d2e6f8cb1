package nodeclass

import (
	"cmp"
	"slices"
	"time"

	"kerf.sh/kerf/internal/snapshot"
)

// Subnet is a subnet that a class selects.
type Subnet struct {
	ID      string `json:"id"`
	Zone    string `json:"zone"`
	ZoneID  string `json:"zoneID,omitempty"`
	VPC     string `json:"vpc,omitempty"`
	FreeIPs int64  `json:"freeIPs"`
}

// SecurityGroup is a security group that a class selects.
type SecurityGroup struct {
	ID   string `json:"id"`
	Name string `json:"name,omitempty"`
}

// Image is an AMI that a class selects, with what its variant asks of a type.
type Image struct {
	ID           string                         `json:"id"`
	Name         string                         `json:"name,omitempty"`
	Created      time.Time                      `json:"created,omitzero"`
	Deprecated   bool                           `json:"deprecated,omitempty"`
	Requirements []snapshot.SelectorRequirement `json:"requirements,omitempty"`
}

// Placement strategies.
const (
	StrategyCluster   = "cluster"
	StrategySpread    = "spread"
	StrategyPartition = "partition"
)

// PlacementGroup is the placement group that a class selects.
type PlacementGroup struct {
	ID         string `json:"id"`
	Name       string `json:"name,omitempty"`
	Strategy   string `json:"strategy"`
	Partitions int32  `json:"partitions,omitempty"`
}

// Types and states of capacity reservations.
const (
	ReservationDefault  = "default"
	ReservationBlock    = "capacity-block"
	ReservationActive   = "active"
	ReservationExpiring = "expiring"
)

// Reservation is a capacity reservation that a class selects.
type Reservation struct {
	ID            string    `json:"id"`
	InstanceType  string    `json:"instanceType"`
	Zone          string    `json:"zone"`
	OwnerID       string    `json:"ownerID,omitempty"`
	MatchCriteria string    `json:"matchCriteria,omitempty"`
	Type          string    `json:"type"`
	State         string    `json:"state"`
	Interruptible bool      `json:"interruptible,omitempty"`
	Remaining     int64     `json:"remaining"`
	Total         int64     `json:"total,omitempty"`
	Ends          time.Time `json:"ends,omitzero"`
}

// blockLead is how long before its end a capacity block is no longer launched into:
// EC2 ends its instances 30 minutes before (Karpenter: expiring, 40 minutes).
const blockLead = 40 * time.Minute

// StateAt is the state of a reservation at a time.
func (r *Reservation) StateAt(now time.Time) string {
	if r.Type == ReservationBlock && !r.Ends.IsZero() && !now.Before(r.Ends.Add(-blockLead)) {
		return ReservationExpiring
	}
	return ReservationActive
}

// Usable reports whether a launch may use the reservation at a time.
func (r *Reservation) Usable(now time.Time) bool {
	return r.Remaining > 0 && r.StateAt(now) == ReservationActive
}

// Resolved is what the selectors of a class came to. Each part has its own error, so
// that one that cannot be resolved leaves the others known; nil error and nothing found
// means that nothing matches.
type Resolved struct {
	Class      string    `json:"class"`
	UID        string    `json:"uid,omitempty"`
	Generation int64     `json:"generation"`
	At         time.Time `json:"at,omitzero"`

	Subnets        []Subnet        `json:"subnets,omitempty"`        // SortSubnets
	SecurityGroups []SecurityGroup `json:"securityGroups,omitempty"` // by id
	Images         []Image         `json:"images,omitempty"`         // SortImages
	Profile        string          `json:"profile,omitempty"`        // name of the instance profile
	PlacementGroup *PlacementGroup `json:"placementGroup,omitempty"`
	Reservations   []Reservation   `json:"reservations,omitempty"` // by id

	SubnetsErr, SecurityGroupsErr, ImagesErr, ProfileErr, PlacementGroupErr, ReservationsErr error `json:"-"`
	// Checks are refusals of what only the whole shows, the first is reported: user data
	// too large, EC2 denying a dry run. See Check.
	Checks []Check `json:"-"`
}

// Check is one refusal of the whole class: a reason of ValidationSucceeded and a message.
type Check struct {
	Reason  string
	Message string
	// Unknown: the check could not be made (throttled, no answer). It is no refusal.
	Unknown bool
}

// SortSubnets sorts by free addresses, most first, then id (Karpenter: status.subnets).
func SortSubnets(s []Subnet) {
	slices.SortFunc(s, func(a, b Subnet) int {
		return cmp.Or(cmp.Compare(b.FreeIPs, a.FreeIPs), cmp.Compare(a.ID, b.ID))
	})
}

// SortImages sorts newest first, then by id, then by requirements, so that the first
// image whose requirements a type meets is the one it boots (Karpenter: status.amis).
func SortImages(s []Image) {
	slices.SortStableFunc(s, func(a, b Image) int {
		return cmp.Or(b.Created.Compare(a.Created), cmp.Compare(a.ID, b.ID), cmp.Compare(RequirementsKey(a.Requirements), RequirementsKey(b.Requirements)))
	})
}

// RequirementsKey is equal for equal requirements, whatever their order.
func RequirementsKey(rs []snapshot.SelectorRequirement) string {
	parts := make([]string, len(rs))
	for i, r := range rs {
		vs := slices.Clone(r.Values)
		slices.Sort(vs)
		parts[i] = r.Key + "\x00" + r.Operator
		for _, v := range vs {
			parts[i] += "\x00" + v
		}
	}
	slices.Sort(parts)
	out := ""
	for _, p := range parts {
		out += p + "\x01"
	}
	return out
}

// ZoneSubnets picks the subnet of each zone that a launch uses: the one with the most
// free addresses after what is in flight, ties by id. taken are addresses that launches
// will need and EC2 does not count yet, by subnet; full are subnets that lately had none
// left. A zone whose every subnet is full or has no free address is not in the result
// (S-15: the second subnet of a zone is used before the zone is given up).
func ZoneSubnets(subnets []Subnet, taken map[string]int64, full map[string]bool) map[string]Subnet {
	out := map[string]Subnet{}
	for _, s := range subnets {
		s.FreeIPs -= taken[s.ID]
		if full[s.ID] || s.FreeIPs <= 0 {
			continue
		}
		best, ok := out[s.Zone]
		if !ok || s.FreeIPs > best.FreeIPs || s.FreeIPs == best.FreeIPs && s.ID < best.ID {
			out[s.Zone] = s
		}
	}
	return out
}
