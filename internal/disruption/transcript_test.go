package disruption

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/cockroachdb/datadriven"

	"kerf.sh/kerf/internal/catalog"
	"kerf.sh/kerf/internal/plan"
	"kerf.sh/kerf/internal/provision"
	"kerf.sh/kerf/internal/snapshot"
	"kerf.sh/kerf/internal/worldtest"
)

// TestTranscripts runs the transcripts of testdata: small clusters in the language of
// worldtest.World, and the moves that are right. The right moves were worked out by hand.
//
//	propose [policy=] [after=] [budget=] [reasons=] [saving=] [share=] [cost=] [facts=] [work=] [from=] [prices]   moves in a new world
//	recheck reason= nodes= [add=yes] ...                               one move once more
//
// facts are what the language of worlds has no words for, see facts; several are joined by
// commas. Every node with a NodePool has a NodeClaim that was initialized an hour ago.
func TestTranscripts(t *testing.T) {
	datadriven.Walk(t, "testdata", func(t *testing.T, path string) {
		datadriven.RunTest(t, path, func(t *testing.T, d *datadriven.TestData) string {
			if d.Cmd != "propose" && d.Cmd != "recheck" {
				return "error: unknown command " + d.Cmd + "\n"
			}
			w := worldtest.NewWorld()
			if err := w.Exec(d.Input); err != nil {
				return "error: " + err.Error() + "\n"
			}
			s, report, err := w.Snapshot()
			if err != nil {
				return "error: " + err.Error() + "\n"
			}
			if len(report.Left) > 0 {
				return fmt.Sprintf("error: left out: %v\n", report.Left)
			}
			c := w.Catalog
			opts := map[string]string{}
			for _, a := range d.CmdArgs {
				opts[a.Key] = strings.Join(a.Vals, ",")
			}
			settle(s, opts)
			o := Options{Base: provision.Plan(s, c, provision.Options{})}
			fmt.Sscan(opts["saving"], &o.MinSaving)
			fmt.Sscan(opts["share"], &o.MinSavingShare)
			fmt.Sscan(opts["cost"], &o.CostPerNode)
			if err := facts(s, &o, opts); err != nil {
				return "error: " + err.Error() + "\n"
			}
			if d.Cmd == "recheck" {
				m, v := Recheck(s, c, o, plan.MoveReason(opts["reason"]), strings.Split(opts["nodes"], ","), opts["add"] != "")
				if m == nil {
					return show(&Result{Verdicts: []plan.Verdict{v}})
				}
				return show(&Result{Moves: []plan.Move{*m}})
			}
			o.From = opts["from"]
			fmt.Sscan(opts["work"], &o.Work)
			r := Propose(s, c, o)
			for _, bad := range carriedOut(s, c, r) {
				t.Errorf("%s: %s", d.Pos, bad)
			}
			out := show(r)
			if _, ok := opts["prices"]; ok {
				out += fmt.Sprintf("now %s, reachable %s, floor %s\n", worldtest.Dollars(r.Savings.Now), worldtest.Dollars(r.Savings.After), worldtest.Dollars(r.Savings.Floor))
			}
			if r.Next != "" {
				out += fmt.Sprintf("%d left, the next pass begins at %s\n", r.Savings.Left, r.Next)
			}
			return out
		})
	})
}

// settle makes of a snapshot one that has been running for an hour, and gives all pools a
// disruption policy where the lines do not.
func settle(s *snapshot.Snapshot, opts map[string]string) {
	have := map[string]bool{}
	for i := range s.NodeClaims {
		have[s.NodeClaims[i].NodeName] = true
	}
	ago := s.Now.Add(-time.Hour)
	for i := range s.Nodes {
		n := &s.Nodes[i]
		if n.Created.IsZero() {
			n.Created = ago
		}
		if n.Labels[catalog.LabelNodePool] == "" || have[n.Name] {
			continue
		}
		if n.ProviderID == "" {
			n.ProviderID = "aws:///" + n.Labels[catalog.LabelZone] + "/i-" + n.Name
		}
		c := snapshot.NodeClaim{
			Name: "claim-" + n.Name, UID: "claim-" + n.Name, Labels: n.Labels, NodeName: n.Name, ProviderID: n.ProviderID, Created: ago, Deleting: n.Deleting,
			ClassRef: snapshot.ClassRef{Group: "karpenter.k8s.aws", Kind: "EC2NodeClass", Name: "default"}, Capacity: n.Capacity, Allocatable: n.Allocatable,
		}
		for _, typ := range []string{"Launched", "Registered", "Initialized", "Ready"} {
			c.Conditions = append(c.Conditions, snapshot.Condition{Type: typ, Status: "True", Since: ago})
		}
		s.NodeClaims = append(s.NodeClaims, c)
	}
	for i := range s.Pods {
		if p := &s.Pods[i]; p.NodeName != "" && p.Started.IsZero() {
			p.Started = ago
		}
	}
	or := func(key, def string) string {
		if v, ok := opts[key]; ok {
			return v
		}
		return def
	}
	for i := range s.NodePools {
		d := &s.NodePools[i].Disruption
		d.ConsolidationPolicy, d.ConsolidateAfter = or("policy", whenUnderutilized), or("after", "0s")
		if len(d.Budgets) == 0 || opts["budget"] != "" {
			d.Budgets = []snapshot.Budget{{Nodes: or("budget", "100%")}}
			if opts["reasons"] != "" {
				d.Budgets[0].Reasons = strings.Split(opts["reasons"], ",")
			}
		}
	}
	s.Normalize()
}

// show writes moves and verdicts in lines.
func show(r *Result) string {
	var b strings.Builder
	for i := range r.Moves {
		m := &r.Moves[i]
		saving := "saves " + worldtest.Dollars(m.Saving)
		if m.Saving < 0 {
			saving = "adds " + worldtest.Dollars(-m.Saving)
		}
		fmt.Fprintf(&b, "%s: %s %s, cost %s\n", m.Reason, strings.Join(m.Remove, " "), saving, cents(m.Cost))
		if m.Reason != plan.MoveEmpty && m.Reason != plan.MoveUnderutilized {
			fmt.Fprintf(&b, "  %s\n", m.Detail)
		}
		for _, why := range m.Blockers {
			fmt.Fprintf(&b, "  held by %s\n", why)
		}
		for _, l := range m.Add {
			fmt.Fprintf(&b, "  add %s %s %s at %s, %d options\n", l.Chosen.InstanceType, l.Chosen.Zone, l.Chosen.CapacityType, worldtest.Dollars(l.Chosen.Price), len(l.Options))
		}
		for _, p := range m.Placements {
			node := p.Node
			if k := slices.IndexFunc(m.Add, func(l plan.Launch) bool { return l.Name == node }); k == 0 && len(m.Add) == 1 {
				node = "the new node"
			} else if k >= 0 {
				node = fmt.Sprintf("new node %d", k+1)
			}
			fmt.Fprintf(&b, "  %s to %s\n", strings.TrimPrefix(p.Pod, "default/"), node)
		}
	}
	for _, v := range r.Verdicts {
		fmt.Fprintf(&b, "%s stays: %s: %s\n", strings.TrimPrefix(v.Object, "node/"), v.Code, v.Detail)
	}
	if b.Len() == 0 {
		return "nothing\n"
	}
	return b.String()
}

func cents(cost int64) string { return fmt.Sprintf("%d.%02d", cost/micro, cost%micro/10_000) }

// carriedOut says what is wrong with moves once they are all carried out, by the judge
// of plans: pods without a place, and rules that are broken.
func carriedOut(s *snapshot.Snapshot, c *catalog.Catalog, r *Result) []string {
	after := *s
	after.Nodes, after.NodeClaims, after.Nominations = slices.Clone(s.Nodes), slices.Clone(s.NodeClaims), slices.Clone(s.Nominations)
	gone, to := map[string]bool{}, map[string]string{}
	for i := range r.Moves {
		m := &r.Moves[i]
		for _, n := range m.Remove {
			if gone[n] {
				return []string{"node " + n + " goes twice"}
			}
			gone[n] = true
		}
		for k := range m.Add {
			l := &m.Add[k]
			pool := poolOf(s, l.NodePool)
			after.NodeClaims = append(after.NodeClaims, snapshot.NodeClaim{
				Name: l.Name, Labels: l.Labels, Taints: pool.Taints, ClassRef: pool.ClassRef, Allocatable: l.Allocatable, Capacity: l.Allocatable, Created: s.Now,
			})
		}
		for _, p := range m.Placements {
			to[p.Pod] = p.Node
		}
	}
	var out []string
	for i := range s.Pods {
		p := &s.Pods[i]
		if node, ok := to[p.Ref()]; ok {
			if gone[node] {
				out = append(out, "pod "+p.Ref()+" goes to "+node+", which goes")
			}
			after.Nominations = append(after.Nominations, snapshot.Nomination{Namespace: p.Namespace, Pod: p.Name, UID: p.UID, Node: node, Until: s.Now.Add(time.Hour)})
		}
	}
	// Pods that wait are none of the moves' business.
	after.Pods = slices.DeleteFunc(slices.Clone(after.Pods), func(p snapshot.Pod) bool { return p.NodeName == "" })
	for i := range after.Nodes {
		if gone[after.Nodes[i].Name] {
			after.Nodes[i].Deleting = s.Now
		}
	}
	after.Normalize()
	p := provision.Plan(&after, c, provision.Options{})
	for _, bad := range worldtest.Check(&after, c, p) {
		out = append(out, "after all moves: "+bad)
	}
	for _, d := range p.Displaced {
		if want, ok := to[d.Pod]; ok && want != d.To {
			out = append(out, fmt.Sprintf("pod %s was to go to %s, and goes to %q", d.Pod, want, d.To))
		}
		delete(to, d.Pod)
	}
	for _, d := range p.Placements {
		if plan.IsUnit(d.Pod) && !gone[d.Node] && !slices.ContainsFunc(p.Launches, func(l plan.Launch) bool { return l.Name == d.Node }) {
			delete(to, d.Pod) // wherever it is: it has room
		}
	}
	for pod := range to {
		out = append(out, "pod "+pod+" has no place after all moves")
	}
	slices.Sort(out)
	return out
}
