package handler_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/pricing/types"
	"github.com/google/go-cmp/cmp"

	"kerf.sh/kerf/internal/catalog"
	"kerf.sh/kerf/internal/cloud/ec2fake"
	"kerf.sh/kerf/internal/handler"
	"kerf.sh/kerf/internal/kube/api"
	"kerf.sh/kerf/internal/lifecycle"
	"kerf.sh/kerf/internal/snapshot"
)

type pricingFilter = types.Filter

// TestCatalogWhole: from an empty table to classes, pools, types and prices that a planner
// can use.
func TestCatalogWhole(t *testing.T) {
	w := newCatWorld(t)
	w.class("default", catSpec)
	if _, stale := w.filled(); !slices.Equal(stale, []string{"default"}) {
		t.Errorf("stale before: %v", stale)
	}
	rep := w.run()
	if len(rep.Left)+len(rep.Warnings) > 0 || rep.Types != 3 || len(rep.Classes) != 1 || rep.Classes[0].Ready != "True" {
		t.Errorf("report %+v", rep)
	}
	s, stale := w.filled()
	if len(stale) > 0 {
		t.Errorf("stale after: %v", stale)
	}
	c := &s.NodeClasses[0]
	if got := fmt.Sprint(c.Zones); got != "[{us-east-1a use1-az1} {us-east-1b use1-az2}]" {
		t.Errorf("zones %s", got)
	}
	// S-16: each architecture boots its own image.
	f := w.facts()
	resolved, err := f.Catalog.Resolve(c, snapshot.DefaultSettings())
	if err != nil {
		t.Fatal(err)
	}
	images := map[string]string{}
	for _, r := range resolved {
		images[r.Type.Name] = r.Image
	}
	if d := cmp.Diff(map[string]string{"m5.large": "ami-amd", "m7g.large": "ami-arm", "z9.large": "ami-amd"}, images); d != "" {
		t.Errorf("images (-want +got):\n%s", d)
	}
	if d := cmp.Diff([]string{
		"m5.large us-east-1a on-demand 96000 true", "m5.large us-east-1a spot 40000 true", "m5.large us-east-1b on-demand 96000 true", "m5.large us-east-1b spot 40000 true",
		"m7g.large us-east-1a on-demand 81600 true", "m7g.large us-east-1a spot 30000 true", "m7g.large us-east-1b on-demand 81600 true", "m7g.large us-east-1b spot 30000 true",
		"z9.large us-east-1a on-demand 77000 true", "z9.large us-east-1b on-demand 77000 true",
	}, offers(f.Catalog)); d != "" {
		t.Errorf("offers (-want +got):\n%s", d)
	}
	if f.Catalog.Date != "2026-03-01" || !strings.Contains(f.Catalog.Source, "spot prices of 2026-03-01 12:00Z") {
		t.Errorf("date %s, source %s", f.Catalog.Date, f.Catalog.Source)
	}
	if got := w.ready("EC2NodeClass/default") + ", " + w.ready("NodePool/pool-default"); got != "True at 1, True at 3" {
		t.Errorf("ready: %s", got)
	}
	for _, field := range []string{"subnets", "securityGroups", "amis", "instanceProfile"} {
		if w.kube.statuses["EC2NodeClass/default"].Fields[field] == nil {
			t.Errorf("the status has no %s", field)
		}
	}
	if got := w.kube.finalizers["uid-default"]; !slices.Equal(got, []string{handler.ClassFinalizer}) {
		t.Errorf("finalizers %v", got)
	}
	// What is done is not done again, and nothing is read that is not due.
	w.now = w.now.Add(5 * time.Minute)
	w.kube.asked, w.list.calls = nil, 0
	if rep := w.run(); len(rep.Read) > 0 || rep.Pools != 0 || slices.Contains(w.kube.asked, "AddFinalizer EC2NodeClass/default") || w.list.calls > 0 {
		t.Errorf("again: %+v, asked %v", rep, w.kube.asked)
	}
}

// offers are those of a catalogue, as text.
func offers(c *catalog.Catalog) (out []string) {
	for _, t := range c.Types {
		for _, o := range t.Offerings {
			out = append(out, fmt.Sprint(t.Name, " ", o.Zone, " ", o.CapacityType, " ", o.Price, " ", o.Available))
		}
	}
	return out
}

// TestCatalogBrokenClass: broken classes stop neither the others, nor types and prices.
func TestCatalogBrokenClass(t *testing.T) {
	w := newCatWorld(t)
	w.class("a-unreadable", `{"kubelet":3}`)
	w.class("b-role", strings.Replace(catSpec, `"nodes"`, `"nobody"`, 1))
	w.class("c-good", catSpec)
	w.class("d-subnets", strings.Replace(catSpec, "prod", "dev", 1))
	w.kube.refuse = map[string]error{"PatchStatus EC2NodeClass/b-role": fmt.Errorf("%w: no", api.ErrForbidden)}
	rep, err := w.catalog().Handle(background, handler.CatalogRequest{})
	if !errors.Is(err, api.ErrForbidden) || strings.Count(err.Error(), "\n") > 0 {
		t.Errorf("error %v", err)
	}
	if rep.Types != 3 || len(rep.Classes) != 4 {
		t.Errorf("report %+v", rep)
	}
	s, stale := w.filled()
	got := map[string]string{}
	for _, c := range s.NodeClasses {
		got[c.Name] = snapshot.FindCondition(c.Conditions, "Ready").Status
	}
	want := map[string]string{"a-unreadable": "False", "b-role": "False", "c-good": "True", "d-subnets": "False"}
	if d := cmp.Diff(want, got); d != "" || len(stale) > 0 {
		t.Errorf("ready (-want +got), stale %v:\n%s", stale, d)
	}
	for pool, want := range map[string]string{
		"NodePool/pool-c-good": "True at 3", "NodePool/pool-b-role": "False NodeClassReady", "NodePool/pool-d-subnets": "False NodeClassReady",
	} {
		if got := w.ready(pool); got != want {
			t.Errorf("%s: %s, want %s", pool, got, want)
		}
	}
	reason := snapshot.FindCondition(w.kube.statuses["NodePool/pool-d-subnets"].Conditions, "NodeClassReady")
	if reason.Reason != "UnhealthyDependents" || !strings.Contains(reason.Message, "SubnetsReady") {
		t.Errorf("pool of a class without subnets: %+v", reason)
	}
	if len(w.kube.events) != 3 || !slices.ContainsFunc(w.kube.events, func(e string) bool { return strings.HasPrefix(e, "d-subnets: SubnetsNotFound: ") }) {
		t.Errorf("events %q", w.kube.events)
	}
	w.kube.events = nil
	w.kube.refuse = nil
	w.run()
	if len(w.kube.events) > 1 { // b-role's status could not be written before
		t.Errorf("events again: %q", w.kube.events)
	}
}

// TestCatalogGenerations: a changed class is stale until it is resolved, one that was
// deleted and made again is another one, and a payload resolves one class at once.
func TestCatalogGenerations(t *testing.T) {
	w := newCatWorld(t)
	w.class("a", catSpec)
	w.class("b", catSpec)
	w.run()
	w.now = w.now.Add(time.Minute)
	w.class("a", strings.Replace(catSpec, "latest", "v20260101", 1))
	s, stale := w.filled()
	if !slices.Equal(stale, []string{"a"}) {
		t.Fatalf("stale %v", stale)
	}
	if c := snapshot.FindCondition(s.NodeClasses[0].Conditions, "Ready"); c.Status != "False" || c.Reason != "NodeClassNotReady" || !strings.Contains(c.Message, "not resolved yet at generation 2, only at 1") || c.ObservedGeneration != 2 {
		t.Errorf("condition %+v", c)
	}
	if len(s.NodeClasses[0].Images)+len(s.NodeClasses[0].Zones) > 0 {
		t.Error("what was resolved at another generation is used")
	}
	rep := w.run("a")
	if len(rep.Classes) != 1 || rep.Classes[0].Name != "a" || len(rep.Read) > 0 {
		t.Errorf("report %+v", rep)
	}
	if _, stale := w.filled(); len(stale) > 0 {
		t.Errorf("stale %v", stale)
	}
	if got := w.ready("EC2NodeClass/a"); got != "False AMIsReady" && !strings.HasPrefix(got, "False") {
		t.Errorf("a version that is not there: %s", got)
	}
	// Deleted and made again, and changed as often: another UID.
	w.now = w.now.Add(time.Minute)
	w.kube.s.NodeClasses[0] = snapshot.NodeClass{Name: "a", UID: "uid-a2", Generation: 2, Spec: []byte(catSpec)}
	delete(w.kube.statuses, "EC2NodeClass/a")
	if s, stale := w.filled(); !slices.Equal(stale, []string{"a"}) || !strings.Contains(s.NodeClasses[0].Conditions[0].Message, "only a former class of this name") {
		t.Errorf("made again: stale %v, %+v", stale, s.NodeClasses[0].Conditions)
	}
	w.run("a")
	if s, stale := w.filled(); len(stale) > 0 || len(s.NodeClasses[0].Images) != 2 {
		t.Errorf("made again and resolved: stale %v, %+v", stale, s.NodeClasses[0])
	}
	if rep := w.run("nobody"); len(rep.Warnings) != 1 || !strings.Contains(rep.Warnings[0], "no EC2NodeClass nobody") {
		t.Errorf("one that is not there: %+v", rep)
	}
	// Gone altogether: taken off the list.
	w.kube.s.NodeClasses = w.kube.s.NodeClasses[1:]
	w.run()
	if got := w.facts().Classes; len(got) != 1 || got["b"].UID != "uid-b" {
		t.Errorf("classes %v", got)
	}
}

// TestCatalogThrottled: what was known stays and says so, what comes after is left, and a
// class that could not be resolved is stale again soon.
func TestCatalogThrottled(t *testing.T) {
	w := newCatWorld(t)
	w.class("a", catSpec)
	w.run()
	w.now = w.now.Add(time.Hour)
	w.throttle("DescribeSubnets")
	w.class("b", catSpec)
	rep := w.run()
	if len(rep.Classes) != 1 || rep.Classes[0].Name != "b" || rep.Classes[0].Ready != "Unknown" {
		t.Errorf("classes %+v", rep.Classes)
	}
	if got := strings.Join(rep.Left, "\n"); !strings.Contains(got, "EC2NodeClass a: AWS throttles") || !strings.Contains(got, "types and prices: AWS throttles") {
		t.Errorf("left %s", got)
	}
	s, stale := w.filled()
	if len(stale) > 0 || snapshot.FindCondition(s.NodeClasses[0].Conditions, "Ready").Status != "True" || snapshot.FindCondition(s.NodeClasses[1].Conditions, "Ready").Status != "Unknown" {
		t.Errorf("stale %v, classes %+v", stale, s.NodeClasses)
	}
	w.now = w.now.Add(time.Minute)
	if _, stale := w.filled(); !slices.Equal(stale, []string{"b"}) {
		t.Errorf("stale a minute later: %v", stale)
	}
	if rep := w.run("a"); !slices.Equal(rep.Classes[0].Kept, []string{"SubnetsReady"}) || rep.Classes[0].Ready != "True" {
		t.Errorf("a again: %+v", rep.Classes)
	}
	w.throttle("")
	if w.run(); w.ready("EC2NodeClass/b") != "True at 1" {
		t.Errorf("b: %s", w.ready("EC2NodeClass/b"))
	}
}

// TestCatalogPartialPrices: each part that cannot be read keeps what was known, with its
// age.
func TestCatalogPartialPrices(t *testing.T) {
	w := newCatWorld(t)
	w.list.err = ec2fake.Error("AccessDeniedException", "no")
	rep := w.run()
	if d := cmp.Diff([]string{"types", "spot"}, rep.Read); d != "" || len(rep.Warnings) != 1 || !strings.Contains(rep.Warnings[0], "list prices could not be read, those of the embedded table are used") {
		t.Errorf("read %s, warnings %q", d, rep.Warnings)
	}
	// m5.large is known to the table; nobody knows what z9.large costs.
	got := offers(w.facts().Catalog)
	if !slices.Contains(got, "z9.large us-east-1a on-demand 0 false") || !slices.Contains(got, "m5.large us-east-1a spot 40000 true") || !slices.Contains(got, "m5.large us-east-1a on-demand 96000 true") {
		t.Errorf("offers %v", got)
	}
	first := w.now
	w.list.err = nil
	w.throttle("DescribeSpotPriceHistory")
	w.now = w.now.Add(time.Hour)
	rep = w.run()
	if d := cmp.Diff(handler.PriceAges{Types: first, Spot: first}, rep.Prices); d != "" {
		t.Errorf("ages (-want +got):\n%s", d)
	}
	if !strings.Contains(strings.Join(rep.Left, ""), "list prices: AWS throttles") || !strings.Contains(rep.Warnings[0], "those of 2026-03-01T12:00:00Z are used") {
		t.Errorf("left %q, warnings %q", rep.Left, rep.Warnings)
	}
	w.throttle("")
	w.ec2.AddType(ec2fake.Type{Name: "m5.large", Arch: "amd64", VCPU: 2, OnDemand: 100_000})
	w.now = w.now.Add(time.Minute)
	rep = w.run()
	got = offers(w.facts().Catalog)
	if !rep.Prices.Spot.Equal(w.now) || !slices.Contains(got, "z9.large us-east-1a on-demand 77000 true") || !slices.Contains(got, "m5.large us-east-1a on-demand 100000 true") || !slices.Contains(got, "m5.large us-east-1a spot 40000 false") {
		t.Errorf("ages %+v, offers %v", rep.Prices, got)
	}
	// Nothing works any more: nothing changes, and after a day it is said with every plan.
	w.throttle("all")
	w.list.err = errors.New("no way")
	w.now = w.now.Add(48 * time.Hour)
	w.run()
	f := w.facts()
	if d := cmp.Diff(got, offers(f.Catalog)); d != "" {
		t.Errorf("offers (-before +after):\n%s", d)
	}
	if len(f.Warnings) != 1 || f.Warnings[0].Code != "PriceOld" || !strings.Contains(f.Warnings[0].Detail, "spot prices could not be read since 2026-03-01T13:01:00Z") {
		t.Errorf("warnings %v", f.Warnings)
	}
}

// TestCatalogUnsold: what was not sold as spot when prices were last read is not sold when
// they cannot be read, though its types are read anew.
func TestCatalogUnsold(t *testing.T) {
	w := newCatWorld(t)
	w.run()
	w.ec2.AddType(ec2fake.Type{Name: "m5.large", Arch: "amd64", VCPU: 2, OnDemand: 96_000})
	w.now = w.now.Add(time.Hour)
	w.run()
	w.throttle("DescribeSpotPriceHistory")
	w.now = w.now.Add(6 * time.Hour)
	if rep := w.run(); !slices.Contains(rep.Read, "types") || slices.Contains(rep.Read, "spot") {
		t.Fatalf("read %v", rep.Read)
	}
	got := offers(w.facts().Catalog)
	if slices.Contains(got, "m5.large us-east-1a spot 40000 true") || !slices.Contains(got, "m7g.large us-east-1a spot 30000 true") {
		t.Errorf("offers %v", got)
	}
}

// TestCatalogEstimates: in a region without a table, prices of another one are estimates
// until there are facts, and those that have none stay so.
func TestCatalogEstimates(t *testing.T) {
	w := newCatWorld(t)
	w.list.hides = "m7g.large"
	estimated := func() map[string]bool {
		h := w.catalog()
		h.Region = "eu-west-9"
		if _, err := h.Handle(background, handler.CatalogRequest{}); err != nil {
			t.Fatal(err)
		}
		f, err := handler.LoadFacts(background, w.memory(), "eu-west-9", w.now, &handler.FactsCache{})
		if err != nil {
			t.Fatal(err)
		}
		out := map[string]bool{}
		for _, typ := range f.Catalog.Types {
			for _, o := range typ.Offerings {
				out[typ.Name+" "+o.CapacityType] = o.Estimated
			}
		}
		return out
	}
	want := map[string]bool{"m5.large on-demand": false, "m5.large spot": false, "m7g.large on-demand": true, "m7g.large spot": false, "z9.large on-demand": false}
	for range 3 {
		if d := cmp.Diff(want, estimated()); d != "" {
			t.Errorf("at %s estimated (-want +got):\n%s", w.now.Format(time.TimeOnly), d)
		}
		w.now = w.now.Add(7 * time.Hour)
	}
}

// TestCatalogDeadline: no work is begun that could not be written down, what is left is
// named, and the next run begins with it.
func TestCatalogDeadline(t *testing.T) {
	w := newCatWorld(t)
	for _, name := range []string{"a", "b", "c"} {
		w.class(name, catSpec)
	}
	// Every call of EC2 takes a second, and there is time for some.
	w.ec2.Hook = func(ec2fake.Call) ec2fake.Fault {
		w.now = w.now.Add(time.Second)
		return ec2fake.Fault{}
	}
	limit := func(d time.Duration) *handler.CatalogReport {
		ctx := deadline{background, w.now.Add(d)}
		rep, err := w.catalog().Handle(ctx, handler.CatalogRequest{})
		if err != nil {
			t.Fatal(err)
		}
		return rep
	}
	rep := limit(10 * time.Second)
	if len(rep.Classes) != 1 || rep.Classes[0].Name != "a" {
		t.Errorf("first: %+v", rep.Classes)
	}
	want := []string{"EC2NodeClass b: no time is left", "EC2NodeClass c: no time is left", "types and prices: no time is left", "instance profiles that nothing needs: no time is left"}
	if d := cmp.Diff(want, rep.Left); d != "" {
		t.Errorf("left (-want +got):\n%s", d)
	}
	if rep = limit(10 * time.Second); len(rep.Classes) != 1 || rep.Classes[0].Name != "b" {
		t.Errorf("second: %+v", rep.Classes)
	}
	if rep = limit(time.Hour); len(rep.Classes) != 3 || len(rep.Left) > 0 || rep.Classes[0].Name != "c" {
		t.Errorf("third: %+v", rep)
	}
}

// deadline is a context that ends by the clock of the test.
type deadline struct {
	context.Context
	at time.Time
}

func (d deadline) Deadline() (time.Time, bool) { return d.at, true }

// TestCatalogDeletion: a deleted class waits for its nodes, then what was made for it goes,
// then itself.
func TestCatalogDeletion(t *testing.T) {
	w := newCatWorld(t)
	w.class("a", catSpec)
	w.class("b", catSpec)
	w.run()
	w.kube.s.NodeClasses[0].Deleting = w.now
	w.kube.s.NodeClasses[0].Generation++
	ref := snapshot.ClassRef{Group: "karpenter.k8s.aws", Kind: "EC2NodeClass", Name: "a"}
	for i := range 7 {
		w.kube.s.NodeClaims = append(w.kube.s.NodeClaims, snapshot.NodeClaim{Name: fmt.Sprint("claim-", i), ClassRef: ref})
	}
	rep := w.run()
	const want = "waiting for NodeClaims to go: claim-0, claim-1, claim-2, claim-3, claim-4 and 2 more"
	got := slices.IndexFunc(rep.Classes, func(c handler.ClassReport) bool { return c.Name == "a" })
	if c := rep.Classes[got]; c.Ready != "Deleting" || c.Message != want || !slices.Contains(w.kube.events, "a: WaitingOnNodeClaimTermination: "+want) {
		t.Errorf("class %+v, events %q", c, w.kube.events)
	}
	if s, stale := w.filled(); len(stale) > 0 || !strings.Contains(fmt.Sprint(s.NodeClasses[0].Conditions), "being deleted") {
		t.Errorf("stale %v, %+v", stale, s.NodeClasses[0].Conditions)
	}
	if c := snapshot.FindCondition(w.kube.statuses["NodePool/pool-a"].Conditions, "NodeClassReady"); c.Reason != "NodeClassTerminating" {
		t.Errorf("pool %+v", c)
	}
	// A node without an object counts too.
	w.kube.s.NodeClaims = nil
	rec, err := w.memory().Adopt(background, lifecycle.Record{Claim: "claim-x", Phase: lifecycle.Launched, NodePool: "pool-a", Spec: lifecycle.Spec{ClassRef: ref}})
	if err != nil {
		t.Fatal(err)
	}
	if w.run(); len(w.kube.finalizers["uid-a"]) != 1 || !strings.Contains(w.kube.events[len(w.kube.events)-1], "claim-x") {
		t.Errorf("events %q", w.kube.events)
	}
	rec.Phase, rec.ClosedAt = lifecycle.Closed, w.now
	was := rec
	was.Phase = lifecycle.Launched
	if _, err := w.memory().Save(background, lifecycle.Change{Was: was, Next: rec}); err != nil {
		t.Fatal(err)
	}
	// What cannot be read might be a node of it.
	w.kube.s.Incomplete = []string{"nodeclaim y cannot be read"}
	if _, err := w.catalog().Handle(background, handler.CatalogRequest{}); err == nil || len(w.kube.finalizers["uid-a"]) != 1 {
		t.Errorf("incomplete: %v", err)
	}
	w.kube.s.Incomplete = nil
	w.run()
	if len(w.kube.finalizers["uid-a"]) != 0 || len(w.kube.s.NodeClasses) != 1 {
		t.Errorf("finalizers %v, classes %v", w.kube.finalizers, w.kube.s.NodeClasses)
	}
	if ops := fmt.Sprint(w.iam.Ops); strings.Count(ops, "DeleteInstanceProfile") != 1 {
		t.Errorf("IAM: %s", ops)
	}
	if got := w.facts().Classes; len(got) != 1 {
		t.Errorf("classes %v", got)
	}
}

// TestCatalogProfiles: a profile that a changed role left behind goes an hour after nothing
// needs it.
func TestCatalogProfiles(t *testing.T) {
	w := newCatWorld(t)
	w.class("a", catSpec)
	w.run()
	w.now = w.now.Add(2 * time.Hour)
	w.class("a", strings.Replace(catSpec, `"nodes"`, `"others"`, 1))
	for i, want := range []int{0, 0, 1, 0} {
		rep := w.run()
		if len(rep.Removed) != want {
			t.Errorf("run %d: removed %v, want %d", i, rep.Removed, want)
		}
		w.now = w.now.Add(31 * time.Minute)
	}
	if made := w.facts().Classes["a"].Resolved.Profile; !strings.HasPrefix(made, "prod_") {
		t.Errorf("profile %q", made)
	}
}

// TestCatalogKarpenter: while Karpenter runs, classes are its own; prices are nobody's.
func TestCatalogKarpenter(t *testing.T) {
	w := newCatWorld(t)
	w.class("a", catSpec)
	w.kube.leases = []api.LeaseState{{Namespace: "kube-system", Name: handler.KarpenterLease, Holder: "karpenter-1", Renewed: w.now}}
	rep := w.run()
	if !strings.Contains(rep.Refused, "karpenter-1") || len(rep.Classes) > 0 || len(w.iam.Ops) > 0 || len(w.kube.statuses) > 0 || len(rep.Read) != 3 {
		t.Errorf("report %+v, IAM %v", rep, w.iam.Ops)
	}
}

// TestCatalogUnreachable: nothing is concluded from a list that failed.
func TestCatalogUnreachable(t *testing.T) {
	w := newCatWorld(t)
	w.class("a", catSpec)
	w.run()
	w.kube.refuse = map[string]error{"Some": &api.Error{Verb: "list", Resource: "ec2nodeclasses", Group: "karpenter.k8s.aws", Is: api.ErrMissingKind}}
	if _, err := w.catalog().Handle(background, handler.CatalogRequest{}); !errors.Is(err, api.ErrMissingKind) || !strings.Contains(err.Error(), "install the CRDs") {
		t.Errorf("error %v", err)
	}
	if got := w.facts().Classes; len(got) != 1 {
		t.Errorf("classes %v", got)
	}
}

func TestDecodeCatalogRequest(t *testing.T) {
	for _, tc := range []struct {
		in   string
		want handler.CatalogRequest
		err  string
	}{
		{"", handler.CatalogRequest{}, ""},
		{"{}", handler.CatalogRequest{}, ""},
		{"null", handler.CatalogRequest{}, ""},
		{`{"version":"0","id":"x","detail-type":"Scheduled Event","source":"aws.events","detail":{}}`, handler.CatalogRequest{}, ""},
		{`{"class":"a"}`, handler.CatalogRequest{Classes: []string{"a"}}, ""},
		{`{"classes":["b"],"class":"a"}`, handler.CatalogRequest{Classes: []string{"b", "a"}}, ""},
		{`{"only":"prices"}`, handler.CatalogRequest{Only: "prices"}, ""},
		{`{"only":"nodes"}`, handler.CatalogRequest{}, "want classes or prices"},
		{`{"only":"prices","class":"a"}`, handler.CatalogRequest{}, "give one of them"},
		{`{"classes":[""]}`, handler.CatalogRequest{}, "a name is empty"},
		{`{"klass":"a"}`, handler.CatalogRequest{}, `unknown field "klass"`},
		{`{"class":3}`, handler.CatalogRequest{}, "class: want a string"},
		{`{}{}`, handler.CatalogRequest{}, "there is more"},
		{`[`, handler.CatalogRequest{}, "read the payload"},
	} {
		got, err := handler.DecodeCatalogRequest([]byte(tc.in))
		if tc.err != "" {
			if err == nil || !strings.Contains(err.Error(), tc.err) {
				t.Errorf("%s: %v, want %s", tc.in, err, tc.err)
			}
			continue
		}
		if d := cmp.Diff(tc.want, got); d != "" || err != nil {
			t.Errorf("%s: %v\n%s", tc.in, err, d)
		}
	}
}
