package launch_test

import (
	"fmt"
	"testing"
	"time"

	"sigs.k8s.io/yaml"

	"kerf.sh/kerf/internal/cloud/launch"
	"kerf.sh/kerf/internal/cloud/nodeclass"
	"kerf.sh/kerf/internal/cloud/userdata"
	"kerf.sh/kerf/internal/plan"
	"kerf.sh/kerf/internal/snapshot"
)

var now = time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)

// classOf parses the spec of a class from YAML.
func classOf(t testing.TB, spec string) *nodeclass.Class {
	t.Helper()
	raw, err := yaml.YAMLToJSON([]byte(spec))
	if err != nil {
		t.Fatal(err)
	}
	c, err := nodeclass.Parse(&snapshot.NodeClass{Name: "default", UID: "u1", Generation: 3, Spec: raw})
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// input is a launch of one claim with offers of two architectures.
func input(t testing.TB, spec string, offers ...plan.Offer) launch.Input {
	return launch.Input{
		Attempt: "at-1", Claims: []string{"default-a"}, Region: "us-east-1", Pool: "default", Class: classOf(t, spec), Offers: offers, Now: now, Reservations: true,
		Cluster: userdata.Cluster{Name: "prod", Endpoint: "https://x", CA: "Y2E=", DNS: "172.20.0.10", ServiceCIDR: "172.20.0.0/16"},
		Resolved: &nodeclass.Resolved{
			Profile: "prod_1", SecurityGroups: []nodeclass.SecurityGroup{{ID: "sg-2"}, {ID: "sg-1"}},
			Reservations: []nodeclass.Reservation{
				{ID: "cr-1", InstanceType: "m5.large", Zone: "us-east-1a", Type: "default", Remaining: 2},
				{ID: "cr-2", InstanceType: "m5.large", Zone: "us-east-1a", Type: "default", Remaining: 5},
				{ID: "cr-block", InstanceType: "m5.large", Zone: "us-east-1b", Type: "capacity-block", Remaining: 1, Ends: now.Add(2 * time.Hour)},
				{ID: "cr-intr", InstanceType: "m5.large", Zone: "us-east-1b", Type: "default", Remaining: 1, Interruptible: true},
				{ID: "cr-empty", InstanceType: "m5.large", Zone: "us-east-1b", Type: "default"},
			},
		},
		Types: map[string]launch.Type{
			"m5.large": {Name: "m5.large", ImageID: "ami-amd", MaxPods: 29}, "m5.xlarge": {Name: "m5.xlarge", ImageID: "ami-amd", MaxPods: 58},
			"m6i.large": {Name: "m6i.large", ImageID: "ami-amd", MaxPods: 29}, "m7g.large": {Name: "m7g.large", ImageID: "ami-arm", MaxPods: 29},
			"p5.48xlarge": {Name: "p5.48xlarge", ImageID: "ami-gpu", MaxPods: 100, EFA: 3},
		},
		Subnets: map[string]nodeclass.Subnet{"us-east-1a": {ID: "subnet-a", Zone: "us-east-1a"}, "us-east-1b": {ID: "subnet-b", Zone: "us-east-1b"}},
		Labels:  map[string]string{"team": "blue", "karpenter.k8s.aws/capacity-reservation-id": "guess"},
	}
}

const al2023 = "{amiSelectorTerms: [{alias: al2023@latest}], role: nodes}"

func offer(typ, zone, ct string, price int64) plan.Offer {
	return plan.Offer{InstanceType: typ, Zone: "us-east-1" + zone, CapacityType: ct, Price: price}
}

func reserved(typ, zone, id string) plan.Offer {
	o := offer(typ, zone, "reserved", 0)
	o.ReservationID = id
	return o
}

func mustPlan(t testing.TB, in launch.Input) *launch.Planned {
	t.Helper()
	p, err := launch.Plan(in)
	if err != nil {
		t.Fatal(err)
	}
	return p
}

// overrides are the overrides of a request as "template type zone subnet".
func overrides(p *launch.Planned) []string {
	var out []string
	for i, c := range p.Request.Configs {
		for _, o := range c.Overrides {
			s := fmt.Sprintf("%d %s %s %s", i, o.Type, o.Zone[len(o.Zone)-1:], o.Subnet)
			if o.ReservationID != "" {
				s += " " + o.ReservationID
			}
			out = append(out, s)
		}
	}
	return out
}
