package catalog

import (
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"math/big"
	"slices"
	"strconv"
	"strings"

	"kerf.sh/kerf/internal/snapshot"
)

// Bounds of a figure: far above every machine, low enough that no arithmetic on
// one overflows.
const (
	maxFigure = 1 << 40
	maxVCPU   = 1 << 20
	maxPrice  = 1_000_000_000_000 // micro-dollars per hour: a million dollars
)

func (f *fileType) check() error {
	switch {
	case f.Name == "":
		return errors.New("name: is required")
	case !labelValue(f.Name):
		return fmt.Errorf("name: %.80q can not be a label value: use up to 63 letters, digits, '-', '_' and '.', a letter or digit at both ends", f.Name)
	case f.Arch == "":
		return errors.New("arch: is required: amd64 or arm64")
	case f.Arch != AMD64 && f.Arch != ARM64:
		return fmt.Errorf("arch: %.80q is not amd64 or arm64", f.Arch)
	case f.VCPU == nil:
		return errors.New("vcpu: is required")
	case f.MemoryMiB == nil:
		return errors.New("memoryMiB: is required")
	case *f.VCPU < 1 || *f.VCPU > maxVCPU:
		return fmt.Errorf("vcpu: %d is not between 1 and %d", *f.VCPU, maxVCPU)
	case *f.MemoryMiB < 1 || *f.MemoryMiB > maxFigure:
		return fmt.Errorf("memoryMiB: %d is not between 1 and %d", *f.MemoryMiB, maxFigure)
	case f.Offerings == nil:
		return errors.New("offerings: is required; [] is a type that can not be bought")
	}
	if f.ENI != nil {
		if f.ENI.Interfaces < 1 || f.ENI.Interfaces > 1<<16 {
			return fmt.Errorf("eni.interfaces: %d is not between 1 and %d; leave eni out for 110 pods", f.ENI.Interfaces, 1<<16)
		}
		if f.ENI.IPv4 < 1 || f.ENI.IPv4 > 1<<16 {
			return fmt.Errorf("eni.ipv4PerInterface: %d is not between 1 and %d; leave eni out for 110 pods", f.ENI.IPv4, 1<<16)
		}
	}
	return errors.Join(f.checkFigures(), f.checkNames())
}

func (f *fileType) checkFigures() error {
	type figure struct {
		field string
		v     int64
	}
	figures := []figure{{"localNvmeGB", f.LocalNVMeGB}, {"networkMbps", f.NetworkMbps}, {"ebsMbps", f.EBSMbps}, {"ebsVolumes", f.EBSVolumes}}
	if f.ENI != nil {
		figures = append(figures, figure{"eni.networkCards", f.ENI.NetworkCards})
	}
	devices := func(field string, list []fileDevice) {
		for i, d := range list {
			at := fmt.Sprintf("%s[%d].", field, i)
			figures = append(figures, figure{at + "count", d.Count}, figure{at + "memoryMiB", d.MemoryMiB}, figure{at + "cores", d.Cores})
		}
	}
	devices("gpus", f.GPUs)
	devices("accelerators", f.Accelerators)
	for _, name := range slices.Sorted(maps.Keys(f.Extended)) {
		figures = append(figures, figure{"extended[" + name + "]", f.Extended[name]})
	}
	for _, g := range figures {
		if g.v < 0 || g.v > maxFigure {
			return fmt.Errorf("%s: %d is not between 0 and %d", g.field, g.v, maxFigure)
		}
	}
	return nil
}

// offeringLabels are decided by the offering or the node, never by the type.
var offeringLabels = []string{LabelZone, LabelZoneID, LabelRegion, LabelCapacityType, LabelNodePool, LabelNodeClass, LabelHostname,
	LabelTenancy, LabelReservationID, LabelReservationType, LabelReservationInterruptible, LabelOS, LabelWindowsBuild}

func (f *fileType) checkNames() error {
	for i, list := range [...][]fileDevice{f.GPUs, f.Accelerators} {
		field := [...]string{"gpus", "accelerators"}[i]
		for j, d := range list {
			if d.Name == "" || d.Manufacturer == "" {
				return fmt.Errorf("%s[%d]: name and manufacturer are required", field, j)
			}
		}
	}
	for _, name := range slices.Sorted(maps.Keys(f.Extended)) {
		if !strings.Contains(name, "/") {
			return fmt.Errorf("extended[%s]: is no extended resource; their names have a domain, such as nvidia.com/gpu", name)
		}
	}
	for _, key := range slices.Sorted(maps.Keys(f.Labels)) {
		value := f.Labels[key]
		switch {
		case key == "":
			return errors.New("labels: a label has no name")
		case slices.Contains(offeringLabels, key):
			return fmt.Errorf("labels[%s]: is not a label of a type; zones and capacity types belong in offerings", key)
		case key == LabelInstanceType && value != f.Name:
			return fmt.Errorf("labels[%s]: %.80q differs from name %q", key, value, f.Name)
		case key == LabelArch && value != f.Arch:
			return fmt.Errorf("labels[%s]: %.80q differs from arch %q", key, value, f.Arch)
		case value != "" && !labelValue(value):
			return fmt.Errorf("labels[%s]: %.80q can not be a label value", key, value)
		}
	}
	return nil
}

// labelValue: Kubernetes label values, but not empty.
func labelValue(s string) bool {
	if s == "" || len(s) > 63 {
		return false
	}
	for i, c := range []byte(s) {
		alnum := c >= '0' && c <= '9' || c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z'
		inner := i > 0 && i < len(s)-1 && (c == '-' || c == '_' || c == '.')
		if !alnum && !inner {
			return false
		}
	}
	return true
}

func parseOffering(raw []byte, zoneIDs map[string]string) (Offering, error) {
	var f fileOffering
	if err := strict(raw, &f); err != nil {
		return Offering{}, err
	}
	o := Offering{Zone: f.Zone, ZoneID: f.ZoneID, CapacityType: f.CapacityType, Estimated: f.Estimated,
		Available: f.Available == nil || *f.Available}
	switch {
	case f.Zone == "":
		return o, errors.New("zone: is required")
	case !labelValue(f.Zone):
		return o, fmt.Errorf("zone: %.80q can not be a label value", f.Zone)
	case f.ZoneID != "" && !labelValue(f.ZoneID):
		return o, fmt.Errorf("zoneID: %.80q can not be a label value", f.ZoneID)
	case f.CapacityType == "":
		return o, errors.New("capacityType: is required: spot, on-demand or reserved")
	case f.CapacityType != Spot && f.CapacityType != OnDemand && f.CapacityType != Reserved:
		return o, fmt.Errorf("capacityType: %.80q is not spot, on-demand or reserved", f.CapacityType)
	case (f.CapacityType == Reserved) != (f.Reservation != nil):
		return o, fmt.Errorf("reservation: goes with capacityType reserved and with no other; it is %q", f.CapacityType)
	}
	if o.ZoneID == "" {
		o.ZoneID = zoneIDs[o.Zone]
	}
	var err error
	switch {
	case f.Price != "":
		if o.Price, err = microDollars(f.Price); err != nil {
			return o, fmt.Errorf("pricePerHour: %w", err)
		}
		if o.Price == 0 && f.CapacityType != Reserved {
			return o, fmt.Errorf("pricePerHour: %s is not above 0 (a millionth of a dollar is the least)", f.Price)
		}
	case o.Available && f.CapacityType != Reserved:
		return o, errors.New(`pricePerHour: is required of what is available; without a price say "available": false`)
	}
	if f.Reservation != nil {
		o.Reservation, err = f.Reservation.reservation()
	}
	return o, err
}

func (f *fileReservation) reservation() (*Reservation, error) {
	r := &Reservation{ID: f.ID, Type: f.Type, Remaining: f.Remaining, Expires: f.Expires}
	if r.Type == "" {
		r.Type = "default"
	}
	switch {
	case f.ID == "" || !labelValue(f.ID):
		return nil, fmt.Errorf("reservation.id: %.80q is not the id of a reservation; give one such as cr-0123456789abcdef0", f.ID)
	case r.Type != "default" && r.Type != "capacity-block":
		return nil, fmt.Errorf("reservation.type: %.80q is not default or capacity-block", f.Type)
	case f.Remaining < 0 || f.Remaining > maxFigure:
		return nil, fmt.Errorf("reservation.remaining: %d is not between 0 and %d", f.Remaining, maxFigure)
	}
	return r, nil
}

func parseCommitment(raw []byte) (Commitment, error) {
	var f fileCommitment
	if err := strict(raw, &f); err != nil {
		return Commitment{}, err
	}
	if f.Scope == "" {
		return Commitment{}, errors.New(`scope: is required: a family such as "m5", a type, or "all"`)
	}
	m := Commitment{Scope: f.Scope, ID: f.ID}
	for _, money := range []struct {
		field string
		given json.Number
		into  *int64
	}{{"effectivePricePerHour", f.Price, &m.Price}, {"remainingPerHour", f.Remaining, &m.Remaining}} {
		if money.given == "" {
			return m, fmt.Errorf("%s: is required", money.field)
		}
		v, err := microDollars(money.given)
		if err != nil {
			return m, fmt.Errorf("%s: %w", money.field, err)
		}
		*money.into = v
	}
	return m, nil
}

// microDollars reads dollars as written, exactly, and rounds to the nearest
// millionth (a half goes up): 0.0000125 is 13, with no binary fraction between.
func microDollars(n json.Number) (int64, error) {
	f, err := strconv.ParseFloat(n.String(), 64)
	if err != nil || f > maxPrice/1e6 {
		return 0, fmt.Errorf("%.40s is more than %d dollars, or no number", n, int64(maxPrice/1_000_000))
	}
	if f < 0 {
		return 0, fmt.Errorf("%.40s is negative", n)
	}
	if f < 1e-9 {
		return 0, nil
	}
	r, ok := new(big.Rat).SetString(n.String())
	if !ok {
		return 0, fmt.Errorf("%.40s is no number", n)
	}
	r.Mul(r, big.NewRat(2_000_000, 1))
	twice := new(big.Int).Quo(r.Num(), r.Denom()) // floor of twice the amount
	return (snapshot.Clamp(twice.Int64()) + 1) / 2, nil
}
