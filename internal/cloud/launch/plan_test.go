package launch_test

import (
	"bytes"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"kerf.sh/kerf/internal/catalog"
	"kerf.sh/kerf/internal/cloud/launch"
	"kerf.sh/kerf/internal/cloud/nodeclass"
	"kerf.sh/kerf/internal/plan"
)

func TestChoice(t *testing.T) {
	tests := []struct {
		name   string
		offers []plan.Offer
		change func(*launch.Input)
		want   []string
		target string
		left   int
	}{
		{"one capacity type a request: reserved, then spot, then on-demand", []plan.Offer{offer("m5.large", "a", "on-demand", 96), offer("m5.large", "b", "spot", 40)}, nil,
			[]string{"0 m5.large b subnet-b"}, "spot", 1},
		{"spot dearer than the cheapest on-demand offer is not asked for", []plan.Offer{offer("m5.large", "a", "on-demand", 96), offer("m5.xlarge", "a", "spot", 97), offer("m6i.large", "b", "spot", 96)}, nil,
			[]string{"0 m6i.large b subnet-b"}, "spot", 1},
		{"on-demand is asked for when all of spot is dearer", []plan.Offer{offer("m5.large", "a", "on-demand", 96), offer("m5.xlarge", "a", "spot", 97)}, nil,
			[]string{"0 m5.large a subnet-a"}, "on-demand", 0},
		{"unless minValues needs it", []plan.Offer{offer("m5.large", "a", "on-demand", 96), offer("m5.xlarge", "a", "spot", 97)}, func(in *launch.Input) { in.MinValues = true },
			[]string{"0 m5.xlarge a subnet-a"}, "spot", 1},
		{"S-16: a template for each architecture", []plan.Offer{offer("m5.large", "a", "on-demand", 96), offer("m7g.large", "a", "on-demand", 80)}, nil,
			[]string{"0 m7g.large a subnet-a", "1 m5.large a subnet-a"}, "on-demand", 0},
		{"types with other pods need another template", []plan.Offer{offer("m5.large", "a", "on-demand", 96), offer("m5.xlarge", "a", "on-demand", 190), offer("m6i.large", "a", "on-demand", 97)}, nil,
			[]string{"0 m5.large a subnet-a", "0 m6i.large a subnet-a", "1 m5.xlarge a subnet-a"}, "on-demand", 0},
		{"unless the class fixes the pods", []plan.Offer{offer("m5.large", "a", "on-demand", 96), offer("m5.xlarge", "a", "on-demand", 190)},
			func(in *launch.Input) {
				in.Class = classOf(t, "{amiSelectorTerms: [{alias: al2023@latest}], kubelet: {maxPods: 20}}")
			},
			[]string{"0 m5.large a subnet-a", "0 m5.xlarge a subnet-a"}, "on-demand", 0},
		{"S-27: a type and zone once", []plan.Offer{offer("m5.large", "a", "on-demand", 96), offer("m5.large", "a", "on-demand", 96), offer("m5.large", "b", "on-demand", 96)}, nil,
			[]string{"0 m5.large a subnet-a", "0 m5.large b subnet-b"}, "on-demand", 1},
		{"S-15: a zone without a usable subnet is left out", []plan.Offer{offer("m5.large", "a", "on-demand", 96), offer("m5.large", "c", "on-demand", 90)}, nil,
			[]string{"0 m5.large a subnet-a"}, "on-demand", 0},
		{"of reservations of a type and zone the one with most left", []plan.Offer{reserved("m5.large", "a", "cr-1"), reserved("m5.large", "a", "cr-2"), offer("m5.large", "a", "spot", 3)}, nil,
			[]string{"0 m5.large a subnet-a cr-2"}, "on-demand", 2},
		{"default reservations before blocks and interruptible ones", []plan.Offer{reserved("m5.large", "b", "cr-block"), reserved("m5.large", "b", "cr-intr"), reserved("m5.large", "a", "cr-1")}, nil,
			[]string{"0 m5.large a subnet-a cr-1"}, "on-demand", 2},
		{"a capacity block alone", []plan.Offer{reserved("m5.large", "b", "cr-block"), reserved("m5.large", "b", "cr-intr")}, nil,
			[]string{"0 m5.large b subnet-b cr-block"}, "capacity-block", 1},
		{"an interruptible reservation", []plan.Offer{reserved("m5.large", "b", "cr-intr")}, nil,
			[]string{"0 m5.large b subnet-b cr-intr"}, "reserved-capacity", 0},
		{"an empty reservation spills to what is sold by the hour", []plan.Offer{reserved("m5.large", "b", "cr-empty"), reserved("m5.large", "b", "cr-unknown"), offer("m5.large", "b", "on-demand", 96)}, nil,
			[]string{"0 m5.large b subnet-b"}, "on-demand", 0},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			in := input(t, al2023, tt.offers...)
			if tt.change != nil {
				tt.change(&in)
			}
			p := mustPlan(t, in)
			if d := cmp.Diff(tt.want, overrides(p)); d != "" {
				t.Errorf("overrides (-want +got):\n%s", d)
			}
			if p.Request.Target != tt.target || len(p.Left) != tt.left {
				t.Errorf("target %s, %d left; want %s, %d", p.Request.Target, len(p.Left), tt.target, tt.left)
			}
		})
	}
}

func TestNoOffer(t *testing.T) {
	for want, offers := range map[string][]plan.Offer{
		"no offer left": nil,
		"no subnet of the class has a free address in [us-east-1c]": {offer("m5.large", "c", "spot", 1)},
		"no image of the class boots [x9.big]":                      {offer("x9.big", "a", "spot", 1)},
		"the reservations [cr-empty] are used up":                   {reserved("m5.large", "b", "cr-empty")},
	} {
		_, err := launch.Plan(input(t, al2023, offers...))
		var no *launch.NoOffer
		if !errors.As(err, &no) || !strings.Contains(err.Error(), want) {
			t.Errorf("%v: %v; want %q", offers, err, want)
		}
	}
}

func TestStrategies(t *testing.T) {
	in := input(t, "{amiSelectorTerms: [{alias: al2023@latest}], context: ctx-1}", offer("m5.large", "a", "spot", 40))
	r := mustPlan(t, in).Request
	if r.SpotStrategy != "price-capacity-optimized" || r.Prioritized() || r.Context != "ctx-1" {
		t.Errorf("spot: %+v", r)
	}
	in.Offers[0].Overlay = "contract"
	in.MinValuesRelaxed = true
	r = mustPlan(t, in).Request
	if r.SpotStrategy != "capacity-optimized-prioritized" || !r.Prioritized() || r.Context != "" {
		t.Errorf("spot with an overlay, minValues relaxed: %+v", r)
	}
	in.Offers = []plan.Offer{offer("m5.large", "a", "on-demand", 96)}
	if r = mustPlan(t, in).Request; r.OnDemandStrategy != "lowest-price" {
		t.Errorf("on-demand: %+v", r)
	}
	in.Offers[0].Overlay = "contract"
	if r = mustPlan(t, in).Request; r.OnDemandStrategy != "prioritized" {
		t.Errorf("on-demand with an overlay: %+v", r)
	}
}

func TestSpotTagsOnlyOnSpot(t *testing.T) { // S-26
	for _, ct := range []string{"spot", "on-demand"} {
		p := mustPlan(t, input(t, al2023, offer("m5.large", "a", ct, 40)))
		if got := p.Templates[0].SpotTags; got != (ct == "spot") {
			t.Errorf("%s: the template tags a spot request: %v", ct, got)
		}
	}
}

func TestReservationsOfTemplates(t *testing.T) {
	preference := func(in launch.Input) launch.ReservationRequest { return mustPlan(t, in).Templates[0].Reservation }
	in := input(t, al2023, offer("m5.large", "a", "on-demand", 96))
	if got := preference(in); got != (launch.ReservationRequest{Preference: "none"}) {
		t.Errorf("on-demand with the gate on: %+v; open reservations must not be used in silence", got)
	}
	in.Reservations = false
	if got := preference(in); got != (launch.ReservationRequest{}) {
		t.Errorf("on-demand with the gate off: %+v", got)
	}
	in = input(t, al2023, reserved("m5.large", "b", "cr-block"))
	if got := preference(in); got != (launch.ReservationRequest{"capacity-reservations-only", "cr-block", "capacity-block"}) {
		t.Errorf("capacity block: %+v", got)
	}
}

// TestOverrides: whatever the offers, a request keeps EC2's rules.
func TestOverrides(outer *testing.T) {
	rapid.Check(outer, func(t *rapid.T) {
		in := input(outer, al2023)
		n := rapid.IntRange(1, 90).Draw(t, "types")
		for i := range n {
			name := fmt.Sprintf("t%d.large", i)
			in.Types[name] = launch.Type{Name: name, ImageID: rapid.SampledFrom([]string{"ami-amd", "ami-arm", ""}).Draw(t, "image"), MaxPods: rapid.Int64Range(10, 80).Draw(t, "pods")}
		}
		for range rapid.IntRange(1, 200).Draw(t, "offers") {
			o := offer(fmt.Sprintf("t%d.large", rapid.IntRange(0, n-1).Draw(t, "type")), rapid.SampledFrom([]string{"a", "b", "c"}).Draw(t, "zone"),
				rapid.SampledFrom([]string{"spot", "on-demand", "reserved"}).Draw(t, "ct"), rapid.Int64Range(1, 50).Draw(t, "price"))
			if o.CapacityType == "reserved" {
				o.ReservationID = rapid.SampledFrom([]string{"cr-1", "cr-2", "cr-block", "cr-intr", "cr-empty"}).Draw(t, "reservation")
			}
			in.Offers = append(in.Offers, o)
		}
		p, err := launch.Plan(in)
		if err != nil {
			var no *launch.NoOffer
			if !errors.As(err, &no) {
				t.Fatal(err)
			}
			return
		}
		if broken := checkRequest(in, p); broken != "" {
			t.Fatal(broken)
		}
		a, err := p.Request.Encode()
		if err != nil {
			t.Fatal(err)
		}
		in.Offers = rapid.Permutation(in.Offers).Draw(t, "order")
		q, err := launch.Plan(in)
		if err != nil {
			t.Fatal(err)
		}
		b, err := q.Request.Encode()
		if err != nil {
			t.Fatal(err)
		}
		if !bytes.Equal(a, b) {
			t.Fatalf("the order of offers changes the request:\n%s\n%s", a, b)
		}
		back, err := launch.Decode(a)
		if err != nil {
			t.Fatal(err)
		}
		if d := cmp.Diff(&p.Request, back); d != "" {
			t.Fatalf("decoded request differs:\n%s", d)
		}
	})
}

// checkRequest says which rule of EC2 or of ours a request breaks; "" when it keeps all.
func checkRequest(in launch.Input, p *launch.Planned) string {
	types, pairs := map[string]bool{}, map[string]bool{}
	var names []string
	for _, template := range p.Templates {
		names = append(names, template.Name)
	}
	for _, c := range p.Request.Configs {
		i := slices.Index(names, c.Template)
		if i < 0 || len(c.Overrides) == 0 {
			return fmt.Sprintf("config %s with %d overrides has no template", c.Template, len(c.Overrides))
		}
		for _, o := range c.Overrides {
			types[o.Type] = true
			if pairs[o.Type+o.Subnet] {
				return fmt.Sprintf("%s in %s twice", o.Type, o.Subnet)
			}
			pairs[o.Type+o.Subnet] = true
			if in.Types[o.Type].ImageID != p.Templates[i].ImageID {
				return fmt.Sprintf("%s boots %s, its template has %s", o.Type, in.Types[o.Type].ImageID, p.Templates[i].ImageID)
			}
			if in.Subnets[o.Zone].ID != o.Subnet {
				return fmt.Sprintf("%s is not the subnet of %s", o.Subnet, o.Zone)
			}
			if !slices.ContainsFunc(in.Offers, func(f plan.Offer) bool {
				return f.InstanceType == o.Type && f.Zone == o.Zone && f.CapacityType == p.Request.CapacityType && f.Price == o.Price && f.ReservationID == o.ReservationID
			}) {
				return fmt.Sprintf("override %+v was not offered as %s", o, p.Request.CapacityType)
			}
		}
	}
	if len(types) > 60 || len(p.Request.Configs) > 50 || len(p.Request.Configs) != len(slices.Compact(slices.Sorted(slices.Values(names)))) {
		return fmt.Sprintf("%d types, %d configs, %d templates", len(types), len(p.Request.Configs), len(names))
	}
	if len(pairs) != len(p.Used) {
		return fmt.Sprintf("%d overrides, %d offers used", len(pairs), len(p.Used))
	}
	// Nothing cheaper of the same capacity type was passed over for the types' limit.
	for _, left := range p.Left {
		if left.CapacityType == p.Request.CapacityType && left.ReservationID == "" && !types[left.InstanceType] && len(types) < 60 && len(p.Request.Configs) < 50 {
			return fmt.Sprintf("%+v was left although there is room", left)
		}
	}
	return ""
}

func TestBadClass(t *testing.T) {
	for spec, want := range map[string]string{
		"{amiSelectorTerms: [{alias: al2023@latest}], blockDeviceMappings: [{deviceName: /dev/xvda, ebs: {volumeSize: big}}]}": "spec.blockDeviceMappings[0].ebs.volumeSize",
		"{amiSelectorTerms: [{alias: bottlerocket@latest}], userData: 'x ='}":                                                  "spec.userData",
		"{amiSelectorTerms: [{alias: al2023@latest}], associatePublicIPAddress: true, networkInterfaces: [{networkCardIndex: 0, deviceIndex: 0, interfaceType: interface}, {networkCardIndex: 1, deviceIndex: 1, interfaceType: efa-only}]}": "spec.associatePublicIPAddress",
	} {
		_, err := launch.Plan(input(t, spec, offer("m5.large", "a", "spot", 1)))
		var no *nodeclass.Refusal
		if !errors.As(err, &no) || !strings.Contains(no.Message, want) {
			t.Errorf("%s: %v; want a refusal that blames %s", spec, err, want)
		}
	}
}

// TestNodeIsAsPlanned: what the planner took off for pods and kubelet, the node is told.
func TestNodeIsAsPlanned(t *testing.T) {
	r := &catalog.Resolved{Type: &catalog.InstanceType{Name: "m5.large", VCPU: 2}, Image: "ami-amd"}
	r.Capacity.Pods = 29
	r.Capacity.Extended = map[string]int64{catalog.EFA: 1}
	got := launch.TypeOf(r)
	want := launch.Type{Name: "m5.large", ImageID: "ami-amd", MaxPods: 29, EFA: 1, KubeReserved: map[string]string{"cpu": "70m", "memory": "574Mi", "ephemeral-storage": "1Gi"}}
	if d := cmp.Diff(want, got); d != "" {
		t.Fatalf("type (-want +got):\n%s", d)
	}
	in := input(t, al2023, offer("m5.large", "a", "spot", 1))
	in.Types["m5.large"] = got
	for _, text := range []string{"maxPods: 29", "memory: 574Mi", "cpu: 70m", "ephemeral-storage: 1Gi"} {
		if data := mustPlan(t, in).Templates[0].UserData; !strings.Contains(data, text) {
			t.Errorf("user data has no %q:\n%s", text, data)
		}
	}
}

// TestOverridesCanFail: each rule of checkRequest notices a request that breaks it.
func TestOverridesCanFail(t *testing.T) {
	in := input(t, al2023, offer("m5.large", "a", "spot", 40), offer("m6i.large", "b", "spot", 41), offer("m7g.large", "a", "spot", 42), offer("m5.xlarge", "a", "on-demand", 190))
	if broken := checkRequest(in, mustPlan(t, in)); broken != "" {
		t.Fatal(broken)
	}
	for name, mutate := range map[string]func(p *launch.Planned){
		"an override twice":         func(p *launch.Planned) { c := &p.Request.Configs[0]; c.Overrides = append(c.Overrides, c.Overrides[0]) },
		"a subnet of another zone":  func(p *launch.Planned) { p.Request.Configs[0].Overrides[0].Subnet = "subnet-b" },
		"an offer that nobody made": func(p *launch.Planned) { p.Request.Configs[0].Overrides[0].Price++ },
		"another capacity type":     func(p *launch.Planned) { p.Request.CapacityType = "on-demand" },
		"an image that cannot boot": func(p *launch.Planned) { p.Templates[0].ImageID = "ami-arm" },
		"a config without template": func(p *launch.Planned) { p.Templates = p.Templates[1:] },
		"an empty config":           func(p *launch.Planned) { p.Request.Configs[0].Overrides = nil },
		"two configs of a template": func(p *launch.Planned) {
			p.Request.Configs = append(p.Request.Configs, launch.Config{Template: p.Templates[0].Name, Overrides: []launch.Override{{Type: "m5.large", Zone: "us-east-1b", Subnet: "subnet-b"}}})
		},
		"an offer lost":           func(p *launch.Planned) { p.Used = p.Used[1:] },
		"an offer left with room": func(p *launch.Planned) { p.Left = append(p.Left, offer("c5.large", "a", "spot", 1)) },
	} {
		p := mustPlan(t, in)
		mutate(p)
		if checkRequest(in, p) == "" {
			t.Errorf("%s: not noticed", name)
		}
	}
}

// TestLimits: sixty types and fifty templates, the cheapest first; the rest is left for an
// attempt that follows.
func TestLimits(t *testing.T) {
	for _, tt := range []struct {
		name                   string
		pods                   func(i int) int64
		types, templates, left int
	}{
		{"types", func(int) int64 { return 29 }, 60, 1, 40},
		{"templates", func(i int) int64 { return int64(10 + i) }, 50, 50, 60},
	} {
		in := input(t, al2023)
		for i := range 80 {
			name := fmt.Sprintf("t%02d.large", i)
			in.Types[name] = launch.Type{Name: name, ImageID: "ami-amd", MaxPods: tt.pods(i)}
			in.Offers = append(in.Offers, offer(name, "a", "spot", int64(100+i)), offer(name, "b", "spot", int64(300+i)))
		}
		p := mustPlan(t, in)
		types := map[string]bool{}
		for _, o := range p.Used {
			types[o.InstanceType] = true
		}
		if len(types) != tt.types || len(p.Templates) != tt.templates || len(p.Used) != 2*tt.types || len(p.Left) != tt.left || !types["t00.large"] || types["t79.large"] {
			t.Errorf("%s: %d types, %d templates, %d used, %d left", tt.name, len(types), len(p.Templates), len(p.Used), len(p.Left))
		}
	}
}
