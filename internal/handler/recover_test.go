package handler_test

import (
	"slices"
	"strings"
	"testing"
	"time"

	"kerf.sh/kerf/internal/cloud/ec2fake"
	"kerf.sh/kerf/internal/kube/api"
	"kerf.sh/kerf/internal/ledger"
	"kerf.sh/kerf/internal/lifecycle"
)

// writes are the calls that changed something in the cluster.
func writes(calls []string) (out []string) {
	for _, c := range calls {
		if !strings.HasPrefix(c, "list ") && !strings.HasPrefix(c, "get ") {
			out = append(out, c)
		}
	}
	return out
}

// TestLostTable: the table is gone and made anew. All nodes are known again, none was
// touched, and life goes on: what a person deletes goes.
func TestLostTable(t *testing.T) {
	w := joined2(t)
	w.never["*"] = true
	w.launch(1) // this one has not joined
	w.pass(10 * time.Second)
	before := w.records()
	w.table = ledger.NewMemory("table-2")
	w.queue = nil
	w.wire("second")
	at := len(w.kube.calls)
	rep, err := w.house.Run(background)
	if err != nil || len(rep.Adopted) != 3 {
		t.Fatalf("recovery: %+v, %v", rep, err)
	}
	if x := writes(w.kube.calls[at:]); len(x) > 0 {
		t.Errorf("the recovery wrote %v", x)
	}
	meta, err := w.memory.Open(background)
	if err != nil || meta.Mode != lifecycle.Normal {
		t.Fatalf("the table is %+v, %v", meta, err)
	}
	for i, r := range w.records() {
		b := before[i]
		if r.Claim != b.Claim || r.UID != b.UID || r.Instance.ID != b.Instance.ID || r.Node != b.Node || r.Phase != b.Phase || r.PlanID != b.PlanID || r.Instance.Type != "m5.large" {
			t.Errorf("record %d is %+v, was %+v", i, r, b)
		}
	}
	w.pass(2 * time.Minute)
	w.want("again", twoInUse+" Launched", 3)
	w.kube.pods = nil
	i := slices.IndexFunc(before, func(r lifecycle.Record) bool { return r.Phase == lifecycle.Initialized })
	w.deleteAs("NodeClaim", before[i].Claim)
	w.pass(30 * time.Minute)
	w.want("one was deleted, one never joined", "Initialized", 1)
}

// TestRestoredTable: the table is put back to what it was an hour ago. Nodes launched since
// are known again, those that ended since are closed, and none is launched or ended for it.
func TestRestoredTable(t *testing.T) {
	w := joined2(t)
	backup := w.table
	gone := w.record(0)
	w.table = backup.Restore("table-1") // goes on as it is; backup is the copy
	w.wire("first")
	w.kube.pods = nil
	w.deleteAs("NodeClaim", gone.Claim)
	w.pass(5 * time.Minute)
	w.launch(2)
	w.pass(3 * time.Minute)
	w.want("an hour later", twoInUse+" Initialized", 3)
	is := w.records()
	w.table = backup.Restore("table-3")
	w.queue = nil
	w.wire("second")
	rep, err := w.house.Run(background)
	if err != nil || len(rep.Adopted) != 2 {
		t.Fatalf("recovery: %+v, %v", rep, err)
	}
	w.want("recovered", twoInUse+" Initialized", 3)
	for i, r := range w.records() {
		if r.Claim != is[i].Claim || r.Instance.ID != is[i].Instance.ID || r.Node != is[i].Node {
			t.Errorf("record %d is %+v, was %+v", i, r, is[i])
		}
	}
	w.pass(30 * time.Minute)
	w.want("half an hour later", twoInUse+" Initialized", 3)
	u, err := w.memory.Usage(background)
	if err != nil || u["general"]["nodes"] != 3 {
		t.Errorf("usage %v, %v", u, err)
	}
}

// TestRecoveryInPart: what cannot be read whole ends a recovery without a record; a later
// round does it.
func TestRecoveryInPart(t *testing.T) {
	for _, what := range []string{"NodeClaim", "Node", "instances"} {
		w := joined2(t)
		w.table = ledger.NewMemory("table-2")
		w.queue = nil
		w.wire("second")
		bad := true
		w.kube.fail = func(verb, kind, _ string) error {
			if bad && verb == "list" && kind == what {
				return errTest
			}
			return nil
		}
		w.ec2.Hook = func(c ec2fake.Call) ec2fake.Fault {
			if bad && what == "instances" && c.Op == "DescribeInstances" {
				return ec2fake.Fault{Before: ec2fake.Error("RequestLimitExceeded", "slow down")}
			}
			return ec2fake.Fault{}
		}
		w.pass(5 * time.Minute)
		w.want("without "+what, "", 2)
		if meta, _ := w.memory.Open(background); meta.Mode != lifecycle.Recovery || len(w.errs) == 0 {
			t.Errorf("without %s: mode %s, errors %v", what, meta.Mode, w.errs)
		}
		bad = false
		w.pass(5 * time.Minute)
		w.want("with "+what, twoInUse, 2)
	}
}

// TestRecoveryWaits: Karpenter runs when Kerf is deployed: nothing is made of its nodes
// until it stops, then all of them are.
func TestRecoveryWaits(t *testing.T) {
	w := joined2(t)
	w.table = ledger.NewMemory("table-2")
	w.queue = nil
	w.wire("second")
	w.kube.leases = []api.LeaseState{{Name: "karpenter-leader-election", Holder: "karpenter-1"}}
	for range 5 {
		w.kube.leases[0].Renewed = w.now
		w.pass(55 * time.Second)
	}
	w.want("Karpenter runs", "", 2)
	w.pass(3 * time.Minute)
	w.want("Karpenter stopped", twoInUse, 2)
}

// TestRecoveryKeepsAttempts: a record whose attempt is not resolved stays as it is, and gets
// its instance by its tag; the request is not sent again.
func TestRecoveryKeepsAttempts(t *testing.T) {
	w := newLifeWorld(t)
	w.rounds = false
	w.ec2.Hook = func(c ec2fake.Call) ec2fake.Fault {
		if c.Op == "CreateFleet" {
			return ec2fake.Fault{After: errTest}
		}
		return ec2fake.Fault{}
	}
	w.launch(1)
	w.want("unresolved", "Launching", 1)
	w.table = w.table.Restore("table-2")
	w.queue = nil
	w.wire("second")
	w.now = w.now.Add(20 * time.Minute)
	w.joins = 25 * time.Minute
	asked := len(w.ec2.Calls("CreateFleet"))
	if rep, err := w.house.Run(background); err != nil {
		t.Fatalf("%+v, %v", rep, err)
	}
	w.rounds = true
	w.pass(15 * time.Minute)
	w.want("resolved", "Initialized", 1)
	if n := len(w.ec2.Calls("CreateFleet")); n != asked {
		t.Errorf("CreateFleet was called %d times more", n-asked)
	}
	if n := slices.Index(w.running(), w.record(0).Instance.ID); n < 0 {
		t.Errorf("the instance is not that of the record")
	}
}

// TestDeletedWhileLost: a NodeClaim that a person deletes while the table is lost ends with
// its instance afterwards.
func TestDeletedWhileLost(t *testing.T) {
	w := joined2(t)
	w.kube.pods = nil
	w.table = ledger.NewMemory("table-2")
	w.queue = nil
	r := w.record(0)
	w.wire("second")
	w.deleteAs("NodeClaim", r.Claim)
	w.pass(6 * time.Minute)
	w.want("afterwards", "Initialized", 1)
	if w.kube.claims[r.Claim] != nil || w.kube.nodes[r.Node] != nil {
		t.Error("its objects are left")
	}
}
