package catalog

import (
	"errors"
	"fmt"
	"math/big"
	"math/bits"
	"strings"

	"kerf.sh/kerf/internal/snapshot"
)

var errQuantity = errors.New(`is not a quantity such as "500m", "1.5Gi" or "2e9"`)

// maxQuantityLen bounds the text of a quantity; what is longer is no quantity.
const maxQuantityLen = 64

// quantity reads a Kubernetes quantity in units of 1/scale (scale 1000 reads CPU
// as millicores), rounded away from zero as Kubernetes does and limited to
// snapshot.MaxQuantity.
func quantity(s string, scale int64) (int64, error) {
	if len(s) > maxQuantityLen {
		return 0, errQuantity
	}
	rest := strings.TrimPrefix(s, "+")
	negative := false
	if rest == s {
		rest, negative = strings.CutPrefix(s, "-")
	}
	whole := rest[:digits(rest)]
	rest = rest[len(whole):]
	fraction := ""
	if after, ok := strings.CutPrefix(rest, "."); ok {
		fraction = after[:digits(after)]
		rest = after[len(fraction):]
	}
	if whole+fraction == "" {
		return 0, errQuantity
	}
	exp10, exp2, err := suffix(rest)
	if err != nil {
		return 0, err
	}
	mantissa, ok := new(big.Int).SetString(whole+fraction, 10)
	if !ok {
		return 0, errQuantity
	}
	mantissa.Mul(mantissa, big.NewInt(scale))
	mantissa.Lsh(mantissa, exp2)
	exp10 -= int64(len(fraction))
	// Past these exponents every number of maxQuantityLen digits is saturated, or
	// is the smallest unit.
	exp10 = min(max(exp10, -4*maxQuantityLen), 4*maxQuantityLen)
	if exp10 >= 0 {
		mantissa.Mul(mantissa, pow10(exp10))
	} else {
		var rem big.Int
		mantissa.QuoRem(mantissa, pow10(-exp10), &rem)
		if rem.Sign() != 0 {
			mantissa.Add(mantissa, big.NewInt(1))
		}
	}
	v := int64(snapshot.MaxQuantity)
	if mantissa.IsInt64() {
		v = snapshot.Clamp(mantissa.Int64())
	}
	if negative {
		v = -v
	}
	return v, nil
}

func pow10(n int64) *big.Int { return new(big.Int).Exp(big.NewInt(10), big.NewInt(n), nil) }

// suffix reads what follows the digits of a quantity.
func suffix(s string) (exp10 int64, exp2 uint, err error) {
	switch s {
	case "n":
		return -9, 0, nil
	case "u":
		return -6, 0, nil
	case "m":
		return -3, 0, nil
	case "":
		return 0, 0, nil
	case "k":
		return 3, 0, nil
	case "M":
		return 6, 0, nil
	case "G":
		return 9, 0, nil
	case "T":
		return 12, 0, nil
	case "P":
		return 15, 0, nil
	case "E":
		return 18, 0, nil
	case "Ki":
		return 0, 10, nil
	case "Mi":
		return 0, 20, nil
	case "Gi":
		return 0, 30, nil
	case "Ti":
		return 0, 40, nil
	case "Pi":
		return 0, 50, nil
	case "Ei":
		return 0, 60, nil
	}
	if s[0] != 'e' && s[0] != 'E' {
		return 0, 0, errQuantity
	}
	s, negative := s[1:], false
	if after, ok := strings.CutPrefix(s, "+"); ok {
		s = after
	} else {
		s, negative = strings.CutPrefix(s, "-")
	}
	if s == "" || digits(s) != len(s) {
		return 0, 0, errQuantity
	}
	for _, c := range []byte(s) {
		exp10 = min(exp10*10+int64(c-'0'), 1<<20)
	}
	if negative {
		exp10 = -exp10
	}
	return exp10, 0, nil
}

// percentScale is the resolution of a percentage: a millionth of a percent.
const percentScale = 1_000_000

// percent reads "7.5%" as parts of percentScale*100.
func percent(s string) (int64, error) {
	number, ok := strings.CutSuffix(s, "%")
	if !ok {
		return 0, errors.New("has no percent sign")
	}
	for _, c := range []byte(number) {
		if c != '.' && (c < '0' || c > '9') {
			return 0, errors.New(`is not a percentage from "0%" to "100%"`)
		}
	}
	v, err := quantity(number, percentScale)
	if err != nil || v > 100*percentScale {
		return 0, errors.New(`is not a percentage from "0%" to "100%"`)
	}
	return v, nil
}

// ceilShare is the least integer that is not below v x share / whole; v, share
// and whole are positive or zero, whole is not zero and share <= whole.
func ceilShare(v, share, whole int64) int64 {
	hi, lo := bits.Mul64(uint64(v), uint64(share))
	lo, carry := bits.Add64(lo, uint64(whole-1), 0)
	q, _ := bits.Div64(hi+carry, lo, uint64(whole))
	return int64(q)
}

// formatBytes writes a byte count for a person: whole MiB, or bytes.
func formatBytes(v int64) string {
	if v%(1<<20) == 0 {
		return fmt.Sprintf("%dMi", v>>20)
	}
	return fmt.Sprintf("%d", v)
}
