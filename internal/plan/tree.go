package plan

import (
	"fmt"
	"strings"
)

// CauseSeparator stands between the causes of one detail, when several rules
// refuse at once; the first is the one that decides.
const CauseSeparator = "; and "

// Tree is what reports show of a verdict, so that it stays short and nothing is
// said twice. The detail does not repeat the first pool's; a single pool
// that only repeats the verdict is left out; pools after the nearest one give
// their first cause and count the others, which explain shows in full.
func (v *Verdict) Tree() (detail string, pools []PoolVerdict) {
	if len(v.Pools) == 0 {
		return v.Detail, nil
	}
	first := v.Pools[0]
	if len(v.Pools) == 1 && first.Code == v.Code && strings.HasSuffix(v.Detail, first.Detail) {
		return "pool " + first.NodePool + ": " + first.Detail, nil
	}
	switch {
	case first.Detail == "" || !strings.HasSuffix(v.Detail, first.Detail):
		detail = v.Detail
	case len(v.Pools) > 1:
		detail = "every NodePool refuses, the nearest first"
	}
	pools = append(pools, v.Pools...)
	for i := range pools[1:] {
		pools[i+1].Detail = firstCause(pools[i+1].Detail)
	}
	return detail, pools
}

func firstCause(detail string) string {
	causes := strings.Split(detail, CauseSeparator)
	if len(causes) == 1 {
		return detail
	}
	return fmt.Sprintf("%s (+%d more)", causes[0], len(causes)-1)
}

// Telling is the code that tells what to do: that of the nearest pool, if pools are
// listed and the verdict itself only sums them up.
func Telling(v *Verdict) Code {
	if len(v.Pools) > 0 && v.Code == Unschedulable {
		return v.Pools[0].Code
	}
	return v.Code
}
