package plan

import (
	"cmp"
	"slices"
	"strings"
)

// Nearest returns up to n candidates that somebody who wrote word may have meant,
// the likeliest first: those within a third of its length in edits, case left out,
// and those that hold it (or are held by it) as a whole. Ties go by name.
func Nearest(word string, candidates []string, n int) []string {
	type hit struct {
		name string
		dist int
	}
	var hits []hit
	w := strings.ToLower(word)
	for _, c := range candidates {
		l := strings.ToLower(c)
		d := distance(w, l)
		held := len(w) >= 4 && (strings.Contains(l, w) || strings.Contains(w, l) && len(l) >= 4)
		if d <= max(1, len(w)/3) || held {
			hits = append(hits, hit{c, d})
		}
	}
	slices.SortFunc(hits, func(a, b hit) int {
		return cmp.Or(cmp.Compare(a.dist, b.dist), strings.Compare(a.name, b.name))
	})
	var out []string
	for _, h := range slices.Compact(hits) {
		if len(out) == n {
			break
		}
		out = append(out, h.name)
	}
	return out
}

// distance is the Levenshtein distance of two strings, in bytes.
func distance(a, b string) int {
	prev := make([]int, len(b)+1)
	cur := make([]int, len(b)+1)
	for j := range prev {
		prev[j] = j
	}
	for i := range len(a) {
		cur[0] = i + 1
		for j := range len(b) {
			cost := 1
			if a[i] == b[j] {
				cost = 0
			}
			cur[j+1] = min(prev[j+1]+1, cur[j]+1, prev[j]+cost)
		}
		prev, cur = cur, prev
	}
	return prev[len(b)]
}
