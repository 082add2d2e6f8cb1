package execute_test

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	"kerf.sh/kerf/internal/cloud/ec2fake"
	"kerf.sh/kerf/internal/cloud/nodeclass"
	"kerf.sh/kerf/internal/execute"
	"kerf.sh/kerf/internal/kube/api"
	"kerf.sh/kerf/internal/lifecycle"
	"kerf.sh/kerf/internal/snapshot"
)

func TestLaunch(t *testing.T) {
	w := newWorld(t)
	o := w.order(3, nil, "spot", "on-demand")
	r := w.launch(o)
	if r.Launched != 3 || r.Committed != 3 || r.Calls != 1 || len(r.Failed)+len(r.Errors) > 0 {
		t.Fatalf("report %+v", r)
	}
	instances := w.ec2.Instances()
	if len(instances) != 3 || len(w.kube.claims) != 3 {
		t.Fatalf("%d instances, %d NodeClaims; want 3", len(instances), len(w.kube.claims))
	}
	var pods []string
	for _, rec := range w.records() {
		if rec.Phase != lifecycle.Launched || rec.UID != "uid-"+rec.Claim || rec.PlanID != o.Plan.ID || rec.Instance.Price == 0 || rec.Instance.ImageID != "ami-1" {
			t.Errorf("record %+v", rec)
		}
		if got := rec.Spec.Labels; got["node.kubernetes.io/instance-type"] != rec.Instance.Type || got["topology.kubernetes.io/zone"] != rec.Instance.Zone ||
			got["karpenter.sh/capacity-type"] != "spot" || got["team"] != "blue" || got["karpenter.sh/nodepool"] != "general" {
			t.Errorf("labels of %s: %v", rec.Claim, got)
		}
		if rec.Reserved[lifecycle.Price] != rec.Instance.Price || rec.Reserved["cpu"] != 2000 {
			t.Errorf("%s reserves %v", rec.Claim, rec.Reserved)
		}
		i := slices.IndexFunc(instances, func(i *ec2fake.Instance) bool { return i.ID == rec.Instance.ID })
		if i < 0 || instances[i].Tags[nodeclass.TagAttempt] != rec.Attempt {
			t.Errorf("%s has instance %s, which EC2 does not know by attempt %s", rec.Claim, rec.Instance.ID, rec.Attempt)
		}
		for _, p := range rec.Nominated {
			pods = append(pods, p.UID)
		}
		claim := w.kube.claims[rec.Claim]
		if claim.Pool.UID != "pool-uid" || claim.Claim.ExpireAfter != "720h" || claim.Claim.Labels["node.kubernetes.io/instance-type"] != "" {
			t.Errorf("NodeClaim %+v", claim)
		}
	}
	slices.Sort(pods)
	if want := []string{"pod-uid-0", "pod-uid-1", "pod-uid-2"}; !slices.Equal(pods, want) {
		t.Errorf("nominated %v; want %v", pods, want)
	}
}

// TestNextOffer: a lack of capacity is remembered, and the same pass asks for what is left
// of the options: here first spot, then on demand.
func TestNextOffer(t *testing.T) {
	w := newWorld(t)
	w.ec2.Short = []ec2fake.Offer{{Type: "*", Zone: "*", CapacityType: "spot"}}
	r := w.launch(w.order(2, nil, "spot", "on-demand"))
	if r.Calls != 2 || r.Launched != 2 || len(r.Failed) > 0 {
		t.Fatalf("report %+v", r)
	}
	for _, rec := range w.records() {
		if rec.Instance.CapacityType != "on-demand" || rec.Tries < 2 {
			t.Errorf("%s is %+v after %d tries", rec.Claim, rec.Instance, rec.Tries)
		}
	}
	health, err := w.memory.Offerings(ctx)
	if err != nil || len(health) == 0 {
		t.Fatalf("remembered %v, %v", health, err)
	}
	for _, x := range health {
		if x.CapacityType != "spot" || x.Available(w.now) {
			t.Errorf("remembered %+v", x)
		}
	}
}

// TestSpotLimit: a quota that is used up is remembered of spot as a whole, so that the next
// plan, whatever its types and zones, does not ask for spot (S-14).
func TestSpotLimit(t *testing.T) {
	w := newWorld(t)
	w.ec2.SpotLimit = 1
	r := w.launch(w.order(2, nil, "spot", "on-demand"))
	if r.Launched != 2 || len(r.Failed) > 0 {
		t.Fatalf("report %+v", r)
	}
	known, err := w.memory.Remember(ctx)
	if err != nil {
		t.Fatal(err)
	}
	s := snapshot.Snapshot{Now: w.now}
	known.Into(&s)
	if !slices.ContainsFunc(s.Shortages, func(x snapshot.Shortage) bool {
		return x.Code == "MaxSpotInstanceCountExceeded" && x.Hits("r9.huge", "another-zone", "spot", "") && !x.Hits("m5.large", "us-east-1a", "on-demand", "")
	}) {
		t.Errorf("remembered %+v", s.Shortages)
	}
}

// TestNothingLeft: where nothing can be had, nothing is left behind, limits included.
func TestNothingLeft(t *testing.T) {
	w := newWorld(t)
	w.ec2.Short = []ec2fake.Offer{{Type: "*", Zone: "*", CapacityType: "*"}}
	r := w.launch(w.order(2, map[string]int64{"cpu": 64000}, "spot", "on-demand"))
	if r.Launched != 0 || len(r.Failed) != 2 || !r.Failed[0].Capacity || r.Failed[0].Code != "InsufficientCapacityError" {
		t.Fatalf("report %+v", r)
	}
	if n := len(w.records()); n != 0 || len(w.kube.claims) != 0 || len(w.kube.deleted) != 2 {
		t.Errorf("%d records, %d NodeClaims left, deleted %v", n, len(w.kube.claims), w.kube.deleted)
	}
	usage, err := w.memory.Usage(ctx)
	if err != nil || usage["general"]["cpu"] != 0 {
		t.Errorf("usage %v, %v", usage, err)
	}
}

// TestUnauthorized: what no other offer mends ends the launch, names the permission, and is
// not tried again and again.
func TestUnauthorized(t *testing.T) {
	w := newWorld(t)
	w.ec2.Denied = map[string]bool{"ec2:CreateFleet": true}
	r := w.launch(w.order(2, nil, "on-demand"))
	if r.Calls != 1 || len(r.Failed) != 2 || r.Failed[0].Capacity || r.Failed[0].Permission != "ec2:CreateFleet" {
		t.Fatalf("report %+v", r)
	}
}

// TestLostAnswer: the answer to CreateFleet is lost after EC2 acted. The stored bytes are
// sent again in the same pass, and there are no more instances than claims.
func TestLostAnswer(t *testing.T) {
	w := newWorld(t)
	w.once("CreateFleet", ec2fake.Fault{After: context.DeadlineExceeded})
	r := w.launch(w.order(3, nil, "on-demand"))
	if r.Launched != 3 || len(w.ec2.Instances()) != 3 {
		t.Errorf("%d launched, %d instances: %+v", r.Launched, len(w.ec2.Instances()), r)
	}
}

// TestResolve: nobody ever heard the answer. The attempt is left alone while the call may be
// under way, and then resolved by its stored request: by whoever comes, as often as they like.
func TestResolve(t *testing.T) {
	w := newWorld(t)
	w.ec2.Hook = func(c ec2fake.Call) ec2fake.Fault {
		if c.Op == "CreateFleet" {
			return ec2fake.Fault{After: context.DeadlineExceeded}
		}
		return ec2fake.Fault{}
	}
	r := w.launch(w.order(3, nil, "on-demand"))
	if r.Launched != 0 || len(r.Errors) == 0 || len(w.ec2.Instances()) != 3 {
		t.Fatalf("report %+v, %d instances", r, len(w.ec2.Instances()))
	}
	w.ec2.Hook = nil
	resolve := func() time.Time {
		attempts, err := w.memory.Attempts(ctx)
		if err != nil {
			t.Fatal(err)
		}
		next, err := w.x.Resolve(ctx, execute.Unresolved{Attempts: attempts, Records: w.records()})
		if err != nil {
			t.Fatal(err)
		}
		return next
	}
	next := resolve()
	if want := w.now.Add(lifecycle.CallTimeout + lifecycle.Grace); !next.Equal(want) || w.records()[0].Phase != lifecycle.Launching {
		t.Fatalf("resolved at once, or again at %v; want %v", next, want)
	}
	w.now = next
	resolve()
	resolve()
	for _, rec := range w.records() {
		if rec.Phase != lifecycle.Launched {
			t.Errorf("record %+v", rec)
		}
	}
	if n := len(w.ec2.Instances()); n != 3 {
		t.Errorf("%d instances; want 3", n)
	}
}

// TestResolveByTag: in recovery nothing is sent again. What the tag shows is settled, and
// claims that got nothing are free only after five minutes of looking.
func TestResolveByTag(t *testing.T) {
	w := newWorld(t)
	w.ec2.Left[ec2fake.Offer{Type: "m5.large", Zone: "us-east-1a", CapacityType: "on-demand"}] = 1
	w.ec2.Short = []ec2fake.Offer{{Type: "m6i.large", Zone: "*", CapacityType: "*"}, {Type: "*", Zone: "us-east-1b", CapacityType: "*"}}
	w.ec2.Hook = func(c ec2fake.Call) ec2fake.Fault {
		if c.Op == "CreateFleet" {
			return ec2fake.Fault{After: context.DeadlineExceeded}
		}
		return ec2fake.Fault{}
	}
	w.launch(w.order(2, nil, "on-demand"))
	w.ec2.Hook = nil
	began := w.now
	calls := len(w.ec2.Calls("CreateFleet"))
	for w.now.Sub(began) < 20*time.Minute {
		attempts, err := w.memory.Attempts(ctx)
		if err != nil {
			t.Fatal(err)
		}
		next, err := w.x.Resolve(ctx, execute.Unresolved{Attempts: attempts, Records: w.records(), Recovering: true})
		if err != nil {
			t.Fatal(err)
		}
		if next.IsZero() {
			break
		}
		w.now = next
	}
	if took := w.now.Sub(began); took < lifecycle.LookFor || len(w.ec2.Calls("CreateFleet")) != calls {
		t.Errorf("given up after %s, %d calls more", took, len(w.ec2.Calls("CreateFleet"))-calls)
	}
	var phases []lifecycle.Phase
	for _, rec := range w.records() {
		phases = append(phases, rec.Phase)
	}
	slices.Sort(phases)
	if want := []lifecycle.Phase{lifecycle.Intended, lifecycle.Launched}; !slices.Equal(phases, want) {
		t.Errorf("phases %v; want %v", phases, want)
	}
}

// TestLostLease: another pass has taken the lease; nothing is written and nothing launched.
func TestLostLease(t *testing.T) {
	w := newWorld(t)
	o := w.order(2, nil, "on-demand")
	w.now = w.now.Add(2 * time.Minute)
	if _, err := w.ledgerOf("second").Acquire(ctx, time.Minute); err != nil {
		t.Fatal(err)
	}
	if _, err := w.x.Launch(ctx, o); !errors.Is(err, lifecycle.ErrLostLease) {
		t.Fatalf("launch under a lost lease: %v", err)
	}
	if len(w.records())+len(w.ec2.Instances())+len(w.kube.claims) > 0 {
		t.Error("something was launched")
	}
}

// TestLimit: what others have launched meanwhile counts. The rest of the plan goes on.
func TestLimit(t *testing.T) {
	w := newWorld(t)
	o := w.order(3, map[string]int64{"cpu": 6000}, "on-demand")
	other := lifecycle.Record{Claim: "general-other", NodePool: "general", Phase: lifecycle.Launched, Reserved: lifecycle.Usage{"cpu": 2000, "nodes": 1}}
	if _, err := w.memory.Adopt(ctx, other); err != nil {
		t.Fatal(err)
	}
	r := w.launch(o)
	if r.Launched != 2 || len(r.Failed) != 1 || r.Failed[0].Code != "LimitExceeded" || !strings.Contains(r.Failed[0].Message, "cpu") {
		t.Errorf("report %+v", r)
	}
}

// TestWebhookDown: an admission webhook refuses NodeClaims because it has no node to run on.
// The node is launched all the same (and the object made later).
func TestWebhookDown(t *testing.T) {
	w := newWorld(t)
	w.kube.refuse = api.ErrUnavailable
	r := w.launch(w.order(1, nil, "on-demand"))
	if r.Launched != 1 || len(r.Errors) != 1 || !errors.Is(r.Errors[0], api.ErrUnavailable) {
		t.Errorf("report %+v", r)
	}
	if rec := w.records()[0]; rec.UID != "" || rec.Phase != lifecycle.Launched {
		t.Errorf("record %+v", rec)
	}
}

// TestApart: a thousand nodes in one pass, within what transactions and requests hold.
func TestApart(t *testing.T) {
	w := newWorld(t)
	r := w.launch(w.order(1000, nil, "on-demand"))
	if r.Launched != 1000 || len(w.ec2.Instances()) != 1000 {
		t.Errorf("%d launched, %d instances, %d failed: %v", r.Launched, len(w.ec2.Instances()), len(r.Failed), r.Errors)
	}
}

// TestTwice: the same pass, cut off after its commit and done again by the same holder,
// launches nothing twice.
func TestTwice(t *testing.T) {
	w := newWorld(t)
	o := w.order(3, nil, "on-demand")
	w.launch(o)
	r := w.launch(o)
	if n := len(w.ec2.Instances()); n != 3 || r.Launched != 0 {
		t.Errorf("%d instances after the second time; report %+v", n, r)
	}
}

// TestDeadline: nothing is begun that could not be ended, and what is left is counted.
func TestDeadline(t *testing.T) {
	w := newWorld(t)
	o := w.order(2, nil, "on-demand")
	short, cancel := context.WithDeadline(ctx, w.now.Add(execute.Reserve-time.Second))
	defer cancel()
	r, err := w.x.Launch(short, o)
	if err != nil || r.Left != 2 || len(w.records())+len(w.ec2.Instances()) > 0 {
		t.Errorf("report %+v, %v", r, err)
	}
}

// TestCancel: an intent that goes on meanwhile is left alone.
func TestCancel(t *testing.T) {
	w := newWorld(t)
	r := w.launch(w.order(1, nil, "on-demand"))
	rec := r.Records[0]
	stale := rec
	stale.Phase, stale.Attempt, stale.Version, stale.Instance = lifecycle.Intended, "", 1, lifecycle.Instance{}
	if err := w.x.Cancel(ctx, stale, "no use"); err != nil {
		t.Fatal(err)
	}
	if got := w.records(); len(got) != 1 || got[0].Phase != lifecycle.Launched || len(w.kube.deleted) > 0 {
		t.Errorf("records %+v, deleted %v", got, w.kube.deleted)
	}
}

// TestNominate: pods that a plan puts on a node that is coming are written down with it.
func TestNominate(t *testing.T) {
	w := newWorld(t)
	o := w.order(1, nil, "on-demand")
	rec := w.launch(o).Records[0]
	p := *o.Plan
	p.Placements = append(p.Placements, placement("shop/late", rec.Claim))
	s := *o.Snapshot
	s.Pods = append(slices.Clone(s.Pods), snapshot.Pod{Namespace: "shop", Name: "late", UID: "late-uid"})
	for range 2 {
		if err := w.x.Nominate(ctx, &p, &s, w.records()); err != nil {
			t.Fatal(err)
		}
	}
	if got := w.records()[0]; len(got.Nominated) != 2 || got.Nominated[1].UID != "late-uid" {
		t.Errorf("nominated %+v", got.Nominated)
	}
}
