package handler_test

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/ec2"
	"github.com/aws/aws-sdk-go-v2/service/ec2/types"

	"kerf.sh/kerf/internal/cloud/ec2fake"
	"kerf.sh/kerf/internal/kube/api"
	"kerf.sh/kerf/internal/ledger"
	"kerf.sh/kerf/internal/lifecycle"
	"kerf.sh/kerf/internal/snapshot"
)

const twoInUse = "Initialized Initialized"

// stray makes an instance that no record knows, with tags.
func (w *lifeWorld) stray(token string, tags map[string]string) string {
	w.t.Helper()
	name := w.ec2.Templates()
	if len(name) == 0 {
		w.t.Fatal("nothing was launched before")
	}
	var list []types.Tag
	for k, v := range tags {
		list = append(list, types.Tag{Key: aws.String(k), Value: aws.String(v)})
	}
	slices.SortFunc(list, func(a, b types.Tag) int { return strings.Compare(*a.Key, *b.Key) })
	out, err := w.ec2.CreateFleet(background, &ec2.CreateFleetInput{
		Type: types.FleetTypeInstant, ClientToken: aws.String(token),
		TargetCapacitySpecification: &types.TargetCapacitySpecificationRequest{TotalTargetCapacity: aws.Int32(1), DefaultTargetCapacityType: types.DefaultTargetCapacityTypeOnDemand},
		OnDemandOptions:             &types.OnDemandOptionsRequest{AllocationStrategy: types.FleetOnDemandAllocationStrategyLowestPrice},
		LaunchTemplateConfigs: []types.FleetLaunchTemplateConfigRequest{{
			LaunchTemplateSpecification: &types.FleetLaunchTemplateSpecificationRequest{LaunchTemplateName: &name[0], Version: aws.String("$Latest")},
			Overrides:                   []types.FleetLaunchTemplateOverridesRequest{{InstanceType: "m5.large", SubnetId: aws.String("subnet-a"), AvailabilityZone: aws.String("us-east-1a")}},
		}},
		TagSpecifications: []types.TagSpecification{{ResourceType: types.ResourceTypeInstance, Tags: list}},
	})
	if err != nil {
		w.t.Fatal(err)
	}
	return out.Instances[0].InstanceIds[0]
}

var ourTags = map[string]string{
	"kubernetes.io/cluster/prod": "owned", "eks:eks-cluster-name": "prod", "karpenter.sh/nodepool": "general", "karpenter.k8s.aws/ec2nodeclass": "default", "kerf.sh/attempt": "kerf-lost",
}

func joined2(t *testing.T) *lifeWorld {
	w := newLifeWorld(t)
	w.launch(2)
	w.pass(3 * time.Minute)
	w.want("joined", twoInUse, 2)
	return w
}

// TestOrphan: an instance that nobody owns is ended when it is fifteen minutes old and two
// complete readings showed it so; before that it is left alone.
func TestOrphan(t *testing.T) {
	w := joined2(t)
	id := w.stray("x", ourTags)
	w.never[id] = true
	w.pass(14 * time.Minute)
	w.want("too young", twoInUse, 3)
	w.rounds = false
	w.now = w.now.Add(2 * time.Minute)
	if rep := w.round(); !slices.Equal(rep.Orphans, []string{id}) || len(rep.Ended) > 0 {
		t.Fatalf("first reading %+v", rep)
	}
	if rep := w.round(); len(rep.Ended) > 0 {
		t.Fatalf("the second reading came at once: %+v", rep)
	}
	// An incomplete reading is no second one.
	w.now = w.now.Add(time.Minute)
	w.ec2.Hook = func(c ec2fake.Call) ec2fake.Fault {
		if c.Op == "DescribeInstances" {
			return ec2fake.Fault{Before: ec2fake.Error("RequestLimitExceeded", "slow down")}
		}
		return ec2fake.Fault{}
	}
	if rep := w.round(); len(rep.Ended)+len(rep.Orphans) > 0 || len(rep.Incomplete) == 0 {
		t.Fatalf("incomplete reading %+v", rep)
	}
	w.ec2.Hook = nil
	for _, kind := range []string{"NodeClaim", "Node"} {
		w.kube.fail = func(verb, k, name string) error {
			if verb == "list" && k == kind && name == "" {
				return errTest
			}
			return nil
		}
		if rep := w.round(); len(rep.Ended)+len(rep.Orphans) > 0 || len(rep.Incomplete) == 0 {
			t.Fatalf("reading without %ss: %+v", kind, rep)
		}
	}
	w.kube.fail = nil
	if rep := w.round(); !slices.Equal(rep.Ended, []string{id}) {
		t.Fatalf("second reading %+v", rep)
	}
	w.want("ended", twoInUse, 2)
}

// TestOrphanOfAttempt: the instance of an attempt whose outcome is not known is no orphan,
// however old.
func TestOrphanOfAttempt(t *testing.T) {
	w := newLifeWorld(t)
	w.rounds = false
	w.never["*"] = true
	w.ec2.Hook = func(c ec2fake.Call) ec2fake.Fault {
		if c.Op == "CreateFleet" {
			return ec2fake.Fault{After: errTest}
		}
		return ec2fake.Fault{}
	}
	w.launch(1)
	w.queue = nil // nobody resolves it
	w.now = w.now.Add(time.Hour)
	for range 3 {
		w.now = w.now.Add(time.Minute)
		if rep := w.round(); len(rep.Orphans) > 0 {
			t.Fatalf("%+v", rep)
		}
	}
	w.want("under way", "Launching", 1)
}

// TestForeign: instances of other clusters, and of nobody, are never touched.
func TestForeign(t *testing.T) {
	w := joined2(t)
	w.stray("a", map[string]string{"Name": "pet"})
	w.stray("b", map[string]string{"kubernetes.io/cluster/other": "owned", "eks:eks-cluster-name": "other", "karpenter.sh/nodepool": "general", "karpenter.k8s.aws/ec2nodeclass": "default"})
	w.stray("c", map[string]string{"kubernetes.io/cluster/prod": "shared"})
	w.pass(time.Hour)
	w.want("an hour later", twoInUse, 5)
}

// TestOrphanWithNode: an instance of ours that joined is adopted, never ended; its NodeClaim
// is made again.
func TestOrphanWithNode(t *testing.T) {
	w := joined2(t)
	id := w.stray("x", ourTags)
	w.pass(25 * time.Minute)
	w.want("adopted", twoInUse+" Initialized", 3)
	i := slices.IndexFunc(w.records(), func(r lifecycle.Record) bool { return r.Instance.ID == id })
	r := w.record(i)
	if !r.Adopted || r.UID == "" || w.kube.condition(r.Claim, "Ready") != "True Ready" || r.Spec.ExpireAfter != "720h" {
		t.Errorf("record %+v", r)
	}
	if c := w.kube.claims[r.Claim].claim; c.ClassRef.Name != "default" || len(c.Requirements) != 3 {
		t.Errorf("NodeClaim %+v", c)
	}
}

// TestStripped: objects that somebody took the finalizer off, and that are gone at once, end
// their instances; one that shows again does not.
func TestStripped(t *testing.T) {
	for _, kind := range []string{"NodeClaim", "Node"} {
		w := joined2(t)
		w.kube.pods = nil
		r := w.record(0)
		if kind == "Node" {
			delete(w.kube.nodes, r.Node)
		} else {
			delete(w.kube.claims, r.Claim)
		}
		w.pass(8 * time.Minute)
		w.want(kind+" is gone", "Initialized", 1)
	}
}

// TestTerminatedBehindOurBack: an instance that somebody ended is noticed without a message.
func TestTerminatedBehindOurBack(t *testing.T) {
	w := joined2(t)
	r := w.record(0)
	w.ec2.Interrupt(r.Instance.ID)
	w.kube.nodes[r.Node].node.Conditions = []snapshot.Condition{{Type: "Ready", Status: "Unknown"}}
	w.pass(6 * time.Minute)
	w.want("noticed", "Initialized", 1)
	if w.kube.nodes[r.Node] != nil || w.kube.claims[r.Claim] != nil {
		t.Error("its objects are still there")
	}
	if c := w.closed(); len(c) != 1 || !strings.Contains(c[0].Reason, "Instance") {
		t.Errorf("closed %+v", c)
	}
}

// TestKarpenterRuns: while Karpenter runs nothing is changed, by nobody.
func TestKarpenterRuns(t *testing.T) {
	w := joined2(t)
	w.launch(1)
	w.deleteAs("NodeClaim", w.record(0).Claim)
	w.kube.leases = []api.LeaseState{{Namespace: "kube-system", Name: "karpenter-leader-election", Holder: "karpenter-1", Renewed: w.now}}
	at := len(w.kube.calls)
	for range 10 {
		w.kube.leases[0].Renewed = w.now
		w.pass(time.Minute - time.Second)
	}
	for _, c := range w.kube.calls[at:] {
		if !strings.HasPrefix(c, "list ") && !strings.HasPrefix(c, "get ") {
			t.Fatalf("%s while Karpenter runs", c)
		}
	}
	if rep := w.rooms[len(w.rooms)-1]; !strings.Contains(rep.Refused, "karpenter-1") {
		t.Errorf("housekeeping says %+v", rep)
	}
	if rep := w.reports[len(w.reports)-1]; !strings.Contains(rep.Refused, "karpenter-1") {
		t.Errorf("the chain says %+v", rep)
	}
	w.kube.pods = nil
	w.pass(20 * time.Minute) // it stopped
	if got := w.phases(); !strings.HasPrefix(got, "Initialized") || len(w.records()) > 2 {
		t.Errorf("afterwards %q", got)
	}
}

// karpenters is a node that Karpenter made.
func (w *lifeWorld) karpenters(claim, id string, ref snapshot.ClassRef) {
	c := &lifeObject{
		meta:  api.Meta{Name: claim, Version: api.Version{UID: w.kube.uid("karpenter")}, Created: w.now, Finalizers: []string{"karpenter.sh/termination"}, Labels: map[string]string{"karpenter.sh/nodepool": "general", "node.kubernetes.io/instance-type": "m5.large"}},
		claim: snapshot.NodeClaim{ClassRef: ref, ExpireAfter: "24h"},
	}
	c.status = api.Status{Fields: map[string]any{"providerID": "aws:///us-east-1a/" + id}, Conditions: []snapshot.Condition{{Type: "Ready", Status: "True", Since: w.now}}}
	w.kube.claims[claim] = c
	w.kube.nodes["node-"+id] = &lifeObject{
		meta: api.Meta{Name: "node-" + id, Version: api.Version{UID: w.kube.uid("node")}, Created: w.now, Finalizers: []string{"karpenter.sh/termination"},
			Labels: map[string]string{"karpenter.sh/nodepool": "general", "karpenter.sh/registered": "true", "karpenter.sh/initialized": "true"}},
		node: snapshot.Node{ProviderID: "aws:///us-east-1a/" + id, Conditions: []snapshot.Condition{{Type: "Ready", Status: "True"}}, Capacity: snapshot.Resources{CPU: 2000}},
	}
}

var ourClass = snapshot.ClassRef{Group: "karpenter.k8s.aws", Kind: "EC2NodeClass", Name: "default"}

// TestAdoptKarpenters: nodes that Karpenter made become ours without a write to any object;
// those of EKS Auto Mode do not exist for us.
func TestAdoptKarpenters(t *testing.T) {
	w := joined2(t)
	tags := func(claim string) map[string]string {
		return map[string]string{"kubernetes.io/cluster/prod": "owned", "eks:eks-cluster-name": "prod", "karpenter.sh/nodepool": "general", "karpenter.k8s.aws/ec2nodeclass": "default", "karpenter.sh/nodeclaim": claim, "Name": "mine"}
	}
	w.karpenters("general-abc", w.stray("k", tags("general-abc")), ourClass)
	w.karpenters("auto-xyz", "i-auto", snapshot.ClassRef{Group: "eks.amazonaws.com", Kind: "NodeClass", Name: "auto"})
	at := len(w.kube.calls)
	w.pass(30 * time.Minute)
	w.want("adopted", twoInUse+" Initialized", 3)
	for _, c := range w.kube.calls[at:] {
		if !strings.HasPrefix(c, "list ") && !strings.HasPrefix(c, "get ") {
			t.Errorf("%s for adopting", c)
		}
	}
	for _, rep := range w.rooms {
		if len(rep.Corrections) > 0 {
			t.Errorf("what was adopted was counted wrong: %+v", rep.Corrections)
		}
	}
	i := slices.IndexFunc(w.records(), func(r lifecycle.Record) bool { return r.Claim == "general-abc" })
	if r := w.record(i); !r.Adopted || r.Reserved["cpu"] != 2000 || r.Spec.ExpireAfter != "24h" {
		t.Errorf("record %+v", r)
	}
	// It is a node like any other from now on.
	w.kube.pods = nil
	w.deleteAs("NodeClaim", "general-abc")
	w.pass(4 * time.Minute)
	w.want("deleted", twoInUse, 2)
	if w.kube.claims["auto-xyz"] == nil || w.kube.nodes["node-i-auto"] == nil {
		t.Error("the node of Auto Mode is gone")
	}
}

// TestLeftovers: NodeClaims that nothing stands behind are let go of; one that somebody made
// by hand is left alone, and told that it is not launched.
func TestLeftovers(t *testing.T) {
	w := joined2(t)
	claim := func(name string, change func(*lifeObject)) {
		o := &lifeObject{meta: api.Meta{Name: name, Version: api.Version{UID: w.kube.uid(name)}, Created: w.now, Finalizers: []string{"karpenter.sh/termination"}, Labels: map[string]string{}, Annotations: map[string]string{}}, claim: snapshot.NodeClaim{ClassRef: ourClass}}
		change(o)
		w.kube.claims[name] = o
	}
	claim("deleted", func(o *lifeObject) { o.meta.Deleting = w.now })
	claim("ours", func(o *lifeObject) { o.meta.Annotations["kerf.sh/creation"] = "ours/plan-1" })
	claim("karpenters", func(o *lifeObject) { o.meta.Labels["karpenter.sh/nodepool"] = "general" })
	claim("by-hand", func(*lifeObject) {})
	w.pass(2 * time.Minute)
	if w.kube.claims["deleted"] != nil || w.kube.claims["ours"] == nil || w.kube.claims["karpenters"] == nil {
		t.Errorf("after two minutes: %v", sortedNames(w.kube.claims))
	}
	w.pass(20 * time.Minute)
	if w.kube.claims["ours"] != nil || w.kube.claims["karpenters"] != nil || w.kube.claims["by-hand"] == nil {
		t.Errorf("after twenty minutes: %v", sortedNames(w.kube.claims))
	}
	if e := w.event("NotLaunched"); e == nil || e.Object.Name != "by-hand" {
		t.Errorf("events %+v", w.kube.events)
	}
	w.want("the others", twoInUse, 2)
}

func sortedNames(m map[string]*lifeObject) (out []string) {
	for k := range m {
		out = append(out, k)
	}
	slices.Sort(out)
	return out
}

// TestForgottenCordon: a node that was shut for its pods and forgotten is opened.
func TestForgottenCordon(t *testing.T) {
	w := joined2(t)
	n := w.kube.nodes[w.record(0).Node]
	n.node.Unschedulable = true
	n.meta.Annotations["kerf.sh/opening"] = w.now.Format(time.RFC3339)
	w.pass(2 * time.Minute)
	if n.node.Unschedulable || n.meta.Annotations["kerf.sh/opening"] != "" {
		t.Errorf("node %+v", n)
	}
}

// TestNominationsEnd: nominations of pods that are bound are dropped.
func TestNominationsEnd(t *testing.T) {
	w := joined2(t)
	w.pass(2 * time.Minute)
	for _, r := range w.records() {
		if len(r.Nominated) != 0 {
			t.Errorf("%s still has %v", r.Claim, r.Nominated)
		}
	}
}

// TestTemplates: a launch template goes when nobody has used it for an hour.
func TestTemplates(t *testing.T) {
	w := joined2(t)
	if n := len(w.ec2.Templates()); n != 1 {
		t.Fatalf("%d templates", n)
	}
	w.pass(2 * time.Hour)
	if n := len(w.ec2.Templates()); n != 1 {
		t.Errorf("%d templates while nodes of it live", n)
	}
	w.kube.pods = nil
	for _, r := range w.records() {
		w.deleteAs("NodeClaim", r.Claim)
	}
	w.pass(30 * time.Hour)
	w.want("nothing is left", "", 0)
	if n := len(w.ec2.Templates()); n != 0 {
		t.Errorf("%d templates after a day", n)
	}
}

// TestPoolsAreAsked: the statuses of NodePools are asked for when their nodes are others than
// before, again when that failed, and not while nothing changes.
func TestPoolsAreAsked(t *testing.T) {
	w := joined2(t)
	asked, fails := 0, true
	w.house.Pools = func(context.Context) error {
		if asked++; fails {
			return errors.New("no")
		}
		return nil
	}
	round := func(want int) {
		t.Helper()
		asked = 0
		if rep, err := w.house.Run(background); err != nil || asked != want || want > 0 && fails != (len(rep.Problems) > 0) {
			t.Errorf("asked %d times, want %d; %+v, %v", asked, want, rep, err)
		}
	}
	round(1)
	fails = false
	round(1)
	round(0)
	w.kube.pods = nil
	w.deleteAs("NodeClaim", w.record(0).Claim)
	w.pass(10 * time.Minute)
	asked = 0
	if _, err := w.house.Run(background); err != nil {
		t.Fatal(err)
	}
	w.want("one is left", "Initialized", 1)
	round(0)
}

// TestUsageHeals: counters that somebody changed are what the records add up to again.
func TestUsageHeals(t *testing.T) {
	w := joined2(t)
	r := w.record(0)
	next := r
	next.Reserved = lifecycle.Usage{"cpu": 1000, "nodes": 1}
	if _, err := w.memory.Save(background, lifecycle.Change{Was: r, Next: next}); err != nil {
		t.Fatal(err)
	}
	w.pass(time.Minute)
	u, err := w.memory.Usage(background)
	if err != nil || u["general"]["nodes"] != 2 || u["general"]["cpu"] != 3000 {
		t.Errorf("usage %v, %v", u, err)
	}
	// A counter that is not what the records say.
	_, err = w.table.Write(background, ledger.Write{Key: ledger.Key{PK: "POOLS", SK: "general"}, Add: map[string]int64{"u:cpu": 5, "v": 1}})
	if err != nil {
		t.Fatal(err)
	}
	rep := w.round()
	if u, err = w.memory.Usage(background); err != nil || u["general"]["cpu"] != 3000 || len(rep.Corrections) != 1 || rep.Corrections[0].Was["cpu"] != 3005 {
		t.Errorf("usage %v, %v; corrections %+v", u, err, rep.Corrections)
	}
}
