package launch

import (
	"cmp"
	"fmt"
	"slices"

	"kerf.sh/kerf/internal/catalog"
	"kerf.sh/kerf/internal/cloud/nodeclass"
	"kerf.sh/kerf/internal/cloud/userdata"
	"kerf.sh/kerf/internal/plan"
	"kerf.sh/kerf/internal/snapshot"
)

// buckets sorts offers by the template that their type needs: image, pods, what the
// kubelet reserves, EFA interfaces and reservation decide it (S-16: one template for each architecture).
type buckets struct {
	in        *Input
	ct        string
	at        map[string]int // key -> index into templates and configs
	seen      map[string]bool
	templates []Template
	configs   []Config
	market    string // of the reservations used
}

// add puts an offer into the request; false when it is not to be added: the type and zone
// are there already (S-27), or there is no room for another template.
func (b *buckets) add(o plan.Offer) (bool, error) {
	if b.seen[o.InstanceType+"/"+o.Zone] {
		return false, nil
	}
	t := b.in.Types[o.InstanceType]
	efa := int32(0)
	if b.in.RequestsEFA {
		efa = t.EFA
	}
	var r *nodeclass.Reservation
	if o.CapacityType == catalog.Reserved {
		r = b.in.reservation(o.ReservationID)
	}
	key := fmt.Sprintf("%s/%d/%d/%s/%v", t.ImageID, t.MaxPods, efa, o.ReservationID, t.KubeReserved)
	i, ok := b.at[key]
	if !ok {
		if len(b.templates) == maxTemplates {
			return false, nil
		}
		template, err := b.in.template(t, efa, o.CapacityType, r)
		if err != nil {
			return false, err
		}
		// Keys that differ may still need the same template: maxPods of the class.
		i = slices.IndexFunc(b.templates, func(have Template) bool { return have.Name == template.Name })
		if i < 0 {
			i = len(b.templates)
			b.templates = append(b.templates, template)
			b.configs = append(b.configs, Config{Template: template.Name})
			b.market = template.Reservation.Market
		}
		b.at[key] = i
	}
	b.seen[o.InstanceType+"/"+o.Zone] = true
	b.configs[i].Overrides = append(b.configs[i].Overrides, Override{
		Type: o.InstanceType, Zone: o.Zone, Subnet: b.in.Subnets[o.Zone].ID, Price: o.Price,
		ReservationID: o.ReservationID, Overlaid: o.Overlay != "", Pods: t.MaxPods,
	})
	return true, nil
}

// template is the launch template of a type.
func (in *Input) template(t Type, efa int32, ct string, r *nodeclass.Reservation) (Template, error) {
	spec := &in.Class.Spec
	text, err := userdata.Render(userdata.Input{
		Family: in.Class.Family, Cluster: in.Cluster, Kubelet: in.Class.Kubelet, MaxPods: t.MaxPods, KubeReserved: t.KubeReserved,
		Labels: in.labels(ct), Taints: in.taints(), RAID0: spec.InstanceStorePolicy == "RAID0", User: spec.UserData,
	})
	if err != nil {
		return Template{}, err
	}
	devices, err := blockDevices(in.Class)
	if err != nil {
		return Template{}, err
	}
	interfaces, err := in.interfaces(efa)
	if err != nil {
		return Template{}, err
	}
	out := Template{
		Cluster: in.Cluster.Name, ImageID: t.ImageID, UserData: text, InstanceProfile: in.Resolved.Profile,
		Interfaces: interfaces, BlockDevices: devices, Metadata: in.metadata(), Monitoring: spec.DetailedMonitoring,
		Enclave: in.RequestsEnclave, SpotTags: ct == catalog.Spot, Tags: in.tags(),
	}
	if in.Tenancy != "" && in.Tenancy != "default" {
		out.Tenancy = in.Tenancy
	}
	if spec.CPUOptions != nil {
		out.Nested = spec.CPUOptions.NestedVirtualization
	}
	if g := in.Resolved.PlacementGroup; g != nil {
		out.PlacementGroup = g.ID
		if g.Strategy == nodeclass.StrategyPartition {
			out.Partition = partition(in.Labels[catalog.LabelPlacementGroupPartition])
		}
	}
	switch {
	case r != nil:
		out.Reservation = ReservationRequest{Preference: "capacity-reservations-only", ID: r.ID}
		if r.Type == nodeclass.ReservationBlock {
			out.Reservation.Market = "capacity-block"
		} else if r.Interruptible {
			out.Reservation.Market = marketInterruptible
		}
	case in.Reservations:
		out.Reservation.Preference = "none"
	}
	return out.named()
}

// partition is the number of a partition label; 0 leaves it to EC2.
func partition(label string) int32 {
	var n int32
	if _, err := fmt.Sscanf(label, "%d", &n); err != nil || n < 1 {
		return 0
	}
	return n
}

func (in *Input) labels(ct string) map[string]string {
	out := map[string]string{}
	for k, v := range in.Labels {
		out[k] = v
	}
	out[catalog.LabelCapacityType] = ct
	out[catalog.LabelNodePool] = in.Pool
	out[catalog.LabelNodeClass] = in.Class.Name
	if in.Class.Family != catalog.FamilyCustom {
		out[labelSkipSync] = "true"
	}
	// What the instance decides is put on at registration: a value here would be a guess.
	for _, k := range []string{catalog.LabelZoneID, catalog.LabelReservationID, catalog.LabelReservationType, catalog.LabelReservationInterruptible} {
		delete(out, k)
	}
	return out
}

func (in *Input) taints() []snapshot.Taint {
	out := slices.Clone(in.Taints)
	if !slices.ContainsFunc(out, func(t snapshot.Taint) bool { return t.Key == UnregisteredTaint.Key }) {
		out = append(out, UnregisteredTaint)
	}
	return out
}

// tags are on everything a launch makes. The first three are what tag-scoped IAM
// policies ask for at creation (Karpenter: AllowScopedEC2InstanceActionsWithTags).
func (in *Input) tags() map[string]string {
	out := map[string]string{}
	for k, v := range in.Class.Spec.Tags {
		out[k] = v
	}
	out[nodeclass.TagClusterPrefix+in.Cluster.Name] = "owned"
	out[nodeclass.TagClusterName] = in.Cluster.Name
	out[nodeclass.TagNodePool] = in.Pool
	out[nodeclass.TagNodeClass] = in.Class.Name
	return out
}

func (in *Input) metadata() Metadata {
	m := nodeclass.MetadataOptions{}
	if in.Class.Spec.MetadataOptions != nil {
		m = *in.Class.Spec.MetadataOptions
	}
	out := Metadata{
		Endpoint: cmp.Or(m.HTTPEndpoint, "enabled"), IPv6: cmp.Or(m.HTTPProtocolIPv6, "disabled"),
		HopLimit: 1, Tokens: cmp.Or(m.HTTPTokens, "required"),
	}
	if m.HTTPPutResponseHopLimit != nil {
		out.HopLimit = *m.HTTPPutResponseHopLimit
	}
	if in.Isolated {
		out.IPv6 = ""
	}
	return out
}

// interfaces are the network interfaces: those of the class; else one EFA interface for
// each card when pods ask for EFA; else one.
func (in *Input) interfaces(efa int32) ([]Interface, error) {
	spec := &in.Class.Spec
	groups := make([]string, len(in.Resolved.SecurityGroups))
	for i, g := range in.Resolved.SecurityGroups {
		groups[i] = g.ID
	}
	slices.Sort(groups)
	one := func(card, device int32, kind string) Interface {
		out := Interface{Card: card, Device: device, Type: kind, SecurityGroups: groups, PublicIP: spec.AssociatePublicIPAddress, Tracking: spec.ConnectionTracking}
		if kind == "efa-only" {
			out.PublicIP = nil // it has no IP address at all
			return out
		}
		if card == 0 && device == 0 {
			if spec.IPPrefixCount != nil && in.Cluster.IPv6 {
				out.IPv6Prefixes = *spec.IPPrefixCount
			} else if spec.IPPrefixCount != nil {
				out.IPv4Prefixes = *spec.IPPrefixCount
			}
			out.IPv6 = in.Cluster.IPv6
		}
		return out
	}
	var out []Interface
	switch {
	case len(spec.NetworkInterfaces) > 0:
		for _, n := range spec.NetworkInterfaces {
			kind := n.InterfaceType
			if kind == "interface" {
				kind = ""
			}
			out = append(out, one(n.NetworkCardIndex, n.DeviceIndex, kind))
		}
		slices.SortFunc(out, func(a, b Interface) int {
			return cmp.Or(cmp.Compare(a.Card, b.Card), cmp.Compare(a.Device, b.Device))
		})
	case efa > 0:
		for card := range efa {
			out = append(out, one(card, min(card, 1), "efa"))
		}
	default:
		out = []Interface{one(0, 0, "")}
	}
	if len(out) > 1 && spec.AssociatePublicIPAddress != nil {
		if *spec.AssociatePublicIPAddress {
			return nil, nodeclass.Refuse(nodeclass.InvalidNodeClass,
				"spec.associatePublicIPAddress: EC2 gives a public address to nodes with one network interface only, and these have %d; use a class of its own without it", len(out))
		}
		for i := range out {
			out[i].PublicIP = nil
		}
	}
	return out, nil
}
