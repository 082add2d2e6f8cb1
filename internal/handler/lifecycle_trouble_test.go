package handler_test

import (
	"context"
	"flag"
	"fmt"
	"slices"
	"testing"
	"time"

	"pgregory.net/rapid"

	"kerf.sh/kerf/internal/cloud/ec2fake"
	"kerf.sh/kerf/internal/execute"
	"kerf.sh/kerf/internal/ledger"
	"kerf.sh/kerf/internal/lifecycle"
	"kerf.sh/kerf/internal/snapshot"
)

// troubled lets nodes live in a world in which calls fail before and after they act, people
// delete things, tables are lost, and messages come twice. It returns what is wrong when all
// that is over and time went by.
func troubled(t *testing.T, draw *rapid.T, broken func(w *lifeWorld)) error {
	w := newLifeWorld(t)
	if broken != nil {
		broken(w)
	}
	quiet := false
	bad := func(what string, one int) bool { return !quiet && rapid.IntRange(0, one).Draw(draw, what) == 0 }
	fail := func(verb, _, _ string) error {
		if bad("kube "+verb, 12) {
			return errTest
		}
		return nil
	}
	w.kube.fail = fail
	w.ec2.Hook = func(c ec2fake.Call) ec2fake.Fault {
		switch {
		case c.Op == "CreateFleet" && bad("fleet after", 3):
			return ec2fake.Fault{After: errTest}
		case c.Op != "CreateFleet" && bad("ec2 before", 9):
			return ec2fake.Fault{Before: ec2fake.Error("RequestLimitExceeded", "slow down")}
		case c.Op == "TerminateInstances" && bad("ec2 after", 4):
			return ec2fake.Fault{After: errTest}
		}
		return ec2fake.Fault{}
	}
	w.ec2.VisibleAfter = time.Duration(rapid.IntRange(0, 30).Draw(draw, "visible after")) * time.Second
	wanted, ended := 0, map[string]bool{}
	pick := func(m map[string]*lifeObject) string {
		names := sortedNames(m)
		if len(names) == 0 {
			return ""
		}
		return names[rapid.IntRange(0, len(names)-1).Draw(draw, "which")]
	}
	end := func(kind, name string) {
		for _, r := range w.records() {
			if kind == "NodeClaim" && r.Claim == name || kind == "Node" && "node-"+r.Instance.ID == name {
				ended[r.Claim] = true
			}
		}
	}
	for range rapid.IntRange(3, 12).Draw(draw, "events") {
		switch rapid.IntRange(0, 9).Draw(draw, "event") {
		case 0, 1, 2:
			n := rapid.IntRange(1, 3).Draw(draw, "nodes")
			w.launch(n)
			wanted += n
		case 3:
			if name := pick(w.kube.claims); name != "" {
				end("NodeClaim", name)
				quiet = true
				w.deleteAs("NodeClaim", name)
				quiet = false
			}
		case 4:
			if name := pick(w.kube.nodes); name != "" {
				end("Node", name)
				quiet = true
				w.deleteAs("Node", name)
				quiet = false
			}
		case 5:
			w.queue = append(w.queue, w.queue...)
		case 6:
			w.queue = nil
		case 7:
			if rapid.IntRange(0, 2).Draw(draw, "restored") == 0 {
				w.table = ledger.NewMemory(fmt.Sprintf("table-%d", w.now.Unix()))
			} else {
				w.table = w.table.Restore(fmt.Sprintf("table-%d", w.now.Unix()))
			}
			w.queue = nil
			w.wire(fmt.Sprint("owner-", w.now.Unix()))
			if broken != nil {
				broken(w)
			}
			quiet = true // a person looks after the recovery
			if _, err := w.house.Recover(background); err != nil {
				return err
			}
			quiet = false
		case 8:
			if ids := w.running(); len(ids) > 0 {
				id := ids[rapid.IntRange(0, len(ids)-1).Draw(draw, "which")]
				end("Node", "node-"+id)
				w.ec2.Interrupt(id)
			}
		}
		w.pass(time.Duration(rapid.IntRange(1, 400).Draw(draw, "seconds")) * time.Second)
		w.kube.pods = slices.DeleteFunc(w.kube.pods, func(p snapshot.Pod) bool {
			return p.NodeName != "" && w.kube.nodes[p.NodeName] != nil && !w.kube.nodes[p.NodeName].meta.Deleting.IsZero()
		})
	}
	quiet = true
	w.kube.pods = nil
	w.pass(45 * time.Minute)
	return w.settled(ended)
}

// settled says what is not as it should be when nothing happens any more: every record in
// use with its instance, Node and NodeClaim, and nothing else.
func (w *lifeWorld) settled(ended map[string]bool) error {
	running := w.running()
	var owned, claims, nodes []string
	for _, r := range w.records() {
		if r.Phase != lifecycle.Initialized || r.UID == "" || !r.NextAt.IsZero() {
			return fmt.Errorf("record %s is %s (%s: %s), next at %v", r.Claim, r.Phase, r.Reason, r.Message, r.NextAt)
		}
		if n := w.kube.nodes[r.Node]; n == nil || n.node.Unschedulable || n.meta.Annotations["kerf.sh/opening"] != "" {
			return fmt.Errorf("node %s of %s is missing or shut", r.Node, r.Claim)
		}
		if got := w.kube.condition(r.Claim, "Ready"); got != "True Ready" && !r.Adopted {
			return fmt.Errorf("NodeClaim %s is Ready=%q", r.Claim, got)
		}
		if ended[r.Claim] {
			return fmt.Errorf("%s was to go and is still there", r.Claim)
		}
		owned, claims, nodes = append(owned, r.Instance.ID), append(claims, r.Claim), append(nodes, r.Node)
	}
	slices.Sort(owned)
	slices.Sort(running)
	slices.Sort(nodes)
	switch {
	case !slices.Equal(owned, running):
		return fmt.Errorf("instances %v run, records own %v", running, owned)
	case !slices.Equal(claims, sortedNames(w.kube.claims)):
		return fmt.Errorf("NodeClaims %v, records %v", sortedNames(w.kube.claims), claims)
	case !slices.Equal(nodes, sortedNames(w.kube.nodes)):
		return fmt.Errorf("Nodes %v, records' %v", sortedNames(w.kube.nodes), nodes)
	case len(w.queue) > 0:
		return fmt.Errorf("%d messages are left", len(w.queue))
	}
	usage, err := w.memory.Usage(background)
	if err != nil || usage["general"]["nodes"] != int64(len(owned)) {
		return fmt.Errorf("usage %v, %d nodes, %v", usage, len(owned), err)
	}
	return nil
}

// TestTroubled: whatever fails, is lost or is done by people, in the end each node is whole
// or gone, and no instance is nobody's. One world is an hour in the life of a cluster.
func TestTroubled(t *testing.T) {
	for seed := range *troubledWorlds {
		rapid.Custom(func(draw *rapid.T) int {
			if err := troubled(t, draw, nil); err != nil {
				t.Errorf("world %d: %v", seed, err)
			}
			return 0
		}).Example(seed)
	}
}

var troubledWorlds = flag.Int("troubled", 20, "how many worlds TestTroubled draws")

// TestTroubledMutants: the property fails where a part is missing.
func TestTroubledMutants(t *testing.T) {
	mutants := map[string]func(*lifeWorld){
		"nobody keeps house": func(w *lifeWorld) { w.rounds = false },
		"nothing is ended":   func(w *lifeWorld) { w.x.Cloud = endless{w.x.Cloud} },
		"finalizers stay":    func(w *lifeWorld) { w.x.Cluster, w.house.Cluster = holding{w.kube}, holding{w.kube} },
	}
	for _, name := range []string{"nobody keeps house", "nothing is ended", "finalizers stay"} {
		t.Run(name, func(t *testing.T) {
			for seed := range 60 {
				var err error
				rapid.Custom(func(draw *rapid.T) int { err = troubled(t, draw, mutants[name]); return 0 }).Example(seed)
				if err != nil {
					t.Logf("caught by seed %d: %v", seed, err)
					return
				}
			}
			t.Error("no seed caught it")
		})
	}
}

type endless struct{ execute.Cloud }

func (endless) Terminate(_ context.Context, ids []string) (ending, missing []string, err error) {
	return ids, nil, nil
}

type holding struct{ *lifeKube }

func (holding) RemoveFinalizer(context.Context, string, string, string, string) error { return nil }
