package snapshot

import "strconv"

// Tolerates reports whether the toleration covers the taint (Kubernetes: key, value and
// effect; the operators Exists, Equal and the numeric Gt and Lt).
func (tol *Toleration) Tolerates(t *Taint) bool {
	if tol.Effect != "" && tol.Effect != t.Effect {
		return false
	}
	if tol.Key != "" && tol.Key != t.Key {
		return false
	}
	switch tol.Operator {
	case "", "Equal":
		return tol.Key != "" && tol.Value == t.Value
	case "Exists":
		return true
	case "Gt", "Lt":
		// The taint's value is compared with the toleration's: Gt tolerates taints
		// above it.
		want, ok1 := taintNumber(tol.Value)
		have, ok2 := taintNumber(t.Value)
		if !ok1 || !ok2 || tol.Key == "" {
			return false
		}
		if tol.Operator == "Gt" {
			return have > want
		}
		return have < want
	}
	return false
}

// taintNumber reads a number as kube-scheduler compares it: decimal, 64 bits, without
// a plus sign or leading zeros.
func taintNumber(s string) (int64, bool) {
	n, err := strconv.ParseInt(s, 10, 64)
	return n, err == nil && strconv.FormatInt(n, 10) == s
}
