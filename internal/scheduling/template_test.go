package scheduling

import (
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"

	"kerf.sh/kerf/internal/catalog"
	"kerf.sh/kerf/internal/packing"
	"kerf.sh/kerf/internal/snapshot"
	"kerf.sh/kerf/internal/worldtest"
)

func TestPodRulesOnTemplates(t *testing.T) {
	custom := func(p snapshot.NodePool) snapshot.NodePool {
		p.TemplateLabels = map[string]string{"team": "a"}
		return p
	}
	two := types("c5.large", "m5.large")
	cases := []struct {
		name string
		pool snapshot.NodePool
		spec snapshot.PodSpec
		want []string // types
	}{
		{"no rule", pool("a", two), snapshot.PodSpec{}, []string{"c5.large", "m5.large"}},
		{"type label", pool("a", two), snapshot.PodSpec{NodeSelector: map[string]string{catalog.LabelFamily: "m5"}}, []string{"m5.large"}},
		{"well-known label that the pool leaves open", pool("a", two), snapshot.PodSpec{NodeSelector: map[string]string{catalog.LabelCPUManufacturer: "intel"}}, nil},
		{"label of the template", custom(pool("a", two)), snapshot.PodSpec{NodeSelector: map[string]string{"team": "a"}}, []string{"c5.large", "m5.large"}},
		{"another value", custom(pool("a", two)), snapshot.PodSpec{NodeSelector: map[string]string{"team": "b"}}, nil},
		{"custom label that no pool has", pool("a", two), snapshot.PodSpec{NodeSelector: map[string]string{"team": "a"}}, nil},
		{"pool by name", pool("a", two), snapshot.PodSpec{NodeSelector: map[string]string{catalog.LabelNodePool: "a"}}, []string{"c5.large", "m5.large"}},
		{"another pool by name", pool("a", two), snapshot.PodSpec{NodeSelector: map[string]string{catalog.LabelNodePool: "b"}}, nil},
		{"OR terms", pool("a", two), snapshot.PodSpec{Required: []snapshot.NodeSelectorTerm{
			{Expressions: []snapshot.SelectorRequirement{req(catalog.LabelFamily, "In", "c5"), req("team", "Exists")}},
			{Expressions: []snapshot.SelectorRequirement{req(catalog.LabelFamily, "In", "m5")}},
		}}, []string{"m5.large"}},
		{"NotIn of a label that nobody has", pool("a", two), snapshot.PodSpec{Required: []snapshot.NodeSelectorTerm{
			{Expressions: []snapshot.SelectorRequirement{req("team", "NotIn", "a")}},
		}}, []string{"c5.large", "m5.large"}},
		{"an image per architecture (S-16)", pool("a"), snapshot.PodSpec{NodeSelector: map[string]string{catalog.LabelArch: "arm64"}}, []string{"c6g.medium"}},
		{"tenancy is open", pool("a", two), snapshot.PodSpec{NodeSelector: map[string]string{catalog.LabelTenancy: "dedicated"}}, []string{"c5.large", "m5.large"}},
	}
	for _, c := range cases {
		p := pod("p", 100, 100)
		c.spec.Requests = p.Spec.Requests
		p.Spec = c.spec
		_, prob := world(small([]snapshot.NodePool{c.pool}, p))
		if diff := cmp.Diff(c.want, allowedTypes(prob, 0)); diff != "" {
			t.Errorf("%s (-want +got)\n%s", c.name, diff)
		}
	}
}

func TestTaintsOfTemplates(t *testing.T) {
	tol := []snapshot.Toleration{{Operator: "Exists"}}
	cases := []struct {
		name    string
		taints  []snapshot.Taint
		startup []snapshot.Taint
		tol     []snapshot.Toleration
		want    int // offers
	}{
		{"none", nil, nil, nil, 6},
		{"not tolerated", []snapshot.Taint{{Key: "x", Effect: noSchedule}}, nil, nil, 0},
		{"NoExecute", []snapshot.Taint{{Key: "x", Effect: noExecute}}, nil, nil, 0},
		{"tolerated", []snapshot.Taint{{Key: "x", Effect: noSchedule}}, nil, tol, 6},
		{"startup taints do not count", nil, []snapshot.Taint{{Key: "x", Effect: noSchedule}}, nil, 6},
		{"PreferNoSchedule is let pass where nothing else is", []snapshot.Taint{{Key: "x", Effect: preferNoSchedule}}, nil, nil, 6},
	}
	for _, c := range cases {
		np := pool("a", types("c5.large"))
		np.Taints, np.StartupTaints = c.taints, c.startup
		p := pod("p", 100, 100)
		p.Spec.Tolerations = c.tol
		_, prob := world(small([]snapshot.NodePool{np}, p))
		if got := len(allowedOffers(prob, 0)); got != c.want {
			t.Errorf("%s: %d offers, want %d", c.name, got, c.want)
		}
	}
}

// PreferNoSchedule is hard while there is another place, and is let pass when the
// pod is too large for it.
func TestPreferNoSchedule(t *testing.T) {
	soft, plain := pool("soft", types("m5.8xlarge")), pool("plain", types("c5.large"))
	soft.Taints = []snapshot.Taint{{Key: "x", Effect: preferNoSchedule}}
	w, p := world(small([]snapshot.NodePool{soft, plain}, pod("large", 20_000, 100), pod("small", 100, 100)))
	if diff := cmp.Diff([]string{"c5.large"}, allowedTypes(p, 1)); diff != "" {
		t.Errorf("small pod (-want +got)\n%s", diff)
	}
	if diff := cmp.Diff([]string{"c5.large", "m5.8xlarge"}, allowedTypes(p, 0)); diff != "" {
		t.Errorf("large pod (-want +got)\n%s", diff)
	}
	at := slices.IndexFunc(p.Templates, func(t packing.Template) bool { return t.Name == "soft" })
	relaxed := func(class, template int) bool { return len(w.Relaxations(class, template)) > 0 }
	if !relaxed(0, at) || relaxed(1, at) || relaxed(0, 1-at) {
		t.Error("only the large pod is relaxed, and only on the tainted pool")
	}
}

func TestZonesAndAvailability(t *testing.T) {
	s := small([]snapshot.NodePool{pool("a", types("c5.large"), req(catalog.LabelCapacityType, "In", "spot"))}, pod("p", 100, 100))
	s.NodeClasses[0].Zones = s.NodeClasses[0].Zones[:2]
	c := worldtest.Fixture()
	for i := range c.Types {
		if c.Types[i].Name == "c5.large" {
			for k := range c.Types[i].Offerings {
				if o := &c.Types[i].Offerings[k]; o.Zone == "z-a" {
					o.Available = false
				}
			}
		}
	}
	w := New(s, c)
	if diff := cmp.Diff([]string{"a c5.large z-b spot"}, allowedOffers(w.Problem(), 0)); diff != "" {
		t.Errorf("z-a is out of capacity, z-c has no subnet (-want +got)\n%s", diff)
	}
}

func TestReservations(t *testing.T) {
	reservation := snapshot.CapacityReservation{ID: "cr-1", InstanceType: "c5.large", Zone: "z-a", Type: "default", Remaining: 2}
	cases := []struct {
		name   string
		change func(s *snapshot.Snapshot)
		want   int64 // instances of the reserved offer; -1 = no such offer
	}{
		{"selected", func(s *snapshot.Snapshot) {}, 2},
		{"switched off", func(s *snapshot.Snapshot) { s.Settings.ReservedCapacity = false }, -1},
		{"used up", func(s *snapshot.Snapshot) { s.NodeClasses[0].Reservations[0].Remaining = 0 }, -1},
		{"expiring", func(s *snapshot.Snapshot) { s.NodeClasses[0].Reservations[0].State = "expiring" }, -1},
		{"a block near its end", func(s *snapshot.Snapshot) {
			r := &s.NodeClasses[0].Reservations[0]
			r.Type, r.Expires = "capacity-block", clock.Add(expiringBlock-1)
		}, -1},
		{"a block with time left", func(s *snapshot.Snapshot) {
			r := &s.NodeClasses[0].Reservations[0]
			r.Type, r.Expires = "capacity-block", clock.Add(expiringBlock)
		}, 2},
		{"no subnet in its zone", func(s *snapshot.Snapshot) { s.NodeClasses[0].Zones = s.NodeClasses[0].Zones[1:] }, -1},
		{"the pool wants spot", func(s *snapshot.Snapshot) {
			s.NodePools[0].Requirements = append(s.NodePools[0].Requirements, req(catalog.LabelCapacityType, "In", "spot"))
		}, -1},
	}
	for _, c := range cases {
		s := small([]snapshot.NodePool{pool("a", types("c5.large"))}, pod("p", 100, 100))
		s.NodeClasses[0].Reservations = []snapshot.CapacityReservation{reservation}
		c.change(s)
		_, p := world(s)
		got := int64(-1)
		for _, o := range p.Templates[0].Offers {
			if o.Capacity == catalog.Reserved {
				got = o.Count
				if o.Rank != 0 || o.Reservation != "cr-1" || o.Zone != "z-a" {
					t.Errorf("%s: offer %+v", c.name, o)
				}
			}
		}
		if got != c.want {
			t.Errorf("%s: %d reserved instances, want %d", c.name, got, c.want)
		}
	}
}

// A label that the pool leaves open gets the values that pods ask for, each as a
// template of its own, and combinations so that pods that agree can share.
func TestOpenLabels(t *testing.T) {
	np := pool("a", types("c5.large"), req("team", "Exists"), req("tier", "In", "web", "db"))
	want := func(name string, sel map[string]string) snapshot.Pod {
		p := pod(name, 100, 100)
		p.Spec.NodeSelector = sel
		return p
	}
	s := small([]snapshot.NodePool{np},
		want("p1", map[string]string{"team": "red"}), want("p2", map[string]string{"team": "blue"}),
		want("p3", map[string]string{"tier": "web"}), want("p4", map[string]string{"tier": "gold"}), want("p5", nil))
	w, p := world(s)
	var got []string
	for i := range w.Templates {
		got = append(got, w.Templates[i].Labels["team"]+"/"+w.Templates[i].Labels["tier"])
	}
	if diff := cmp.Diff([]string{"1/db", "1/web", "blue/db", "blue/web", "red/db", "red/web"}, got); diff != "" {
		t.Errorf("templates (-want +got)\n%s", diff)
	}
	hosts := map[string][]string{}
	for i := range p.Classes {
		name := s.Pods[w.Classes[i].Pods[0]].Name
		for k, bits := range p.Classes[i].Offers {
			if bits != nil {
				hosts[name] = append(hosts[name], got[k])
			}
		}
	}
	wantHosts := map[string][]string{"p1": {"red/db", "red/web"}, "p2": {"blue/db", "blue/web"}, "p3": {"1/web", "blue/web", "red/web"}, "p5": got}
	if diff := cmp.Diff(wantHosts, hosts); diff != "" {
		t.Errorf("templates by pod (-want +got)\n%s", diff)
	}
}

func TestExoticTypes(t *testing.T) {
	cases := []struct {
		name string
		reqs []snapshot.SelectorRequirement
		want bool
	}{
		{"open pool (BC-15)", nil, true},
		{"the pool names the family", []snapshot.SelectorRequirement{req(catalog.LabelFamily, "In", "inf9", "c5")}, false},
		{"the pool names the type", []snapshot.SelectorRequirement{types("inf9.xlarge")}, false},
		{"the pool names something else", []snapshot.SelectorRequirement{req(catalog.LabelCPU, "Lt", "9")}, true},
	}
	for _, c := range cases {
		cat := worldtest.Fixture()
		cat.Types = append(cat.Types, catalog.InstanceType{
			Name: "inf9.xlarge", Arch: "amd64", VCPU: 4, MemoryMiB: 8192, Hypervisor: "nitro",
			Accelerators: []catalog.Device{{Name: "inferentia", Manufacturer: "aws", Count: 1}},
			Offerings:    worldtest.Offerings(worldtest.Zones, 100_000, 50_000),
		})
		slices.SortFunc(cat.Types, func(a, b catalog.InstanceType) int { return cmpString(a.Name, b.Name) })
		p := New(small([]snapshot.NodePool{pool("a", c.reqs...)}, pod("p", 100, 100)), cat).Problem()
		found := false
		for _, ty := range p.Templates[0].Types {
			if ty.Name == "inf9.xlarge" {
				found = true
				if ty.Exotic != c.want {
					t.Errorf("%s: exotic = %v, want %v", c.name, ty.Exotic, c.want)
				}
			} else if ty.Exotic {
				t.Errorf("%s: %s is exotic", c.name, ty.Name)
			}
		}
		if !found {
			t.Errorf("%s: the type is missing", c.name)
		}
	}
}

func cmpString(a, b string) int {
	switch {
	case a < b:
		return -1
	case a > b:
		return 1
	}
	return 0
}

func TestMinValuesOfTemplates(t *testing.T) {
	np := pool("a", types("c5.large", "c5.xlarge", "m5.large"))
	np.Requirements = append(np.Requirements,
		snapshot.SelectorRequirement{Key: catalog.LabelFamily, Operator: "Exists", MinValues: 2},
		snapshot.SelectorRequirement{Key: catalog.LabelZone, Operator: "Exists", MinValues: 3})
	_, p := world(small([]snapshot.NodePool{np}, pod("p", 100, 100)))
	got := p.Templates[0].MinValues
	if len(got) != 2 || got[0].Key != catalog.LabelFamily || got[0].Min != 2 || got[1].Min != 3 {
		t.Fatalf("minValues %+v", got)
	}
	f := got[0].Values
	if len(f) != 3 || f[0][0] != f[1][0] || f[0][0] == f[2][0] {
		t.Errorf("families by type %v", f)
	}
	for _, zones := range got[1].Values {
		if len(zones) != 3 {
			t.Errorf("zones by type %v", got[1].Values)
		}
	}
}
