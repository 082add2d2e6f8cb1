package disruption

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"kerf.sh/kerf/internal/plan"
	"kerf.sh/kerf/internal/provision"
	"kerf.sh/kerf/internal/scheduling"
	"kerf.sh/kerf/internal/snapshot"
	"kerf.sh/kerf/internal/worldtest"
)

// season gives a drawn cluster what keeps nodes, and reasons for them to go: by seed, some
// pods are not to be disrupted or have a budget, some nodes are promised, drifted, expired.
func season(s *snapshot.Snapshot, seed uint64) {
	roll := func(n int) bool {
		seed = seed*6364136223846793005 + 1442695040888963407
		return int(seed>>33)%n == 0
	}
	for i := range s.Pods {
		p := &s.Pods[i]
		if p.NodeName == "" {
			continue
		}
		if roll(9) {
			p.Annotations = map[string]string{snapshot.DoNotDisrupt: []string{"true", "2h", "soon"}[i%3]}
		}
		if roll(4) {
			group := i % 2
			p.Labels = map[string]string{"guarded": fmt.Sprint(group)}
			name := fmt.Sprintf("guard-%d", group)
			if !slices.ContainsFunc(s.Budgets, func(b snapshot.PodDisruptionBudget) bool { return b.Namespace == p.Namespace && b.Name == name }) {
				s.Budgets = append(s.Budgets, snapshot.PodDisruptionBudget{
					Namespace: p.Namespace, Name: name, HasStatus: true, DisruptionsAllowed: int32(group),
					Selector: &snapshot.LabelSelector{MatchLabels: p.Labels},
				})
			}
		}
	}
	for i := range s.NodeClaims {
		c := &s.NodeClaims[i]
		if roll(4) {
			c.Annotations = map[string]string{AnnotationPoolHash: "other", AnnotationPoolHashVersion: PoolHashVersion}
		}
		if roll(8) {
			c.ExpireAfter = "30m"
		}
		if roll(3) {
			c.TerminationGracePeriod = "1h"
		}
		if roll(8) && c.NodeName != "" {
			s.Pods = append(s.Pods, snapshot.Pod{Namespace: "default", Name: fmt.Sprintf("promised-%d", i), UID: fmt.Sprint(i), Phase: "Pending", Spec: snapshot.PodSpec{Requests: snapshot.Resources{Pods: 1}}})
			s.Nominations = append(s.Nominations, snapshot.Nomination{Namespace: "default", Pod: fmt.Sprintf("promised-%d", i), UID: fmt.Sprint(i), Node: c.NodeName, Until: s.Now.Add(time.Minute)})
		}
	}
	s.Normalize()
}

// touched says which moves take what they must leave alone, by rules written down once more:
// pods with do-not-disrupt or a closed budget, nodes that are promised, and more nodes than
// budgets allow.
func touched(s *snapshot.Snapshot, r *Result) []string {
	var out []string
	why := map[string]plan.MoveReason{}
	for _, m := range r.Moves {
		for _, n := range m.Remove {
			why[n] = m.Reason
		}
	}
	grace := map[string]bool{}
	for _, c := range s.NodeClaims {
		grace[c.NodeName] = c.TerminationGracePeriod != ""
	}
	for i := range s.Pods {
		p := &s.Pods[i]
		reason, goes := why[p.NodeName]
		if !goes || p.NodeName == "" || reason == plan.MoveExpired || reason == plan.MoveDrifted && grace[p.NodeName] || p.Phase == "Succeeded" || p.Phase == "Failed" || !p.Deleting.IsZero() {
			continue
		}
		if v := p.Annotations[snapshot.DoNotDisrupt]; v == "true" || v == "2h" {
			out = append(out, fmt.Sprintf("%s goes, and %s is not to be disrupted", p.NodeName, p.Ref()))
		} else if v != "" && v != "soon" {
			out = append(out, "a value of do-not-disrupt that this test does not know: "+v)
		}
		for k := range s.Budgets {
			b := &s.Budgets[k]
			if b.Namespace == p.Namespace && scheduling.Selects(b.Selector, p.Labels) && b.DisruptionsAllowed == 0 && b.HasStatus && !p.Stays() {
				out = append(out, fmt.Sprintf("%s goes, and budget %s keeps %s", p.NodeName, b.Name, p.Ref()))
			}
		}
	}
	for k := range s.Budgets {
		b := &s.Budgets[k]
		nodes, free := map[string]int32{}, false
		pods := int32(0)
		for i := range s.Pods {
			if p := &s.Pods[i]; b.HasStatus && b.Namespace == p.Namespace && why[p.NodeName] != "" && p.Evictable() && scheduling.Selects(b.Selector, p.Labels) {
				nodes[p.NodeName]++
				pods++
				free = free || why[p.NodeName] != plan.MoveExpired
			}
		}
		if free && len(nodes) > 1 && pods > b.DisruptionsAllowed {
			out = append(out, fmt.Sprintf("%d pods of budget %s on %d nodes go, and it allows %d", pods, b.Name, len(nodes), b.DisruptionsAllowed))
		}
	}
	for _, n := range s.Nominations {
		if reason, goes := why[n.Node]; goes && reason != plan.MoveExpired && s.Now.Before(n.Until) {
			out = append(out, n.Node+" goes, and it is promised to "+n.Pod)
		}
	}
	for i := range s.NodePools {
		p := &s.NodePools[i]
		total, forced, free := 0, 0, 0
		for k := range s.Nodes {
			if s.Nodes[k].Labels["karpenter.sh/nodepool"] != p.Name {
				continue
			}
			total++
			switch why[s.Nodes[k].Name] {
			case plan.MoveExpired:
				forced++
			case plan.MoveDrifted, plan.MoveEmpty, plan.MoveUnderutilized:
				free++
			}
		}
		var most int
		switch b := p.Disruption.Budgets[0].Nodes; b {
		case "100%", "50%", "10%":
			var share int
			fmt.Sscanf(b, "%d%%", &share)
			most = (total*share + 99) / 100
		default:
			fmt.Sscan(b, &most)
		}
		if free > max(0, most-forced) {
			out = append(out, fmt.Sprintf("NodePool %s loses %d of %d nodes, %d more expire, its budget is %s", p.Name, free, total, forced, p.Disruption.Budgets[0].Nodes))
		}
	}
	slices.Sort(out)
	return out
}

// TestMutantsAreCaught: a search that does not see budgets, PodDisruptionBudgets,
// do-not-disrupt or nominations is found out by touched.
func TestMutantsAreCaught(t *testing.T) {
	for name, blind := range map[string]func(*snapshot.Snapshot){
		"budgets": func(s *snapshot.Snapshot) {
			for i := range s.NodePools {
				s.NodePools[i].Disruption.Budgets = nil
			}
		},
		"pdb": func(s *snapshot.Snapshot) { s.Budgets = nil },
		"pdb of several": func(s *snapshot.Snapshot) {
			for i := range s.Budgets {
				s.Budgets[i].DisruptionsAllowed *= 100
			}
		},
		"nominations": func(s *snapshot.Snapshot) { s.Nominations = nil },
		"do-not-disrupt": func(s *snapshot.Snapshot) {
			for i := range s.Pods {
				s.Pods[i].Annotations = nil
			}
		},
		"grace": func(s *snapshot.Snapshot) {
			for i := range s.NodeClaims {
				s.NodeClaims[i].TerminationGracePeriod = "1h"
			}
		},
	} {
		t.Run(name, func(t *testing.T) {
			for seed := range uint64(60) {
				w := worldtest.Draw(seed)
				s, _, err := w.Snapshot()
				if err != nil {
					t.Fatal(err)
				}
				settle(s, map[string]string{"budget": []string{"100%", "50%", "1"}[seed%3]})
				season(s, seed)
				m := *s
				m.NodePools, m.Pods, m.NodeClaims, m.Budgets = slices.Clone(s.NodePools), slices.Clone(s.Pods), slices.Clone(s.NodeClaims), slices.Clone(s.Budgets)
				blind(&m)
				r := Propose(&m, w.Catalog, Options{Base: provision.Plan(&m, w.Catalog, provision.Options{})})
				if len(touched(s, r)) > 0 {
					return
				}
			}
			t.Error("nothing was found in any of the worlds")
		})
	}
}
