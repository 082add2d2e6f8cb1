package disruption

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"kerf.sh/kerf/internal/catalog"
	"kerf.sh/kerf/internal/requirements"
	"kerf.sh/kerf/internal/snapshot"
)

// Kinds of drift (Karpenter: reasons of the condition Drifted).
const (
	driftPool         = "NodePoolDrifted"
	driftRequirements = "RequirementsDrifted"
	driftType         = "InstanceTypeNotFound"
	driftClass        = "NodeClassDrift"
	driftAMI          = "AMIDrift"
	driftGroups       = "SecurityGroupDrift"
	driftSubnet       = "SubnetDrift"
	driftReservation  = "CapacityReservationDrift"
	driftPlacement    = "PlacementGroupDrift"
)

// typeGone is how old a node is at least before its type or offer can be missed: a launch
// may be newer than the catalogue (Karpenter: same).
const typeGone = time.Hour

// Instance is what EC2 says of the instance of a node, read lately.
type Instance struct {
	Subnet string
	Groups []string
	// Reservation is the one that it runs in by its launch, "" = none (any more). One that it
	// matched by itself does not count.
	Reservation string
	// PlacementGroup is a name or an id.
	PlacementGroup string
}

// Selected is what a NodeClass selects now, complete. An empty list means that it is not
// known, or that the class is in error: neither is drift.
type Selected struct {
	Subnets, Groups, Reservations []string
	// PlacementGroup are name and id of the one that it selects; nil = none. It counts when
	// PlacementKnown.
	PlacementGroup []string
	PlacementKnown bool
	// ReservationsKnown: Reservations are all that it selects, be they none.
	ReservationsKnown bool
}

// drifted says in which way a node is not what is asked for any more, "" when it is. The
// first difference in Karpenter's order counts. What is not known is no drift.
func (x *search) drifted(n *node) (kind, detail string) {
	launched := snapshot.FindCondition(n.claim.Conditions, "Launched")
	if n.pool == nil || launched != nil && launched.Status != "True" {
		return "", ""
	}
	want := x.hashes(n)
	if have := n.stamped(AnnotationPoolHash, AnnotationPoolHashVersion, PoolHashVersion); have != "" && have != want.pool {
		return driftPool, "the template of NodePool " + n.pool.Name + " has changed since it was launched"
	}
	if why := n.offRequirements(want.reqs); why != "" {
		return driftRequirements, why
	}
	if why := x.notOffered(n); why != "" {
		return driftType, why
	}
	class := x.classOf(n.pool)
	if class == nil || !class.Deleting.IsZero() {
		return "", ""
	}
	if have := n.stamped(AnnotationClassHash, AnnotationClassHashVersion, ClassHashVersion); have != "" && want.class != "" && have != want.class {
		return driftClass, "EC2NodeClass " + class.Name + " has changed since it was launched"
	}
	if why := x.otherImage(n, class); why != "" {
		return driftAMI, why
	}
	return x.otherPlace(n, class)
}

// offRequirements says which requirement of its NodePool a node does not meet. A label that
// it does not have meets what NotIn and DoesNotExist ask for (Karpenter: same).
func (n *node) offRequirements(reqs []requirements.Requirement) string {
	for i := range reqs {
		r := &reqs[i]
		switch v, ok := n.label(r.Key()); {
		case ok && !r.Has(v):
			return fmt.Sprintf("NodePool %s asks for %s, and it has %q", n.pool.Name, r, v)
		case !ok && !r.AllowsAbsent():
			return fmt.Sprintf("NodePool %s asks for %s, and it has no such label", n.pool.Name, r)
		}
	}
	return ""
}

// label is a label of the NodeClaim or the Node, under its name or an older one.
func (n *node) label(key string) (string, bool) {
	for _, m := range []map[string]string{n.claim.Labels, n.node.Labels} {
		if v, ok := m[key]; ok {
			return v, true
		}
	}
	for _, m := range []map[string]string{n.claim.Labels, n.node.Labels} {
		for _, k := range sortedKeys(m) {
			if requirements.Normalize(k) == key {
				return m[k], true
			}
		}
	}
	return "", false
}

// notOffered says that the type of a node, or its offer, is not sold any more. It is asked
// where the catalogue is what EC2 said, not a table that may be older than the node.
func (x *search) notOffered(n *node) string {
	if !x.o.Offered || n.typ == "" || x.s.Now.Sub(n.claim.Created) < typeGone {
		return ""
	}
	i := slices.IndexFunc(x.c.Types, func(t catalog.InstanceType) bool { return t.Name == n.typ })
	if i < 0 {
		return n.typ + " is not offered any more"
	}
	if n.zone == "" || n.capType == "" || slices.ContainsFunc(x.c.Types[i].Offerings, func(o catalog.Offering) bool {
		return o.Zone == n.zone && (o.CapacityType == n.capType || n.capType == catalog.Reserved && o.CapacityType == catalog.OnDemand)
	}) {
		return ""
	}
	return fmt.Sprintf("%s is not offered in %s as %s any more", n.typ, n.zone, n.capType)
}

// otherImage says that a node of the same type would get another image now.
func (x *search) otherImage(n *node, class *snapshot.NodeClass) string {
	if n.claim.ImageID == "" || !class.HasStatus || len(class.Images) == 0 || notReady(class) {
		return ""
	}
	images, ok := x.images[class.Name]
	if !ok {
		images = map[string]string{}
		if types, err := x.c.Resolve(class, x.s.Settings); err == nil {
			for i := range types {
				images[types[i].Type.Name] = types[i].Image
			}
		}
		x.images[class.Name] = images
	}
	image, known := images[n.typ]
	switch {
	case !known || image == n.claim.ImageID:
		return ""
	case image == "":
		return fmt.Sprintf("it runs %s, and EC2NodeClass %s has no image for %s any more", n.claim.ImageID, class.Name, n.typ)
	}
	return fmt.Sprintf("it runs %s, and EC2NodeClass %s gives %s for %s", n.claim.ImageID, class.Name, image, n.typ)
}

func notReady(class *snapshot.NodeClass) bool {
	c := snapshot.FindCondition(class.Conditions, "Ready")
	return c != nil && c.Status != "True"
}

// otherPlace says that an instance is in a network, reservation or placement group that its
// class does not select any more. The capacity type of the node's labels decides whether it
// is in a reservation: an instance that matched an open one by itself is not.
func (x *search) otherPlace(n *node, class *snapshot.NodeClass) (kind, detail string) {
	i, ok := x.o.Instances[n.name]
	sel, known := x.o.Selected[class.Name]
	if !ok || !known {
		return "", ""
	}
	if len(sel.Groups) > 0 && len(i.Groups) > 0 && !sameSet(sel.Groups, i.Groups) {
		return driftGroups, fmt.Sprintf("it has security groups %s, and EC2NodeClass %s selects %s", listOf(i.Groups), class.Name, listOf(sel.Groups))
	}
	if len(sel.Subnets) > 0 && i.Subnet != "" && !slices.Contains(sel.Subnets, i.Subnet) {
		return driftSubnet, fmt.Sprintf("it is in subnet %s, which EC2NodeClass %s does not select", i.Subnet, class.Name)
	}
	if n.capType == catalog.Reserved && sel.ReservationsKnown && i.Reservation != "" && !slices.Contains(sel.Reservations, i.Reservation) {
		return driftReservation, fmt.Sprintf("it is in capacity reservation %s, which EC2NodeClass %s does not select", i.Reservation, class.Name)
	}
	if sel.PlacementKnown && !(i.PlacementGroup == "" && len(sel.PlacementGroup) == 0) && !slices.Contains(sel.PlacementGroup, i.PlacementGroup) {
		return driftPlacement, fmt.Sprintf("it is in placement group %q, and EC2NodeClass %s selects %s", i.PlacementGroup, class.Name, listOf(sel.PlacementGroup))
	}
	return "", ""
}

// Released are nodes whose labels name a reservation that their instance is not in any more:
// it has ended, or was cancelled, and they go on as on-demand (by name).
func (x *search) released() []string {
	var out []string
	for _, n := range x.nodes {
		if i, ok := x.o.Instances[n.name]; ok && n.claim != nil && n.capType == catalog.Reserved && i.Reservation == "" {
			out = append(out, n.name)
		}
	}
	return out
}

func sameSet(a, b []string) bool {
	a, b = slices.Compact(slices.Sorted(slices.Values(a))), slices.Compact(slices.Sorted(slices.Values(b)))
	return slices.Equal(a, b)
}

func listOf(list []string) string {
	if len(list) == 0 {
		return "none"
	}
	return strings.Join(slices.Sorted(slices.Values(list)), ", ")
}
