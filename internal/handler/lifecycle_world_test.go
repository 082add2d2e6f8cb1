package handler_test

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"
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
	"kerf.sh/kerf/internal/handler"
	"kerf.sh/kerf/internal/kube/api"
	"kerf.sh/kerf/internal/ledger"
	"kerf.sh/kerf/internal/lifecycle"
	"kerf.sh/kerf/internal/plan"
	"kerf.sh/kerf/internal/provision"
	"kerf.sh/kerf/internal/scheduling"
	"kerf.sh/kerf/internal/snapshot"
)

var background = context.Background()

// lifeWorld is an EC2, a ledger, a queue and a cluster in which nodes live.
type lifeWorld struct {
	t      *testing.T
	now    time.Time
	start  time.Time
	ec2    *ec2fake.EC2
	table  *ledger.Memory
	memory *ledger.Ledger
	kube   *lifeKube
	x      *execute.Executor
	life   *handler.Lifecycle
	house  *handler.Housekeeping
	rounds bool // housekeeping runs each minute

	queue     []queued
	delivered int
	reports   []handler.LifecycleReport
	rooms     []handler.HousekeepingReport
	errs      []error

	// The kubelets: how long after it runs an instance joins, and is Ready; those that
	// never join, by instance.
	joins, ready time.Duration
	never        map[string]bool
	late         map[string]time.Duration // how much longer one takes to be Ready
	taints       []snapshot.Taint         // that nodes join with, beside unregistered
	unlabelled   bool                     // nodes join without labels of ours
	nth          int
}

type queued struct {
	at   time.Time
	body string
}

func newLifeWorld(t *testing.T) *lifeWorld {
	t.Helper()
	w := &lifeWorld{t: t, now: time.Date(2026, 11, 30, 12, 0, 0, 0, time.UTC), table: ledger.NewMemory("table-1"), rounds: true,
		joins: 20 * time.Second, ready: 10 * time.Second, never: map[string]bool{}}
	w.start = w.now
	clock := func() time.Time { return w.now }
	w.kube = newLifeKube(clock)
	w.ec2 = ec2fake.New(clock)
	w.ec2.AddType(ec2fake.Type{Name: "m5.large", Arch: "amd64", VCPU: 2, OnDemand: 96000, Spot: 40000})
	w.ec2.AddSubnet("subnet-a", "us-east-1a", "use1-az1", 4000)
	w.ec2.AddGroup("sg-1", "nodes")
	w.ec2.AddImage("ami-1", "al2023", "x86_64", w.now.Add(-time.Hour))
	w.kube.pools = []snapshot.NodePool{w.pool()}
	w.wire("first")
	if _, err := w.house.Recover(background); err != nil {
		t.Fatal(err)
	}
	return w
}

// wire starts functions anew on the table of the world.
func (w *lifeWorld) wire(owner string) {
	clock := func() time.Time { return w.now }
	w.memory = ledger.New(ledger.Config{Table: w.table, Cluster: "prod", Owner: owner, Now: clock})
	w.x = &execute.Executor{
		Memory: w.memory, Cloud: lifeCloud{&fleet.Fleet{Client: w.ec2}, template.New(w.ec2, clock)}, Cluster: w.kube, Region: "us-east-1", Now: clock,
		Node: userdata.Cluster{Name: "prod", Endpoint: "https://x", CA: "Y2E=", DNS: "172.20.0.10", ServiceCIDR: "172.20.0.0/16"},
	}
	w.life = &handler.Lifecycle{Memory: w.memory, Cluster: w.kube, Executor: w.x, Work: w, Now: clock,
		Told: func(_ context.Context, r handler.LifecycleReport) { w.reports = append(w.reports, r) }}
	w.house = &handler.Housekeeping{Memory: w.memory, Cluster: w.kube, Executor: w.x, Lifecycle: w.life, ClusterName: "prod", Now: clock}
	w.x.Begun = w.life.Kick
}

func (w *lifeWorld) Send(_ context.Context, messages ...lifecycle.Outgoing) error {
	for _, m := range messages {
		w.queue = append(w.queue, queued{w.now.Add(m.Delay), m.Body})
	}
	return nil
}

type lifeCloud struct {
	*fleet.Fleet
	store *template.Store
}

func (c lifeCloud) Ensure(ctx context.Context, t []launch.Template) error {
	return c.store.Ensure(ctx, t)
}
func (c lifeCloud) Forget(names ...string) { c.store.Forget(names...) }
func (c lifeCloud) Templates(ctx context.Context, cluster string) ([]launch.Stored, error) {
	return c.store.List(ctx, cluster)
}
func (c lifeCloud) DeleteTemplates(ctx context.Context, t []launch.Stored) ([]string, error) {
	return c.store.Delete(ctx, t)
}

func (w *lifeWorld) pool() snapshot.NodePool {
	return snapshot.NodePool{
		Name: "general", UID: "pool-uid", ClassRef: snapshot.ClassRef{Group: "karpenter.k8s.aws", Kind: "EC2NodeClass", Name: "default"},
		TemplateLabels: map[string]string{"team": "blue"}, ExpireAfter: "720h",
		StartupTaints: []snapshot.Taint{{Key: "cni.example/not-ready", Effect: "NoSchedule"}},
		Requirements: []snapshot.SelectorRequirement{{Key: catalog.LabelInstanceType, Operator: "In", Values: []string{"m5.large"}},
			{Key: catalog.LabelCapacityType, Operator: "In", Values: []string{"on-demand"}}, {Key: catalog.LabelZone, Operator: "In", Values: []string{"us-east-1a"}}},
	}
}

const lifeClass = `{amiSelectorTerms: [{id: ami-1}], amiFamily: AL2023, role: nodes, subnetSelectorTerms: [{id: subnet-a}], securityGroupSelectorTerms: [{id: sg-1}]}`

// launch launches n nodes for n pods that have to be apart.
func (w *lifeWorld) launch(n int) *execute.Report {
	w.t.Helper()
	raw, err := yaml.YAMLToJSON([]byte(lifeClass))
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
		Subnets: []nodeclass.Subnet{{ID: "subnet-a", Zone: "us-east-1a", ZoneID: "use1-az1", FreeIPs: 4000}},
		Images:  []nodeclass.Image{{ID: "ami-1", Requirements: []snapshot.SelectorRequirement{{Key: catalog.LabelArch, Operator: "In", Values: []string{"amd64"}}}}},
	}
	status := nodeclass.StatusOf(parsed, resolved, nodeclass.StatusOptions{Now: w.now})
	nodeclass.Fill(&c, resolved, &status, w.now)
	s := &snapshot.Snapshot{
		Region: "us-east-1", Now: w.now, Settings: snapshot.DefaultSettings(), NodeClasses: []snapshot.NodeClass{c}, Namespaces: []snapshot.Namespace{{Name: "shop"}},
		NodePools: []snapshot.NodePool{w.pool()},
	}
	for range n {
		w.nth++
		p := snapshot.Pod{
			Namespace: "shop", Name: fmt.Sprintf("p-%d", w.nth), UID: fmt.Sprintf("pod-uid-%d", w.nth), Labels: map[string]string{"app": "p"},
			Spec: snapshot.PodSpec{
				Requests: snapshot.Resources{CPU: 1000, Memory: 1 << 30, Pods: 1},
				Anti:     []snapshot.PodAffinityTerm{{Selector: &snapshot.LabelSelector{MatchLabels: map[string]string{"app": "p"}}, TopologyKey: catalog.LabelHostname}},
			},
		}
		s.Pods, w.kube.pods = append(s.Pods, p), append(w.kube.pods, p)
	}
	s.Normalize()
	table, _ := catalog.Embedded("us-east-1")
	p := provision.Plan(s, table, provision.Options{})
	if len(p.Launches) != n {
		w.t.Fatalf("%d launches, want %d: %+v", len(p.Launches), n, p.Verdicts)
	}
	lease, err := w.memory.Acquire(background, time.Minute)
	if err != nil {
		w.t.Fatal(err)
	}
	r, err := w.x.Launch(background, &execute.Order{
		Plan: p, Snapshot: s, Types: scheduling.PoolTypes(s, table), Lease: lease,
		Classes: map[string]execute.Class{"default": {Class: parsed, Resolved: resolved}},
	})
	if err != nil {
		w.t.Fatal(err)
	}
	if _, err := w.memory.Release(background, lease, 0); err != nil {
		w.t.Fatal(err)
	}
	return r
}

// pass lets time go by: kubelets join, messages are delivered, housekeeping is done.
func (w *lifeWorld) pass(d time.Duration) {
	w.t.Helper()
	for end := w.now.Add(d); w.now.Before(end); {
		w.now = w.now.Add(time.Second)
		w.kubelets()
		w.deliver()
		if w.rounds && w.now.Sub(w.start)%time.Minute == 0 {
			w.round()
		}
	}
}

func (w *lifeWorld) round() handler.HousekeepingReport {
	rep, err := w.house.Run(background)
	if err != nil {
		w.errs = append(w.errs, err)
	}
	w.rooms = append(w.rooms, rep)
	return rep
}

func (w *lifeWorld) deliver() {
	var due []queued
	w.queue = slices.DeleteFunc(w.queue, func(q queued) bool {
		if q.at.After(w.now) {
			return false
		}
		due = append(due, q)
		return true
	})
	slices.SortStableFunc(due, func(a, b queued) int { return a.at.Compare(b.at) })
	for _, q := range due {
		w.handle(q.body)
	}
}

func (w *lifeWorld) handle(body string) {
	work, err := lifecycle.DecodeWork(body)
	if err != nil {
		w.t.Fatal(err)
	}
	w.delivered++
	if err := w.life.Handle(background, work); err != nil {
		w.errs = append(w.errs, err)
		w.queue = append(w.queue, queued{w.now.Add(5 * time.Second), body})
	}
}

// kubelets bring instances that run into the cluster, make them Ready, and let the
// scheduler's work show: pods with a nomination are bound to a node that is open.
func (w *lifeWorld) kubelets() {
	for _, i := range w.ec2.Instances() {
		name := "node-" + i.ID
		// The cloud controller deletes Nodes whose instance is no more.
		if o := w.kube.nodes[name]; o != nil && o.meta.Deleting.IsZero() && !i.ShuttingFrom.IsZero() && w.now.Sub(i.ShuttingFrom) > time.Minute {
			o.meta.Deleting = w.now
			w.kube.reap()
		}
		if i.ShuttingFrom.IsZero() == false || w.never[i.ID] || w.never["*"] || w.now.Sub(i.RunningFrom) < w.joins || i.Tags["kubernetes.io/cluster/prod"] == "" {
			continue
		}
		o := w.kube.nodes[name]
		if o == nil {
			if w.now.Sub(i.RunningFrom) > w.joins+time.Second {
				continue // a kubelet registers when it starts
			}
			o = &lifeObject{meta: api.Meta{Name: name, Version: api.Version{UID: w.kube.uid("node")}, Created: w.now, Labels: map[string]string{"karpenter.sh/nodepool": "general"}}}
			if w.unlabelled {
				o.meta.Labels = map[string]string{}
			}
			o.node = snapshot.Node{ProviderID: "aws:///" + i.Zone + "/" + i.ID, Taints: append([]snapshot.Taint{lifecycle.Unregistered}, w.taints...)}
			w.kube.nodes[name] = o
		}
		if w.now.Sub(i.RunningFrom) >= w.joins+w.ready+w.late[i.ID] {
			o.node.Conditions = []snapshot.Condition{{Type: "Ready", Status: "True"}}
			o.node.Allocatable = snapshot.Resources{CPU: 1900, Memory: 7 << 30, Pods: 29}
			o.node.Capacity = snapshot.Resources{CPU: 2000, Memory: 8 << 30, Pods: 29}
			if !slices.ContainsFunc(o.node.Taints, func(t snapshot.Taint) bool { return t == lifecycle.Unregistered }) {
				o.node.Taints = slices.DeleteFunc(o.node.Taints, func(t snapshot.Taint) bool { return t.Key == "cni.example/not-ready" })
			}
		}
	}
	for i := range w.kube.pods {
		p := &w.kube.pods[i]
		if o := w.kube.nodes[p.NominatedNode]; p.NodeName == "" && o != nil && !o.node.Unschedulable {
			p.NodeName = p.NominatedNode
		}
	}
}

func (w *lifeWorld) records() []lifecycle.Record {
	w.t.Helper()
	r, err := w.memory.Records(background)
	if err != nil {
		w.t.Fatal(err)
	}
	return r
}

func (w *lifeWorld) record(i int) lifecycle.Record {
	w.t.Helper()
	r := w.records()
	if len(r) <= i {
		w.t.Fatalf("%d records, want more than %d", len(r), i)
	}
	return r[i]
}

// phases are those of the records, sorted.
func (w *lifeWorld) phases() string {
	var out []string
	for _, r := range w.records() {
		out = append(out, string(r.Phase))
	}
	slices.Sort(out)
	return strings.Join(out, " ")
}

// closed are the records that were closed.
func (w *lifeWorld) closed() []lifecycle.Record {
	w.t.Helper()
	r, err := w.memory.ClosedOn(background, w.now.Format(time.DateOnly))
	if err != nil {
		w.t.Fatal(err)
	}
	slices.SortFunc(r, func(a, b lifecycle.Record) int { return cmp.Compare(a.Claim, b.Claim) })
	return r
}

// running are the instances that were not told to end.
func (w *lifeWorld) running() (out []string) {
	for _, i := range w.ec2.Instances() {
		if i.ShuttingFrom.IsZero() {
			out = append(out, i.ID)
		}
	}
	return out
}

func (w *lifeWorld) event(reason string) *api.Event {
	for i := range w.kube.events {
		if w.kube.events[i].Reason == reason {
			return &w.kube.events[i]
		}
	}
	return nil
}

// want fails the test when phases or the count of running instances are others.
func (w *lifeWorld) want(what, phases string, running int) {
	w.t.Helper()
	if got := w.phases(); got != phases || len(w.running()) != running {
		w.t.Fatalf("%s: records are %q, %d instances run; want %q and %d\nproblems %v\nerrors %v", what, got, len(w.running()), phases, running, w.problems(), w.errs)
	}
}

func (w *lifeWorld) problems() (out []string) {
	for _, r := range w.reports {
		out = append(out, append(slices.Clone(r.Problems), r.Incomplete...)...)
	}
	for _, r := range w.rooms {
		out = append(out, append(slices.Clone(r.Problems), r.Incomplete...)...)
	}
	return out
}

// deleteAs is a person who deletes an object.
func (w *lifeWorld) deleteAs(kind, name string) {
	w.t.Helper()
	o := w.kube.of(kind)[name]
	if o == nil {
		w.t.Fatalf("no %s %s", kind, name)
	}
	if err := w.kube.Delete(background, kind, "", name, o.meta.Version.UID); err != nil {
		w.t.Fatal(err)
	}
}

var _ = plan.Count
