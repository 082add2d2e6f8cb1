package snapshot

import (
	"cmp"
	"slices"
	"strings"
	"time"
)

// Shortage is what the ledger remembers of offers that EC2 had no capacity for: no new
// node is planned on them until its end (Karpenter: unavailable offerings). It says nothing
// about nodes that are there or coming.
type Shortage struct {
	// InstanceType, Zone and CapacityType say which offers; "" = whichever. A quota of spot
	// instances that is used up is {CapacityType: spot}, a zone in which no subnet of any
	// class has an address left is {Zone: ...}.
	InstanceType string `json:"instanceType,omitempty"`
	Zone         string `json:"zone,omitempty"`
	CapacityType string `json:"capacityType,omitempty"`
	// ReservationID leaves it to the offers of one capacity reservation; "" = whichever.
	ReservationID string    `json:"reservationId,omitempty"`
	Until         time.Time `json:"until"` // when they may be asked for again
	Code          string    `json:"code"`  // what EC2 said: InsufficientInstanceCapacity, ...
}

// Live reports whether the offers are still to be left alone.
func (s *Shortage) Live(now time.Time) bool { return now.Before(s.Until) }

// Hits reports whether an offer is among those of the shortage.
func (s *Shortage) Hits(instanceType, zone, capacityType, reservation string) bool {
	is := func(want, got string) bool { return want == "" || want == got }
	return is(s.InstanceType, instanceType) && is(s.Zone, zone) && is(s.CapacityType, capacityType) && is(s.ReservationID, reservation)
}

// Key names what is short, whatever EC2 called it and until when.
func (s *Shortage) Key() string {
	return offersKey(s.InstanceType, s.Zone, s.CapacityType, s.ReservationID)
}

func offersKey(parts ...string) string {
	for i := range parts {
		parts[i] = orAny(parts[i])
	}
	return strings.Join(parts, "/")
}

func orAny(s string) string {
	if s == "" {
		return "*"
	}
	return s
}

// LearnedSize is what a node of a type turned out to have under an image and a shape of
// its NodeClass. It takes the place of what is computed, upwards and downwards (Karpenter
// learns memory alone, and the least of it).
type LearnedSize struct {
	InstanceType string `json:"instanceType"`
	ImageID      string `json:"imageId"`
	// Shape is a hash of what else decides (lifecycle.Shape).
	Shape       string    `json:"shape"`
	Capacity    Resources `json:"capacity"`
	Allocatable Resources `json:"allocatable"`
}

// Key names the kind of node that has the size.
func (l *LearnedSize) Key() string {
	return strings.Join([]string{l.InstanceType, l.ImageID, l.Shape}, "/")
}

// normalizeRemembered sorts what the ledger remembers, and keeps one entry of what is told
// more than once: of a shortage the one that lasts longest. Two sizes of one kind of node
// should not both exist; the smaller one is kept.
func (s *Snapshot) normalizeRemembered() {
	normalize(s.Nominations, func(n *Nomination) id { return id{n.Namespace, n.Pod, "", n.UID} })
	slices.SortFunc(s.Shortages, func(a, b Shortage) int {
		return cmp.Or(strings.Compare(a.Key(), b.Key()), b.Until.Compare(a.Until), strings.Compare(a.Code, b.Code))
	})
	s.Shortages = slices.CompactFunc(s.Shortages, func(a, b Shortage) bool { return a.Key() == b.Key() })
	slices.SortFunc(s.Setbacks, func(a, b Setback) int {
		return cmp.Or(strings.Compare(a.Key(), b.Key()), cmp.Compare(len(b.Interrupted), len(a.Interrupted)),
			slices.CompareFunc(b.Interrupted, a.Interrupted, time.Time.Compare), b.Failed.Compare(a.Failed), cmp.Compare(b.Failures, a.Failures))
	})
	s.Setbacks = slices.CompactFunc(s.Setbacks, func(a, b Setback) bool { return a.Key() == b.Key() })
	slices.SortFunc(s.Rests, func(a, b Rest) int {
		return cmp.Or(strings.Compare(a.Node, b.Node), b.Until.Compare(a.Until), strings.Compare(a.Why, b.Why))
	})
	s.Rests = slices.CompactFunc(s.Rests, func(a, b Rest) bool { return a.Node == b.Node })
	if len(s.Learned) > 1 {
		normalize(s.Learned, func(l *LearnedSize) id { return id{name: l.Key()} })
		slices.SortStableFunc(s.Learned, func(a, b LearnedSize) int {
			return cmp.Or(strings.Compare(a.Key(), b.Key()),
				cmp.Compare(a.Allocatable.CPU, b.Allocatable.CPU), cmp.Compare(a.Allocatable.Memory, b.Allocatable.Memory))
		})
		s.Learned = slices.CompactFunc(s.Learned, func(a, b LearnedSize) bool { return a.Key() == b.Key() })
	}
}
