package provision_test

import (
	"bytes"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"kerf.sh/kerf/internal/catalog"
	"kerf.sh/kerf/internal/plan"
	"kerf.sh/kerf/internal/snapshot"
	"kerf.sh/kerf/internal/worldtest"
)

// property says what is wrong with the plans of a planner for one world; nothing
// when all is well. Each one is shown to fail in mutant_test.go.
type property func(world, planner) []string

// Kinds of worlds that the properties are checked on.
var (
	variedWorlds = worlds(kind{pods: 14, types: 8, nodes: 3, daemons: 2})
	smallWorlds  = worlds(kind{pods: 8, types: 6, nodes: 2, daemons: 2, oneMarket: true, plain: true})
	emptyWorlds  = worlds(kind{pods: 8, types: 6, daemons: 2, oneMarket: true, plain: true})
	portWorlds   = worlds(kind{pods: 6, types: 4, nodes: 1, daemons: 1, oneMarket: true, sameDaemons: true})
)

func check(t *testing.T, gen *rapid.Generator[world], p property) {
	t.Helper()
	rapid.Check(t, func(t *rapid.T) {
		w := gen.Draw(t, "world")
		if bad := p(w, real); len(bad) > 0 {
			t.Fatalf("%s\n%s", strings.Join(bad, "\n"), worldtest.Lines(w.s, w.c))
		}
	})
}

// No rule of Kubernetes or of a NodePool is broken, and every pod is accounted for.
func TestPropertyNoRuleBroken(t *testing.T) { check(t, variedWorlds, rules) }

func rules(w world, plan planner) []string { return worldtest.Check(w.s, w.c, plan(w.s, w.c)) }

// The order of the input changes nothing: not one byte.
func TestPropertyOrderOfInput(t *testing.T) { check(t, variedWorlds, order) }

func order(w world, p planner) []string {
	want, err := plan.JSON(p(w.s, w.c), true)
	if err != nil {
		return []string{err.Error()}
	}
	for seed := range uint64(3) {
		got, err := plan.JSON(p(shuffled(w.s, seed), w.c), true)
		if err != nil {
			return []string{err.Error()}
		}
		if !bytes.Equal(want, got) {
			return []string{fmt.Sprintf("shuffle %d gives another plan:\n%s\n%s", seed, want, got)}
		}
	}
	return nil
}

// shuffled is the same world as a reader would hand it on that met the objects in
// another order: lists are shuffled and then normalised, maps are built anew.
func shuffled(s *snapshot.Snapshot, seed uint64) *snapshot.Snapshot {
	r := rand.New(rand.NewPCG(seed, 7))
	c := *s
	c.Pods, c.Nodes, c.NodePools = mix(r, s.Pods), mix(r, s.Nodes), mix(r, s.NodePools)
	c.DaemonSets, c.NodeClaims, c.NodeClasses = mix(r, s.DaemonSets), mix(r, s.NodeClaims), mix(r, s.NodeClasses)
	for i := range c.Pods {
		c.Pods[i].Labels = rebuilt(r, c.Pods[i].Labels)
		c.Pods[i].Spec.NodeSelector = rebuilt(r, c.Pods[i].Spec.NodeSelector)
		c.Pods[i].Spec.Tolerations = mix(r, c.Pods[i].Spec.Tolerations)
	}
	for i := range c.NodePools {
		c.NodePools[i].Requirements = mix(r, c.NodePools[i].Requirements)
		c.NodePools[i].TemplateLabels = rebuilt(r, c.NodePools[i].TemplateLabels)
		c.NodePools[i].Taints = mix(r, c.NodePools[i].Taints)
	}
	for i := range c.Nodes {
		c.Nodes[i].Labels = rebuilt(r, c.Nodes[i].Labels)
	}
	c.Normalize()
	return &c
}

func mix[T any](r *rand.Rand, s []T) []T {
	out := slices.Clone(s)
	r.Shuffle(len(out), func(i, j int) { out[i], out[j] = out[j], out[i] })
	return out
}

func rebuilt(r *rand.Rand, m map[string]string) map[string]string {
	if m == nil {
		return nil
	}
	out := map[string]string{}
	for _, k := range mix(r, slices.Collect(maps.Keys(m))) {
		out[k] = m[k]
	}
	return out
}

// In small worlds the launches cost exactly what brute force finds, and every pod
// that could run somewhere does: with new nodes alone, with nodes that are there
// already, and with host ports and open labels.
func TestPropertyCheapest(t *testing.T)          { check(t, emptyWorlds, cheapest) }
func TestPropertyCheapestOnNodes(t *testing.T)   { check(t, smallWorlds, cheapest) }
func TestPropertyCheapestWithPorts(t *testing.T) { check(t, portWorlds, cheapest) }

func cheapest(w world, plan planner) []string {
	hostable := worldtest.Hostable(w.s, w.c)
	only := *w.s
	only.Pods = slices.DeleteFunc(slices.Clone(w.s.Pods), func(p snapshot.Pod) bool {
		return p.NodeName == "" && !hostable[p.Ref()]
	})
	want, ok := worldtest.Cheapest(&only, w.c)
	if !ok {
		return nil // pods that only existing nodes can take compete for room
	}
	p := plan(w.s, w.c)
	var bad []string
	for _, v := range p.Verdicts {
		if ref, ok := strings.CutPrefix(v.Object, "pod/"); ok && hostable[ref] {
			bad = append(bad, fmt.Sprintf("pod %s is refused (%s) although all hostable pods can run", ref, v.Code))
		}
	}
	if got := p.Summary.LaunchPrice; got != want {
		bad = append(bad, fmt.Sprintf("launches cost %d, brute force finds %d", got, want))
	}
	return bad
}

// Existing nodes come first: a pod that fits one is in no launch, and nothing is
// launched when brute force finds room for everything.
func TestPropertyExistingFirst(t *testing.T) {
	check(t, worlds(kind{pods: 6, types: 3, nodes: 4, daemons: 1, oneMarket: true}), existingFirst)
}

func existingFirst(w world, plan planner) []string {
	var bad []string
	p := plan(w.s, w.c)
	for _, b := range worldtest.Check(w.s, w.c, p) {
		if strings.Contains(b, " fits node ") {
			bad = append(bad, b)
		}
	}
	if price, ok := worldtest.Cheapest(w.s, w.c); ok && price == 0 && len(p.Launches) > 0 {
		bad = append(bad, fmt.Sprintf("%d launches although the existing nodes have room for everything", len(p.Launches)))
	}
	return bad
}

// Where all pods that can run somewhere do, a pool that may launch nothing, and a type
// that is larger and dearer than all others, leave no pod without a place. (Where room
// is short there is a choice, and another one may be as good.)
func TestPropertyMonotone(t *testing.T) {
	check(t, portWorlds, unrelatedPool)
	check(t, portWorlds, largerType)
}

func unrelatedPool(w world, plan planner) []string {
	before := refused(plan(w.s, w.c))
	more := *w.s
	extra := snapshot.NodePool{
		Name: "unrelated", Weight: 100, Limits: map[string]int64{"nodes": 0}, Taints: []snapshot.Taint{{Key: "nobody-tolerates", Effect: "NoSchedule"}},
		Requirements: []snapshot.SelectorRequirement{in("team", "nobody")}, ClassRef: w.s.NodePools[0].ClassRef,
	}
	more.NodePools = append(slices.Clone(w.s.NodePools), extra)
	more.Normalize()
	if after := refused(plan(&more, w.c)); after > before && allPlaced(w, before) {
		return []string{fmt.Sprintf("%d pods are refused, %d once an unrelated NodePool exists", before, after)}
	}
	return nil
}

func largerType(w world, plan planner) []string {
	before := refused(plan(w.s, w.c))
	larger := *w.c
	larger.Types = append(slices.Clone(w.c.Types), catalog.InstanceType{
		Name: "x9.32xlarge", Arch: "amd64", VCPU: 128, MemoryMiB: 1 << 20, ENI: catalog.ENI{Interfaces: 8, IPv4PerENI: 30},
		Hypervisor: "nitro", Offerings: worldtest.Offerings(worldtest.Zones, 99_000_000, 0),
	})
	if after := refused(plan(w.s, &larger)); after > before && allPlaced(w, before) {
		return []string{fmt.Sprintf("%d pods are refused, %d once a larger type exists", before, after)}
	}
	return nil
}

// allPlaced reports whether the pods refused are just those that can run nowhere.
func allPlaced(w world, refused int) bool {
	waiting := 0
	for i := range w.s.Pods {
		if w.s.Pods[i].NodeName == "" {
			waiting++
		}
	}
	return refused == waiting-len(worldtest.Hostable(w.s, w.c))
}

// refused counts the pods that get no place. Which ones may change: two pods that
// only one of can run may trade places.
func refused(p *plan.Plan) int {
	n := 0
	for _, v := range p.Verdicts {
		if strings.HasPrefix(v.Object, "pod/") {
			n++
		}
	}
	return n
}
