package catalog

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"kerf.sh/kerf/internal/snapshot"
)

// AMI families of a NodeClass (Karpenter: spec.amiFamily).
const (
	FamilyAL2          = "AL2"
	FamilyAL2023       = "AL2023"
	FamilyBottlerocket = "Bottlerocket"
	FamilyWindows2019  = "Windows2019"
	FamilyWindows2022  = "Windows2022"
	FamilyWindows2025  = "Windows2025"
	FamilyCustom       = "Custom"
)

// Problem is one thing that makes a NodeClass invalid.
type Problem struct {
	Field  string // path in the EC2NodeClass: spec.kubelet.maxPods
	Value  string // as written
	Detail string // what is wrong with it, and what to do
}

func (p Problem) String() string { return fmt.Sprintf("%s: %q %s", p.Field, p.Value, p.Detail) }

// ClassError says why no type can be resolved under a NodeClass. Problems come in
// the order of the fields below and are never empty.
type ClassError struct {
	Class    string
	Problems []Problem
}

func (e *ClassError) Error() string {
	parts := make([]string, len(e.Problems))
	for i, p := range e.Problems {
		parts[i] = p.String()
	}
	return "nodeclass " + e.Class + ": " + strings.Join(parts, "; ")
}

// reservation is what a user reserves of each resource.
type reservation struct {
	amount  snapshot.Resources // CPU, Memory, Ephemeral
	written map[string]string  // as the user wrote it; the keys that are set
}

func (r *reservation) has(resource string) bool { _, ok := r.written[resource]; return ok }

// threshold is an eviction threshold: an amount or a share of the capacity.
type threshold struct {
	amount, share int64
	written       string // "" = the default
}

func (t threshold) of(capacity int64) int64 {
	if t.share > 0 {
		return ceilShare(capacity, t.share, 100*percentScale)
	}
	return t.amount
}

// classModel is a NodeClass with everything parsed that capacity depends on.
type classModel struct {
	name             string
	family           familyModel
	settings         snapshot.Settings
	maxPods          int64 // 0 = not given
	podsPerCore      int64 // 0 = none
	kube, system     reservation
	evictMemory      threshold
	evictStorage     threshold
	volume           int64 // bytes of the volume that holds ephemeral storage
	raid0            bool
	nics             []snapshot.NetworkInterface
	efaOnly          int64 // of nics
	efaOnlyCard0     int64
	connTracking     bool
	nestedVirtualize bool
	images           []imageModel
	plain            plainImages
}

// familyModel is what an AMI family decides (Karpenter: AMI family feature flags).
type familyModel struct {
	name          string
	os            string
	windowsBuild  string
	eniDensity    bool // pods follow the network interfaces
	podsPerCore   bool
	storageDevice string // device of the volume that holds ephemeral storage
	volume        int64  // bytes of that volume by default
}

func familyOf(name string) (familyModel, bool) {
	f := familyModel{name: name, os: Linux, eniDensity: true, podsPerCore: true, storageDevice: "/dev/xvda", volume: 20 << 30}
	switch name {
	case FamilyAL2, FamilyAL2023:
	case FamilyCustom:
		f.storageDevice = ""
	case FamilyBottlerocket:
		f.storageDevice = "/dev/xvdb"
		f.podsPerCore = false
	case FamilyWindows2019, FamilyWindows2022, FamilyWindows2025:
		f.os, f.eniDensity = Windows, false
		f.storageDevice, f.volume = "/dev/sda1", 50<<30
		f.windowsBuild = map[string]string{
			FamilyWindows2019: "10.0.17763", FamilyWindows2022: "10.0.20348", FamilyWindows2025: "10.0.26100",
		}[name]
	default:
		return familyModel{}, false
	}
	return f, true
}

// aliasFamilies maps the family of an AMI alias ("al2023@latest") to its AMI family.
var aliasFamilies = map[string]string{
	"al2": FamilyAL2, "al2023": FamilyAL2023, "bottlerocket": FamilyBottlerocket,
	"windows2019": FamilyWindows2019, "windows2022": FamilyWindows2022, "windows2025": FamilyWindows2025,
}

// FamilyOf returns the AMI family of a class: spec.amiFamily, else the family of
// its alias, else AL2023. The last is for classes built in code: the API refuses a
// class with neither.
func FamilyOf(class *snapshot.NodeClass) (string, error) {
	m := classModel{name: class.Name}
	p := m.setFamily(class)
	if len(p) > 0 {
		return "", &ClassError{Class: class.Name, Problems: p}
	}
	return m.family.name, nil
}

func (m *classModel) setFamily(class *snapshot.NodeClass) []Problem {
	name := class.AMIFamily
	if class.AMIAlias != "" {
		alias, _, _ := strings.Cut(class.AMIAlias, "@")
		fromAlias, ok := aliasFamilies[alias]
		if !ok {
			return []Problem{{"spec.amiSelectorTerms[0].alias", class.AMIAlias, "names no known family; use one of " + strings.Join(slices.Sorted(maps.Keys(aliasFamilies)), ", ")}}
		}
		if name == "" {
			name = fromAlias
		} else if name != fromAlias && name != FamilyCustom {
			return []Problem{{"spec.amiFamily", name, fmt.Sprintf("does not go with alias %q; leave it out, or use %s or Custom", class.AMIAlias, fromAlias)}}
		}
	}
	if name == "" {
		name = FamilyAL2023
	}
	f, ok := familyOf(name)
	if !ok {
		return []Problem{{"spec.amiFamily", name, "is not AL2, AL2023, Bottlerocket, Windows2019, Windows2022, Windows2025 or Custom"}}
	}
	m.family = f
	return nil
}

// newClassModel parses a class. Every problem is reported, in the order of fields.
func newClassModel(class *snapshot.NodeClass, s snapshot.Settings) (*classModel, error) {
	m := &classModel{
		name: class.Name, settings: s,
		nics: class.NetworkInterfaces, connTracking: class.ConnectionTracking,
		nestedVirtualize: class.NestedVirtualization,
	}
	problems := m.setFamily(class)
	bad := func(field, value, detail string) {
		problems = append(problems, Problem{field, value, detail})
	}
	switch class.InstanceStorePolicy {
	case "":
	case "RAID0":
		m.raid0 = true
	default:
		bad("spec.instanceStorePolicy", class.InstanceStorePolicy, "is not RAID0; leave it out or use RAID0")
	}
	for i, d := range class.BlockDevices {
		if d.Bytes < 0 {
			bad(fmt.Sprintf("spec.blockDeviceMappings[%d].ebs.volumeSize", i), fmt.Sprint(d.Bytes), "is negative")
		}
	}
	m.volume = m.volumeOf(class.BlockDevices)
	for _, n := range class.NetworkInterfaces {
		if n.Type == nicEFAOnly {
			m.efaOnly++
			if n.NetworkCard == 0 {
				m.efaOnlyCard0++
			}
		}
	}
	problems = append(problems, m.setKubelet(class.Kubelet)...)
	images, imageProblems := newImages(class)
	m.images, m.plain = images, newPlainImages(images)
	problems = append(problems, imageProblems...)
	if s.ReservedENIs < 0 {
		bad("setting RESERVED_ENIS", fmt.Sprint(s.ReservedENIs), "is negative; use 0 or more")
	}
	if s.VMMemoryOverhead < 0 || s.VMMemoryOverhead >= ppm {
		bad("setting VM_MEMORY_OVERHEAD_PERCENT", fmt.Sprintf("%d millionths", s.VMMemoryOverhead), "is not a share from 0 to below 1")
	}
	if len(problems) > 0 {
		return nil, &ClassError{Class: class.Name, Problems: problems}
	}
	return m, nil
}

const (
	ppm        = 1_000_000
	nicEFAOnly = "efa-only"
)

// volumeOf is the size of the volume that holds ephemeral storage (Karpenter:
// ephemeralStorage): the root volume; for Custom the last device; else the device
// of the family; else the family's default.
func (m *classModel) volumeOf(devices []snapshot.BlockDevice) int64 {
	if i := slices.IndexFunc(devices, func(d snapshot.BlockDevice) bool { return d.RootVolume }); i >= 0 && devices[i].Bytes > 0 {
		return devices[i].Bytes
	}
	if m.family.name == FamilyCustom && len(devices) > 0 {
		if last := devices[len(devices)-1]; last.Bytes > 0 {
			return last.Bytes
		}
		return m.family.volume
	}
	for _, d := range devices {
		if d.DeviceName == m.family.storageDevice && d.Bytes > 0 {
			return d.Bytes
		}
	}
	return m.family.volume
}
