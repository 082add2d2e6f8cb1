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

// witness is a world whose pods are known to have a placement: nodes were chosen
// first and filled with pods, then the pods were made pending.
type witness struct {
	world
	price int64 // of the hidden nodes
}

// witnessPools are NodePools of equal weight: a plain one, one with a taint, one in
// a single zone, one for arm64, and one whose nodes carry a team label.
func witnessPools() []snapshot.NodePool {
	pool := func(name string, rs ...snapshot.SelectorRequirement) snapshot.NodePool {
		return snapshot.NodePool{
			Name: name, ClassRef: snapshot.ClassRef{Group: "karpenter.k8s.aws", Kind: "EC2NodeClass", Name: "default"},
			Requirements: append(rs, in("karpenter.k8s.aws/instance-category", "c", "m", "r"), in("kubernetes.io/os", "linux"),
				in("karpenter.sh/capacity-type", "on-demand"),
				snapshot.SelectorRequirement{Key: "karpenter.k8s.aws/instance-generation", Operator: "Gt", Values: []string{"4"}}),
		}
	}
	amd := in("kubernetes.io/arch", "amd64")
	build := pool("build", amd)
	build.Taints = []snapshot.Taint{{Key: "dedicated", Value: "build", Effect: "NoSchedule"}}
	team := pool("team", amd)
	team.TemplateLabels = map[string]string{"team": "blue"}
	zonal := pool("zonal", amd, in("topology.kubernetes.io/zone", "us-east-1b"))
	zonal.TemplateLabels = map[string]string{"tier": "data"}
	return []snapshot.NodePool{pool("arm", in("kubernetes.io/arch", "arm64")), build, pool("plain", amd), team, zonal}
}

// newWitness builds a world of about the given number of pods on types of the
// embedded catalogue of at most 32 cores.
func newWitness(seed uint64, pods int) witness {
	r := rand.New(rand.NewPCG(seed, uint64(pods)))
	c := catalog.Default()
	s := &snapshot.Snapshot{
		Cluster: "test", Region: c.Region, Now: worldtest.Clock, Settings: snapshot.DefaultSettings(), NodePools: witnessPools(),
		NodeClasses: []snapshot.NodeClass{{Name: "default", AMIFamily: "AL2023", AMIAlias: "al2023@latest"}},
	}
	for i := range r.IntN(3) {
		ds := snapshot.DaemonSet{Namespace: "kube-system", Name: fmt.Sprintf("agent-%d", i)}
		ds.Template.Spec.Requests = snapshot.Resources{CPU: 50 + 50*int64(r.IntN(3)), Memory: 64 * mib * int64(1+r.IntN(3)), Pods: 1}
		ds.Template.Spec.Tolerations = []snapshot.Toleration{{Operator: "Exists"}}
		s.DaemonSets = append(s.DaemonSets, ds)
	}
	offers := worldtest.Supplies(s, c)
	w := witness{world: world{s: s, c: c}}
	for len(s.Pods) < pods {
		pool := s.NodePools[r.IntN(len(s.NodePools))].Name
		all := offers[pool]
		o := all[r.IntN(len(all))]
		if o.Exotic || o.Size.CPU > 32_000 || o.Size.CPU > int64(pods)*2000 {
			continue
		}
		room := worldtest.Room(s, o)
		if room.CPU < 500 || room.Memory < 512*mib {
			continue
		}
		w.price += o.Price
		fillNode(r, s, o, room, pods)
	}
	s.Normalize()
	return w
}

// fillNode cuts the room of a node into pods, nearly all of it.
func fillNode(r *rand.Rand, s *snapshot.Snapshot, o *worldtest.Supply, room snapshot.Resources, pods int) {
	parts := 1 + r.IntN(8)
	for k := range parts {
		share := int64(parts - k)
		p := snapshot.Pod{Namespace: "default", Name: fmt.Sprintf("pod-%04d", len(s.Pods))}
		need := snapshot.Resources{CPU: room.CPU / share, Memory: room.Memory / share, Pods: 1}
		if k < parts-1 {
			need.CPU = need.CPU * int64(50+r.IntN(100)) / 100 / 10 * 10
			need.Memory = need.Memory * int64(50+r.IntN(100)) / 100 / mib * mib
		}
		if need.CPU > room.CPU || need.Memory > room.Memory || room.Pods < 1 {
			break
		}
		room = room.Sub(need)
		p.Spec.Requests = need
		p.Spec.NodeSelector = map[string]string{"karpenter.sh/nodepool": o.Pool.Name}
		for _, t := range o.Pool.Taints {
			p.Spec.Tolerations = append(p.Spec.Tolerations, snapshot.Toleration{Key: t.Key, Operator: "Exists"})
		}
		switch o.Pool.Name {
		case "team":
			p.Spec.NodeSelector = map[string]string{"team": "blue"}
		case "zonal":
			p.Spec.NodeSelector = map[string]string{"tier": "data"}
		case "arm":
			p.Spec.NodeSelector = map[string]string{"kubernetes.io/arch": "arm64"}
		case "plain":
			if r.IntN(3) == 0 {
				p.Spec.NodeSelector["topology.kubernetes.io/zone"] = o.Zone
			}
		}
		s.Pods = append(s.Pods, p)
		if len(s.Pods) >= pods {
			return
		}
	}
}

// places: every pod of a witness has a place, at no more than 1.10 times the price of
// the hidden nodes, and no rule is broken.
func places(w witness, plan planner) []string {
	p := plan(w.s, w.c)
	var bad []string
	for _, v := range p.Verdicts {
		if strings.HasPrefix(v.Object, "pod/") {
			bad = append(bad, fmt.Sprintf("%s has no place: %s %s", v.Object, v.Code, v.Detail))
		}
	}
	if p.Summary.LaunchPrice*100 > w.price*110 {
		bad = append(bad, fmt.Sprintf("launches cost %d, the witness %d", p.Summary.LaunchPrice, w.price))
	}
	if p.Summary.LaunchLowerBound > w.price {
		bad = append(bad, fmt.Sprintf("bound %d is above the price %d of the witness", p.Summary.LaunchLowerBound, w.price))
	}
	return append(bad, worldtest.CheckLaunches(w.s, w.c, p)...)
}

// Pods that a hidden set of nodes holds are all placed, at about its price or less.
func TestPropertyWitness(t *testing.T) {
	for _, pods := range []int{5, 8, 12, 20, 40, 80, 150, 300} {
		for seed := range uint64(4) {
			if bad := places(newWitness(seed, pods), real); len(bad) > 0 {
				t.Errorf("%d pods, seed %d:\n%s", pods, seed, strings.Join(bad[:min(len(bad), 5)], "\n"))
			}
		}
	}
}

// The same when part of the witness stands already: existing nodes are used first.
func TestPropertyWitnessOnNodes(t *testing.T) {
	for seed := range uint64(8) {
		w := newWitness(100+seed, 30)
		first := real(w.s, w.c)
		for i, l := range first.Launches {
			if i%2 == 0 {
				continue
			}
			n := snapshot.Node{
				Name: "node-" + l.Name, ProviderID: "i-" + l.Name, Capacity: l.Allocatable, Allocatable: l.Allocatable,
				Labels: map[string]string{
					"kubernetes.io/hostname": "node-" + l.Name, "karpenter.sh/nodepool": l.NodePool, "kubernetes.io/os": "linux",
					"topology.kubernetes.io/zone": l.Chosen.Zone, "karpenter.sh/capacity-type": l.Chosen.CapacityType,
					"karpenter.sh/registered": "true", "karpenter.sh/initialized": "true", "node.kubernetes.io/instance-type": l.Chosen.InstanceType,
				},
			}
			for k, v := range l.Labels {
				n.Labels[k] = v
			}
			pool := w.s.NodePools[slices.IndexFunc(w.s.NodePools, func(p snapshot.NodePool) bool { return p.Name == l.NodePool })]
			n.Taints = pool.Taints
			if l.NodePool == "arm" {
				n.Labels["kubernetes.io/arch"] = "arm64"
			} else {
				n.Labels["kubernetes.io/arch"] = "amd64"
			}
			w.s.Nodes = append(w.s.Nodes, n)
		}
		w.s.Normalize()
		p := real(w.s, w.c)
		bad := worldtest.Check(w.s, w.c, p)
		if p.Summary.LaunchPrice >= first.Summary.LaunchPrice && len(w.s.Nodes) > 0 {
			bad = append(bad, fmt.Sprintf("launches cost %d with %d nodes there, %d without", p.Summary.LaunchPrice, len(w.s.Nodes), first.Summary.LaunchPrice))
		}
		for _, b := range bad[:min(len(bad), 5)] {
			t.Errorf("seed %d: %s", seed, b)
		}
	}
}
