package handler_test

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/pricing"

	"kerf.sh/kerf/internal/app/region"
	"kerf.sh/kerf/internal/cloud/ec2fake"
	"kerf.sh/kerf/internal/cloud/fleet"
	"kerf.sh/kerf/internal/cloud/image"
	"kerf.sh/kerf/internal/cloud/profile"
	"kerf.sh/kerf/internal/cloud/resolve"
	"kerf.sh/kerf/internal/cloud/template"
	"kerf.sh/kerf/internal/cloud/userdata"
	"kerf.sh/kerf/internal/handler"
	"kerf.sh/kerf/internal/kube/api"
	"kerf.sh/kerf/internal/ledger"
	"kerf.sh/kerf/internal/snapshot"
)

// catWorld is an AWS, a ledger and a cluster that the function catalog works with.
type catWorld struct {
	t      *testing.T
	now    time.Time
	ec2    *ec2fake.EC2
	ssm    *ec2fake.SSM
	iam    *ec2fake.IAM
	list   *priceList
	table  *ledger.Memory
	kube   *catKube
	cache  *handler.FactsCache
	runner int
}

const (
	catSelectors = `"subnetSelectorTerms":[{"tags":{"discovery":"prod"}}],"securityGroupSelectorTerms":[{"tags":{"discovery":"prod"}}]`
	catSpec      = `{` + catSelectors + `,"amiSelectorTerms":[{"alias":"al2023@latest"}],"role":"nodes"}`
)

func newCatWorld(t *testing.T) *catWorld {
	w := &catWorld{t: t, now: time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC), table: ledger.NewMemory("t-1"), cache: &handler.FactsCache{}}
	clock := func() time.Time { return w.now }
	w.ec2 = ec2fake.New(clock)
	for i, zone := range []string{"us-east-1a", "us-east-1b"} {
		w.ec2.AddSubnet("subnet-"+zone[9:], zone, fmt.Sprintf("use1-az%d", i+1), int32(50+i), "discovery", "prod")
	}
	w.ec2.AddGroup("sg-1", "nodes", "discovery", "prod")
	w.ec2.AddImage("ami-amd", "amd", "x86_64", w.now)
	w.ec2.AddImage("ami-arm", "arm", "arm64", w.now)
	w.ec2.AddType(
		ec2fake.Type{Name: "m5.large", Arch: "amd64", VCPU: 2, OnDemand: 96_000, Spot: 40_000},
		ec2fake.Type{Name: "m7g.large", Arch: "arm64", VCPU: 2, OnDemand: 81_600, Spot: 30_000},
		ec2fake.Type{Name: "z9.large", Arch: "amd64", VCPU: 2, OnDemand: 77_000},
	)
	path := "/aws/service/eks/optimized-ami/1.34/amazon-linux-2023/"
	w.ssm = &ec2fake.SSM{Parameters: map[string]string{path + "x86_64/standard/recommended/image_id": "ami-amd", path + "arm64/standard/recommended/image_id": "ami-arm"}}
	w.iam = &ec2fake.IAM{Now: clock, Roles: map[string]bool{"nodes": true, "others": true}}
	w.list = &priceList{world: w}
	w.kube = &catKube{world: w, statuses: map[string]api.Status{}, finalizers: map[string][]string{}}
	return w
}

// memory is the ledger of another invocation.
func (w *catWorld) memory() *ledger.Ledger {
	w.runner++
	return ledger.New(ledger.Config{Table: w.table, Cluster: "prod", Owner: fmt.Sprint("run-", w.runner), Now: func() time.Time { return w.now }})
}

// catalog is the function in another process.
func (w *catWorld) catalog() *handler.Catalog {
	clock := func() time.Time { return w.now }
	sleep := func(context.Context, time.Duration) error { return nil }
	profiles := &profile.Profiles{Client: w.iam, Cluster: "prod", Region: "us-east-1", Sleep: sleep}
	return &handler.Catalog{
		Memory: w.memory(), Cluster: w.kube, Facts: &handler.FactsCache{}, Region: "us-east-1", Reservations: true, Controller: "kerf.sh/catalog", Instance: "t", Now: clock,
		Market: &region.Market{EC2: w.ec2, Products: w.list, Region: "us-east-1", Now: clock},
		Resolver: &resolve.Resolver{
			Network: w.ec2, Images: &image.Resolver{EC2: w.ec2, SSM: w.ssm, Now: clock}, Reserved: w.ec2, Region: "us-east-1", Now: clock, Profiles: profiles,
			Cluster:    userdata.Cluster{Name: "prod", Endpoint: "https://x", CA: "Y2E=", DNS: "172.20.0.10", ServiceCIDR: "172.20.0.0/16"},
			Kubernetes: image.Version{Major: 1, Minor: 34},
		},
		Leftovers: &region.Leftovers{Cluster: "prod", Instances: &fleet.Fleet{Client: w.ec2}, Templates: template.New(w.ec2, clock), Made: profiles},
	}
}

// run does everything that is due.
func (w *catWorld) run(classes ...string) *handler.CatalogReport {
	w.t.Helper()
	rep, err := w.catalog().Handle(background, handler.CatalogRequest{Classes: classes})
	if err != nil {
		w.t.Fatal(err)
	}
	return rep
}

// facts are what a function with a warm cache sees.
func (w *catWorld) facts() *handler.Facts {
	w.t.Helper()
	f, err := handler.LoadFacts(background, w.memory(), "us-east-1", w.now, w.cache)
	if err != nil {
		w.t.Fatal(err)
	}
	return f
}

// filled is the cluster as a planner sees it, and the classes that are stale.
func (w *catWorld) filled() (*snapshot.Snapshot, []string) {
	s, _ := w.kube.Some(background, "EC2NodeClass", "NodePool", "NodeClaim", "Node")
	s.Now = w.now
	stale := w.facts().Fill(s)
	return s, stale
}

// class adds a class, or changes the spec of one that is there.
func (w *catWorld) class(name, spec string) {
	for i := range w.kube.s.NodeClasses {
		if c := &w.kube.s.NodeClasses[i]; c.Name == name {
			c.Spec, c.Generation = []byte(spec), c.Generation+1
			return
		}
	}
	w.kube.s.NodeClasses = append(w.kube.s.NodeClasses, snapshot.NodeClass{Name: name, UID: "uid-" + name, Generation: 1, Spec: []byte(spec)})
	w.kube.s.NodePools = append(w.kube.s.NodePools, snapshot.NodePool{Name: "pool-" + name, UID: "uid-pool-" + name, Generation: 3,
		ClassRef: snapshot.ClassRef{Group: "karpenter.k8s.aws", Kind: "EC2NodeClass", Name: name}})
}

// ready is the condition Ready of an object's status, as "True", or with its reason.
func (w *catWorld) ready(object string) string {
	c := snapshot.FindCondition(w.kube.statuses[object].Conditions, "Ready")
	switch {
	case c == nil:
		return "none"
	case c.Status == "True":
		return fmt.Sprintf("True at %d", c.ObservedGeneration)
	}
	return c.Status + " " + c.Message
}

// priceList sells what the fake EC2 does.
type priceList struct {
	world *catWorld
	err   error
	calls int
	hides string // a type that is not on the list
}

func (p *priceList) GetProducts(_ context.Context, in *pricing.GetProductsInput, _ ...func(*pricing.Options)) (*pricing.GetProductsOutput, error) {
	p.calls++
	if p.err != nil {
		return nil, p.err
	}
	out := &pricing.GetProductsOutput{}
	shared := slices.ContainsFunc(in.Filters, func(f pricingFilter) bool { return *f.Field == "tenancy" && *f.Value == "Shared" })
	for _, name := range slices.Sorted(maps.Keys(p.world.ec2.Types)) {
		if t := p.world.ec2.Types[name]; shared && name != p.hides {
			out.PriceList = append(out.PriceList, fmt.Sprintf(`{"product":{"attributes":{"instanceType":%q}},"terms":{"OnDemand":{"a":{"priceDimensions":{"b":{"pricePerUnit":{"USD":"%d.%06d"}}}}}}}`,
				name, t.OnDemand/1_000_000, t.OnDemand%1_000_000))
		}
	}
	return out, nil
}

// catKube is the cluster.
type catKube struct {
	handler.Cluster // what is not asked for
	world           *catWorld
	s               snapshot.Snapshot
	statuses        map[string]api.Status // by "EC2NodeClass/name"
	finalizers      map[string][]string   // of classes, by UID
	events          []string
	leases          []api.LeaseState
	asked           []string
	refuse          map[string]error // by "PatchStatus EC2NodeClass/name"
}

func (k *catKube) Some(_ context.Context, kinds ...string) (*snapshot.Snapshot, error) {
	k.asked = append(k.asked, "Some "+strings.Join(kinds, ","))
	if err := k.refuse["Some"]; err != nil {
		return nil, err
	}
	s := &snapshot.Snapshot{Region: "us-east-1", Incomplete: k.s.Incomplete, Settings: snapshot.DefaultSettings()}
	for _, kind := range kinds {
		switch kind {
		case "EC2NodeClass":
			s.NodeClasses = slices.Clone(k.s.NodeClasses)
			for i := range s.NodeClasses {
				c := &s.NodeClasses[i]
				c.Conditions = k.statuses["EC2NodeClass/"+c.Name].Conditions
				c.HasStatus = c.Conditions != nil
			}
		case "NodePool":
			s.NodePools = slices.Clone(k.s.NodePools)
			for i := range s.NodePools {
				s.NodePools[i].Conditions = k.statuses["NodePool/"+s.NodePools[i].Name].Conditions
				s.NodePools[i].HasStatus = true
			}
		case "NodeClaim":
			s.NodeClaims = slices.Clone(k.s.NodeClaims)
		case "Node":
			s.Nodes = slices.Clone(k.s.Nodes)
		}
	}
	return s, nil
}

func (k *catKube) Metadata(_ context.Context, kind string) ([]api.Meta, error) {
	var out []api.Meta
	for _, c := range k.s.NodeClasses {
		out = append(out, api.Meta{Name: c.Name, Version: api.Version{UID: c.UID}, Finalizers: k.finalizers[c.UID], Deleting: c.Deleting})
	}
	return out, nil
}

func (k *catKube) Leases(context.Context, string) ([]api.LeaseState, error) { return k.leases, nil }

func (k *catKube) AddFinalizer(_ context.Context, kind, name, uid, finalizer string) error {
	k.asked = append(k.asked, "AddFinalizer "+kind+"/"+name)
	k.finalizers[uid] = append(k.finalizers[uid], finalizer)
	return k.refuse["AddFinalizer "+kind+"/"+name]
}

func (k *catKube) RemoveFinalizer(_ context.Context, kind, name, uid, finalizer string) error {
	k.asked = append(k.asked, "RemoveFinalizer "+kind+"/"+name)
	k.finalizers[uid] = nil
	k.s.NodeClasses = slices.DeleteFunc(k.s.NodeClasses, func(c snapshot.NodeClass) bool { return c.UID == uid && !c.Deleting.IsZero() })
	return nil
}

func (k *catKube) PatchStatus(_ context.Context, kind, name, _ string, s api.Status) (bool, error) {
	object := kind + "/" + name
	if err := k.refuse["PatchStatus "+object]; err != nil {
		return false, err
	}
	was := k.statuses[object]
	next := api.Status{Conditions: s.Conditions, Fields: maps.Clone(was.Fields)}
	if next.Fields == nil {
		next.Fields = map[string]any{}
	}
	for f, v := range s.Fields {
		if next.Fields[f] = v; v == nil {
			delete(next.Fields, f)
		}
	}
	k.statuses[object] = next
	return fmt.Sprint(was) != fmt.Sprint(next), nil
}

func (k *catKube) Emit(_ context.Context, e api.Event) (bool, error) {
	k.events = append(k.events, e.Object.Name+": "+e.Reason+": "+e.Note)
	return true, nil
}

// throttle makes EC2 refuse what op says, "" for nothing.
func (w *catWorld) throttle(op string) {
	w.ec2.Hook = func(c ec2fake.Call) ec2fake.Fault {
		if op == "all" || c.Op == op {
			return ec2fake.Fault{Before: ec2fake.Error("RequestLimitExceeded", "slow down")}
		}
		return ec2fake.Fault{}
	}
}
