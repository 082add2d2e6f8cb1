package provision_test

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"kerf.sh/kerf/internal/catalog"
	"kerf.sh/kerf/internal/snapshot"
	"kerf.sh/kerf/internal/worldtest"
)

// Zones of the hidden nodes; all pods with rules are kept to them.
var hiddenZones = []string{"us-east-1a", "us-east-1b", "us-east-1c"}

// newSeatedWitness hides nodes in three zones, three alike each time, and cuts them into
// pods of apps whose rules the hidden places obey: an app is spread over the zones, or
// has one pod a node, or two pods that must share one, or pods that follow another app.
func newSeatedWitness(seed uint64, pods int) witness {
	r := rand.New(rand.NewPCG(seed, uint64(pods)+1))
	c := catalog.Default()
	pool := snapshot.NodePool{
		Name: "general", ClassRef: snapshot.ClassRef{Group: "karpenter.k8s.aws", Kind: "EC2NodeClass", Name: "default"},
		Requirements: []snapshot.SelectorRequirement{
			in("karpenter.k8s.aws/instance-category", "c", "m", "r"), in("kubernetes.io/os", "linux"), in("kubernetes.io/arch", "amd64"),
			in("karpenter.sh/capacity-type", "on-demand"), {Key: "karpenter.k8s.aws/instance-generation", Operator: "Gt", Values: []string{"4"}},
		},
	}
	s := &snapshot.Snapshot{
		Cluster: "test", Region: c.Region, Now: worldtest.Clock, Settings: snapshot.DefaultSettings(), NodePools: []snapshot.NodePool{pool},
		NodeClasses: []snapshot.NodeClass{{Name: "default", AMIFamily: "AL2023", AMIAlias: "al2023@latest"}},
	}
	w := witness{world: world{s: s, c: c}}
	offers := worldtest.Supplies(s, c)["general"]
	for len(s.Pods) < pods {
		o := offers[r.IntN(len(offers))]
		if o.Exotic || o.Zone != hiddenZones[0] || o.Size.CPU > 16_000 || o.Size.CPU > int64(pods)*1000 {
			continue
		}
		// The same type must be on offer in the other two zones.
		var three []*worldtest.Supply
		for _, z := range hiddenZones {
			if i := slices.IndexFunc(offers, func(q *worldtest.Supply) bool { return q.Type == o.Type && q.Zone == z }); i >= 0 {
				three = append(three, offers[i])
				w.price += offers[i].Price
			}
		}
		if len(three) < 3 {
			for _, q := range three {
				w.price -= q.Price
			}
			continue
		}
		cutThree(r, s, worldtest.Room(s, o))
	}
	s.Normalize()
	return w
}

// cutThree cuts the room of three equal nodes, one in each zone, into pods of apps.
func cutThree(r *rand.Rand, s *snapshot.Snapshot, room snapshot.Resources) {
	parts := 1 + r.IntN(6)
	leader := ""
	for k := range parts {
		share := int64(parts - k)
		need := snapshot.Resources{CPU: room.CPU / share, Memory: room.Memory / share, Pods: 1}
		if k < parts-1 {
			need.CPU = need.CPU * int64(50+r.IntN(100)) / 100 / 10 * 10
			need.Memory = need.Memory * int64(50+r.IntN(100)) / 100 / mib * mib
		}
		if need.CPU > room.CPU || need.Memory > room.Memory {
			break
		}
		room = room.Sub(need)
		app := fmt.Sprintf("app%d", len(s.Pods))
		spec := snapshot.PodSpec{Requests: need, Required: []snapshot.NodeSelectorTerm{{Expressions: []snapshot.SelectorRequirement{in("topology.kubernetes.io/zone", hiddenZones...)}}}}
		own := &snapshot.LabelSelector{MatchLabels: map[string]string{"app": app}}
		names := []string{app, app, app}
		switch r.IntN(6) {
		case 0:
			spec.Spread = []snapshot.TopologySpread{{TopologyKey: "topology.kubernetes.io/zone", MaxSkew: 1, WhenUnsatisfiable: "DoNotSchedule", Selector: own}}
		case 1:
			spec.Spread = []snapshot.TopologySpread{{TopologyKey: "kubernetes.io/hostname", MaxSkew: 1, WhenUnsatisfiable: "DoNotSchedule", Selector: own}}
		case 2:
			spec.Anti = []snapshot.PodAffinityTerm{{TopologyKey: "kubernetes.io/hostname", Selector: own}}
		case 3: // apart from the app before it, zone by zone, would be too easy to break: with it
			if leader != "" {
				spec.Affinity = []snapshot.PodAffinityTerm{{TopologyKey: "topology.kubernetes.io/zone", Selector: &snapshot.LabelSelector{MatchLabels: map[string]string{"app": leader}}}}
			}
		case 4: // two that share a node, on each of the three
			half := need
			half.CPU, half.Memory = need.CPU/2, need.Memory/2
			if room.Pods < 4 || half.CPU == 0 {
				break
			}
			for i := range names {
				pair := fmt.Sprintf("%s-pair%d", app, i)
				twins := spec
				twins.Requests = half
				twins.Affinity = []snapshot.PodAffinityTerm{{TopologyKey: "kubernetes.io/hostname", Selector: &snapshot.LabelSelector{MatchLabels: map[string]string{"app": pair}}}}
				for n := range 2 {
					s.Pods = append(s.Pods, snapshot.Pod{Namespace: "default", Name: fmt.Sprintf("%s-%d", pair, n), Labels: map[string]string{"app": pair}, Spec: twins})
				}
			}
			continue
		}
		for i, label := range names {
			s.Pods = append(s.Pods, snapshot.Pod{Namespace: "default", Name: fmt.Sprintf("%s-%d", app, i), Labels: map[string]string{"app": label}, Spec: spec})
		}
		leader = app
	}
}

// Pods that hidden nodes hold under rules about other pods are all placed, at about the
// price of these nodes or less, and no rule is broken.
func TestPropertySeatedWitness(t *testing.T) {
	worst, price, hidden := 0.0, int64(0), int64(0)
	for _, pods := range []int{6, 12, 24, 48, 96} {
		for seed := range uint64(5) {
			w := newSeatedWitness(seed, pods)
			if bad := places(w, real); len(bad) > 0 {
				t.Errorf("%d pods, seed %d:\n%s", pods, seed, strings.Join(bad[:min(len(bad), 5)], "\n"))
			}
			got := real(w.s, w.c).Summary.LaunchPrice
			price, hidden = price+got, hidden+w.price
			worst = max(worst, float64(got)/float64(w.price))
		}
	}
	t.Logf("price / price of the hidden nodes: %.3f in all, at most %.3f", float64(price)/float64(hidden), worst)
}

// Such a witness shows up a planner that is blind to the rules, and one that gives up.
func TestSeatedWitnessCatches(t *testing.T) {
	w := newSeatedWitness(1, 24)
	for name, mutant := range map[string]planner{
		"never shares a node": onePodANode,
		"is blind to spread":  blindTo(eachPod(func(p *snapshot.Pod) { p.Spec.Spread = nil })),
		"is blind to affinity": blindTo(eachPod(func(p *snapshot.Pod) {
			p.Spec.Affinity, p.Spec.Anti = nil, nil
		})),
		"has two zones": blindTo(eachPool(func(p *snapshot.NodePool) {
			p.Requirements = append(slices.Clone(p.Requirements), in("topology.kubernetes.io/zone", hiddenZones[:2]...))
		})),
	} {
		if len(places(w, mutant)) == 0 {
			t.Errorf("a planner that %s is not caught", name)
		}
	}
}
