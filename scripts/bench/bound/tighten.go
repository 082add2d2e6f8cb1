package bound

import "slices"

// Tighten lowers what columns give to what pods of these needs can use, which loses no
// packing and raises every bound: amounts are rounded down to what all needs are a
// multiple of, and when all pods need the same, to whole pods. Rows that no pod needs
// stay as they are.
func Tighten(columns []Column, needs []Vector) []Column {
	var step Vector
	for _, need := range needs {
		for r, v := range need {
			step[r] = gcd(step[r], v)
		}
	}
	same := len(needs) > 0 && !slices.ContainsFunc(needs, func(n Vector) bool { return n != needs[0] })
	out := slices.Clone(columns)
	for i := range out {
		g := &out[i].Gives
		pods := int64(-1)
		for r := range g {
			if step[r] == 0 || g[r] < 0 {
				continue
			}
			g[r] -= g[r] % step[r]
			if k := g[r] / step[r]; pods < 0 || k < pods {
				pods = k
			}
		}
		if !same {
			continue
		}
		for r := range g {
			if step[r] > 0 {
				g[r] = min(g[r], pods*step[r])
			}
		}
	}
	return out
}

func gcd(a, b int64) int64 {
	for b != 0 {
		a, b = b, a%b
	}
	return a
}

// Cap lowers what columns give to the whole demand: no node is of use for more. A node
// that would hold everything is then paid in full, so the relaxation of a small demand
// comes nearer to whole nodes.
func Cap(columns []Column, demand Vector) []Column {
	out := slices.Clone(columns)
	for i := range out {
		for r := range demand {
			out[i].Gives[r] = min(out[i].Gives[r], demand[r])
		}
	}
	return out
}
