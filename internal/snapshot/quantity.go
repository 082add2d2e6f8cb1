package snapshot

import (
	"errors"
	"fmt"
	"math"
	"math/big"
	"strconv"
	"strings"
)

// maxQuantityText bounds what is parsed: longer text is no quantity that anybody
// wrote.
const maxQuantityText = 256

// ParseQuantity reads a Kubernetes quantity ("250m", "1.5Gi", "2e3") of a resource
// into the units of Resources: millicores for cpu, bytes for memory and storage,
// whole units for everything else, fractions rounded away from zero. What is
// beyond MaxQuantity is MaxQuantity (see Saturated). A negative quantity is
// returned as such: whether one makes sense is the caller's to judge. The error
// names the resource and the text.
func ParseQuantity(resourceName, text string) (int64, error) {
	if v, ok := parsePlain(resourceName, text); ok {
		return v, nil
	}
	bad := func(problem string) (int64, error) {
		return 0, fmt.Errorf("%s: quantity %q %s: write a number with one of the suffixes n, u, m, k, M, G, T, P, E, Ki, Mi, Gi, Ti, Pi, Ei or an exponent, like 500m or 2Gi",
			resourceName, shorten(text), problem)
	}
	if len(text) > maxQuantityText {
		return bad("is too long")
	}
	s, negative := text, false
	if s != "" && (s[0] == '-' || s[0] == '+') {
		negative = s[0] == '-'
		s = s[1:]
	}
	end := strings.IndexFunc(s, func(r rune) bool { return (r < '0' || r > '9') && r != '.' })
	if end < 0 {
		end = len(s)
	}
	number, suffix := s[:end], s[end:]
	whole, fraction, _ := strings.Cut(number, ".")
	if whole+fraction == "" {
		return bad("has no digits")
	}
	if strings.Contains(fraction, ".") {
		return bad("has two decimal points")
	}
	scale, ok := quantityScale(suffix)
	if !ok {
		return bad(fmt.Sprintf("has the unknown suffix %q", suffix))
	}
	if resourceName == CPU {
		scale.ten += 3
	}
	v := scale.apply(strings.TrimLeft(whole+fraction, "0"), int64(len(fraction)))
	if negative {
		v = -v
	}
	return v, nil
}

// parsePlain is the fast path: up to 15 digits with a common suffix or none.
func parsePlain(resourceName, text string) (int64, bool) {
	n, i := int64(0), 0
	for ; i < len(text) && text[i] >= '0' && text[i] <= '9'; i++ {
		if i == 15 {
			return 0, false
		}
		n = n*10 + int64(text[i]-'0')
	}
	if i == 0 {
		return 0, false
	}
	cpu := resourceName == CPU
	switch text[i:] {
	case "":
		if cpu {
			n *= 1000
		}
		return Clamp(n), true
	case "m":
		if !cpu {
			n = (n + 999) / 1000
		}
		return n, true
	}
	if cpu || i > 8 {
		return 0, false
	}
	switch text[i:] {
	case "Ki":
		return n << 10, true
	case "Mi":
		return n << 20, true
	case "Gi":
		return n << 30, true
	}
	return 0, false
}

// quantityFactor is a power of ten times a power of two.
type quantityFactor struct{ ten, two int64 }

func quantityScale(suffix string) (quantityFactor, bool) {
	switch suffix {
	case "n":
		return quantityFactor{ten: -9}, true
	case "u":
		return quantityFactor{ten: -6}, true
	case "m":
		return quantityFactor{ten: -3}, true
	case "":
		return quantityFactor{}, true
	case "k":
		return quantityFactor{ten: 3}, true
	case "M":
		return quantityFactor{ten: 6}, true
	case "G":
		return quantityFactor{ten: 9}, true
	case "T":
		return quantityFactor{ten: 12}, true
	case "P":
		return quantityFactor{ten: 15}, true
	case "E":
		return quantityFactor{ten: 18}, true
	}
	for i, unit := range binaryUnits {
		if suffix == unit {
			return quantityFactor{two: int64(i+1) * 10}, true
		}
	}
	if len(suffix) > 1 && (suffix[0] == 'e' || suffix[0] == 'E') {
		// An exponent out of int64's range is as good as the end of it.
		exponent, err := strconv.ParseInt(suffix[1:], 10, 64)
		if err == nil || errors.Is(err, strconv.ErrRange) {
			return quantityFactor{ten: min(max(exponent, math.MinInt32), math.MaxInt32)}, true
		}
	}
	return quantityFactor{}, false
}

// apply returns digits x 10^-decimals x the factor, rounded up and saturated.
func (f quantityFactor) apply(digits string, decimals int64) int64 {
	if digits == "" {
		return 0
	}
	ten := f.ten - decimals
	// Orders of magnitude first, so that no absurd exponent is computed: 10^40 is
	// far above MaxQuantity, and 2^60 < 10^19 lifts nothing below 10^-40 to 1.
	switch magnitude := int64(len(digits)) + ten; {
	case magnitude > 40:
		return MaxQuantity
	case magnitude < -40:
		return 1
	}
	n, ok := new(big.Int).SetString(digits, 10)
	if !ok {
		return 0 // digits are digits
	}
	n.Lsh(n, uint(f.two))
	power := new(big.Int).Exp(big.NewInt(10), big.NewInt(max(ten, -ten)), nil)
	if ten >= 0 {
		n.Mul(n, power)
	} else {
		rest := new(big.Int)
		if n.QuoRem(n, power, rest); rest.Sign() != 0 {
			n.Add(n, big.NewInt(1))
		}
	}
	if !n.IsInt64() || n.Int64() > MaxQuantity {
		return MaxQuantity
	}
	return n.Int64()
}

// Saturated reports whether a quantity is at the limit of what is counted, so
// that what was written may have been more: worth a warning.
func Saturated(v int64) bool { return v >= MaxQuantity || v <= -MaxQuantity }

func shorten(s string) string {
	if len(s) > 64 {
		return s[:64] + "..."
	}
	return s
}

var (
	binaryUnits  = []string{"Ki", "Mi", "Gi", "Ti", "Pi", "Ei"}
	decimalUnits = []string{"k", "M", "G", "T", "P", "E"}
)

// InBytes reports whether a resource is counted in bytes.
func InBytes(resourceName string) bool {
	switch resourceName {
	case Memory, EphemeralStorage, "storage":
		return true
	}
	return strings.HasPrefix(resourceName, HugePagesPrefix)
}

// FormatQuantity writes a quantity as people write it, exactly: cpu in cores or
// millicores ("3", "250m"), bytes in the largest unit that is exact ("4Gi",
// "1536Mi", "5G"), everything else as a number. ParseQuantity reads it back.
func FormatQuantity(resourceName string, v int64) string {
	plain := strconv.FormatInt(v, 10)
	switch {
	case v == 0:
		return "0"
	case resourceName == CPU && v%1000 == 0:
		return strconv.FormatInt(v/1000, 10)
	case resourceName == CPU:
		return plain + "m"
	case InBytes(resourceName):
		out := inUnits(v, 1024, binaryUnits)
		if d := inUnits(v, 1000, decimalUnits); len(d) < len(out) {
			out = d
		}
		return out
	}
	return plain
}

func inUnits(v, base int64, units []string) string {
	unit := ""
	for _, u := range units {
		if v%base != 0 {
			break
		}
		v, unit = v/base, u
	}
	return strconv.FormatInt(v, 10) + unit
}

// String lists the resources that are not zero, by name: "cpu 3, memory 4Gi".
func (r Resources) String() string {
	names := r.Names()
	parts := make([]string, len(names))
	for i, n := range names {
		parts[i] = n + " " + FormatQuantity(n, r.Get(n))
	}
	return strings.Join(parts, ", ")
}
