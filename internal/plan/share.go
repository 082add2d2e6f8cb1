package plan

import (
	"fmt"

	"kerf.sh/kerf/internal/snapshot"
)

// Share is how full a node is of one resource.
type Share struct {
	Resource                    string
	Daemons, Used, Added, Total int64 // Used without Daemons
}

// Fraction is the filled part, at most 1 for a node that is not overcommitted.
func (s Share) Fraction() float64 {
	if s.Total <= 0 {
		return 0
	}
	return float64(s.Daemons+s.Used+s.Added) / float64(s.Total)
}

// Percent writes the fraction; a node is only 100 % full when it is full.
func (s Share) Percent() string {
	sum := s.Daemons + s.Used + s.Added
	switch f := s.Fraction(); {
	case f >= 0.995 && sum < s.Total:
		return "99 %"
	case f < 0.005 && sum > 0:
		return "1 %"
	default:
		return fmt.Sprintf("%.0f %%", f*100)
	}
}

// Shares gives cpu and memory and, where another resource is fuller than both,
// that one too; with pods, pods is always there.
func Shares(daemons, used, added, total snapshot.Resources, pods bool) []Share {
	one := func(n string) Share {
		return Share{n, daemons.Get(n), used.Get(n), added.Get(n), total.Get(n)}
	}
	out := []Share{one(snapshot.CPU), one(snapshot.Memory)}
	if pods {
		out = append(out, one(snapshot.Pods))
	}
	most := -1.0
	for _, s := range out {
		most = max(most, s.Fraction())
	}
	var best *Share
	for _, n := range total.Names() {
		if n == snapshot.CPU || n == snapshot.Memory || pods && n == snapshot.Pods {
			continue
		}
		asked := n != snapshot.Pods && n != snapshot.EphemeralStorage && added.Get(n) > 0
		if s := one(n); asked || s.Fraction() > most {
			if asked {
				out = append(out, s)
			} else if best == nil || s.Fraction() > best.Fraction() {
				best = &s
			}
		}
	}
	if best != nil {
		out = append(out, *best)
	}
	return out
}

// Shares of a launch: its requests less the daemonset share are what is added.
func (l *Launch) Shares(pods bool) []Share {
	return Shares(l.Daemons, snapshot.Resources{}, l.Requests.Sub(l.Daemons).Floor(), l.Allocatable, pods)
}

// Shares of a node.
func (n *NodeUse) Shares(pods bool) []Share {
	return Shares(n.Daemons, n.Used.Sub(n.Daemons).Floor(), n.Added, n.Allocatable, pods)
}
