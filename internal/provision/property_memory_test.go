package provision_test

import (
	"bytes"
	"fmt"
	"io"
	"slices"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"kerf.sh/kerf/internal/catalog"
	"kerf.sh/kerf/internal/kube"
	"kerf.sh/kerf/internal/lifecycle"
	"kerf.sh/kerf/internal/plan"
	"kerf.sh/kerf/internal/provision"
	"kerf.sh/kerf/internal/snapshot"
	"kerf.sh/kerf/internal/worldtest"
)

// memoryWorlds are drawn worlds with all that a ledger remembers: offers that are short or
// were, sizes of this kind of node and of others, nodes without an object, nominations.
var memoryWorlds = rapid.Custom(func(t *rapid.T) world {
	w := worlds(kind{pods: 8, types: 6, nodes: 2, daemons: 1}).Draw(t, "world")
	d := drawer{t, kind{}}
	s := w.s
	s.NodeClasses[0].Images = []snapshot.Image{{ID: "ami-1"}}
	typ := func(label string) string { return w.c.Types[d.upTo(label, 0, len(w.c.Types)-1)].Name }
	at := func(label string) time.Time { return s.Now.Add(time.Duration(d.upTo(label, -2, 6)) * time.Minute) }
	for range d.upTo("shortages", 0, 6) {
		x := snapshot.Shortage{Until: at("short until"), Code: d.one("code", "InsufficientInstanceCapacity", "UnfulfillableCapacity")}
		if d.chance("of a type", 8) {
			x.InstanceType = typ("short type")
		}
		if d.chance("in a zone", 5) {
			x.Zone = d.one("short zone", "z-a", "z-b", "z-c")
		}
		if d.chance("of a capacity type", 5) {
			x.CapacityType = d.one("short capacity type", "spot", "on-demand")
		}
		s.Shortages = append(s.Shortages, x)
	}
	for range d.upTo("setbacks", 0, 4) {
		// Times that halve their share evenly, so that the judge's arithmetic rounds alike.
		b := snapshot.Setback{InstanceType: typ("setback type"), CapacityType: d.one("setback capacity type", "spot", "on-demand", "")}
		if d.chance("setback in a zone", 5) {
			b.Zone = d.one("setback zone", "z-a", "z-b", "z-c")
		}
		for range d.upTo("interruptions", 0, 3) {
			b.Interrupted = append(b.Interrupted, s.Now.Add(-12*time.Hour*time.Duration(d.upTo("half-lives", 0, 5))))
		}
		if b.Failures = d.upTo("failures", 0, 6); b.Failures > 0 {
			b.Failed = s.Now.Add(-time.Hour * time.Duration(d.upTo("failed", 0, 4)))
		}
		s.Setbacks = append(s.Setbacks, b)
	}
	resolved, err := w.c.Resolve(&s.NodeClasses[0], s.Settings)
	if err != nil {
		t.Fatal(err)
	}
	for range d.upTo("sizes", 0, 4) {
		r := &resolved[d.upTo("learned type", 0, len(resolved)-1)]
		l := snapshot.LearnedSize{InstanceType: r.Type.Name, ImageID: d.one("image", "ami-1", "ami-1", "ami-2"), Shape: lifecycle.Shape(&s.NodeClasses[0], s.Settings)}
		if d.chance("another shape", 2) {
			l.Shape = "other"
		}
		share := int64(d.upTo("share", 50, 130))
		l.Capacity = snapshot.Resources{CPU: r.Capacity.CPU, Memory: r.Capacity.Memory * max(share, 100) / 100, Pods: r.Capacity.Pods}
		l.Allocatable = snapshot.Resources{CPU: r.Allocatable.CPU * share / 100, Memory: r.Allocatable.Memory * share / 100, Pods: int64(d.upTo("learned pods", 1, 40))}
		s.Learned = append(s.Learned, l)
	}
	if d.chance("in flight", 5) {
		r := lifecycle.Record{
			Claim: "coming", NodePool: "pool-0", Phase: lifecycle.Intended, Created: s.Now, Allocatable: snapshot.Resources{CPU: 1000, Memory: 1 << 30, Pods: 8},
			Reserved: lifecycle.Usage{snapshot.CPU: 2000, snapshot.Memory: 2 << 30, snapshot.Pods: 8, snapshot.Nodes: 1},
			Spec:     lifecycle.Spec{ClassRef: snapshot.ClassRef{Group: "karpenter.k8s.aws", Kind: "EC2NodeClass", Name: "default"}},
		}
		for i := range s.Pods {
			if p := &s.Pods[i]; p.NodeName == "" && d.chance("nominated", 3) {
				r.Nominated = append(r.Nominated, lifecycle.Pod{Namespace: p.Namespace, Name: p.Name, UID: p.UID, Since: s.Now, At: s.Now})
			}
		}
		lifecycle.Remember(s, []lifecycle.Record{r}, s.Now)
	}
	s.Normalize()
	return w
})

// With a memory no rule is broken either, and the order in which it is told is no matter.
func TestPropertyMemory(t *testing.T) {
	check(t, memoryWorlds, func(w world, p planner) []string { return slices.Concat(rules(w, p), order(w, p)) })
}

// A snapshot that was saved gives the same plan, byte for byte, without the ledger.
func TestPropertySavedPlansAlike(t *testing.T) {
	check(t, memoryWorlds, func(w world, p planner) []string { return alike(w, p, nil) })
}

// alike plans a world, and what is left of it after it was saved and read; lose drops
// something on the way.
func alike(w world, p planner, lose func(*snapshot.Snapshot)) []string {
	want, err := plan.JSON(p(w.s, w.c), true)
	if err != nil {
		return []string{err.Error()}
	}
	read, text, err := savedAndRead(w.s)
	if err != nil {
		return []string{err.Error()}
	}
	if lose != nil {
		lose(read)
	}
	got, err := plan.JSON(p(read, w.c), true)
	if err != nil {
		return []string{err.Error()}
	}
	if !bytes.Equal(want, got) {
		return []string{fmt.Sprintf("read again it is another plan:\n%s\n%s\n%s", text, want, got)}
	}
	return nil
}

func savedAndRead(s *snapshot.Snapshot) (*snapshot.Snapshot, string, error) {
	var b strings.Builder
	if err := kube.Save(&b, s); err != nil {
		return nil, "", err
	}
	got, report, err := kube.Read([]kube.Source{{Name: "saved", Open: func() (io.ReadCloser, error) {
		return io.NopCloser(strings.NewReader(b.String())), nil
	}}}, kube.Options{})
	if err == nil && len(report.Left)+len(report.Warnings) > 0 {
		err = fmt.Errorf("left out %v, warnings %v", report.Left, report.Warnings)
	}
	return got, b.String(), err
}

// Each mutant forgets a part; the properties must see it.
func TestMemoryMutantsAreCaught(t *testing.T) {
	forget := func(f func(*snapshot.Snapshot)) property {
		return func(w world, _ planner) []string { return rules(w, blindTo(f)) }
	}
	lose := func(f func(*snapshot.Snapshot)) property {
		return func(w world, _ planner) []string { return alike(w, real, f) }
	}
	for name, broken := range map[string]property{
		"ignores shortages": forget(func(s *snapshot.Snapshot) { s.Shortages = nil }),
		"heeds shortages that are over": forget(func(s *snapshot.Snapshot) {
			s.Shortages = slices.Clone(s.Shortages)
			for i := range s.Shortages {
				s.Shortages[i].Until = s.Shortages[i].Until.Add(time.Hour)
			}
		}),
		"takes shortages for those of all zones": forget(func(s *snapshot.Snapshot) {
			s.Shortages = slices.Clone(s.Shortages)
			for i := range s.Shortages {
				s.Shortages[i].Zone = ""
			}
		}),
		"ignores setbacks": forget(func(s *snapshot.Snapshot) { s.Setbacks = nil }),
		"never forgets a setback": forget(func(s *snapshot.Snapshot) {
			s.Setbacks = slices.Clone(s.Setbacks)
			for i := range s.Setbacks {
				s.Setbacks[i].Failed = s.Now
				s.Setbacks[i].Interrupted = slices.Repeat([]time.Time{s.Now}, len(s.Setbacks[i].Interrupted))
			}
		}),
		"does not save setbacks": lose(func(s *snapshot.Snapshot) { s.Setbacks = nil }),
		"ignores sizes":          forget(func(s *snapshot.Snapshot) { s.Learned = nil }),
		"takes sizes of another shape": forget(func(s *snapshot.Snapshot) {
			s.Learned = slices.Clone(s.Learned)
			for i := range s.Learned {
				s.Learned[i].Shape = lifecycle.Shape(&s.NodeClasses[0], s.Settings)
			}
		}),
		"takes sizes of another image": forget(func(s *snapshot.Snapshot) {
			s.Learned = slices.Clone(s.Learned)
			for i := range s.Learned {
				s.Learned[i].ImageID = "ami-1"
			}
		}),
		"learns downwards alone": func(w world, _ planner) []string {
			computed, err := w.c.Resolve(&w.s.NodeClasses[0], w.s.Settings)
			if err != nil {
				t.Fatal(err)
			}
			return rules(w, blindTo(func(s *snapshot.Snapshot) {
				s.Learned = slices.DeleteFunc(slices.Clone(s.Learned), func(l snapshot.LearnedSize) bool {
					return slices.ContainsFunc(computed, func(r catalog.Resolved) bool {
						return r.Type.Name == l.InstanceType && l.Allocatable.Memory > r.Allocatable.Memory
					})
				})
			}))
		},
		"does not save shortages":   lose(func(s *snapshot.Snapshot) { s.Shortages = nil }),
		"does not save sizes":       lose(func(s *snapshot.Snapshot) { s.Learned = nil }),
		"does not save nominations": lose(func(s *snapshot.Snapshot) { s.Nominations = nil }),
		"does not save nodes without an object": lose(func(s *snapshot.Snapshot) {
			s.NodeClaims = slices.DeleteFunc(s.NodeClaims, func(c snapshot.NodeClaim) bool { return c.Name == "coming" })
		}),
	} {
		t.Run(strings.ReplaceAll(name, " ", "-"), func(t *testing.T) {
			for i := range 300 {
				if w := memoryWorlds.Example(i); len(broken(w, real)) > 0 {
					return
				}
			}
			t.Errorf("a planner that %s is not caught", name)
		})
	}
}

// TestSmallerThanThought: a node that turns out smaller than thought is not bought again
// and again, and one that turns out larger is used. The world runs sweeps: a plan, nodes
// that join with what they really have, what is learned from them.
func TestSmallerThanThought(t *testing.T) {
	const real, computed = 6800 * mib, 6903 * mib
	for _, tc := range []struct {
		name, lines string
		forget      bool
		bought      []string
		left        plan.Code // of the pod, when no node takes it
	}{
		{"the next larger type", "catalog only=m5.large,m5.xlarge\npool general\npod w mem=6850Mi\n", false, []string{"m5.large", "m5.xlarge"}, ""},
		{"nothing is larger", "catalog only=m5.large\npool general\npod w mem=6850Mi\n", false, []string{"m5.large"}, plan.NoInstanceTypeFits},
		{"it fits all the same", "catalog only=m5.large\npool general\npod w mem=6700Mi\n", false, []string{"m5.large"}, ""},
		{"a planner that does not learn", "catalog only=m5.large\npool general\npod w mem=6850Mi\n", true, slices.Repeat([]string{"m5.large"}, 5), ""},
	} {
		t.Run(strings.ReplaceAll(tc.name, " ", "-"), func(t *testing.T) {
			w := worldtest.NewWorld()
			if err := w.Exec(tc.lines); err != nil {
				t.Fatal(err)
			}
			var learned []lifecycle.Learned
			var nodes []snapshot.Node
			var bought []string
			var last plan.Code
			for sweep := range 5 {
				s, _, err := w.Snapshot()
				if err != nil {
					t.Fatal(err)
				}
				s.Nodes = slices.Clone(nodes)
				m := lifecycle.Remembered{Learned: learned}
				if tc.forget {
					m.Learned = nil
				}
				m.Into(s)
				s.Normalize()
				p := provision.Plan(s, w.Catalog, provision.Options{})
				if again, _, err := savedAndRead(s); err != nil || provision.Plan(again, w.Catalog, provision.Options{}).ID != p.ID {
					t.Fatalf("sweep %d: read again it is another plan: %v", sweep, err)
				}
				last = ""
				for _, v := range p.Verdicts {
					last = v.Code
				}
				for _, l := range p.Launches {
					bought = append(bought, l.Chosen.InstanceType)
					if l.Chosen.InstanceType != "m5.large" {
						continue // it is as thought
					}
					has := l.Allocatable
					if has.Memory != computed && sweep == 0 {
						t.Fatalf("m5.large is computed to give %d", has.Memory)
					}
					has.Memory = real
					learned = append(learned, lifecycle.Learned{
						InstanceType: "m5.large", ImageID: "ami-amd64", Shape: lifecycle.Shape(&s.NodeClasses[0], s.Settings),
						Capacity: snapshot.Resources{Memory: 7577 * mib}, Allocatable: has, Seen: s.Now,
					})
					nodes = append(nodes, snapshot.Node{Name: fmt.Sprintf("n%d", sweep), Labels: l.Labels, Allocatable: has, Capacity: has})
				}
				if placed := len(p.Launches) > 0 && bought[len(bought)-1] != "m5.large" || len(p.Placements) > 0; placed {
					break // the pod runs
				}
			}
			if fmt.Sprint(bought) != fmt.Sprint(tc.bought) || last != tc.left {
				t.Errorf("bought %v and left with %q, want %v and %q", bought, last, tc.bought, tc.left)
			}
		})
	}
}
