package scheduling

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"

	"pgregory.net/rapid"

	"kerf.sh/kerf/internal/snapshot"
)

// drawPod draws from few values, so that equal pods are common.
func drawPod(t *rapid.T, name string) snapshot.Pod {
	pick := func(label string, values ...string) string { return rapid.SampledFrom(values).Draw(t, label) }
	some := func(label string) bool { return rapid.IntRange(0, 3).Draw(t, label) == 0 }
	p := snapshot.Pod{Namespace: pick("ns", "a", "b"), Name: name, Labels: map[string]string{"app": pick("app", "x", "y")}}
	s := &p.Spec
	s.Requests = snapshot.Resources{CPU: int64(rapid.IntRange(1, 2).Draw(t, "cpu")) * 100, Memory: 1 << 30, Pods: 1}
	if some("ext") {
		s.Requests.Extended = map[string]int64{pick("device", "gpu", "nic"): 1, "none": 0}
	}
	expr := func(label string) snapshot.SelectorRequirement {
		return snapshot.SelectorRequirement{Key: pick(label+"key", "k", "l"), Operator: pick(label+"op", "In", "NotIn"), Values: []string{pick(label+"v1", "1", "2"), pick(label+"v2", "3", "4")}}
	}
	if some("selector") {
		s.NodeSelector = map[string]string{pick("selkey", "zone", "arch"): pick("selval", "1", "2"), "os": "linux"}
	}
	if some("required") {
		s.Required = []snapshot.NodeSelectorTerm{{Expressions: []snapshot.SelectorRequirement{expr("a"), expr("b")}}, {Expressions: []snapshot.SelectorRequirement{expr("c")}}}
	}
	if some("tolerations") {
		s.Tolerations = []snapshot.Toleration{{Key: pick("tol", "t", "u"), Operator: "Exists"}, {Key: "v", Value: pick("tolval", "1", "2")}}
	}
	if some("ports") {
		s.HostPorts = []snapshot.HostPort{{Port: 80, Protocol: pick("proto", "", "TCP", "UDP")}, {Port: 81}}
	}
	if some("spread") {
		s.Spread = []snapshot.TopologySpread{{MaxSkew: 1, TopologyKey: pick("topo", "zone", "host"), WhenUnsatisfiable: "DoNotSchedule"}}
	}
	return p
}

// shuffled is the same pod with every list whose order has no meaning turned round.
func shuffled(p snapshot.Pod, r *rand.Rand) snapshot.Pod {
	s := &p.Spec
	exprs := func(list []snapshot.SelectorRequirement) []snapshot.SelectorRequirement {
		out := slices.Clone(list)
		for i := range out {
			out[i].Values = slices.Clone(out[i].Values)
			r.Shuffle(len(out[i].Values), func(a, b int) { out[i].Values[a], out[i].Values[b] = out[i].Values[b], out[i].Values[a] })
		}
		r.Shuffle(len(out), func(a, b int) { out[a], out[b] = out[b], out[a] })
		return out
	}
	s.Required = slices.Clone(s.Required)
	for i := range s.Required {
		s.Required[i].Expressions = exprs(s.Required[i].Expressions)
	}
	r.Shuffle(len(s.Required), func(a, b int) { s.Required[a], s.Required[b] = s.Required[b], s.Required[a] })
	s.Tolerations = slices.Clone(s.Tolerations)
	r.Shuffle(len(s.Tolerations), func(a, b int) { s.Tolerations[a], s.Tolerations[b] = s.Tolerations[b], s.Tolerations[a] })
	s.HostPorts = slices.Clone(s.HostPorts)
	r.Shuffle(len(s.HostPorts), func(a, b int) { s.HostPorts[a], s.HostPorts[b] = s.HostPorts[b], s.HostPorts[a] })
	return p
}

// Classes are exactly the sets of equal pods: every pod is in one, two pods of one
// class are equal, two of different classes are not. The order of lists without
// meaning changes nothing.
func TestPropertyClassesAreEqualPods(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		n := rapid.IntRange(0, 30).Draw(t, "n")
		r := rand.New(rand.NewPCG(rapid.Uint64().Draw(t, "seed"), 1))
		var pods []snapshot.Pod
		for i := range n {
			p := drawPod(t, fmt.Sprintf("p%02d", i))
			if i > 0 && rapid.Bool().Draw(t, "copy") {
				p = shuffled(pods[i-1], r)
				p.Name = fmt.Sprintf("p%02d", i)
			}
			pods = append(pods, p)
		}
		slices.SortFunc(pods, func(a, b snapshot.Pod) int { return comparePods(&a, &b) })
		keys := []string{"app"}
		g := Group(pods, podOrder(pods), GroupBy{Labels: keys})
		if err := classesHold(pods, &g, keys); err != nil {
			t.Fatal(err)
		}
	})
}

// classesHold checks that classes are exactly the sets of equal pods, in order.
func classesHold(pods []snapshot.Pod, g *Groups, keys []string) error {
	of := make([]int, len(pods))
	for i := range of {
		of[i] = -1
	}
	for c := range g.Classes {
		if c > 0 && before(pods, &g.Classes[c], &g.Classes[c-1]) {
			return fmt.Errorf("class %d is out of order", c)
		}
		if !slices.IsSorted(g.Classes[c].Pods) {
			return fmt.Errorf("pods of class %d are out of order", c)
		}
		for _, i := range g.Classes[c].Pods {
			if of[i] >= 0 {
				return fmt.Errorf("pod %d is in two classes", i)
			}
			of[i] = c
		}
	}
	for i := range pods {
		if of[i] < 0 {
			return fmt.Errorf("pod %d is in no class", i)
		}
		for k := range i {
			rules := sameRules(&pods[i], &pods[k], &GroupBy{Labels: keys})
			same := rules && sameRequests(&pods[i].Spec.Requests, &pods[k].Spec.Requests)
			if same != (of[i] == of[k]) {
				return fmt.Errorf("pods %d and %d: equal %v, classes %d and %d", i, k, same, of[i], of[k])
			}
			if rules != (g.Classes[of[i]].Rules == g.Classes[of[k]].Rules) {
				return fmt.Errorf("pods %d and %d: same rules %v", i, k, rules)
			}
			if rules && hashRules(&pods[i], &GroupBy{Labels: keys}) != hashRules(&pods[k], &GroupBy{Labels: keys}) {
				return fmt.Errorf("pods %d and %d have the same rules and different hashes", i, k)
			}
		}
	}
	return nil
}

// The check sees what it is for: a rule left out, a class torn apart, an order
// turned round.
func TestClassesHoldFails(t *testing.T) {
	pods := []snapshot.Pod{
		{Namespace: "a", Name: "0", Spec: snapshot.PodSpec{Requests: snapshot.Resources{CPU: 200, Pods: 1}}},
		{Namespace: "a", Name: "1", Spec: snapshot.PodSpec{Requests: snapshot.Resources{CPU: 100, Pods: 1}, HostPorts: []snapshot.HostPort{{Port: 80}}}},
		{Namespace: "a", Name: "2", Spec: snapshot.PodSpec{Requests: snapshot.Resources{CPU: 100, Pods: 1}}},
		{Namespace: "a", Name: "3", Spec: snapshot.PodSpec{Requests: snapshot.Resources{CPU: 100, Pods: 1}}},
	}
	group := func(ps []snapshot.Pod) Groups { return Group(ps, podOrder(ps), GroupBy{}) }
	good := group(pods)
	if err := classesHold(pods, &good, nil); err != nil {
		t.Fatal(err)
	}
	blind := slices.Clone(pods)
	blind[1].Spec.HostPorts = nil
	mutants := map[string]Groups{"a rule left out": group(blind)}
	torn := group(pods)
	last := torn.Classes[2]
	torn.Classes = append(torn.Classes[:2:2], Class{Rules: last.Rules, Requests: last.Requests, Pods: last.Pods[:1]}, Class{Rules: last.Rules, Requests: last.Requests, Pods: last.Pods[1:]})
	mutants["a class torn apart"] = torn
	turned := group(pods)
	slices.Reverse(turned.Classes)
	mutants["the order turned round"] = turned
	short := group(pods)
	short.Classes = short.Classes[:2]
	mutants["a pod lost"] = short
	for name, g := range mutants {
		if classesHold(pods, &g, nil) == nil {
			t.Errorf("%s: not seen", name)
		}
	}
}

func before(pods []snapshot.Pod, a, b *Class) bool {
	if a.Requests.CPU != b.Requests.CPU {
		return a.Requests.CPU > b.Requests.CPU
	}
	if a.Requests.Memory != b.Requests.Memory {
		return a.Requests.Memory > b.Requests.Memory
	}
	return comparePods(&pods[a.Pods[0]], &pods[b.Pods[0]]) < 0
}

// Each field that a rule reads splits a class; what no rule reads does not.
func TestWhatMakesPodsDifferent(t *testing.T) {
	changes := map[string]func(p *snapshot.Pod){
		"selector":        func(p *snapshot.Pod) { p.Spec.NodeSelector = map[string]string{"a": "c"} },
		"selector is":     func(p *snapshot.Pod) { p.Spec.NodeSelector = nil },
		"required":        func(p *snapshot.Pod) { p.Spec.Required = []snapshot.NodeSelectorTerm{} },
		"preferred":       func(p *snapshot.Pod) { p.Spec.Preferred = []snapshot.PreferredTerm{{Weight: 1}} },
		"toleration":      func(p *snapshot.Pod) { p.Spec.Tolerations = []snapshot.Toleration{{Key: "x"}} },
		"port":            func(p *snapshot.Pod) { p.Spec.HostPorts = []snapshot.HostPort{{Port: 1}} },
		"spread":          func(p *snapshot.Pod) { p.Spec.Spread = []snapshot.TopologySpread{{MaxSkew: 1}} },
		"affinity":        func(p *snapshot.Pod) { p.Spec.Affinity = []snapshot.PodAffinityTerm{{TopologyKey: "z"}} },
		"anti-affinity":   func(p *snapshot.Pod) { p.Spec.Anti = []snapshot.PodAffinityTerm{{TopologyKey: "z"}} },
		"cpu":             func(p *snapshot.Pod) { p.Spec.Requests.CPU++ },
		"ephemeral":       func(p *snapshot.Pod) { p.Spec.Requests.Ephemeral++ },
		"extended":        func(p *snapshot.Pod) { p.Spec.Requests.Extended = map[string]int64{"gpu": 1} },
		"= name":          func(p *snapshot.Pod) { p.Name = "zz" },
		"= namespace":     func(p *snapshot.Pod) { p.Namespace = "zz" },
		"= labels":        func(p *snapshot.Pod) { p.Labels = map[string]string{"unseen": "x"} },
		"= priority":      func(p *snapshot.Pod) { p.Spec.Priority = 100 },
		"= zero extended": func(p *snapshot.Pod) { p.Spec.Requests.Extended = map[string]int64{"gpu": 0} },
		"= grace":         func(p *snapshot.Pod) { g := int64(1); p.Spec.TerminationGrace = &g },
	}
	for name, change := range changes {
		base := snapshot.Pod{Namespace: "default", Name: "a", Spec: snapshot.PodSpec{Requests: snapshot.Resources{CPU: 1, Pods: 1}, NodeSelector: map[string]string{"a": "b"}}}
		other := base
		other.Name = "b"
		change(&other)
		pods := []snapshot.Pod{base, other}
		want := 2
		if name[0] == '=' {
			want = 1
		}
		if got := len(Group(pods, []int32{0, 1}, GroupBy{}).Classes); got != want {
			t.Errorf("%s: %d classes, want %d", name, got, want)
		}
	}
}

// Labels count only under the keys that some selector can see.
func TestVisibleLabels(t *testing.T) {
	pods := []snapshot.Pod{
		{Namespace: "default", Name: "a", Labels: map[string]string{"app": "x", "hash": "1"}},
		{Namespace: "default", Name: "b", Labels: map[string]string{"app": "y", "hash": "2"}},
		{Namespace: "default", Name: "c", Labels: map[string]string{"app": "y", "hash": "3"}},
	}
	for _, c := range []struct {
		keys []string
		want int
	}{{nil, 1}, {[]string{"app"}, 2}, {[]string{"hash"}, 3}, {[]string{"gone"}, 1}} {
		if got := len(Group(pods, []int32{0, 1, 2}, GroupBy{Labels: c.keys}).Classes); got != c.want {
			t.Errorf("labels %v: %d classes, want %d", c.keys, got, c.want)
		}
	}
}
