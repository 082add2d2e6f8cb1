package nodeclass

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"kerf.sh/kerf/internal/snapshot"
)

// Types of conditions of an EC2NodeClass.
const (
	SubnetsReady              = "SubnetsReady"
	SecurityGroupsReady       = "SecurityGroupsReady"
	AMIsReady                 = "AMIsReady"
	InstanceProfileReady      = "InstanceProfileReady"
	PlacementGroupReady       = "PlacementGroupReady"
	CapacityReservationsReady = "CapacityReservationsReady"
	ValidationSucceeded       = "ValidationSucceeded"
	Ready                     = "Ready"
)

// Reasons of conditions of an EC2NodeClass (Karpenter's, but for ResolutionFailed and
// RoleNotUsable, which it has no name for).
const (
	SubnetsNotFound                = "SubnetsNotFound"
	SecurityGroupsNotFound         = "SecurityGroupsNotFound"
	AMINotFound                    = "AMINotFound"
	UnsupportedAlias               = "UnsupportedAlias"
	PlacementGroupNotFound         = "PlacementGroupNotFound"
	PlacementGroupResolutionFailed = "PlacementGroupResolutionFailed"
	InstanceProfileNotFound        = "InstanceProfileNotFound"
	RoleNotUsable                  = "RoleNotUsable"
	ResolutionFailed               = "ResolutionFailed"
	DependenciesNotReady           = "DependenciesNotReady"
	TagValidationFailed            = "TagValidationFailed"
	ClusterCIDRResolutionFailed    = "ClusterCIDRResolutionFailed"
	UserDataSizeLimitExceeded      = "UserDataSizeLimitExceeded"
	InvalidNodeClass               = "InvalidNodeClass"
	InvalidKubeletConfiguration    = "InvalidKubeletConfiguration"
	UnsupportedKubelet             = "UnsupportedKubeletConfiguration"
	unhealthyDependents            = "UnhealthyDependents"
	reconcilingDependents          = "ReconcilingDependents"
)

// Statuses of conditions.
const (
	True    = "True"
	False   = "False"
	Unknown = "Unknown"
)

// Refusal is a definite "no" to one part of a class: asking again brings the same until
// someone changes something. Every other error of a part means that it is not known.
type Refusal struct {
	Reason  string // of the condition
	Message string // names the field, the value and what to do
}

func (r *Refusal) Error() string { return r.Reason + ": " + r.Message }

// Refuse returns a *Refusal.
func Refuse(reason, format string, args ...any) error {
	return &Refusal{reason, fmt.Sprintf(format, args...)}
}

// Condition is one condition, in the form of the Kubernetes API.
type Condition struct {
	Type               string    `json:"type"`
	Status             string    `json:"status"`
	Reason             string    `json:"reason"`
	Message            string    `json:"message"`
	ObservedGeneration int64     `json:"observedGeneration,omitempty"`
	LastTransitionTime time.Time `json:"lastTransitionTime"`
}

// Status is status of an EC2NodeClass as it is written to the API.
type Status struct {
	Subnets              []StatusSubnet      `json:"subnets,omitempty"`
	SecurityGroups       []SecurityGroup     `json:"securityGroups,omitempty"`
	AMIs                 []StatusAMI         `json:"amis,omitempty"`
	InstanceProfile      string              `json:"instanceProfile,omitempty"`
	CapacityReservations []StatusReservation `json:"capacityReservations,omitempty"`
	Conditions           []Condition         `json:"conditions,omitempty"`
}

// StatusSubnet is one entry of status.subnets.
type StatusSubnet struct {
	ID     string `json:"id"`
	Zone   string `json:"zone"`
	ZoneID string `json:"zoneID,omitempty"`
}

// StatusAMI is one entry of status.amis.
type StatusAMI struct {
	ID           string                         `json:"id"`
	Name         string                         `json:"name,omitempty"`
	Deprecated   bool                           `json:"deprecated,omitempty"`
	Requirements []snapshot.SelectorRequirement `json:"requirements"`
}

// StatusReservation is one entry of status.capacityReservations.
type StatusReservation struct {
	ID                    string     `json:"id"`
	AvailabilityZone      string     `json:"availabilityZone"`
	InstanceType          string     `json:"instanceType"`
	OwnerID               string     `json:"ownerID"`
	InstanceMatchCriteria string     `json:"instanceMatchCriteria"`
	ReservationType       string     `json:"reservationType"`
	Interruptible         bool       `json:"interruptible,omitempty"`
	EndTime               *time.Time `json:"endTime,omitempty"`
	State                 string     `json:"state"`
}

// Condition returns a condition by type, or nil.
func (s *Status) Condition(typ string) *Condition {
	for i := range s.Conditions {
		if s.Conditions[i].Type == typ {
			return &s.Conditions[i]
		}
	}
	return nil
}

// Usable reports whether nodes may be launched under the class: it is ready, and that is
// said of this generation of it.
func (s *Status) Usable(generation int64) bool {
	c := s.Condition(Ready)
	return c != nil && c.Status == True && c.ObservedGeneration == generation
}

// StatusOptions are what a status depends on besides the class and its resolution.
type StatusOptions struct {
	Now time.Time
	// Reservations: the gate ReservedCapacity is on.
	Reservations bool
	// Previous are the conditions that the class has; those whose status stays keep their
	// time of transition.
	Previous []Condition
}

// StatusOf is the status of a class after a resolution. It never fails: what is wrong with
// a class is in its conditions, and says nothing about other classes.
func StatusOf(c *Class, r *Resolved, o StatusOptions) Status {
	s := Status{SecurityGroups: r.SecurityGroups, InstanceProfile: r.Profile}
	for _, n := range r.Subnets {
		s.Subnets = append(s.Subnets, StatusSubnet{n.ID, n.Zone, n.ZoneID})
	}
	for _, m := range r.Images {
		s.AMIs = append(s.AMIs, StatusAMI{m.ID, m.Name, m.Deprecated, m.Requirements})
	}
	b := builder{generation: c.Generation, options: o}
	b.part(SubnetsReady, r.SubnetsErr, len(r.Subnets) > 0, SubnetsNotFound, "spec.subnetSelectorTerms matches no subnet")
	b.part(SecurityGroupsReady, r.SecurityGroupsErr, len(r.SecurityGroups) > 0, SecurityGroupsNotFound, "spec.securityGroupSelectorTerms matches no security group")
	b.part(AMIsReady, r.ImagesErr, len(r.Images) > 0, AMINotFound, "spec.amiSelectorTerms matches no available image")
	b.part(InstanceProfileReady, r.ProfileErr, r.Profile != "", InstanceProfileNotFound, "no instance profile is known for the class")
	if c.Spec.PlacementGroupSelector != nil {
		b.part(PlacementGroupReady, r.PlacementGroupErr, r.PlacementGroup != nil, PlacementGroupNotFound, "spec.placementGroupSelector matches no placement group")
	} else {
		b.set(PlacementGroupReady, True, PlacementGroupReady, "")
	}
	if o.Reservations {
		// A class that selects none, and one whose selector matches none, are ready alike.
		b.part(CapacityReservationsReady, r.ReservationsErr, true, "", "")
		for i := range r.Reservations {
			s.CapacityReservations = append(s.CapacityReservations, statusReservation(&r.Reservations[i], o.Now))
		}
	}
	b.validate(c, r)
	b.root()
	s.Conditions = b.out
	return s
}

func statusReservation(r *Reservation, now time.Time) StatusReservation {
	out := StatusReservation{
		ID: r.ID, AvailabilityZone: r.Zone, InstanceType: r.InstanceType, OwnerID: r.OwnerID,
		InstanceMatchCriteria: r.MatchCriteria, ReservationType: r.Type, Interruptible: r.Interruptible, State: r.StateAt(now),
	}
	if !r.Ends.IsZero() {
		out.EndTime = &r.Ends
	}
	return out
}

// builder collects the conditions of one class, in the order of reading.
type builder struct {
	generation int64
	options    StatusOptions
	out        []Condition
}

func (b *builder) set(typ, status, reason, message string) {
	c := Condition{Type: typ, Status: status, Reason: reason, Message: message, ObservedGeneration: b.generation, LastTransitionTime: b.options.Now}
	for _, p := range b.options.Previous {
		if p.Type == typ && p.Status == status && !p.LastTransitionTime.IsZero() {
			c.LastTransitionTime = p.LastTransitionTime
		}
	}
	b.out = append(b.out, c)
}

// part is the condition of one thing that is resolved.
func (b *builder) part(typ string, err error, found bool, notFound, message string) {
	var no *Refusal
	switch {
	case errors.As(err, &no):
		b.set(typ, False, no.Reason, no.Message)
	case err != nil:
		reason := ResolutionFailed
		if typ == PlacementGroupReady {
			reason = PlacementGroupResolutionFailed
		}
		b.set(typ, Unknown, reason, err.Error())
	case !found:
		b.set(typ, False, notFound, message)
	default:
		b.set(typ, True, typ, "")
	}
}

// not are the conditions so far that have a status, as "a, b".
func (b *builder) not(status string) string {
	var out []string
	for _, c := range b.out {
		if c.Status == status {
			out = append(out, c.Type)
		}
	}
	return strings.Join(out, ", ")
}

func (b *builder) validate(c *Class, r *Resolved) {
	if no := c.refusedTags(); no != "" {
		b.set(ValidationSucceeded, False, TagValidationFailed, no)
		return
	}
	for _, k := range r.Checks {
		if !k.Unknown {
			b.set(ValidationSucceeded, False, k.Reason, k.Message)
			return
		}
	}
	if no := b.not(False); no != "" {
		b.set(ValidationSucceeded, False, DependenciesNotReady, "not ready: "+no)
		return
	}
	if no := b.not(Unknown); no != "" {
		b.set(ValidationSucceeded, Unknown, DependenciesNotReady, "not known yet: "+no)
		return
	}
	for _, k := range r.Checks {
		b.set(ValidationSucceeded, Unknown, k.Reason, k.Message)
		return
	}
	b.set(ValidationSucceeded, True, ValidationSucceeded, "")
}

func (b *builder) root() {
	if no := b.not(False); no != "" {
		b.set(Ready, False, unhealthyDependents, no)
	} else if no := b.not(Unknown); no != "" {
		b.set(Ready, Unknown, reconcilingDependents, no)
	} else {
		b.set(Ready, True, Ready, "")
	}
}

// Tags that nodes get from us; a class may not set them (Karpenter: restricted tags).
const (
	TagClusterPrefix = "kubernetes.io/cluster/"
	TagClusterName   = "eks:eks-cluster-name"
	TagNodePool      = "karpenter.sh/nodepool"
	TagNodeClaim     = "karpenter.sh/nodeclaim"
	TagNodeClass     = "karpenter.k8s.aws/ec2nodeclass"
	TagAttempt       = "kerf.sh/attempt"
	TagRegion        = "topology.kubernetes.io/region"
	TagName          = "Name"
)

// refusedTags says which tag of spec.tags cannot be, "" when all can.
func (c *Class) refusedTags() string {
	for _, key := range slices.Sorted(maps.Keys(c.Spec.Tags)) {
		switch {
		case key == "":
			return `spec.tags: "" is an empty key; give it a name or take it out`
		case strings.HasPrefix(key, strings.TrimSuffix(TagClusterPrefix, "/")), key == TagClusterName, key == TagNodePool, key == TagNodeClaim, key == TagNodeClass, key == TagAttempt:
			return fmt.Sprintf("spec.tags: %q is set by Kerf itself; take it out", key)
		}
	}
	return ""
}

// KeepFrom fills the parts of r that could not be asked for (throttled, no answer) with
// those of an earlier resolution of the same generation, and returns the types of the
// conditions that it kept. A definite refusal is not covered up.
func (r *Resolved) KeepFrom(old *Resolved) []string {
	if old == nil || old.Generation != r.Generation || old.UID != r.UID {
		return nil
	}
	var kept []string
	keep := func(typ string, err *error, has bool, take func()) {
		var no *Refusal
		if *err == nil || errors.As(*err, &no) || !has {
			return
		}
		take()
		*err = nil
		kept = append(kept, typ)
	}
	keep(SubnetsReady, &r.SubnetsErr, len(old.Subnets) > 0, func() { r.Subnets = old.Subnets })
	keep(SecurityGroupsReady, &r.SecurityGroupsErr, len(old.SecurityGroups) > 0, func() { r.SecurityGroups = old.SecurityGroups })
	keep(AMIsReady, &r.ImagesErr, len(old.Images) > 0, func() { r.Images = old.Images })
	keep(InstanceProfileReady, &r.ProfileErr, old.Profile != "", func() { r.Profile = old.Profile })
	keep(PlacementGroupReady, &r.PlacementGroupErr, old.PlacementGroup != nil, func() { r.PlacementGroup = old.PlacementGroup })
	// What is left of a reservation is no fact any more: nothing is kept of it but that it is there.
	keep(CapacityReservationsReady, &r.ReservationsErr, len(old.Reservations) > 0, func() {
		r.Reservations = slices.Clone(old.Reservations)
		for i := range r.Reservations {
			r.Reservations[i].Remaining = 0
		}
	})
	return kept
}
