package catalog

import (
	"errors"
	"math/bits"
	"strconv"
	"strings"
)

// Percentages are read exactly, in millionths of a percent.
const (
	percentDecimals = 6
	percentScale    = 1_000_000
)

var errPercent = errors.New(`is not a percentage from "0%" to "100%" with at most 6 decimals`)

// percent reads "7.5%" as 7,500,000.
func percent(s string) (int64, error) {
	number, ok := strings.CutSuffix(s, "%")
	whole, fraction, _ := strings.Cut(number, ".")
	if !ok || whole+fraction == "" || digits(whole) != len(whole) || len(whole) > 9 ||
		digits(fraction) != len(fraction) || len(fraction) > percentDecimals {
		return 0, errPercent
	}
	v, err := strconv.ParseInt(whole+fraction+strings.Repeat("0", percentDecimals-len(fraction)), 10, 64)
	if err != nil || v > 100*percentScale {
		return 0, errPercent
	}
	return v, nil
}

// ceilShare is the least integer that is not below v x share / whole; v and share
// are not negative, whole is positive and share <= whole.
func ceilShare(v, share, whole int64) int64 {
	hi, lo := bits.Mul64(uint64(v), uint64(share))
	lo, carry := bits.Add64(lo, uint64(whole-1), 0)
	q, _ := bits.Div64(hi+carry, lo, uint64(whole))
	return int64(q)
}
