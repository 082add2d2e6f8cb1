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

// TestPoolsOnly: who asks for the statuses of NodePools gets those alone, from what is known
// of classes; and nothing is written from a reading that is not whole.
func TestPoolsOnly(t *testing.T) {
	w := newCatWorld(t)
	w.class("default", catSpec)
	w.run()
	nodes := func() string { return fmt.Sprint(w.kube.statuses["NodePool/pool-default"].Fields["nodes"]) }
	w.kube.s.NodeClaims = append(w.kube.s.NodeClaims, snapshot.NodeClaim{Name: "c", Labels: map[string]string{"karpenter.sh/nodepool": "pool-default"}})
	w.kube.asked, w.list.calls = nil, 0
	w.kube.s.Incomplete = []string{"nodes"}
	rep, err := w.catalog().Handle(background, handler.CatalogRequest{Only: "pools"})
	if err != nil || rep.Pools != 0 || len(rep.Left) != 1 || nodes() != "0" {
		t.Errorf("not whole: %+v, %v; %s nodes", rep, err, nodes())
	}
	w.kube.s.Incomplete = nil
	rep, err = w.catalog().Handle(background, handler.CatalogRequest{Only: "pools"})
	if err != nil || rep.Pools != 1 || len(rep.Classes) != 0 || nodes() != "1" || w.list.calls > 0 || w.ready("NodePool/pool-default") != "True at 3" {
		t.Errorf("%+v, %v; %s nodes, ready %s", rep, err, nodes(), w.ready("NodePool/pool-default"))
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
		{`{"only":"nodes"}`, handler.CatalogRequest{}, "want classes, prices or pools"},
		{`{"only":"pools"}`, handler.CatalogRequest{Only: "pools"}, ""},
		{`{"only":"pools","class":"a"}`, handler.CatalogRequest{}, "give one of them"},
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
