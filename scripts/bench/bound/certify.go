package bound

import (
	"math"
	"math/big"
)

// certify turns approximate duals (per scaled unit) into exact feasible ones and
// evaluates them.
func certify(cols []Column, demand Vector, approx [Rows]float64) Certificate {
	var c Certificate
	for r := range Rows {
		v := approx[r] / scale[r]
		if !(v > 0) || math.IsInf(v, 0) {
			v = 0
		}
		c.Duals[r] = new(big.Rat).SetFloat64(v)
	}
	if worst, _ := Steepest(cols, c.Duals); worst.Sign() > 0 {
		for r := range Rows {
			c.Duals[r].Quo(c.Duals[r], worst)
		}
	}
	total := Worth(demand, c.Duals)
	c.Total = new(big.Int).Quo(total.Num(), total.Denom()).Int64()
	return c
}

// Worth is the value of an amount of resources at given prices.
func Worth(v Vector, duals [Rows]*big.Rat) *big.Rat {
	sum := new(big.Rat)
	for r := range Rows {
		sum.Add(sum, new(big.Rat).Mul(new(big.Rat).SetInt64(v[r]), duals[r]))
	}
	return sum
}

// Steepest returns the greatest worth of a column per unit of its price, and that
// column. Duals are feasible, and so prove a bound, when it is at most 1.
func Steepest(cols []Column, duals [Rows]*big.Rat) (*big.Rat, string) {
	best, name := new(big.Rat), ""
	for _, col := range cols {
		ratio := Worth(col.Gives, duals)
		ratio.Quo(ratio, new(big.Rat).SetInt64(col.Price))
		if ratio.Cmp(best) > 0 {
			best, name = ratio, col.Name
		}
	}
	return best, name
}
