package catalog

import (
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"
)

// Parse reads a catalogue file. It is strict: unknown fields, missing required
// ones, duplicates and impossible values are errors that name the type and the
// field. Types come back sorted by name, offerings by zone, capacity type and
// reservation. Zone ids that the file leaves out are those of the embedded table
// where region and zone are in it, else unknown.
func Parse(data []byte) (*Catalog, error) {
	var f fileCatalog
	if err := strict(data, &f); err != nil {
		return nil, fmt.Errorf("read catalogue: %w", err)
	}
	if f.InstanceTypes == nil {
		return nil, errors.New("read catalogue: instanceTypes: is required; give a list of instance types")
	}
	if f.Date != "" {
		if _, err := time.Parse(time.DateOnly, f.Date); err != nil {
			return nil, fmt.Errorf("read catalogue: date: %q is not a date like 2026-11-01", f.Date)
		}
	}
	c := &Catalog{Region: f.Region, Date: f.Date, Source: f.Source}
	if c.Source == "" {
		c.Source = "catalogue file"
		if f.Date != "" {
			c.Source += ", prices of " + f.Date
		}
	}
	zoneIDs := knownZoneIDs(f.Region)
	seen := make(map[string]int, len(f.InstanceTypes))
	for i, raw := range f.InstanceTypes {
		t, err := parseType(raw, zoneIDs)
		if err != nil {
			return nil, fmt.Errorf("read catalogue: instanceTypes[%d]%s: %w", i, nameOf(raw), err)
		}
		if j, ok := seen[t.Name]; ok {
			return nil, fmt.Errorf("read catalogue: instanceTypes[%d]: name: %q is also the name of instanceTypes[%d]; keep one", i, t.Name, j)
		}
		seen[t.Name] = i
		c.Types = append(c.Types, t)
	}
	slices.SortFunc(c.Types, func(a, b InstanceType) int { return strings.Compare(a.Name, b.Name) })
	for i := range c.Types {
		for _, o := range c.Types[i].Offerings {
			if at, found := slices.BinarySearch(c.Zones, o.Zone); !found {
				c.Zones = slices.Insert(c.Zones, at, o.Zone)
			}
		}
	}
	for i, raw := range f.Commitments {
		m, err := parseCommitment(raw)
		if err != nil {
			return nil, fmt.Errorf("read catalogue: commitments[%d]: %w", i, err)
		}
		if k := slices.IndexFunc(c.Commitments, func(o Commitment) bool { return o.ID == m.ID && m.ID != "" }); k >= 0 && c.Commitments[k].Remaining != m.Remaining {
			return nil, fmt.Errorf("read catalogue: commitments[%d]: remainingPerHour: that of id %.80q is another one in commitments[%d]; entries of one id share what remains, so give the same", i, m.ID, k)
		}
		c.Commitments = append(c.Commitments, m)
	}
	return c, nil
}

func knownZoneIDs(region string) map[string]string {
	ids := map[string]string{}
	if c, ok := Embedded(region); ok && len(c.Types) > 0 {
		for _, o := range c.Types[0].Offerings {
			ids[o.Zone] = o.ZoneID
		}
	}
	return ids
}

// strict decodes one JSON value and nothing after it.
func strict(data []byte, into any) error {
	d := json.NewDecoder(bytes.NewReader(data))
	d.DisallowUnknownFields()
	err := d.Decode(into)
	if err == nil {
		if _, err := d.Token(); !errors.Is(err, io.EOF) {
			return fmt.Errorf("something follows the JSON value at byte %d; remove it", d.InputOffset())
		}
		return nil
	}
	var wrongType *json.UnmarshalTypeError
	var syntax *json.SyntaxError
	switch {
	case errors.As(err, &wrongType):
		if wrongType.Field == "" {
			return fmt.Errorf("a JSON %s stands where %s belongs", wrongType.Value, kind(wrongType))
		}
		return fmt.Errorf("%s: a JSON %s stands where %s belongs", wrongType.Field, wrongType.Value, kind(wrongType))
	case errors.As(err, &syntax):
		return fmt.Errorf("byte %d: %w", syntax.Offset, err)
	case errors.Is(err, io.EOF), errors.Is(err, io.ErrUnexpectedEOF):
		return errors.New("the JSON is empty or cut short")
	}
	// encoding/json has no type for this one: json: unknown field "vcpus".
	if field, ok := strings.CutPrefix(err.Error(), "json: unknown field "); ok {
		return fmt.Errorf("unknown field %s; remove it or correct its name", field)
	}
	// Nor for this one, and it leaves out the field: json: invalid number literal, trying to unmarshal "\"x\"" into Number.
	if strings.HasPrefix(err.Error(), "json: invalid number literal") {
		return noNumber(data, err)
	}
	return err
}

// noNumber names the first field of an object that holds the string which err
// could not read as a number.
func noNumber(data []byte, err error) error {
	var fields map[string]json.RawMessage
	if json.Unmarshal(data, &fields) != nil {
		return err
	}
	for _, name := range slices.Sorted(maps.Keys(fields)) {
		if strings.Contains(err.Error(), strconv.Quote(string(fields[name]))) {
			return fmt.Errorf("%s: a JSON string %s stands where a number belongs", name, fields[name])
		}
	}
	return err
}

func kind(e *json.UnmarshalTypeError) string {
	switch name := e.Type.String(); name {
	case "int64":
		return "a whole number"
	case "string":
		return "a string"
	case "bool":
		return "true or false"
	case "json.Number":
		return "a number"
	case "map[string]string", "map[string]int64":
		return "an object"
	default:
		if strings.HasPrefix(name, "[]") {
			return "a list"
		}
		return "an object"
	}
}

// nameOf is the name of a type for an error message, however broken the rest is.
func nameOf(raw []byte) string {
	var t struct {
		Name string `json:"name"`
	}
	if json.Unmarshal(raw, &t); t.Name == "" {
		return ""
	}
	return fmt.Sprintf(" (%.64q)", t.Name)
}

func parseType(raw []byte, zoneIDs map[string]string) (InstanceType, error) {
	var f fileType
	if err := strict(raw, &f); err != nil {
		return InstanceType{}, err
	}
	if err := f.check(); err != nil {
		return InstanceType{}, err
	}
	t := InstanceType{
		Name: f.Name, Arch: f.Arch, VCPU: *f.VCPU, MemoryMiB: *f.MemoryMiB,
		GPUs: devicesOf(f.GPUs), Accelerators: devicesOf(f.Accelerators),
		LocalNVMeGB: f.LocalNVMeGB, NetworkMbps: f.NetworkMbps, EBSMbps: f.EBSMbps,
		Hypervisor: f.Hypervisor, CPUManufacturer: f.CPUManufacturer,
		NestedVirtualization: f.NestedVirtualization, Volumes: f.EBSVolumes, Labels: f.Labels, Extended: f.Extended,
	}
	if f.ENI != nil {
		t.ENI = ENI{Interfaces: f.ENI.Interfaces, IPv4PerENI: f.ENI.IPv4, Cards: f.ENI.NetworkCards}
	}
	for i, raw := range f.Offerings {
		o, err := parseOffering(raw, zoneIDs)
		if err != nil {
			return t, fmt.Errorf("offerings[%d]: %w", i, err)
		}
		t.Offerings = append(t.Offerings, o)
	}
	slices.SortStableFunc(t.Offerings, compareOfferings)
	for i := 1; i < len(t.Offerings); i++ {
		if o := t.Offerings[i]; compareOfferings(t.Offerings[i-1], o) == 0 {
			return t, fmt.Errorf("offerings: %s in zone %s is there twice; keep one", o.CapacityType, o.Zone)
		}
	}
	priceReserved(t.Offerings)
	return t, nil
}

func devicesOf(list []fileDevice) []Device {
	var out []Device
	for _, d := range list {
		out = append(out, Device(d))
	}
	return out
}

func compareOfferings(a, b Offering) int {
	return cmp.Or(strings.Compare(a.Zone, b.Zone), strings.Compare(a.CapacityType, b.CapacityType),
		strings.Compare(a.reservationID(), b.reservationID()))
}

func (o Offering) reservationID() string {
	if o.Reservation == nil {
		return ""
	}
	return o.Reservation.ID
}

// reservedShare: capacity that is paid for counts as a ten-millionth of the
// on-demand price, so that it goes first and larger types are still dearer
// (Karpenter: reserved offering price).
const reservedShare = 10_000_000

// priceReserved prices reserved offerings that come without a price.
func priceReserved(list []Offering) {
	for i := range list {
		if list[i].CapacityType != Reserved || list[i].Price > 0 {
			continue
		}
		for _, o := range list {
			if o.CapacityType == OnDemand && o.Zone == list[i].Zone {
				list[i].Price = o.Price / reservedShare
			}
		}
		list[i].Price = max(list[i].Price, 1)
	}
}
