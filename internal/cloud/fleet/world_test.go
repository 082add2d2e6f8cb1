package fleet_test

import (
	"context"
	"encoding/base64"
	"encoding/json"
	"strings"
	"testing"
	"time"

	"github.com/cockroachdb/datadriven"
	"sigs.k8s.io/yaml"

	"kerf.sh/kerf/internal/cloud/ec2fake"
	"kerf.sh/kerf/internal/cloud/fleet"
	"kerf.sh/kerf/internal/cloud/launch"
	"kerf.sh/kerf/internal/cloud/nodeclass"
	"kerf.sh/kerf/internal/cloud/template"
	"kerf.sh/kerf/internal/cloud/userdata"
	"kerf.sh/kerf/internal/plan"
	"kerf.sh/kerf/internal/snapshot"
)

var start = time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)

// world is a region with two zones, its clock, and the adapters on it.
type world struct {
	t         testing.TB
	now       time.Time
	ec2       *ec2fake.EC2
	templates *template.Store
	fleet     *fleet.Fleet
}

func newWorld(t testing.TB) *world {
	w := &world{t: t, now: start}
	clock := func() time.Time { return w.now }
	w.ec2 = ec2fake.New(clock)
	w.ec2.AddSubnet("subnet-a", "us-east-1a", "use1-az1", 100)
	w.ec2.AddSubnet("subnet-b", "us-east-1b", "use1-az2", 100)
	w.ec2.AddImage("ami-amd", "amd", "x86_64", start)
	w.ec2.AddImage("ami-arm", "arm", "arm64", start)
	w.ec2.AddType(
		ec2fake.Type{Name: "m5.large", Arch: "amd64", VCPU: 2, OnDemand: 96000, Spot: 40000},
		ec2fake.Type{Name: "m6i.large", Arch: "amd64", VCPU: 2, OnDemand: 97000, Spot: 41000},
		ec2fake.Type{Name: "m7g.large", Arch: "arm64", VCPU: 2, OnDemand: 82000, Spot: 35000},
	)
	w.templates = template.New(w.ec2, clock)
	w.fleet = &fleet.Fleet{Client: w.ec2}
	return w
}

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

// offers reads "m5.large a spot 40000" and so on, separated by commas; a fifth word is a
// reservation.
func offers(t testing.TB, text string) []plan.Offer {
	t.Helper()
	var out []plan.Offer
	for one := range strings.SplitSeq(text, ",") {
		w := strings.Fields(one)
		var o plan.Offer
		if len(w) < 4 || json.Unmarshal([]byte(w[3]), &o.Price) != nil {
			t.Fatalf("offer %q", one)
		}
		o.InstanceType, o.Zone, o.CapacityType = w[0], "us-east-1"+w[1], w[2]
		if len(w) > 4 {
			o.ReservationID = w[4]
		}
		out = append(out, o)
	}
	return out
}

func input(t testing.TB, spec, offered string, claims ...string) launch.Input {
	return launch.Input{
		Attempt: "at-1", Claims: claims, Region: "us-east-1", Pool: "default", Class: classOf(t, spec), Offers: offers(t, offered), Now: start, Reservations: true,
		Cluster:  userdata.Cluster{Name: "prod", Endpoint: "https://x", CA: "Y2E=", DNS: "172.20.0.10", ServiceCIDR: "172.20.0.0/16"},
		Resolved: &nodeclass.Resolved{Profile: "prod_1", SecurityGroups: []nodeclass.SecurityGroup{{ID: "sg-2"}, {ID: "sg-1"}}},
		Types: map[string]launch.Type{
			"m5.large": {Name: "m5.large", ImageID: "ami-amd", MaxPods: 29}, "m6i.large": {Name: "m6i.large", ImageID: "ami-amd", MaxPods: 29},
			"m7g.large": {Name: "m7g.large", ImageID: "ami-arm", MaxPods: 29}, "p5.48xlarge": {Name: "p5.48xlarge", ImageID: "ami-amd", MaxPods: 100, EFA: 3},
		},
		Subnets: map[string]nodeclass.Subnet{"us-east-1a": {ID: "subnet-a"}, "us-east-1b": {ID: "subnet-b"}},
	}
}

const al2023 = "{amiSelectorTerms: [{alias: al2023@latest}], role: nodes}"

// prepared plans, makes the templates and stores the request.
func (w *world) prepared(in launch.Input) (*launch.Planned, []byte) {
	w.t.Helper()
	p, err := launch.Plan(in)
	if err != nil {
		w.t.Fatal(err)
	}
	if err := w.templates.Ensure(context.Background(), p.Templates); err != nil {
		w.t.Fatal(err)
	}
	stored, err := p.Request.Encode()
	if err != nil {
		w.t.Fatal(err)
	}
	return p, stored
}

func (w *world) create(stored []byte) *launch.Outcome {
	w.t.Helper()
	o, err := w.fleet.Create(context.Background(), stored)
	if err != nil {
		w.t.Fatal(err)
	}
	return o
}

// spoken is an SDK input as JSON without what is empty.
func spoken(t testing.TB, v any) string {
	raw, err := json.Marshal(v)
	if err != nil {
		t.Fatal(err)
	}
	var tree any
	if err := json.Unmarshal(raw, &tree); err != nil {
		t.Fatal(err)
	}
	out, err := yaml.Marshal(prune(tree))
	if err != nil {
		t.Fatal(err)
	}
	return string(out)
}

func prune(v any) any {
	switch x := v.(type) {
	case map[string]any:
		for k, child := range x {
			if child = prune(child); child == nil || child == "" {
				delete(x, k)
			} else {
				x[k] = child
			}
		}
		if k, ok := x["Key"]; ok && len(x) <= 2 { // a tag
			return k.(string) + "=" + x["Value"].(string)
		}
		if s, ok := x["UserData"].(string); ok {
			raw, _ := base64.StdEncoding.DecodeString(s)
			x["UserData"] = string(raw)
		}
		if len(x) == 0 {
			return nil
		}
	case []any:
		if len(x) == 0 {
			return nil
		}
		for i := range x {
			x[i] = prune(x[i])
		}
	}
	return v
}

// TestTranscripts shows what EC2 is sent for classes and offers. Commands: template and
// fleet, with the spec of the class as input.
func TestTranscripts(t *testing.T) {
	datadriven.Walk(t, "testdata/transcripts", func(t *testing.T, path string) {
		datadriven.RunTest(t, path, func(t *testing.T, d *datadriven.TestData) string {
			var offered string
			d.ScanArgs(t, "offers", &offered)
			in := input(t, d.Input, strings.ReplaceAll(strings.ReplaceAll(offered, "/", " "), ";", ","), "claim-1", "claim-2")
			in.RequestsEFA, in.RequestsEnclave, in.Cluster.IPv6, in.Isolated = d.HasArg("efa"), d.HasArg("enclave"), d.HasArg("ipv6"), d.HasArg("isolated")
			if d.HasArg("dedicated") {
				in.Tenancy = "dedicated"
			}
			if d.HasArg("partition") {
				in.Resolved.PlacementGroup = &nodeclass.PlacementGroup{ID: "pg-1", Strategy: "partition", Partitions: 3}
				in.Labels = map[string]string{"karpenter.k8s.aws/placement-group-partition": "2"}
			}
			in.Resolved.Reservations = []nodeclass.Reservation{
				{ID: "cr-block", InstanceType: "m5.large", Zone: "us-east-1a", Type: "capacity-block", Remaining: 1},
				{ID: "cr-intr", InstanceType: "m5.large", Zone: "us-east-1a", Type: "default", Remaining: 1, Interruptible: true},
				{ID: "cr-1", InstanceType: "m5.large", Zone: "us-east-1a", Type: "default", Remaining: 1},
			}
			p, err := launch.Plan(in)
			if err != nil {
				return "error: " + err.Error()
			}
			if d.Cmd == "fleet" {
				return spoken(t, fleet.Input(&p.Request))
			}
			var out []string
			for i := range p.Templates {
				if d.HasArg("nodata") {
					p.Templates[i].UserData = ""
				}
				out = append(out, spoken(t, template.Input(&p.Templates[i])))
			}
			return strings.Join(out, "---\n")
		})
	})
}
