package provision_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"kerf.sh/kerf/internal/catalog"
	"kerf.sh/kerf/internal/plan"
	"kerf.sh/kerf/internal/snapshot"
)

// featureWorlds are drawn worlds with every optional feature in use: overlays, static
// pools, capacity buffers, nominations, reservations, minValues to be met if possible.
var featureWorlds = rapid.Custom(func(t *rapid.T) world {
	w := worlds(kind{pods: 8, types: 6, nodes: 3, daemons: 1}).Draw(t, "world")
	d := drawer{t, kind{}}
	s := w.s
	s.Settings.NodeOverlay, s.Settings.StaticCapacity, s.Settings.CapacityBuffer = true, true, true
	s.Settings.MinValuesBestEffort = d.chance("best effort", 5)
	for i := range d.upTo("overlays", 0, 3) {
		o := snapshot.NodeOverlay{Name: fmt.Sprintf("overlay-%d", i), Weight: int32(d.upTo("overlay weight", 0, 2))}
		if d.chance("overlay of a type", 7) {
			o.Requirements = append(o.Requirements, in("node.kubernetes.io/instance-type", w.c.Types[d.upTo("overlaid type", 0, len(w.c.Types)-1)].Name))
		}
		if d.chance("overlay of a zone", 3) {
			o.Requirements = append(o.Requirements, in("topology.kubernetes.io/zone", d.one("overlaid zone", "z-a", "z-b")))
		}
		if d.chance("overlay of a pool", 3) {
			o.Requirements = append(o.Requirements, in("karpenter.sh/nodepool", "pool-0"))
		}
		switch d.upTo("overlay sets", 0, 3) {
		case 0:
			o.Price = d.one("price", "0.01", "0.0333333", "1")
		case 1:
			o.PriceAdjustment = d.one("adjustment", "+0.02", "-0.005", "+33.3%", "-50%")
		case 2:
			o.Capacity = map[string]int64{"example.com/device": int64(d.upTo("device", 1, 3))}
		default:
			o.PriceAdjustment, o.Capacity = "+7%", map[string]int64{"example.com/device": 2}
		}
		s.Overlays = append(s.Overlays, o)
	}
	if d.chance("static pool", 5) {
		p := d.pool("static", w.c)
		p.Weight, p.Limits = 0, nil
		n := int64(d.upTo("replicas", 0, 3))
		p.Replicas = &n
		if d.chance("static limit", 3) {
			p.Limits = map[string]int64{"nodes": int64(d.upTo("static nodes", 0, 3))}
		}
		s.NodePools = append(s.NodePools, p)
	}
	for i := range d.upTo("buffers", 0, 2) {
		name := fmt.Sprintf("unit-%d", i)
		unit := d.pod(name)
		s.PodTemplates = append(s.PodTemplates, snapshot.PodTemplateObject{Namespace: "default", Name: name, Template: snapshot.PodTemplate{Labels: unit.Labels, Spec: unit.Spec}})
		n := int64(d.upTo("units", 0, 3))
		b := snapshot.CapacityBuffer{Namespace: "default", Name: fmt.Sprintf("buffer-%d", i), PodTemplate: name, Replicas: &n}
		if d.chance("buffer limits", 3) {
			b.Limits = map[string]int64{"cpu": 1000 * int64(d.upTo("buffer cores", 0, 4))}
		}
		s.Buffers = append(s.Buffers, b)
	}
	for i := range s.Pods {
		p := &s.Pods[i]
		if p.NodeName != "" || !d.chance("nominated", 3) || len(s.Nodes) == 0 {
			continue
		}
		node := s.Nodes[d.upTo("nominated node", 0, len(s.Nodes)-1)].Name
		if d.chance("by the ledger", 5) {
			s.Nominations = append(s.Nominations, snapshot.Nomination{Namespace: p.Namespace, Pod: p.Name, Node: node})
		} else {
			p.NominatedNode = d.one("nominated to", node, "gone")
		}
		p.Spec.Priority = int32(d.upTo("priority", 0, 2))
	}
	if d.chance("reservation", 5) {
		t := &w.c.Types[d.upTo("reserved type", 0, len(w.c.Types)-1)]
		t.Offerings = append(slices.Clone(t.Offerings), catalog.Offering{
			Zone: "z-a", ZoneID: "z-a-id", CapacityType: catalog.Reserved, Available: true,
			Reservation: &catalog.Reservation{ID: "cr-1", Type: "default", Remaining: int64(d.upTo("instances", 1, 3))},
		})
	}
	s.Normalize()
	return w
})

// With every optional feature in use no rule is broken either.
func TestPropertyFeatures(t *testing.T) { check(t, featureWorlds, rules) }

// A unit of a buffer takes no room from a pod: with buffers and without, the same pods
// have a place, in the same places.
func TestPropertyBuffersTakeNothing(t *testing.T) { check(t, featureWorlds, unharmed) }

func unharmed(w world, p planner) []string {
	without := *w.s
	without.Buffers = nil
	before, after := p(&without, w.c), p(w.s, w.c)
	var bad []string
	where := func(p *plan.Plan) map[string]string {
		out := map[string]string{}
		for i := range p.Launches {
			for _, ref := range p.Launches[i].Pods {
				out[ref] = p.Launches[i].Name
			}
		}
		for _, pl := range p.Placements {
			out[pl.Pod] = pl.Node
		}
		return out
	}
	a, b := where(before), where(after)
	for ref, node := range a {
		if b[ref] != node {
			bad = append(bad, fmt.Sprintf("pod %s is on %q with buffers, on %q without", ref, b[ref], node))
		}
	}
	for ref, node := range b {
		if a[ref] == "" && !plan.IsUnit(ref) {
			bad = append(bad, fmt.Sprintf("pod %s has %q with buffers alone", ref, node))
		}
	}
	slices.Sort(bad)
	return bad
}

// Each mutant does without one rule of the features; the properties must see it.
func TestFeatureMutantsAreCaught(t *testing.T) {
	without := func(f func(*snapshot.Snapshot)) planner { return blindTo(f) }
	for _, m := range []struct {
		name   string
		guard  property
		mutant planner
	}{
		{"ignores overlays", rules, without(func(s *snapshot.Snapshot) { s.Overlays = nil })},
		{"takes overlays the other way round", rules, without(func(s *snapshot.Snapshot) {
			s.Overlays = slices.Clone(s.Overlays)
			for i := range s.Overlays {
				s.Overlays[i].Weight = 10 - s.Overlays[i].Weight
			}
		})},
		{"ignores static pools", rules, without(func(s *snapshot.Snapshot) { s.Settings.StaticCapacity = false })},
		{"launches one too many", rules, without(func(s *snapshot.Snapshot) {
			s.NodePools = slices.Clone(s.NodePools)
			for i := range s.NodePools {
				if r := s.NodePools[i].Replicas; r != nil {
					n := *r + 1
					s.NodePools[i].Replicas = &n
				}
			}
		})},
		{"ignores buffers", rules, without(func(s *snapshot.Snapshot) { s.Buffers = nil })},
		{"forgets a unit", rules, tampered(func(p *plan.Plan) {
			for i := range p.Launches {
				p.Launches[i].Pods = slices.DeleteFunc(p.Launches[i].Pods, plan.IsUnit)
			}
		})},
		{"gives units room first", unharmed, func(s *snapshot.Snapshot, c *catalog.Catalog) *plan.Plan {
			o := *s
			o.Buffers = nil
			o.Pods = slices.Clone(s.Pods)
			for _, b := range s.Buffers {
				for k := range *b.Replicas {
					for _, t := range s.PodTemplates {
						if t.Name == b.PodTemplate {
							o.Pods = append(o.Pods, snapshot.Pod{Namespace: "aaa", Name: fmt.Sprintf("%s-%d", b.Name, k), Labels: t.Template.Labels, Spec: t.Template.Spec})
						}
					}
				}
			}
			o.Normalize()
			return real(&o, c)
		}},
		{"ignores nominations", rules, without(func(s *snapshot.Snapshot) {
			s.Nominations = nil
			s.Pods = slices.Clone(s.Pods)
			for i := range s.Pods {
				s.Pods[i].NominatedNode = ""
			}
		})},
		{"leaves nominated pods alone for ever", rules, tampered(func(p *plan.Plan) {
			for i := range p.Placements {
				if p.Placements[i].Nominated {
					p.Verdicts = append(p.Verdicts, plan.Verdict{Object: "pod/" + p.Placements[i].Pod, Code: plan.NominatedElsewhere})
				}
			}
			p.Placements = slices.DeleteFunc(p.Placements, func(x plan.Placement) bool { return x.Nominated })
		})},
		{"counts a reservation twice", rules, func(s *snapshot.Snapshot, c *catalog.Catalog) *plan.Plan {
			o := *c
			o.Types = slices.Clone(c.Types)
			for i := range o.Types {
				o.Types[i].Offerings = slices.Clone(o.Types[i].Offerings)
				for k := range o.Types[i].Offerings {
					if r := o.Types[i].Offerings[k].Reservation; r != nil {
						more := *r
						more.Remaining += 5
						o.Types[i].Offerings[k].Reservation = &more
					}
				}
			}
			return real(s, &o)
		}},
		{"ignores reservations", rules, without(func(s *snapshot.Snapshot) { s.Settings.ReservedCapacity = false })},
		{"drops minValues at once", rules, without(func(s *snapshot.Snapshot) {
			if s.Settings.MinValuesBestEffort {
				s.NodePools = slices.Clone(s.NodePools)
				for i := range s.NodePools {
					s.NodePools[i].Requirements = slices.Clone(s.NodePools[i].Requirements)
					for k := range s.NodePools[i].Requirements {
						s.NodePools[i].Requirements[k].MinValues = 0
					}
				}
			}
		})},
	} {
		t.Run(strings.ReplaceAll(m.name, " ", "-"), func(t *testing.T) {
			for i := range 400 {
				w := featureWorlds.Example(i)
				if len(m.guard(w, m.mutant)) > 0 && len(m.guard(w, real)) == 0 {
					return
				}
			}
			t.Errorf("a planner that %s is not caught", m.name)
		})
	}
}
