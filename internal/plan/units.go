package plan

import (
	"fmt"
	"math"
	"strconv"
	"strings"

	"kerf.sh/kerf/internal/snapshot"
)

// Quantity writes an amount of a resource as Kubernetes does: CPU in cores or
// millicores, memory and storage with the largest binary suffix that is exact,
// everything else as a whole number.
func Quantity(resource string, v int64) string {
	switch resource {
	case snapshot.CPU:
		if v%1000 == 0 {
			return strconv.FormatInt(v/1000, 10)
		}
		return strconv.FormatInt(v, 10) + "m"
	case snapshot.Memory, snapshot.EphemeralStorage:
		return binary(v)
	}
	if strings.HasPrefix(resource, "hugepages-") {
		return binary(v)
	}
	return strconv.FormatInt(v, 10)
}

func binary(v int64) string {
	suffixes := []string{"", "Ki", "Mi", "Gi", "Ti", "Pi", "Ei"}
	i := 0
	for v != 0 && v%1024 == 0 && i < len(suffixes)-1 {
		v /= 1024
		i++
	}
	return strconv.FormatInt(v, 10) + suffixes[i]
}

// Rounded writes an amount for a person: three significant figures, "15.9" cores,
// "57.3Gi".
func Rounded(resource string, v int64) string {
	switch {
	case resource == snapshot.CPU:
		return short(float64(v) / 1000)
	case resource == snapshot.Memory, resource == snapshot.EphemeralStorage, strings.HasPrefix(resource, "hugepages-"):
		f, i := float64(v), 0
		suffixes := []string{"", "Ki", "Mi", "Gi", "Ti", "Pi", "Ei"}
		for math.Abs(f) >= 1000 && i < len(suffixes)-1 {
			f /= 1024
			i++
		}
		return short(f) + suffixes[i]
	}
	return strconv.FormatInt(v, 10)
}

func short(f float64) string {
	switch a := math.Abs(f); {
	case a >= 100:
		return strconv.FormatFloat(f, 'f', 0, 64)
	case a >= 10:
		return strings.TrimSuffix(strconv.FormatFloat(f, 'f', 1, 64), ".0")
	}
	return strings.TrimSuffix(strings.TrimRight(strconv.FormatFloat(f, 'f', 2, 64), "0"), ".")
}

// Dollars writes a price per hour for a person: four decimals, six where that
// would be nothing ("$0.1632", "$0.000042"). JSON has the exact figure.
func Dollars(p snapshot.Price) string {
	sign := ""
	if p < 0 {
		sign, p = "-", -p
	}
	if p > 0 && p < 1000 {
		return fmt.Sprintf("%s$0.%06d", sign, p)
	}
	p = (p + 50) / 100
	return fmt.Sprintf("%s$%s.%04d", sign, thousands(p/10_000), p%10_000)
}

// hoursPerMonth is the convention of AWS price lists.
const hoursPerMonth = 730

// PerMonth writes what a price per hour comes to in a month of 730 hours, in
// whole dollars.
func PerMonth(p snapshot.Price) string {
	sign := ""
	if p < 0 {
		sign, p = "-", -p
	}
	whole, rest := p/1_000_000, p%1_000_000
	return sign + "$" + thousands(whole*hoursPerMonth+(rest*hoursPerMonth+500_000)/1_000_000)
}

func thousands(v int64) string {
	s := strconv.FormatInt(v, 10)
	for i := len(s) - 3; i > 0; i -= 3 {
		s = s[:i] + "," + s[i:]
	}
	return s
}

// Gap writes by how much a price is above a lower bound: "0.3 %", "0 %", or "" if
// there is no bound.
func Gap(price, bound snapshot.Price) string {
	if bound <= 0 {
		return ""
	}
	pct := float64(price-bound) / float64(bound) * 100
	switch {
	case price-bound <= max(2, price/100_000): // the bound is rounded down
		return "0 %"
	case pct < 0.05:
		return "< 0.1 %"
	case pct >= 100:
		return strconv.FormatFloat(pct, 'f', 0, 64) + " %"
	}
	return strconv.FormatFloat(pct, 'f', 1, 64) + " %"
}

// number writes micro-dollars as a JSON number of dollars: exact, no exponent, no
// trailing zeros.
func number(p snapshot.Price) string {
	sign := ""
	if p < 0 {
		sign, p = "-", -p
	}
	var buf [32]byte
	out := strconv.AppendInt(append(buf[:0], sign...), p/1_000_000, 10)
	if frac := p % 1_000_000; frac != 0 {
		at := len(out)
		out = strconv.AppendInt(out, 1_000_000+frac, 10) // a leading 1 keeps the zeros
		out[at] = '.'
		for out[len(out)-1] == '0' {
			out = out[:len(out)-1]
		}
	}
	return string(out)
}

// Number writes a whole number for a person: "12,000".
func Number(n int) string { return thousands(int64(n)) }

// SignedNumber writes a difference of whole numbers: "+3", "-1", "0".
func SignedNumber(n int) string {
	switch {
	case n > 0:
		return "+" + Number(n)
	case n < 0:
		return "-" + Number(-n)
	}
	return "0"
}

// Count writes a number with its noun: "1 pod", "3 pods".
func Count(n int, noun string) string {
	if n == 1 {
		return "1 " + noun
	}
	return thousands(int64(n)) + " " + noun + "s"
}
