package requirements

import (
	"iter"
	"strings"
)

// nearest returns the candidate that key was probably meant to be, "" when none
// is near. Near is: the same name under another domain, or nearly the same; else an
// edit distance of at most a fifth of the length (at least 1, at most 4). The
// nearest wins, then the first by name.
func nearest(key string, candidates iter.Seq[string]) string {
	_, name := split(key)
	best, bestDistance := "", min(max(len(key)/5, 1), 4)+1
	for c := range candidates {
		if c == key {
			continue
		}
		d := distance(key, c, bestDistance+1) // one more, to see ties
		if _, cname := split(c); cname == name {
			d = 0
		} else if limit := min(len(name)/5+1, bestDistance); limit > 1 {
			if n := distance(name, cname, limit); n < limit {
				d = min(d, n+1)
			}
		}
		if d < bestDistance || best != "" && d == bestDistance && c < best {
			best, bestDistance = c, d
		}
	}
	return best
}

func split(key string) (domain, name string) {
	domain, name, ok := strings.Cut(key, "/")
	if !ok {
		return "", key
	}
	return domain, name
}

// distance is the edit distance of two strings (insert, delete, replace, swap of
// neighbours), or limit when it is at least that.
func distance(a, b string, limit int) int {
	if d := len(a) - len(b); d >= limit || -d >= limit {
		return limit
	}
	before := make([]int, len(b)+1)
	last := make([]int, len(b)+1)
	row := make([]int, len(b)+1)
	for j := range last {
		last[j] = j
	}
	for i := 1; i <= len(a); i++ {
		row[0] = i
		for j := 1; j <= len(b); j++ {
			cost := 1
			if a[i-1] == b[j-1] {
				cost = 0
			}
			row[j] = min(last[j]+1, row[j-1]+1, last[j-1]+cost)
			if i > 1 && j > 1 && a[i-1] == b[j-2] && a[i-2] == b[j-1] {
				row[j] = min(row[j], before[j-2]+1)
			}
		}
		before, last, row = last, row, before
	}
	return min(last[len(b)], limit)
}

func quoteHint(hint string) string {
	if hint == "" {
		return ""
	}
	return " (did you mean " + hint + "?)"
}
