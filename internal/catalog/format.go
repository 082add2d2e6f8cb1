package catalog

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strconv"
)

// Format writes a catalogue as a catalogue file. Parse reads it back as it was,
// except that figures without a field of their own come back as labels and
// extended resources.
func (c *Catalog) Format() ([]byte, error) {
	f := fileCatalog{Region: c.Region, Date: c.Date, Source: c.Source, InstanceTypes: []json.RawMessage{}}
	for i := range c.Types {
		raw, err := formatType(&c.Types[i])
		if err != nil {
			return nil, fmt.Errorf("write catalogue: %s: %w", c.Types[i].Name, err)
		}
		f.InstanceTypes = append(f.InstanceTypes, raw)
	}
	for _, m := range c.Commitments {
		raw, err := json.Marshal(fileCommitment{Scope: m.Scope, Price: dollars(m.Price), Remaining: dollars(m.Remaining), ID: m.ID})
		if err != nil {
			return nil, fmt.Errorf("write catalogue: commitment of %s: %w", m.Scope, err)
		}
		f.Commitments = append(f.Commitments, raw)
	}
	out, err := json.MarshalIndent(f, "", " ")
	if err != nil {
		return nil, fmt.Errorf("write catalogue: %w", err)
	}
	return append(out, '\n'), nil
}

func formatType(t *InstanceType) (json.RawMessage, error) {
	f := fileType{
		Name: t.Name, Arch: t.Arch, VCPU: &t.VCPU, MemoryMiB: &t.MemoryMiB,
		LocalNVMeGB: t.LocalNVMeGB, NetworkMbps: t.NetworkMbps, EBSMbps: t.EBSMbps,
		Hypervisor: t.Hypervisor, CPUManufacturer: t.CPUManufacturer, NestedVirtualization: t.NestedVirtualization, EBSVolumes: t.Volumes,
		Labels: maps.Clone(t.Labels), Extended: maps.Clone(t.Extended), Offerings: []json.RawMessage{},
	}
	if t.ENI.Interfaces > 0 {
		f.ENI = &fileENI{Interfaces: t.ENI.Interfaces, IPv4: t.ENI.IPv4PerENI, NetworkCards: t.ENI.Cards}
	}
	for _, d := range t.GPUs {
		f.GPUs = append(f.GPUs, fileDevice(d))
	}
	for _, d := range t.Accelerators {
		f.Accelerators = append(f.Accelerators, fileDevice(d))
	}
	label := func(key, value string) {
		if _, given := f.Labels[key]; value == "" || given {
			return
		}
		if f.Labels == nil {
			f.Labels = map[string]string{}
		}
		f.Labels[key] = value
	}
	label(LabelEncryption, t.Encryption)
	if t.ClockMHz > 0 {
		label(LabelClockMHz, strconv.FormatInt(t.ClockMHz, 10))
	}
	extended := func(name string, v int64) {
		if _, given := f.Extended[name]; v == 0 || given {
			return
		}
		if f.Extended == nil {
			f.Extended = map[string]int64{}
		}
		f.Extended[name] = v
	}
	extended(PodENI, t.ENI.Branch)
	extended(EFA, t.ENI.EFAInterfaces)
	for _, o := range slices.SortedStableFunc(slices.Values(t.Offerings), compareOfferings) {
		g := fileOffering{Zone: o.Zone, ZoneID: o.ZoneID, CapacityType: o.CapacityType, Available: &o.Available, Estimated: o.Estimated}
		if o.Price > 0 {
			g.Price = dollars(o.Price)
		}
		if r := o.Reservation; r != nil {
			g.Reservation = &fileReservation{ID: r.ID, Type: r.Type, Remaining: r.Remaining, Expires: r.Expires}
		}
		raw, err := json.Marshal(g)
		if err != nil {
			return nil, err
		}
		f.Offerings = append(f.Offerings, raw)
	}
	return json.Marshal(f)
}

// dollars writes micro-dollars as a decimal number, exactly.
func dollars(micro int64) json.Number {
	return json.Number(fmt.Sprintf("%d.%06d", micro/1_000_000, micro%1_000_000))
}
