package handler_test

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	"kerf.sh/kerf/internal/cloud/ec2fake"
	"kerf.sh/kerf/internal/kube/api"
	"kerf.sh/kerf/internal/lifecycle"
	"kerf.sh/kerf/internal/snapshot"
)

// TestNeverJoins: an instance that runs and never joins is ended after fifteen minutes, with
// a verdict that tells what to look at (S-33: and what it took from limits is free again).
func TestNeverJoins(t *testing.T) {
	w := newLifeWorld(t)
	w.never["*"] = true
	w.launch(1)
	w.pass(14 * time.Minute)
	w.want("not yet", "Launched", 1)
	claim := w.record(0).Claim
	w.pass(5 * time.Minute)
	w.want("after the timeout", "", 0)
	c := w.closed()
	if len(c) != 1 || c[0].Failure == nil || c[0].Failure.Reason != lifecycle.ReasonRegisterTimeout || !strings.Contains(c[0].Failure.Message, "access entry") {
		t.Fatalf("closed %+v", c)
	}
	e := w.event(lifecycle.ReasonRegisterTimeout)
	if e == nil || !e.Warning || e.Object.Name != claim || !strings.Contains(e.Note, "runs and no Node has joined") {
		t.Errorf("events %+v", w.kube.events)
	}
	if usage, err := w.memory.Usage(background); err != nil || usage["general"]["nodes"] != 0 {
		t.Errorf("usage %v, %v", usage, err)
	}
}

// TestNotHeardOf is BC-27: EC2 does not know at first what it just made; that is no reason
// to launch or to end anything.
func TestNotHeardOf(t *testing.T) {
	w := newLifeWorld(t)
	w.ec2.VisibleAfter = 40 * time.Second
	w.joins = time.Minute
	w.launch(2)
	w.pass(35 * time.Second)
	w.want("not shown yet", "Launched Launched", 2)
	w.pass(4 * time.Minute)
	w.want("joined", "Initialized Initialized", 2)
}

// TestNeverShown: an instance that EC2 never shows is given up by another verdict than one
// that runs and does not join.
func TestNeverShown(t *testing.T) {
	w := newLifeWorld(t)
	w.ec2.VisibleAfter = 24 * time.Hour
	w.never["*"] = true
	w.launch(1)
	w.pass(4 * time.Minute)
	w.want("young", "Launched", 1)
	w.pass(6 * time.Minute)
	if got := w.phases(); got != "" {
		t.Fatalf("records are %q", got)
	}
	if c := w.closed(); len(c) != 1 || c[0].Reason != lifecycle.ReasonInstanceGone || c[0].Failure != nil {
		t.Errorf("closed %+v", c)
	}
}

// TestTwoNodes: two Nodes that say they are one instance are not registered.
func TestTwoNodes(t *testing.T) {
	w := newLifeWorld(t)
	w.launch(1)
	r := w.record(0)
	for w.kube.nodes["node-"+r.Instance.ID] == nil {
		w.now = w.now.Add(time.Second)
		w.kubelets()
	}
	w.kube.nodes["impostor"] = &lifeObject{
		meta: api.Meta{Name: "impostor", Version: api.Version{UID: "x"}, Labels: map[string]string{"karpenter.sh/nodepool": "general"}},
		node: snapshot.Node{ProviderID: r.Instance.ProviderID()},
	}
	w.pass(2 * time.Minute)
	w.want("two nodes", "Launched", 1)
	if got := w.kube.condition(r.Claim, "Registered"); got != "False MultipleNodesFound" {
		t.Errorf("Registered is %q", got)
	}
	if e := w.event(lifecycle.ReasonMultipleNodes); e == nil || !strings.Contains(e.Note, "impostor") {
		t.Errorf("events %+v", w.kube.events)
	}
	w.pass(16 * time.Minute)
	if len(w.running()) != 0 {
		t.Errorf("the instance runs on: %q", w.phases())
	}
}

// TestAnswerLost is BC-24: nobody heard the answer to CreateFleet. The chain finds out, and
// there is one instance with one owner.
func TestAnswerLost(t *testing.T) {
	w := newLifeWorld(t)
	w.ec2.Hook = func(c ec2fake.Call) ec2fake.Fault {
		if c.Op == "CreateFleet" {
			return ec2fake.Fault{After: context.DeadlineExceeded}
		}
		return ec2fake.Fault{}
	}
	w.launch(2)
	w.ec2.Hook = nil
	w.want("unresolved", "Launching Launching", 2)
	w.pass(6 * time.Minute)
	w.want("resolved", "Initialized Initialized", 2)
	a, b := w.record(0), w.record(1)
	if a.Instance.ID == b.Instance.ID || a.Node == b.Node {
		t.Errorf("both are %s", a.Instance.ID)
	}
}

// TestUnlabelled: nodes of images that set no label of ours are found all the same.
func TestUnlabelled(t *testing.T) {
	for _, nodes := range []int{0, 300} {
		w := newLifeWorld(t)
		w.unlabelled = true
		for i := range nodes { // a large cluster is not listed at every look
			name := "other-" + string(rune('a'+i%26)) + strings.Repeat("x", i/26)
			w.kube.nodes[name] = &lifeObject{meta: api.Meta{Name: name, Version: api.Version{UID: name}, Labels: map[string]string{}}}
		}
		w.launch(1)
		w.pass(4 * time.Minute)
		w.want("without labels", "Initialized", 1)
		full := 0
		for _, c := range w.kube.calls {
			if c == "list Node " {
				full++
			}
		}
		if nodes > 0 && full > 4 {
			t.Errorf("all %d nodes were listed %d times in four minutes", nodes, full)
		}
	}
}

// TestWebhookDown: the first node of a cluster, whose NodeClaim no webhook admits because
// that needs a node: it is launched and registered, and the object made when it can be.
func TestWebhookDown(t *testing.T) {
	w := newLifeWorld(t)
	down := true
	w.kube.fail = func(verb, kind, _ string) error {
		if down && verb == "create" && kind == "NodeClaim" {
			return &api.Error{Verb: "create", Is: api.ErrUnavailable, Detail: "failed calling webhook"}
		}
		return nil
	}
	w.launch(1)
	w.pass(3 * time.Minute)
	r := w.record(0)
	if r.Phase != lifecycle.Initialized || r.UID != "" || len(w.kube.claims) != 0 {
		t.Fatalf("record %+v, %d NodeClaims", r, len(w.kube.claims))
	}
	if e := w.event("NodeClaimNotCreated"); e == nil || !e.Warning || !strings.Contains(e.Note, "webhook") {
		t.Errorf("events %+v", w.kube.events)
	}
	down = false
	w.pass(3 * time.Minute)
	w.want("the webhook runs", "Initialized", 1)
	if r := w.record(0); r.UID == "" || w.kube.condition(r.Claim, "Ready") != "True Ready" {
		t.Errorf("record %+v, claims %+v", r, w.kube.claims)
	}
	if len(w.queue) != 0 {
		t.Errorf("%d messages are left", len(w.queue))
	}
}

// TestUndeclaredTaint is BC-26: a taint that the pool does not declare is named, and the
// node is not given up.
func TestUndeclaredTaint(t *testing.T) {
	w := newLifeWorld(t)
	w.taints = []snapshot.Taint{{Key: "agent.example/wait", Effect: "NoSchedule"}}
	w.launch(1)
	w.pass(2 * time.Minute)
	w.want("tainted", "Initialized", 1)
	if e := w.event("UndeclaredTaint"); e == nil || !strings.Contains(e.Note, "agent.example/wait") || !strings.Contains(e.Note, "startupTaints") {
		t.Errorf("events %+v", w.kube.events)
	}
}

// TestStartupTaint is S-34: a startup taint that its agent took off does not come back when
// the write of a registration is repeated.
func TestStartupTaint(t *testing.T) {
	w := newLifeWorld(t)
	w.rounds = false
	w.ready = time.Hour
	w.launch(1)
	id := w.record(0).Instance.ID
	// The ledger loses the write that says that the node is registered.
	lost := 0
	w.kube.before = func(verb, kind, _ string) {
		if verb == "status" && w.kube.nodes["node-"+id] != nil && lost < 3 {
			lost++
			r := w.record(0)
			next := r
			next.Nominated = append(slices.Clone(r.Nominated), lifecycle.Pod{Name: "other"})
			if _, err := w.memory.Save(background, lifecycle.Change{Was: r, Next: next}); err != nil {
				t.Error(err)
			}
		}
	}
	w.pass(25 * time.Second)
	if lost == 0 {
		t.Fatal("no write was lost")
	}
	o := w.kube.nodes["node-"+id]
	o.node.Taints = slices.DeleteFunc(o.node.Taints, func(x snapshot.Taint) bool { return x.Key == "cni.example/not-ready" })
	w.pass(10 * time.Second)
	if slices.ContainsFunc(o.node.Taints, func(x snapshot.Taint) bool { return x.Key == "cni.example/not-ready" }) {
		t.Errorf("the startup taint is back: %v", o.node.Taints)
	}
	w.ready = 0
	w.pass(2 * time.Minute)
	w.want("in the end", "Initialized", 1)
}

// TestDuplicates: every message comes three times, and old ones come again later: there is
// one chain, and everything happens once.
func TestDuplicates(t *testing.T) {
	w := newLifeWorld(t)
	w.launch(2)
	var old []string
	most := 0
	for range 300 {
		for _, q := range slices.Clone(w.queue) {
			if len(old) < 50 && !slices.Contains(old, q.body) {
				old = append(old, q.body)
			}
			if len(w.queue) < 6 {
				w.queue = append(w.queue, q, q)
			}
		}
		w.pass(time.Second)
		if w.now.Second()%20 == 0 {
			for _, body := range old {
				w.handle(body)
			}
		}
		steps := map[string]bool{}
		for _, q := range w.queue {
			if !slices.Contains(old, q.body) {
				steps[q.body] = true
			}
		}
		most = max(most, len(steps))
	}
	w.want("in the end", "Initialized Initialized", 2)
	if most > 1 {
		t.Errorf("%d chains at once", most)
	}
	if n := len(w.kube.nominated); n != 2 {
		t.Errorf("nominated %v", w.kube.nominated)
	}
}

// TestKick: a chain that runs gets no second one, one that stopped or was lost is started,
// one that waits long is hurried.
func TestKick(t *testing.T) {
	w := newLifeWorld(t)
	w.rounds = false
	for range 3 {
		if err := w.life.Kick(background); err != nil {
			t.Fatal(err)
		}
	}
	if len(w.queue) != 1 {
		t.Fatalf("%d messages after three kicks", len(w.queue))
	}
	w.pass(10 * time.Second)
	if len(w.queue) != 0 || w.delivered != 1 {
		t.Fatalf("%d messages, %d delivered: nothing is in flight", len(w.queue), w.delivered)
	}
	w.never["*"] = true
	w.launch(1) // kicks
	w.pass(10 * time.Minute)
	if len(w.queue) != 1 || w.queue[0].at.Sub(w.now) < 10*time.Second {
		t.Fatalf("queue %v at %v: what takes long is looked at seldom", w.queue, w.now)
	}
	if err := w.life.Ensure(background); err != nil || len(w.queue) != 1 {
		t.Fatalf("%d messages, %v", len(w.queue), err)
	}
	if err := w.life.Kick(background); err != nil || len(w.queue) != 2 {
		t.Fatalf("%d messages, %v", len(w.queue), err)
	}
	w.pass(7 * time.Second)
	at := w.delivered
	w.pass(time.Minute)
	if len(w.queue) != 1 || w.delivered-at > 4 {
		t.Errorf("%d messages, %d delivered in a minute: the chain has forked", len(w.queue), w.delivered-at)
	}
	w.queue = nil // the message is lost
	if err := w.life.Ensure(background); err != nil || len(w.queue) != 0 {
		t.Fatalf("%d messages, %v: it is not known yet to be lost", len(w.queue), err)
	}
	w.now = w.now.Add(3 * time.Minute)
	if err := w.life.Ensure(background); err != nil || len(w.queue) != 1 {
		t.Errorf("%d messages, %v", len(w.queue), err)
	}
}

// TestUnauthorized is BC-37: the cluster does not accept who we are. The pass ends with an
// error, and nothing is concluded from what it did not show.
func TestUnauthorized(t *testing.T) {
	w := newLifeWorld(t)
	w.launch(4)
	w.pass(3 * time.Minute)
	w.want("joined", "Initialized Initialized Initialized Initialized", 4)
	w.kube.fail = func(verb, kind, name string) error {
		return &api.Error{Verb: verb, Resource: kind, Name: name, Is: api.ErrUnauthorized}
	}
	if _, err := w.house.Run(background); !errors.Is(err, api.ErrUnauthorized) {
		t.Errorf("housekeeping: %v", err)
	}
	w.pass(10 * time.Minute)
	w.want("locked out", "Initialized Initialized Initialized Initialized", 4)
	w.errs = nil
}

// TestPartialReadings: lists that fail, or show nothing where much is known, say nothing.
func TestPartialReadings(t *testing.T) {
	for _, kind := range []string{"NodeClaim", "Node"} {
		for _, how := range []string{"fails", "empty"} {
			t.Run(kind+" "+how, func(t *testing.T) {
				w := newLifeWorld(t)
				w.launch(4)
				w.pass(3 * time.Minute)
				w.want("joined", "Initialized Initialized Initialized Initialized", 4)
				if how == "empty" {
					w.kube.hide[kind] = true
				} else {
					w.kube.fail = func(verb, k, _ string) error {
						if verb == "list" && k == kind {
							return errTest
						}
						return nil
					}
				}
				for range 20 {
					w.pass(30 * time.Second)
					if err := w.life.Handle(background, lifecycle.Work{Kind: lifecycle.WorkRegister}); err != nil {
						t.Fatal(err)
					}
				}
				w.want("with partial readings", "Initialized Initialized Initialized Initialized", 4)
				if len(w.problems()) == 0 {
					t.Error("nobody says so")
				}
			})
		}
	}
}

// TestTwoRuns: two deliveries of a message at the same moment, one within the writes of the
// other, do everything once.
func TestTwoRuns(t *testing.T) {
	w := newLifeWorld(t)
	w.launch(1)
	inside := false
	w.kube.before = func(verb, _, _ string) {
		if verb != "patch" || inside || len(w.queue) > 0 {
			return
		}
		inside = true
		defer func() { inside = false }()
		other := *w
		other.wire("second")
		n, err := other.memory.Note(background, "register")
		if err != nil {
			t.Fatal(err)
		}
		var step int64
		if i := strings.Index(string(n.Data), `"step":`); i >= 0 {
			for _, c := range string(n.Data)[i+7:] {
				if c < '0' || c > '9' {
					break
				}
				step = step*10 + int64(c-'0')
			}
		}
		if err := other.life.Handle(background, lifecycle.Work{Kind: lifecycle.WorkRegister, Step: step}); err != nil {
			t.Error(err)
		}
		w.queue = append(w.queue, other.queue...)
	}
	w.pass(3 * time.Minute)
	w.want("in the end", "Initialized", 1)
	if len(w.queue) > 1 {
		t.Errorf("%d messages", len(w.queue))
	}
}
