package page

import (
	"fmt"

	"kerf.sh/kerf/internal/plan"
	"kerf.sh/kerf/internal/snapshot"
)

// Past these numbers of cards a page is no longer read card by card, and grows
// beyond what a browser or a Lambda answer takes: nodes of one pool, type, zone
// and capacity type are then summed up on one card.
const (
	maxLaunchCards  = 300
	maxChangedCards = 300
	maxQuietCards   = 150
	// manyCards is when each card shows its first options only.
	manyCards   = 40
	fewOptions  = 10
	maxPodChips = 60
)

// sum gathers nodes that share a card.
type sum struct {
	node                        node
	daemons, used, added, total snapshot.Resources
	names, pods                 []string
}

// sums keeps cards in the order in which they first appear.
type sums struct {
	index map[string]int
	list  []*sum
}

func (s *sums) at(key string, n node) *sum {
	if s.index == nil {
		s.index = map[string]int{}
	}
	i, ok := s.index[key]
	if !ok {
		i = len(s.list)
		s.index[key] = i
		s.list = append(s.list, &sum{node: n})
	}
	return s.list[i]
}

func (s *sum) add(name string, pods []string, daemons, used, added, total snapshot.Resources) {
	s.names = append(s.names, name)
	s.pods = append(s.pods, pods...)
	s.daemons, s.used, s.added, s.total = s.daemons.Add(daemons), s.used.Add(used), s.added.Add(added), s.total.Add(total)
}

func (s *sums) cards(m plan.Lookup) []node {
	var out []node
	for _, x := range s.list {
		n := x.node
		n.Count, n.Name = len(x.names), few(x.names, 4)
		n.Bars = bars(plan.Shares(x.daemons, x.used, x.added, x.total, true))
		n.Pods = chips(m.Groups(x.pods))
		if n.Count > 1 {
			n.Each = "each"
		}
		out = append(out, n)
	}
	return out
}

// launchSums are the launches of a plan, one card for each kind of node.
func launchSums(p *plan.Plan, m plan.Lookup) []node {
	var s sums
	for i := range p.Launches {
		l := &p.Launches[i]
		n := launchNode(plan.LaunchGroup{Launches: []*plan.Launch{l}}, fewOptions)
		x := s.at(fmt.Sprintf("%s|%v", l.NodePool, l.Chosen), n)
		x.add(l.Name, l.Pods, l.Daemons, snapshot.Resources{}, l.Requests.Sub(l.Daemons).Floor(), l.Allocatable)
	}
	return s.cards(m)
}

// nodeSums are nodes that are there, one card for each kind.
func nodeSums(nodes []*plan.NodeUse, m plan.Lookup, pods map[string][]string) []node {
	var s sums
	for _, u := range nodes {
		x := s.at(fmt.Sprintf("%s|%s|%s|%s|%d|%t", u.NodePool, u.InstanceType, u.Zone, u.CapacityType, u.Price, u.InFlight), nodeOf(u))
		x.add(u.Name, pods[u.Name], u.Daemons, u.Used.Sub(u.Daemons).Floor(), u.Added, u.Allocatable)
	}
	return s.cards(m)
}
