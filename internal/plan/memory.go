package plan

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"

	"kerf.sh/kerf/internal/snapshot"
)

// Memory is what the functions remember and this plan has heeded.
type Memory struct {
	// Nominated counts the pods that keep a node which the ledger says they were given.
	Nominated int
	// Shortages are those of offers that a NodePool allows, sorted.
	Shortages []Shortage
	// Setbacks are those of offers that a NodePool allows: they count as dearer than they
	// are when offers are compared. Those that count most come first.
	Setbacks []Setback
	// Learned are the types that NodePools allow and whose nodes turned out to have
	// something else than is computed, by type and class.
	Learned []LearnedSize
	// Supposed counts types, by class, that no node was seen of and that are taken to fall
	// short of what is computed as all those do that were seen.
	Supposed int
}

// Shortage are offers that EC2 had no capacity for, and that no node is planned on until
// its end. Fields that are "" stand for whichever.
type Shortage struct {
	InstanceType, Zone, CapacityType, ReservationID string
	Until                                           time.Time
	Code                                            string
	Offers                                          int // how many it leaves out
}

// LearnedSize is a type as nodes of a class turned out to have it.
type LearnedSize struct {
	InstanceType, NodeClass, ImageID string
	Allocatable, Computed            snapshot.Resources
}

// Lines says in short what was remembered and heeded: pods that wait for the nodes that
// they were given, offers that are left alone, and sizes of the types that are launched.
func (m *Memory) Lines(launches []Launch) []string {
	if m == nil {
		return nil
	}
	var out []string
	switch m.Nominated {
	case 0:
	case 1:
		out = append(out, "1 pod waits for the node that it was given before")
	default:
		out = append(out, Count(m.Nominated, "pod")+" wait for the nodes that they were given before")
	}
	return slices.Concat(out, m.shortages(), m.setbacks(), m.sizes(launches))
}

// shortages gathers offers that are left alone until one time for one reason.
func (m *Memory) shortages() []string {
	type key struct {
		until time.Time
		code  string
	}
	var order []key
	names, offers := map[key][]string{}, map[key]int{}
	for i := range m.Shortages {
		s := &m.Shortages[i]
		k := key{s.Until.UTC(), s.Code}
		if names[k] == nil {
			order = append(order, k)
		}
		names[k] = append(names[k], s.String())
		offers[k] += s.Offers
	}
	slices.SortFunc(order, func(a, b key) int { return cmp.Or(a.until.Compare(b.until), strings.Compare(a.code, b.code)) })
	out := make([]string, len(order))
	for i, k := range order {
		verb := "are"
		if offers[k] == 1 {
			verb = "is"
		}
		out[i] = fmt.Sprintf("%s %s left alone until %s (%s): %s", Count(offers[k], "offer"), verb, k.until.Format(time.TimeOnly), k.code, few(names[k], 6))
	}
	return out
}

// String names the offers of a shortage: "m5.large spot in z-a", "all spot".
func (s *Shortage) String() string {
	return offersName(s.InstanceType, s.Zone, s.CapacityType, s.ReservationID)
}

func offersName(instanceType, zone, capacityType, reservation string) string {
	parts := []string{instanceType, capacityType, reservation}
	if instanceType == "" {
		parts[0] = "all"
	}
	if zone != "" {
		parts = append(parts, "in "+zone)
	}
	return strings.Join(slices.DeleteFunc(parts, func(p string) bool { return p == "" }), " ")
}

// sizes says what the launched types have that is not as computed, and counts the others.
func (m *Memory) sizes(launches []Launch) []string {
	launched := map[[2]string]bool{}
	for i := range launches {
		launched[[2]string{launches[i].Chosen.InstanceType, launches[i].NodeClass}] = true
	}
	var out []string
	others := 0
	for i := range m.Learned {
		l := &m.Learned[i]
		if !launched[[2]string{l.InstanceType, l.NodeClass}] {
			others++
			continue
		}
		var parts []string
		for _, name := range l.Computed.Max(l.Allocatable).Names() {
			if is, was := l.Allocatable.Get(name), l.Computed.Get(name); is != was {
				parts = append(parts, fmt.Sprintf("%s %s, not %s", name, Quantity(name, is), Quantity(name, was)))
			}
		}
		out = append(out, l.InstanceType+" gives pods what nodes of it turned out to have: "+strings.Join(parts, "; "))
	}
	switch {
	case others == 0:
	case len(out) > 0:
		out = append(out, Count(others, "other type")+" counted so as well")
	default:
		out = append(out, Count(others, "type")+", none of which is launched, counted by what nodes of it turned out to have")
	}
	if m.Supposed > 0 {
		out = append(out, Count(m.Supposed, "type")+" of which no node was seen supposed to be smaller, as all that were seen are")
	}
	return out
}

type memoryJSON struct {
	Nominated int            `json:"nominated"`
	Shortages []shortageJSON `json:"shortages"`
	Setbacks  []setbackJSON  `json:"setbacks,omitempty"`
	Learned   []learnedJSON  `json:"learnedSizes"`
	Supposed  int            `json:"supposedSizes,omitempty"`
}

type shortageJSON struct {
	InstanceType  string    `json:"instanceType,omitempty"`
	Zone          string    `json:"zone,omitempty"`
	CapacityType  string    `json:"capacityType,omitempty"`
	ReservationID string    `json:"reservationId,omitempty"`
	Until         time.Time `json:"until"`
	Code          string    `json:"code"`
	Offers        int       `json:"offers"`
}

type learnedJSON struct {
	InstanceType string            `json:"instanceType"`
	NodeClass    string            `json:"nodeClass"`
	ImageID      string            `json:"imageId"`
	Allocatable  map[string]string `json:"allocatable"`
	Computed     map[string]string `json:"computed"`
}

func memoryToJSON(m *Memory) *memoryJSON {
	if m == nil {
		return nil
	}
	return &memoryJSON{
		Nominated: m.Nominated,
		Shortages: each(m.Shortages, func(s *Shortage) shortageJSON {
			out := shortageJSON(*s)
			out.Until = out.Until.UTC()
			return out
		}),
		Setbacks: setbacksToJSON(m.Setbacks), Supposed: m.Supposed,
		Learned: each(m.Learned, func(l *LearnedSize) learnedJSON {
			return learnedJSON{l.InstanceType, l.NodeClass, l.ImageID, quantities(l.Allocatable), quantities(l.Computed)}
		}),
	}
}

// memory writes what the functions remember.
func (t *report) memory() {
	lines := t.p.Memory.Lines(t.p.Launches)
	if len(lines) == 0 {
		return
	}
	t.section("Remembered")
	for _, l := range lines {
		t.para("  ", "    ", l, nil)
	}
}
