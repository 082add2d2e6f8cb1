package lifecycle

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"pgregory.net/rapid"

	"kerf.sh/kerf/internal/snapshot"
)

// trier is a scheduler, as far as it matters here: it tries pods in turn, a nominated node
// first, with the pods nominated there counted; then it takes the first node it likes.
type trier struct {
	o       *Opening
	room    map[string]int    // by node: how many pods it takes
	turn    map[string]uint64 // by pod: its place in the queue
	version uint64
	refused int
	strays  int // pods that went where no claim was
}

func (s *trier) nominated(node string, but *snapshot.Pod) (out []*snapshot.Pod) {
	for i := range s.o.Pods {
		if p := s.o.Pods[i].Pod; p != but && p.NodeName == "" && p.NominatedNode == node {
			out = append(out, p)
		}
	}
	return out
}

// accepts is kube-scheduler's filter for room and for the zone spread of one kind of pod.
func (s *trier) accepts(p *snapshot.Pod, n *OpeningNode) bool {
	if n.State != NodeOpen {
		return false
	}
	beside := s.nominated(n.Name, p)
	if s.room[n.Name] < 1+len(beside) {
		return false
	}
	for _, with := range [][]*snapshot.Pod{nil, beside} {
		counts := map[string]int{}
		for i := range s.o.Nodes {
			counts[s.o.Nodes[i].Labels[zoneKey]] += 0
		}
		zoneOf := map[string]string{}
		for i := range s.o.Nodes {
			zoneOf[s.o.Nodes[i].Name] = s.o.Nodes[i].Labels[zoneKey]
		}
		for i := range s.o.Pods {
			if q := s.o.Pods[i].Pod; q.NodeName != "" && q.Labels["app"] == p.Labels["app"] {
				counts[zoneOf[q.NodeName]]++
			}
		}
		for _, q := range with {
			if q.Labels["app"] == p.Labels["app"] {
				counts[n.Labels[zoneKey]]++
			}
		}
		least := 1 << 30
		for _, c := range counts {
			least = min(least, c)
		}
		for _, t := range p.Spec.Spread {
			if counts[n.Labels[zoneKey]]+1-least > int(t.MaxSkew) {
				return false
			}
		}
	}
	return true
}

func (s *trier) try(q *OpeningPod) {
	p := q.Pod
	nodes := make([]*OpeningNode, 0, len(s.o.Nodes))
	for i := range s.o.Nodes {
		if n := &s.o.Nodes[i]; n.Name == p.NominatedNode {
			nodes = slices.Insert(nodes, 0, n)
		} else {
			nodes = append(nodes, n)
		}
	}
	for _, n := range nodes {
		if s.accepts(p, n) {
			if n.Name != p.NominatedNode {
				s.strays++
			}
			p.NodeName, p.NominatedNode = n.Name, ""
			s.room[n.Name]--
			return
		}
	}
	if p.NominatedNode != "" {
		s.refused++
	}
	p.NominatedNode = ""
	s.version++
	q.Version, s.turn[p.UID] = s.version, s.version
}

func (s *trier) waiting() (out []*OpeningPod) {
	for i := range s.o.Pods {
		if s.o.Pods[i].NodeName == "" {
			out = append(out, &s.o.Pods[i])
		}
	}
	slices.SortFunc(out, func(a, b *OpeningPod) int { return int(s.turn[a.UID]) - int(s.turn[b.UID]) })
	return out
}

// act does what a step says; a step may be cut short after some of its claims.
func (s *trier) act(step OpeningStep, most int) {
	find := func(name string) *OpeningNode {
		return &s.o.Nodes[slices.IndexFunc(s.o.Nodes, func(n OpeningNode) bool { return n.Name == name })]
	}
	for n, pods := range step.Pods {
		find(n).Pods = pods
	}
	for i, c := range step.Claims {
		if i == most {
			return
		}
		k := slices.IndexFunc(s.o.Pods, func(p OpeningPod) bool { return p.UID == c.Pod.UID })
		if s.o.Pods[k].NodeName == "" {
			s.version++
			s.o.Pods[k].NominatedNode, s.o.Pods[k].Version = c.Node, s.version
		}
	}
	for _, n := range step.Open {
		find(n).State = NodeOpen
	}
}

// drawTrier draws a plan whose zones are as level as each kind of pod asks for.
func drawTrier(t *rapid.T) *trier {
	zones := rapid.IntRange(2, 3).Draw(t, "zones")
	perZone := rapid.IntRange(1, 4).Draw(t, "nodes in a zone")
	s := &trier{o: &Opening{}, room: map[string]int{}, turn: map[string]uint64{}}
	for i := range zones * perZone {
		s.o.Nodes = append(s.o.Nodes, OpeningNode{
			Name: fmt.Sprintf("n%02d", i), State: NodeShut, Since: openAt, Labels: map[string]string{zoneKey: string(rune('a' + i%zones))},
		})
	}
	for k := range rapid.IntRange(1, 5).Draw(t, "kinds") {
		skew := rapid.IntRange(1, 2).Draw(t, "skew")
		kind := fmt.Sprintf("k%d", k)
		for i := range rapid.IntRange(1, 12).Draw(t, "pods") {
			n := &s.o.Nodes[i%zones+zones*rapid.IntRange(0, perZone-1).Draw(t, "node")]
			p := &snapshot.Pod{Namespace: "default", Name: fmt.Sprintf("%s-%02d", kind, i), Labels: map[string]string{"app": kind}, Owner: &snapshot.Owner{UID: kind}}
			p.UID = p.Name
			p.Spec.Spread = []snapshot.TopologySpread{{MaxSkew: int32(skew), TopologyKey: zoneKey, WhenUnsatisfiable: "DoNotSchedule", Selector: &snapshot.LabelSelector{MatchLabels: p.Labels}}}
			s.o.Pods = append(s.o.Pods, OpeningPod{Pod: p})
			n.Pods = append(n.Pods, Pod{Namespace: "default", Name: p.Name, UID: p.UID})
			s.room[n.Name]++
		}
	}
	order := rapid.Permutation(func() (out []int) {
		for i := range s.o.Pods {
			out = append(out, i)
		}
		return out
	}()).Draw(t, "turns")
	for _, i := range order {
		s.version++
		s.o.Pods[i].Version, s.turn[s.o.Pods[i].UID] = s.version, s.version
	}
	return s
}

// No claim is refused before a pod without one has taken a place: each pod that is claimed is
// accepted at its turn. And lists always hold every pod once, and as
// many for each node as the plan said.
func TestPropertyClaimsAreAccepted(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		s := drawTrier(t)
		planned := map[string]int{}
		for i := range s.o.Nodes {
			planned[s.o.Nodes[i].Name] = len(s.o.Nodes[i].Pods)
		}
		step := s.o.Open(openAt)
		s.act(step, rapid.IntRange(-1, 9).Draw(t, "cut"))
		if again := s.o.Open(openAt); len(step.Claims) > 0 && len(again.Open) == 0 && len(again.Claims) == 0 && s.o.Nodes[0].State == NodeShut {
			t.Fatal("a step that was cut short does not go on")
		}
		s.act(s.o.Open(openAt), -1)
		for turn := 0; turn < 3*len(s.o.Pods) && len(s.waiting()) > 0 && s.strays == 0; turn++ {
			s.try(s.waiting()[0])
			step := s.o.Open(openAt.Add(time.Second))
			s.act(step, -1)
			seen := map[string]bool{}
			for i := range s.o.Nodes {
				n := &s.o.Nodes[i]
				if len(n.Pods) != planned[n.Name] {
					t.Fatalf("node %s lists %d pods and was to take %d", n.Name, len(n.Pods), planned[n.Name])
				}
				for _, p := range n.Pods {
					if seen[p.UID] {
						t.Fatalf("pod %s is listed twice", p.UID)
					}
					seen[p.UID] = true
				}
			}
		}
		if s.refused > 0 {
			t.Fatalf("%d claims were refused; %d pods wait, %d strayed", s.refused, len(s.waiting()), s.strays)
		}
	})
}
