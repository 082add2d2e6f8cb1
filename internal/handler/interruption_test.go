package handler_test

import (
	"context"
	"encoding/json"
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"kerf.sh/kerf/internal/cloud/ec2fake"
	"kerf.sh/kerf/internal/handler"
	"kerf.sh/kerf/internal/interruption"
	"kerf.sh/kerf/internal/lifecycle"
	"kerf.sh/kerf/internal/snapshot"
)

// notices is the function interruption in a lifeWorld.
type notices struct {
	*lifeWorld
	h     *handler.Interruption
	told  []handler.InterruptionReport
	ticks sent
}

// sent keeps what is sent.
type sent []string

func (s *sent) Send(_ context.Context, messages ...lifecycle.Outgoing) error {
	for _, m := range messages {
		*s = append(*s, m.Body)
	}
	return nil
}

func newNotices(w *lifeWorld) *notices {
	n := &notices{lifeWorld: w}
	n.h = &handler.Interruption{
		Memory: w.memory, Cluster: w.kube, Executor: w.x, Ticks: &n.ticks, Work: w, ClusterName: "prod", Now: func() time.Time { return w.now },
		Told: func(_ context.Context, r handler.InterruptionReport) { n.told = append(n.told, r) },
	}
	return n
}

// event is one as EventBridge sends it, of now.
func (n *notices) event(source, detailType string, detail map[string]any) string {
	n.t.Helper()
	raw, err := json.Marshal(map[string]any{"version": "0", "source": source, "detail-type": detailType, "time": n.now.Format(time.RFC3339), "detail": detail})
	if err != nil {
		n.t.Fatal(err)
	}
	return string(raw)
}

func (n *notices) spot(id string) string {
	return n.event("aws.ec2", "EC2 Spot Instance Interruption Warning", map[string]any{"instance-id": id, "instance-action": "terminate"})
}

// outcomes are those of the reports since the last call, by instance.
func (n *notices) outcomes() map[string]string {
	out := map[string]string{}
	for _, r := range n.told {
		out[r.Instance] = r.Outcome
	}
	n.told = nil
	return out
}

// tainted reports whether a Node takes no more pods.
func (n *notices) tainted(r lifecycle.Record) bool {
	o := n.kube.nodes[r.Node]
	return o != nil && slices.Contains(o.node.Taints, snapshot.Disrupted) && o.meta.Labels[lifecycle.LabelExclude] != ""
}

// TestNoticeOfANode: the node takes no more pods at once, planner and drain are woken, and
// what comes again changes nothing.
func TestNoticeOfANode(t *testing.T) {
	n := newNotices(joined2(t))
	r := n.record(0)
	body := n.spot(r.Instance.ID)
	if err := n.h.Handle(background, body); err != nil {
		t.Fatal(err)
	}
	if d := cmp.Diff(map[string]string{r.Instance.ID: "Handled"}, n.outcomes()); d != "" || !n.tainted(r) {
		t.Errorf("%s; tainted %v", d, n.tainted(r))
	}
	if len(n.ticks) != 1 || !strings.Contains(n.ticks[0], "urgent") || len(n.queue) != 1 || !strings.Contains(n.queue[0].body, r.Claim) {
		t.Errorf("sent %v and %v", n.ticks, n.queue)
	}
	if d := n.record(0); d.Doomed == nil || d.Doomed.Reason != "SpotInterrupted" || !d.Deadline.Equal(n.now.Add(2*time.Minute)) {
		t.Errorf("record %+v", d)
	}
	events := len(n.kube.events)
	for range 2 {
		if err := n.h.Handle(background, body); err != nil {
			t.Fatal(err)
		}
	}
	if d := cmp.Diff(map[string]string{r.Instance.ID: "Known"}, n.outcomes()); d != "" || len(n.kube.events) != events {
		t.Errorf("again: %s, %d Events, it was %d", d, len(n.kube.events), events)
	}
	got, err := n.memory.Remember(background)
	if err != nil || len(got.Health) != 1 || len(got.Health[0].Interrupted) != 1 {
		t.Errorf("offers %+v, %v: the interruption counts once", got.Health, err)
	}
}

// TestSameNoticeThrice is S-23: the last one comes when the Node is gone already.
func TestSameNoticeThrice(t *testing.T) {
	n := newNotices(joined2(t))
	n.kube.pods = nil
	r := n.record(0)
	body := n.spot(r.Instance.ID)
	for _, wait := range []time.Duration{5 * time.Second, 4 * time.Minute, 0} {
		if err := n.h.Handle(background, body); err != nil {
			t.Fatal(err)
		}
		n.pass(wait)
	}
	n.want("after all", "Initialized", 1)
	if got := n.told[len(n.told)-1].Outcome; got != "Unknown" {
		t.Errorf("the last one is %s", got)
	}
	ends := 0
	for _, c := range n.ec2.Calls("TerminateInstances") {
		_ = c
		ends++
	}
	if ends != 1 {
		t.Errorf("%d orders to end instances", ends)
	}
}

// TestNoticeBeforeTheNode: the instance has not joined. Its record knows it, and it ends
// without a drain.
func TestNoticeBeforeTheNode(t *testing.T) {
	n := newNotices(newLifeWorld(t))
	n.launch(1)
	r := n.record(0)
	n.never[r.Instance.ID] = true
	if err := n.h.Handle(background, n.spot(r.Instance.ID)); err != nil {
		t.Fatal(err)
	}
	if got := n.told[0]; got.Outcome != "Handled" || got.Detail == "" || got.Tainted != 0 {
		t.Errorf("%+v", got)
	}
	n.pass(2 * time.Minute)
	n.want("taken", "", 0)
	if c := n.closed(); len(c) != 1 || c[0].Reason != "SpotInterrupted" {
		t.Errorf("closed %+v", c)
	}
}

// TestNoticeOfNobody: EC2 alone knows the instance, or nobody does, or it is somebody else's.
func TestNoticeOfNobody(t *testing.T) {
	n := newNotices(joined2(t))
	other := map[string]string{"kubernetes.io/cluster/other": "owned", "eks:eks-cluster-name": "other", "karpenter.sh/nodepool": "general"}
	pet, foreign, ours := n.stray("a", map[string]string{"Name": "pet"}), n.stray("b", other), n.stray("c", ourTags)
	const nobody = "i-0123456789abcdef0"
	bodies := map[string]string{}
	for _, id := range []string{pet, foreign, ours, nobody} {
		n.never[id] = true
		bodies[id] = n.spot(id)
	}
	// EC2 shows what it made with a delay.
	n.now = n.now.Add(time.Minute)
	for _, id := range []string{pet, foreign} {
		if err := n.h.Handle(background, bodies[id]); err != nil {
			t.Errorf("%s: %v", id, err)
		}
	}
	if d := cmp.Diff(map[string]string{pet: "Foreign", foreign: "Foreign"}, n.outcomes()); d != "" {
		t.Error(d)
	}
	for _, id := range []string{ours, nobody} {
		var again *lifecycle.Delay
		if err := n.h.Handle(background, bodies[id]); !errors.As(err, &again) || again.After > 5*time.Second {
			t.Errorf("%s: %v; want it back within seconds", id, err)
		}
	}
	n.now = n.now.Add(3 * time.Minute)
	for _, id := range []string{ours, nobody} {
		if err := n.h.Handle(background, bodies[id]); err != nil {
			t.Errorf("%s: %v", id, err)
		}
	}
	if d := cmp.Diff(map[string]string{ours: "Unknown", nobody: "Unknown"}, n.outcomes()); d != "" {
		t.Error(d)
	}
	if len(n.ticks)+len(n.ec2.Calls("TerminateInstances")) > 0 || n.phases() != twoInUse {
		t.Errorf("something was done: %v, %s", n.ticks, n.phases())
	}
}

// TestNoticeOfAnAttempt: whoever launches the instance has not heard of it yet. The notice
// waits, and is acted on once the record knows.
func TestNoticeOfAnAttempt(t *testing.T) {
	n := newNotices(newLifeWorld(t))
	n.ec2.Hook = func(c ec2fake.Call) ec2fake.Fault {
		if c.Op == "CreateFleet" {
			return ec2fake.Fault{After: context.DeadlineExceeded}
		}
		return ec2fake.Fault{}
	}
	n.launch(1)
	n.ec2.Hook = nil
	id := n.ec2.Instances()[0].ID
	n.never[id] = true
	n.now = n.now.Add(20 * time.Second)
	body := n.spot(id)
	var again *lifecycle.Delay
	if err := n.h.Handle(background, body); !errors.As(err, &again) {
		t.Fatalf("%v; want it back", err)
	}
	n.pass(4 * time.Minute)
	if err := n.h.Handle(background, body); err != nil || n.told[0].Outcome != "Handled" {
		t.Errorf("%v, %+v", err, n.told)
	}
}

// TestScheduledChangeOfThree is BC-38: two of ours and a stranger in one event.
func TestScheduledChangeOfThree(t *testing.T) {
	n := newNotices(joined2(t))
	pet := n.stray("a", map[string]string{"Name": "pet"})
	n.never[pet] = true
	n.now = n.now.Add(time.Minute)
	a, b := n.record(0), n.record(1)
	start := n.now.Add(2 * time.Hour)
	body := n.event("aws.health", "AWS Health Event", map[string]any{
		"service": "EC2", "eventTypeCategory": "scheduledChange", "startTime": start.Format(time.RFC1123),
		"affectedEntities": []map[string]string{{"entityValue": a.Instance.ID}, {"entityValue": pet}, {"entityValue": b.Instance.ID}, {"entityValue": a.Instance.ID}},
	})
	if err := n.h.Handle(background, body); err != nil {
		t.Fatal(err)
	}
	if d := cmp.Diff(map[string]string{a.Instance.ID: "Handled", b.Instance.ID: "Handled", pet: "Foreign"}, n.outcomes()); d != "" {
		t.Error(d)
	}
	if !n.tainted(a) || !n.tainted(b) || !n.record(0).Deadline.Equal(start) {
		t.Errorf("tainted %v %v, deadline %s", n.tainted(a), n.tainted(b), n.record(0).Deadline)
	}
	// One that fails keeps nobody else from being seen to, and brings the message back.
	n = newNotices(joined2(t))
	a, b = n.record(0), n.record(1)
	body = n.event("aws.health", "AWS Health Event", map[string]any{
		"service": "EC2", "eventTypeCategory": "scheduledChange", "affectedEntities": []map[string]string{{"entityValue": "i-0123456789abcdef0"}, {"entityValue": b.Instance.ID}},
	})
	if err := n.h.Handle(background, body); err == nil || !n.tainted(b) || n.tainted(a) {
		t.Errorf("%v; tainted %v %v", err, n.tainted(a), n.tainted(b))
	}
}

// TestRebalance: a recommendation is an Event, and more where the pool asks for it.
func TestRebalance(t *testing.T) {
	for _, in := range []bool{false, true} {
		n := newNotices(joined2(t))
		if in {
			n.kube.pools[0].Annotations = map[string]string{handler.AnnotationRebalance: "true"}
		}
		r := n.record(0)
		if err := n.h.Handle(background, n.event("aws.ec2", "EC2 Instance Rebalance Recommendation", map[string]any{"instance-id": r.Instance.ID})); err != nil {
			t.Fatal(err)
		}
		want := map[bool]string{true: "Handled", false: "OptedOut"}[in]
		if got := n.told[0].Outcome; got != want || n.tainted(r) != in || n.count("RebalanceRecommended") == 0 {
			t.Errorf("opted in %v: %s, tainted %v", in, got, n.tainted(r))
		}
		if d := n.record(0); in && !d.Deadline.IsZero() {
			t.Errorf("it has a deadline: %s", d.Deadline)
		}
	}
}

// count is how many Events there are of a reason.
func (n *notices) count(reason string) (count int) {
	for _, e := range n.kube.events {
		if e.Reason == reason {
			count++
		}
	}
	return count
}

// TestOwnEnds: EC2 tells of every end; those that were asked for wake nobody.
func TestOwnEnds(t *testing.T) {
	n := newNotices(joined2(t))
	n.kube.pods = nil
	r := n.record(0)
	n.deleteAs("NodeClaim", r.Claim)
	for n.record(0).Phase != lifecycle.Terminating {
		n.pass(time.Second)
		if n.now.Sub(n.start) > time.Hour {
			t.Fatalf("it does not end: %s", n.phases())
		}
	}
	n.queue = nil
	if err := n.h.Handle(background, n.event("aws.ec2", "EC2 Instance State-change Notification", map[string]any{"instance-id": r.Instance.ID, "state": "shutting-down"})); err != nil {
		t.Fatal(err)
	}
	if n.told[0].Outcome != "Known" || len(n.ticks)+len(n.queue) > 0 {
		t.Errorf("%+v; sent %v and %v", n.told, n.ticks, n.queue)
	}
}

// TestUnwellOfNobody: while no instance is known EC2 is not asked which are not well.
func TestUnwellOfNobody(t *testing.T) {
	n := newNotices(newLifeWorld(t))
	asked := 0
	n.house.Notices, n.house.Statuses = n.h, func(context.Context) ([]interruption.Status, error) { asked++; return nil, nil }
	if n.round(); asked != 0 {
		t.Errorf("asked %d times", asked)
	}
	n.launch(1)
	n.pass(time.Minute)
	if asked == 0 {
		t.Error("not asked for an instance that was launched")
	}
}

// TestUnwell: EC2 says, when it is asked, that instances are not well. Those of ours go: at
// once when a check has failed for two minutes, with their time when something is planned.
func TestUnwell(t *testing.T) {
	n := newNotices(joined2(t))
	a, b := n.record(0), n.record(1)
	var list []interruption.Status
	var fail error
	n.house.Notices, n.house.Statuses = n.h, func(context.Context) ([]interruption.Status, error) { return list, fail }
	fail = errors.New("UnauthorizedOperation")
	if rep := n.round(); !slices.ContainsFunc(rep.Incomplete, func(s string) bool { return strings.Contains(s, "UnauthorizedOperation") }) || len(rep.Problems) > 0 {
		t.Errorf("%+v", rep)
	}
	fail = nil
	since := n.now.Add(-time.Minute)
	list = []interruption.Status{
		{Instance: a.Instance.ID, Kind: interruption.SystemStatusFailed, Since: since}, {Instance: "i-0123456789abcdef0", Kind: interruption.SystemStatusFailed, Since: n.now.Add(-time.Hour)},
		{Instance: b.Instance.ID, Kind: interruption.MaintenanceScheduled, Code: "instance-retirement", NotBefore: n.now.Add(24 * time.Hour)},
	}
	rep := n.round()
	if d := cmp.Diff([]string{b.Instance.ID + " MaintenanceScheduled"}, rep.Unwell); d != "" || !slices.Contains(rep.Due, b.Claim) {
		t.Errorf("%s; due %v", d, rep.Due)
	}
	if got := n.record(1); got.Doomed == nil || !got.Deadline.Equal(n.now.Add(24*time.Hour)) || !n.tainted(b) {
		t.Errorf("record %+v", got)
	}
	n.now = n.now.Add(time.Minute)
	if rep = n.round(); !slices.Equal(rep.Unwell, []string{a.Instance.ID + " SystemStatusFailed"}) || len(n.ticks) != 2 {
		t.Errorf("%+v, %d ticks", rep.Unwell, len(n.ticks))
	}
	if rep = n.round(); len(rep.Unwell) > 0 || len(n.ticks) != 2 {
		t.Errorf("again: %+v, %d ticks", rep.Unwell, len(n.ticks))
	}
	n.pass(3 * time.Minute)
	if c := n.closed(); len(c) == 0 || c[0].Claim != a.Claim && c[len(c)-1].Claim != a.Claim {
		t.Errorf("the one that failed is still there: %s", n.phases())
	}
}
