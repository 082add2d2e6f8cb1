package handler_test

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	"sigs.k8s.io/yaml"

	"kerf.sh/kerf/internal/cloud/nodeclass"
	"kerf.sh/kerf/internal/handler"
	"kerf.sh/kerf/internal/lifecycle"
	"kerf.sh/kerf/internal/plan"
	"kerf.sh/kerf/internal/snapshot"
)

// thriftKube is the cluster of lifeWorld, read whole.
type thriftKube struct {
	*lifeKube
	w *thriftWorld
}

func (k thriftKube) Read(_ context.Context, now time.Time) (*snapshot.Snapshot, []plan.Warning, error) {
	if err := k.ask("list", "everything", ""); err != nil {
		return nil, nil, err
	}
	s := &snapshot.Snapshot{
		Region: "us-east-1", Now: now, Settings: k.w.settings, NodePools: slices.Clone(k.pools), NodeClasses: []snapshot.NodeClass{k.w.class},
		Namespaces: []snapshot.Namespace{{Name: "shop"}}, Pods: slices.Clone(k.pods), Budgets: slices.Clone(k.w.budgets), Incomplete: k.w.incomplete,
	}
	for _, name := range slices.Sorted(maps.Keys(k.nodes)) {
		s.Nodes = append(s.Nodes, k.snapshotNode(k.nodes[name]))
	}
	for _, name := range slices.Sorted(maps.Keys(k.claims)) {
		s.NodeClaims = append(s.NodeClaims, k.snapshotClaim(k.claims[name]))
	}
	s.Normalize()
	return s, nil, nil
}

// thriftWorld is a lifeWorld in which consolidation runs when it is asked to.
type thriftWorld struct {
	*lifeWorld
	settings   snapshot.Settings
	class      snapshot.NodeClass
	budgets    []snapshot.PodDisruptionBudget
	incomplete []string
	h          *handler.Consolidation
	unkept     error // why no house is kept
}

// newThriftWorld is a world with n nodes that have been there for ten minutes, empty.
func newThriftWorld(t *testing.T, n int) *thriftWorld {
	t.Helper()
	w := &thriftWorld{lifeWorld: newLifeWorld(t), settings: snapshot.DefaultSettings()}
	w.launch(n)
	w.pass(2 * time.Minute)
	w.kube.pods = nil
	w.pass(10 * time.Minute)
	w.want("at the start", strings.TrimSpace(strings.Repeat("Initialized ", n)), n)
	w.kube.pools[0].Disruption = snapshot.Disruption{ConsolidationPolicy: "WhenEmptyOrUnderutilized", ConsolidateAfter: "0s", Budgets: []snapshot.Budget{{Nodes: "100%"}}}
	raw, err := yaml.YAMLToJSON([]byte(lifeClass))
	if err != nil {
		t.Fatal(err)
	}
	w.class = snapshot.NodeClass{Name: "default", UID: "u1", Generation: 1, Spec: raw, AMIFamily: "AL2023"}
	w.resolve(1, "subnet-a", "ami-1")
	w.start2("first")
	return w
}

// resolve writes down what the class selects now.
func (w *thriftWorld) resolve(version int64, subnet, image string) {
	w.t.Helper()
	parsed, err := nodeclass.Parse(&w.class)
	if err != nil {
		w.t.Fatal(err)
	}
	resolved := &nodeclass.Resolved{
		Class: "default", UID: "u1", Generation: 1, At: w.now, Profile: "prod_1", SecurityGroups: []nodeclass.SecurityGroup{{ID: "sg-1"}},
		Subnets: []nodeclass.Subnet{{ID: subnet, Zone: "us-east-1a", ZoneID: "use1-az1", FreeIPs: 4000}}, Images: []nodeclass.Image{{ID: image}},
	}
	status := nodeclass.StatusOf(parsed, resolved, nodeclass.StatusOptions{Now: w.now})
	if err := handler.StoreClass(background, w.memory, &w.class, &nodeclass.Outcome{Class: parsed, Resolved: resolved, Status: status}, version); err != nil {
		w.t.Fatal(err)
	}
}

// start2 starts the function in another process.
func (w *thriftWorld) start2(owner string) {
	w.wire(owner)
	w.h = &handler.Consolidation{
		Sweep: &handler.Sweep{
			Memory: w.memory, Cluster: thriftKube{w.kube, w}, Executor: w.x, Ticks: w, Facts: &handler.FactsCache{}, ClusterName: "prod", Region: "us-east-1",
			Now: func() time.Time { return w.now },
		},
		Kick: w.life.Kick,
	}
}

// run is one pass.
func (w *thriftWorld) run() *handler.ConsolidationReport {
	w.t.Helper()
	rep, err := w.h.Handle(background)
	if err != nil {
		w.t.Fatalf("%v\n%+v", err, rep)
	}
	return rep
}

// put puts a pod on a node.
func (w *thriftWorld) put(node, name string, cpu int64, annotations ...string) {
	p := snapshot.Pod{
		Namespace: "shop", Name: name, UID: "uid-" + name, NodeName: node, Phase: "Running", Started: w.now.Add(-time.Hour), Created: w.now.Add(-time.Hour),
		Owner: &snapshot.Owner{Kind: "ReplicaSet", Name: name, UID: "rs-" + name}, Spec: snapshot.PodSpec{Requests: snapshot.Resources{CPU: cpu, Memory: 1 << 28, Pods: 1}},
	}
	for i := 0; i+1 < len(annotations); i += 2 {
		p.Annotations = map[string]string{annotations[i]: annotations[i+1]}
	}
	w.kube.pods = append(w.kube.pods, p)
}

// node is the name of the i-th node, by name.
func (w *thriftWorld) node(i int) string { return slices.Sorted(maps.Keys(w.kube.nodes))[i] }

// tainted are the nodes that carry the taint of those that go.
func (w *thriftWorld) tainted() (out []string) {
	for _, name := range slices.Sorted(maps.Keys(w.kube.nodes)) {
		if slices.Contains(w.kube.nodes[name].node.Taints, snapshot.Disrupted) {
			out = append(out, name)
		}
	}
	return out
}

// deleting are the NodeClaims that are being deleted, by the name of their node.
func (w *thriftWorld) deleting() (out []string) {
	for _, r := range w.records() {
		if c := w.kube.claims[r.Claim]; c != nil && !c.meta.Deleting.IsZero() && r.Node != "" {
			out = append(out, r.Node)
		}
	}
	slices.Sort(out)
	return out
}

// commands are "Reason Phase node,node" of all that are not forgotten, with why they were
// taken back.
func (w *thriftWorld) commands() string {
	w.t.Helper()
	list, err := w.memory.Commands(background)
	if err != nil {
		w.t.Fatal(err)
	}
	var out []string
	for _, c := range list {
		out = append(out, strings.TrimSpace(fmt.Sprintf("%s %s %s %s", c.Reason, c.Phase, strings.Join(c.Nodes, ","), c.Why)))
	}
	slices.Sort(out)
	return strings.Join(out, "; ")
}

// expect fails the test when commands are others.
func (w *thriftWorld) expect(what, commands string) {
	w.t.Helper()
	if got := w.commands(); got != commands {
		w.t.Fatalf("%s: commands are\n  %s\nwant\n  %s\nerrors %v, problems %v", what, got, commands, w.errs, w.problems())
	}
}

// untouched fails the test when a node is tainted or goes.
func (w *thriftWorld) untouched(what string) {
	w.t.Helper()
	if t, d := w.tainted(), w.deleting(); len(t)+len(d) > 0 {
		w.t.Fatalf("%s: tainted are %v, deleted are %v", what, t, d)
	}
}

// passes runs a pass every so often until nothing is under way, or the test fails.
func (w *thriftWorld) passes(most int) {
	w.t.Helper()
	for range most {
		w.run()
		w.pass(20 * time.Second)
		list, err := w.memory.Commands(background)
		if err != nil {
			w.t.Fatal(err)
		}
		if len(list) > 0 && !slices.ContainsFunc(list, func(c lifecycle.Command) bool { return !c.Over() }) {
			return
		}
	}
	w.t.Fatalf("still under way after %d passes: %s\nerrors %v, problems %v", most, w.commands(), w.errs, w.problems())
}
