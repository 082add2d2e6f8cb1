package worldtest

import (
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"kerf.sh/kerf/internal/plan"
)

// Show says what Describe prints beside launches, placements and verdict codes.
type Show struct {
	Detail  bool // details of verdicts and warnings
	Options bool // options of each launch; with Detail also where they are few
	Bound   bool // the lower bound
	Usage   bool // requests of each launch
}

// Describe prints a plan in few lines: prices in dollars an hour, pods of namespace
// default without it, "web-1..3" for web-1, web-2, web-3.
func Describe(p *plan.Plan, show Show) string {
	var b strings.Builder
	switch n := len(p.Launches); n {
	case 0:
		b.WriteString("launch nothing\n")
	default:
		fmt.Fprintf(&b, "launch %d at %s\n", n, Dollars(p.Summary.LaunchPrice))
	}
	if show.Bound {
		fmt.Fprintf(&b, "bound %s\n", Dollars(p.Summary.LaunchLowerBound))
	}
	for _, l := range p.Launches {
		fmt.Fprintf(&b, "  %s: %s %s %s %s, %s\n", l.Name, l.Chosen.InstanceType, l.Chosen.Zone, l.Chosen.CapacityType,
			Dollars(l.Chosen.Price), pods(l.Pods))
		if show.Usage {
			fmt.Fprintf(&b, "    requests %s; daemons %s\n", showResources(l.Requests), showResources(l.Daemons))
		}
		if show.Options {
			for _, line := range optionLines(l.Options) {
				fmt.Fprintf(&b, "    %s\n", line)
			}
		}
		for _, r := range l.Relaxed {
			fmt.Fprintf(&b, "    relaxed: %s\n", r)
		}
	}
	byNode := map[string][]string{}
	kept := map[string][]string{}
	for _, pl := range p.Placements {
		if pl.Nominated {
			kept[pl.Node] = append(kept[pl.Node], pl.Pod)
		} else {
			byNode[pl.Node] = append(byNode[pl.Node], pl.Pod)
		}
	}
	for _, n := range sortedKeys(kept) {
		fmt.Fprintf(&b, "keep for %s: %s\n", n, pods(kept[n]))
	}
	for _, n := range sortedKeys(byNode) {
		fmt.Fprintf(&b, "place on %s: %s\n", n, pods(byNode[n]))
	}
	for _, d := range p.Displaced {
		fmt.Fprintf(&b, "move %s from %s to %s\n", short(d.Pod), d.From, d.To)
	}
	describeVerdicts(&b, p, show)
	for _, w := range p.Warnings {
		if w.Code == plan.FewOptions && !(show.Options && show.Detail) {
			continue // true of every launch in a world of few types
		}
		fmt.Fprintf(&b, "warn %s: %s%s\n", short(w.Object), w.Code, detail(show, w.Detail))
	}
	return b.String()
}

// describeVerdicts joins pods that are refused for the same reasons.
func describeVerdicts(b *strings.Builder, p *plan.Plan, show Show) {
	var order []string
	same := map[string][]string{}
	for _, v := range p.Verdicts {
		var t strings.Builder
		fmt.Fprintf(&t, "%s%s\n", v.Code, detail(show, v.Detail))
		for _, q := range v.Pools {
			fmt.Fprintf(&t, "  %s: %s%s\n", q.NodePool, q.Code, detail(show, q.Detail))
		}
		kind, ref, _ := strings.Cut(v.Object, "/")
		key := kind + "\x00" + t.String()
		if same[key] == nil {
			order = append(order, key)
		}
		same[key] = append(same[key], ref)
	}
	for _, key := range order {
		kind, text, _ := strings.Cut(key, "\x00")
		fmt.Fprintf(b, "no to %s %s: %s", kind, compress(same[key]), text)
	}
}

func detail(show Show, s string) string {
	if !show.Detail || s == "" {
		return ""
	}
	return ": " + s
}

// optionLines groups options by type and capacity type: "c5.large spot $0.034 z-a,z-b".
func optionLines(os []plan.Offer) []string {
	var out []string
	zones := map[string][]string{}
	for _, o := range os {
		k := fmt.Sprintf("%s %s %s", o.InstanceType, o.CapacityType, Dollars(o.Price))
		if zones[k] == nil {
			out = append(out, k)
		}
		zones[k] = append(zones[k], o.Zone)
	}
	for i, k := range out {
		out[i] = k + " " + strings.Join(zones[k], ",")
	}
	return out
}

// Dollars writes micro-dollars per hour with at least three decimals.
func Dollars(micro int64) string {
	s := fmt.Sprintf("$%d.%06d", micro/1e6, micro%1e6)
	for strings.HasSuffix(s, "0") && len(s)-strings.Index(s, ".") > 4 {
		s = s[:len(s)-1]
	}
	return s
}

func short(ref string) string { return strings.Replace(ref, "default/", "", 1) }

func pods(refs []string) string {
	switch len(refs) {
	case 0:
		return "no pods"
	case 1:
		return "pod " + short(refs[0])
	}
	return fmt.Sprintf("%d pods %s", len(refs), compress(refs))
}

var numbered = regexp.MustCompile(`^(.*-)(\d+)$`)

// compress writes runs of numbered names as "web-1..3", in natural order.
func compress(refs []string) string {
	byPrefix := map[string][]int{}
	var plain []string
	for _, r := range refs {
		r = short(r)
		if m := numbered.FindStringSubmatch(r); m != nil {
			n, err := strconv.Atoi(m[2])
			if err == nil {
				byPrefix[m[1]] = append(byPrefix[m[1]], n)
				continue
			}
		}
		plain = append(plain, r)
	}
	out := plain
	for _, prefix := range sortedKeys(byPrefix) {
		ns := byPrefix[prefix]
		slices.Sort(ns)
		for i := 0; i < len(ns); {
			k := i
			for k+1 < len(ns) && ns[k+1] == ns[k]+1 {
				k++
			}
			if k == i {
				out = append(out, fmt.Sprintf("%s%d", prefix, ns[i]))
			} else {
				out = append(out, fmt.Sprintf("%s%d..%d", prefix, ns[i], ns[k]))
			}
			i = k + 1
		}
	}
	slices.Sort(out)
	return strings.Join(out, " ")
}
