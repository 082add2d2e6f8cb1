package execute_test

import (
	"context"
	"fmt"
	"testing"
	"time"

	"sigs.k8s.io/yaml"

	"kerf.sh/kerf/internal/catalog"
	"kerf.sh/kerf/internal/cloud/ec2fake"
	"kerf.sh/kerf/internal/cloud/fleet"
	"kerf.sh/kerf/internal/cloud/launch"
	"kerf.sh/kerf/internal/cloud/nodeclass"
	"kerf.sh/kerf/internal/cloud/template"
	"kerf.sh/kerf/internal/cloud/userdata"
	"kerf.sh/kerf/internal/execute"
	"kerf.sh/kerf/internal/kube/api"
	"kerf.sh/kerf/internal/ledger"
	"kerf.sh/kerf/internal/lifecycle"
	"kerf.sh/kerf/internal/plan"
	"kerf.sh/kerf/internal/provision"
	"kerf.sh/kerf/internal/scheduling"
	"kerf.sh/kerf/internal/snapshot"
)

var ctx = context.Background()

// world is an EC2, a ledger and a cluster that takes what it is told.
type world struct {
	t      *testing.T
	now    time.Time
	ec2    *ec2fake.EC2
	table  *ledger.Memory
	memory *ledger.Ledger
	kube   *cluster
	x      *execute.Executor
}

func newWorld(t *testing.T) *world {
	t.Helper()
	w := &world{t: t, now: time.Date(2026, 11, 30, 12, 0, 0, 0, time.UTC), table: ledger.NewMemory("table-1"), kube: &cluster{claims: map[string]api.NewNodeClaim{}}}
	clock := func() time.Time { return w.now }
	w.ec2 = ec2fake.New(clock)
	w.ec2.AddType(ec2fake.Type{Name: "m5.large", Arch: "amd64", VCPU: 2, OnDemand: 96000, Spot: 40000},
		ec2fake.Type{Name: "m6i.large", Arch: "amd64", VCPU: 2, OnDemand: 97000, Spot: 41000})
	for _, z := range []string{"a", "b"} {
		w.ec2.AddSubnet("subnet-"+z, "us-east-1"+z, "use1-az"+z, 4000)
	}
	w.ec2.AddGroup("sg-1", "nodes")
	w.ec2.AddImage("ami-1", "al2023", "x86_64", w.now.Add(-time.Hour))
	w.memory = w.ledgerOf("first")
	if _, err := w.memory.Open(ctx); err != nil {
		t.Fatal(err)
	}
	w.recover()
	w.x = &execute.Executor{
		Memory: w.memory, Cloud: cloud{&fleet.Fleet{Client: w.ec2}, template.New(w.ec2, clock)}, Cluster: w.kube, Region: "us-east-1", Now: clock,
		Node: userdata.Cluster{Name: "prod", Endpoint: "https://x", CA: "Y2E=", DNS: "172.20.0.10", ServiceCIDR: "172.20.0.0/16"},
	}
	return w
}

func (w *world) ledgerOf(owner string) *ledger.Ledger {
	return ledger.New(ledger.Config{Table: w.table, Cluster: "prod", Owner: owner, Now: func() time.Time { return w.now }})
}

// recover makes a new table an ordinary one.
func (w *world) recover() {
	w.t.Helper()
	err := w.memory.BeginRecovery(ctx, "new")
	var lease lifecycle.Lease
	if err == nil {
		lease, err = w.memory.AcquireRecovery(ctx, time.Minute)
	}
	if err == nil {
		err = w.memory.EndRecovery(ctx, lease)
	}
	if err != nil {
		w.t.Fatal(err)
	}
}

// cloud is EC2 as execute asks for it.
type cloud struct {
	*fleet.Fleet
	store *template.Store
}

func (c cloud) Ensure(ctx context.Context, t []launch.Template) error { return c.store.Ensure(ctx, t) }
func (c cloud) Forget(names ...string)                                { c.store.Forget(names...) }
func (c cloud) Templates(ctx context.Context, cluster string) ([]launch.Stored, error) {
	return c.store.List(ctx, cluster)
}
func (c cloud) DeleteTemplates(ctx context.Context, t []launch.Stored) ([]string, error) {
	return c.store.Delete(ctx, t)
}

// cluster takes NodeClaims and forgets the rest.
type cluster struct {
	execute.Cluster
	claims  map[string]api.NewNodeClaim
	refuse  error // of creating NodeClaims
	deleted []string
}

func (c *cluster) CreateNodeClaim(_ context.Context, n api.NewNodeClaim) (string, error) {
	if c.refuse != nil {
		return "", c.refuse
	}
	c.claims[n.Claim.Name] = n
	return "uid-" + n.Claim.Name, nil
}

func (c *cluster) Delete(_ context.Context, kind, _, name, uid string) error {
	if _, ok := c.claims[name]; !ok || kind != "NodeClaim" || uid != "uid-"+name {
		return fmt.Errorf("delete %s %s: %w", kind, name, api.ErrNotFound)
	}
	c.deleted = append(c.deleted, name)
	return nil
}

func (c *cluster) RemoveFinalizer(_ context.Context, kind, name, uid, finalizer string) error {
	delete(c.claims, name)
	return nil
}

const class = `{amiSelectorTerms: [{id: ami-1}], amiFamily: AL2023, role: nodes, subnetSelectorTerms: [{id: subnet-a}, {id: subnet-b}], securityGroupSelectorTerms: [{id: sg-1}]}`

// order plans for n pods of one CPU each that have to be apart, on spot or not.
func (w *world) order(n int, limits map[string]int64, capacity ...string) *execute.Order {
	w.t.Helper()
	raw, err := yaml.YAMLToJSON([]byte(class))
	if err != nil {
		w.t.Fatal(err)
	}
	c := snapshot.NodeClass{Name: "default", UID: "u1", Generation: 1, Spec: raw, AMIFamily: "AL2023"}
	parsed, err := nodeclass.Parse(&c)
	if err != nil {
		w.t.Fatal(err)
	}
	resolved := &nodeclass.Resolved{
		Class: "default", UID: "u1", Generation: 1, Profile: "prod_1", SecurityGroups: []nodeclass.SecurityGroup{{ID: "sg-1"}},
		Subnets: []nodeclass.Subnet{{ID: "subnet-a", Zone: "us-east-1a", ZoneID: "use1-aza", FreeIPs: 4000}, {ID: "subnet-b", Zone: "us-east-1b", ZoneID: "use1-azb", FreeIPs: 4000}},
		Images:  []nodeclass.Image{{ID: "ami-1", Requirements: []snapshot.SelectorRequirement{{Key: catalog.LabelArch, Operator: "In", Values: []string{"amd64"}}}}},
	}
	status := nodeclass.StatusOf(parsed, resolved, nodeclass.StatusOptions{Now: w.now})
	nodeclass.Fill(&c, resolved, &status, w.now)
	s := &snapshot.Snapshot{
		Region: "us-east-1", Now: w.now, Settings: snapshot.DefaultSettings(), NodeClasses: []snapshot.NodeClass{c}, Namespaces: []snapshot.Namespace{{Name: "shop"}},
		NodePools: []snapshot.NodePool{{
			Name: "general", UID: "pool-uid", ClassRef: snapshot.ClassRef{Group: "karpenter.k8s.aws", Kind: "EC2NodeClass", Name: "default"}, Limits: limits,
			TemplateLabels: map[string]string{"team": "blue"}, ExpireAfter: "720h",
			Requirements: []snapshot.SelectorRequirement{{Key: catalog.LabelInstanceType, Operator: "In", Values: []string{"m5.large", "m6i.large"}},
				{Key: catalog.LabelCapacityType, Operator: "In", Values: capacity}, {Key: catalog.LabelZone, Operator: "In", Values: []string{"us-east-1a", "us-east-1b"}}},
		}},
	}
	for i := range n {
		s.Pods = append(s.Pods, snapshot.Pod{
			Namespace: "shop", Name: fmt.Sprintf("p-%04d", i), UID: fmt.Sprintf("pod-uid-%d", i), Labels: map[string]string{"app": "p"},
			Spec: snapshot.PodSpec{
				Requests: snapshot.Resources{CPU: 1000, Memory: 1 << 30, Pods: 1},
				Anti:     []snapshot.PodAffinityTerm{{Selector: &snapshot.LabelSelector{MatchLabels: map[string]string{"app": "p"}}, TopologyKey: catalog.LabelHostname}},
			},
		})
	}
	s.Settings.OptionPriceCap = 400 // on demand is an option beside spot
	s.Normalize()
	table, _ := catalog.Embedded("us-east-1")
	p := provision.Plan(s, table, provision.Options{})
	if len(p.Launches) == 0 {
		w.t.Fatalf("nothing is launched: %+v", p.Verdicts)
	}
	lease, err := w.memory.Acquire(ctx, time.Minute)
	if err != nil {
		w.t.Fatal(err)
	}
	return &execute.Order{
		Plan: p, Snapshot: s, Types: scheduling.PoolTypes(s, table), Lease: lease,
		Classes: map[string]execute.Class{"default": {Class: parsed, Resolved: resolved}},
	}
}

func (w *world) launch(o *execute.Order) *execute.Report {
	w.t.Helper()
	r, err := w.x.Launch(ctx, o)
	if err != nil {
		w.t.Fatalf("launch: %v", err)
	}
	return r
}

func (w *world) records() []lifecycle.Record {
	w.t.Helper()
	r, err := w.memory.Records(ctx)
	if err != nil {
		w.t.Fatal(err)
	}
	return r
}

// once answers one call of an operation with a fault.
func (w *world) once(op string, f ec2fake.Fault) {
	done := false
	w.ec2.Hook = func(c ec2fake.Call) ec2fake.Fault {
		if c.Op == op && !done {
			done = true
			return f
		}
		return ec2fake.Fault{}
	}
}

func placement(pod, node string) plan.Placement { return plan.Placement{Pod: pod, Node: node} }
