package lifecycle

import (
	"fmt"
	"time"

	"kerf.sh/kerf/internal/snapshot"
)

// How long nodes are left in peace: candidates of a command that was rolled back, and nodes
// that got pods of others.
const (
	RestAfterBack = 5 * time.Minute
	RestAtMost    = time.Hour
	RestAfterMove = 10 * time.Minute
	// RestUnchanged is how long a node that got pods because theirs cost too much is left in
	// peace while no pod comes or goes: what is found for it then could have been found before,
	// and pods would move twice. settling is how long the pods that move take to be there.
	RestUnchanged = 2 * time.Hour
	settling      = 10 * time.Minute
	// flapMoves in FlapTime freeze a workload's nodes: it is moved to and fro.
	flapMoves = 3
	FlapTime  = time.Hour
)

// underutilized is the reason of moves that a workload may have too many of.
const underutilized = "Underutilized"

// PlanName is the plan that the replacements of a command are launched for: their records
// carry it, so that they are found again whatever happened to the pass.
func (c Command) PlanName() string { return fmt.Sprintf("%s/%d", c.ID, c.Created.Unix()) }

// Rest is how long the nodes of a command that was taken back are left in peace: twice as
// long with every replacement in a row that could not be had. So an on-demand node that
// stands in for spot goes back to spot when there is some again, and asks less and less often.
func (c Command) Rest() time.Duration {
	return min(RestAfterBack<<max(0, min(c.Failed, 8)-1), RestAtMost)
}

// WorkloadOf names what a pod belongs to: namespace, kind and name of its owner, or its own.
func WorkloadOf(p *snapshot.Pod) string {
	if p.Owner == nil {
		return p.Namespace + "/Pod/" + p.Name
	}
	return p.Namespace + "/" + p.Owner.Kind + "/" + p.Owner.Name
}

// Rests are the nodes of a snapshot that consolidation leaves in peace at its time: those
// that a command was rolled back for, those that have just got pods or wait for them, and
// those of workloads that are moved to and fro. moves are those of the last RestUnchanged.
func Rests(s *snapshot.Snapshot, commands []Command, moves []WorkloadMove, records []Record) []snapshot.Rest {
	now := s.Now
	by := map[string]snapshot.Rest{}
	add := func(r snapshot.Rest) {
		r.TakenBack = r.TakenBack || by[r.Node].TakenBack
		by[r.Node] = r
	}
	waiting := map[string]bool{}
	for i := range commands {
		c := &commands[i]
		if until := c.Changed.Add(c.Rest()); c.Phase == RolledBack && c.Why != "" && now.Before(until) {
			for _, n := range c.Nodes {
				add(snapshot.Rest{Node: n, TakenBack: true, Until: until.UTC(),
					Why: fmt.Sprintf("a move of it was taken back (%s); looked at again after %s", c.Why, until.UTC().Format(time.TimeOnly))})
			}
		}
		if until := c.Changed.Add(RestAfterMove); (c.Phase == Removing || c.Phase == Done) && now.Before(until) {
			for _, n := range c.Targets {
				add(snapshot.Rest{Node: n, Until: until.UTC(), Why: "it got pods of a node that went; left in peace until " + until.UTC().Format(time.TimeOnly)})
			}
		}
		if !c.Over() {
			waiting[c.PlanName()] = true
		}
	}
	for i := range records {
		if r := &records[i]; r.Node != "" && waiting[r.PlanID] {
			add(snapshot.Rest{Node: r.Node, Why: "it stands in for a node that goes, whose pods are still to come"})
		}
	}
	unchanged(s, moves, add)
	frozen(s, moves, add)
	out := make([]snapshot.Rest, 0, len(by))
	for _, r := range by {
		out = append(out, r)
	}
	return out // the snapshot sorts them
}

// unchanged adds the nodes that got pods because theirs cost too much, wherever kube-scheduler
// put them, and on which none has come or gone since.
func unchanged(s *snapshot.Snapshot, moves []WorkloadMove, add func(snapshot.Rest)) {
	last := map[string][]time.Time{} // by workload
	for i := range moves {
		if m := &moves[i]; m.Reason == underutilized && s.Now.Sub(m.At) < RestUnchanged {
			last[m.Workload] = append(last[m.Workload], m.At)
		}
	}
	if len(last) == 0 {
		return
	}
	events := map[string]time.Time{} // pods came or went, by node
	for i := range s.NodeClaims {
		events[s.NodeClaims[i].NodeName] = s.NodeClaims[i].LastPodEvent
	}
	until := map[string]time.Time{}
	for i := range s.Pods {
		p := &s.Pods[i]
		if p.NodeName == "" || p.Owner == nil {
			continue
		}
		for _, at := range last[WorkloadOf(p)] {
			end := at.Add(settling)
			if !p.Created.Before(at.Truncate(time.Second)) && p.Created.Before(end) && !events[p.NodeName].After(end) && at.Add(RestUnchanged).After(until[p.NodeName]) {
				until[p.NodeName] = at.Add(RestUnchanged)
			}
		}
	}
	for n, t := range until {
		add(snapshot.Rest{Node: n, Until: t.UTC(), Why: "its pods were moved here; left in peace until " + t.UTC().Format(time.TimeOnly) + ", or until pods come or go"})
	}
}

// frozen adds the nodes of workloads that were moved too often.
func frozen(s *snapshot.Snapshot, moves []WorkloadMove, add func(snapshot.Rest)) {
	count, first := map[string]int{}, map[string]time.Time{}
	for i := range moves {
		m := &moves[i]
		if m.Reason != underutilized || s.Now.Sub(m.At) >= FlapTime {
			continue
		}
		if count[m.Workload]++; count[m.Workload] == 1 || m.At.Before(first[m.Workload]) {
			first[m.Workload] = m.At
		}
	}
	replicas := map[string]int{}
	for i := range s.Pods {
		if p := &s.Pods[i]; p.Owner != nil && count[WorkloadOf(p)] >= flapMoves {
			replicas[WorkloadOf(p)]++
		}
	}
	for i := range s.Pods {
		p := &s.Pods[i]
		if p.NodeName == "" || p.Owner == nil {
			continue
		}
		w := WorkloadOf(p)
		if n := count[w]; n >= flapMoves && replicas[w] <= n {
			add(snapshot.Rest{Node: p.NodeName, Until: first[w].Add(FlapTime).UTC(),
				Why: fmt.Sprintf("%s was moved %d times within an hour: its nodes are frozen until that has passed", w, n)})
		}
	}
}
