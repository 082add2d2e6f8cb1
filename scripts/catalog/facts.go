package main

import (
	"encoding/json"
	"fmt"
	"math"
	"os"
	"strconv"
	"strings"

	"kerf.sh/kerf/internal/catalog"
)

// facts is the JSON file of published figures that the generator reads.
type facts struct {
	Meta struct {
		Source string `json:"source"`
	} `json:"meta"`
	InstanceTypes []factType `json:"instanceTypes"`
}

type factType struct {
	Name            string      `json:"name"`
	Arch            string      `json:"arch"`
	VCPU            int64       `json:"vcpu"`
	MemoryMiB       int64       `json:"memoryMiB"`
	CPUManufacturer string      `json:"cpuManufacturer"`
	Hypervisor      string      `json:"hypervisor"`
	LocalNVMeGB     int64       `json:"localNvmeGB"`
	NetworkMbps     int64       `json:"networkMbps"`
	EBSMbps         int64       `json:"ebsMbps"`
	GPU             *factDevice `json:"gpu"`
	Accelerator     *factDevice `json:"accelerator"`
	ENI             *struct {
		Interfaces int64 `json:"interfaces"` // of all cards
		IPv4       int64 `json:"ipv4PerInterface"`
	} `json:"eni"`
	Allocatable published         `json:"allocatable"`
	Labels      map[string]string `json:"labels"`
	OnDemand    *float64          `json:"onDemandUSDPerHour"`
	Zones       []string          `json:"zones"`
}

type factDevice struct {
	Name         string `json:"name"`
	Manufacturer string `json:"manufacturer"`
	Count        int64  `json:"count"`
	MemoryMiB    int64  `json:"memoryMiB"`
}

type published struct {
	CPUMilli  int64             `json:"cpuMilli"`
	MemoryMiB int64             `json:"memoryMiB"`
	Ephemeral string            `json:"ephemeralStorage"`
	Pods      int64             `json:"pods"`
	Extended  map[string]string `json:"extended"`
}

func readFacts(path string) (*facts, error) {
	data, err := os.ReadFile(path)
	if err != nil {
		return nil, fmt.Errorf("read facts: %w", err)
	}
	f := &facts{}
	if err := json.Unmarshal(data, f); err != nil {
		return nil, fmt.Errorf("read facts %s: %w", path, err)
	}
	if len(f.InstanceTypes) == 0 {
		return nil, fmt.Errorf("read facts %s: no instanceTypes", path)
	}
	return f, nil
}

// instanceType turns the facts of a type into the catalogue's figures.
func (f *factType) instanceType(zoneIDs map[string]string) (catalog.InstanceType, error) {
	t := catalog.InstanceType{
		Name: f.Name, Arch: f.Arch, VCPU: f.VCPU, MemoryMiB: f.MemoryMiB,
		LocalNVMeGB: f.LocalNVMeGB, NetworkMbps: f.NetworkMbps, EBSMbps: f.EBSMbps,
		Hypervisor: f.Hypervisor, CPUManufacturer: f.CPUManufacturer,
		Encryption: f.Labels[catalog.LabelEncryption],
	}
	var err error
	if t.ENI, err = f.eni(); err != nil {
		return t, err
	}
	if clock := f.Labels[catalog.LabelClockMHz]; clock != "" {
		if t.ClockMHz, err = strconv.ParseInt(clock, 10, 64); err != nil {
			return t, fmt.Errorf("%s: label %s: %w", f.Name, catalog.LabelClockMHz, err)
		}
		if t.ClockMHz == 0 { // published as "0", not left out
			t.Labels = map[string]string{catalog.LabelClockMHz: "0"}
		}
	}
	if f.GPU != nil {
		t.GPUs = []catalog.Device{f.GPU.device(0)}
	}
	if f.Accelerator != nil {
		cores, err := f.extended(catalog.NeuronCore)
		if err != nil {
			return t, err
		}
		t.Accelerators = []catalog.Device{f.Accelerator.device(cores / max(1, f.Accelerator.Count))}
	}
	for _, zone := range f.Zones {
		id, ok := zoneIDs[zone]
		if !ok {
			return t, fmt.Errorf("%s: zone %s has no id; give one with -zones", f.Name, zone)
		}
		o := catalog.Offering{Zone: zone, ZoneID: id, CapacityType: catalog.OnDemand}
		if f.OnDemand != nil {
			o.Price = int64(math.Round(*f.OnDemand * 1e6))
			o.Available = true
		}
		t.Offerings = append(t.Offerings, o)
	}
	return t, nil
}

func (d *factDevice) device(cores int64) catalog.Device {
	return catalog.Device{Name: d.Name, Manufacturer: d.Manufacturer, Count: d.Count, MemoryMiB: d.MemoryMiB, Cores: cores}
}

// eni separates the default network card from the others. The facts count the
// interfaces of all cards, while pods use the default card only; the published
// pod count tells how many it has. Types whose network limits are not among the
// facts (HPC and trn2) have cards of 50 addresses an interface, which their
// published pod counts bear out.
//
// Branch interfaces (pod-eni) are taken from the published figures as well: where
// a table of limits says more than what nodes were seen to advertise, trusting it
// would strand pods on nodes that cannot hold them.
func (f *factType) eni() (catalog.ENI, error) {
	all, ipv4 := int64(0), int64(50)
	if f.ENI != nil {
		all, ipv4 = f.ENI.Interfaces, f.ENI.IPv4
	}
	pods := f.Allocatable.Pods - 2
	if ipv4 < 2 || pods < 1 || pods%(ipv4-1) != 0 {
		return catalog.ENI{}, fmt.Errorf("%s: %d pods do not come from interfaces of %d addresses", f.Name, f.Allocatable.Pods, ipv4)
	}
	e := catalog.ENI{Interfaces: pods / (ipv4 - 1), IPv4PerENI: ipv4}
	var err error
	if e.EFAInterfaces, err = f.extended(catalog.EFA); err != nil {
		return e, err
	}
	if e.Branch, err = f.extended(catalog.PodENI); err != nil {
		return e, err
	}
	if f.ENI == nil {
		e.Cards = max(1, e.EFAInterfaces) // one EFA a card
		return e, nil
	}
	if all%e.Interfaces != 0 {
		return e, fmt.Errorf("%s: %d interfaces do not make cards of %d", f.Name, all, e.Interfaces)
	}
	e.Cards = all / e.Interfaces
	return e, nil
}

func (f *factType) extended(name string) (int64, error) {
	s, ok := f.Allocatable.Extended[name]
	if !ok {
		return 0, nil
	}
	v, err := strconv.ParseInt(s, 10, 64)
	if err != nil {
		return 0, fmt.Errorf("%s: %s: %w", f.Name, name, err)
	}
	return v, nil
}

// zoneFlag reads "name=id,name=id".
func zoneFlag(s string) (map[string]string, error) {
	out := map[string]string{}
	for part := range strings.SplitSeq(s, ",") {
		zone, id, ok := strings.Cut(part, "=")
		if !ok || zone == "" || id == "" {
			return nil, fmt.Errorf("read -zones: %q is not ZONE=ID", part)
		}
		out[zone] = id
	}
	return out, nil
}
