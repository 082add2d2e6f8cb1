package lifecycle

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"kerf.sh/kerf/internal/snapshot"
)

// TestRests: which nodes are left in peace, why, and until when.
func TestRests(t *testing.T) {
	now := at(time.Hour)
	back := func(failed int, ago time.Duration) Command {
		return Command{ID: "c", Phase: RolledBack, Why: "no", Failed: failed, Nodes: []string{"n1"}, Changed: now.Add(-ago)}
	}
	pod := func(name, node string) snapshot.Pod {
		return snapshot.Pod{Namespace: "shop", Name: name, NodeName: node, Owner: &snapshot.Owner{Kind: "ReplicaSet", Name: "web", UID: "u"}}
	}
	moved := func(reason string, ago ...time.Duration) (out []WorkloadMove) {
		for _, d := range ago {
			out = append(out, WorkloadMove{Workload: "shop/ReplicaSet/web", Reason: reason, At: now.Add(-d)})
		}
		return out
	}
	came := func(node string, ago time.Duration) snapshot.Pod {
		p := pod("a", node)
		p.Created = now.Add(-ago)
		return p
	}
	three := []time.Duration{50 * time.Minute, 30 * time.Minute, time.Minute}
	for _, tc := range []struct {
		name     string
		commands []Command
		moves    []WorkloadMove
		records  []Record
		pods     []snapshot.Pod
		events   map[string]time.Duration // how long ago pods came or went
		want     string
	}{
		{name: "nothing"},
		{name: "taken back", commands: []Command{back(0, time.Minute)}, want: "n1 taken back until 4m0s"},
		{name: "rested", commands: []Command{back(0, RestAfterBack)}},
		{name: "one replacement failed", commands: []Command{back(1, time.Minute)}, want: "n1 taken back until 4m0s"},
		{name: "three did", commands: []Command{back(3, 10*time.Minute)}, want: "n1 taken back until 10m0s"},
		{name: "very many did", commands: []Command{back(90, 10*time.Minute)}, want: "n1 taken back until 50m0s"},
		{name: "a proposal that was not found again", commands: []Command{{Phase: RolledBack, Nodes: []string{"n1"}, Changed: now}}},
		{name: "got pods", commands: []Command{{Phase: Done, Nodes: []string{"n1"}, Targets: []string{"n2"}, Changed: now.Add(-time.Minute)}}, want: "n2 until 9m0s"},
		{name: "got pods long ago", commands: []Command{{Phase: Done, Targets: []string{"n2"}, Changed: now.Add(-RestAfterMove)}}},
		{name: "its pods were moved here", moves: moved(underutilized, 15*time.Minute), pods: []snapshot.Pod{came("n2", 14*time.Minute)}, want: "n2 until 1h45m0s"},
		{name: "and others came since", moves: moved(underutilized, 15*time.Minute), pods: []snapshot.Pod{came("n2", 14*time.Minute)}, events: map[string]time.Duration{"n2": 4 * time.Minute}},
		{name: "and others came with them", moves: moved(underutilized, 15*time.Minute), pods: []snapshot.Pod{came("n2", 14*time.Minute)}, events: map[string]time.Duration{"n2": 13 * time.Minute}, want: "n2 until 1h45m0s"},
		{name: "its pods were there before", moves: moved(underutilized, 15*time.Minute), pods: []snapshot.Pod{came("n2", 16*time.Minute)}},
		{name: "they came later", moves: moved(underutilized, 15*time.Minute), pods: []snapshot.Pod{came("n2", 5*time.Minute)}},
		{name: "they were moved for another reason", moves: moved("Drifted", 15*time.Minute), pods: []snapshot.Pod{came("n2", 14*time.Minute)}},
		{name: "long ago", moves: moved(underutilized, RestUnchanged), pods: []snapshot.Pod{came("n2", RestUnchanged)}},
		{
			name: "stands in", commands: []Command{{ID: "c", Phase: Replacing, Created: at(0)}, {ID: "d", Phase: Done, Created: at(0)}},
			records: []Record{{Node: "n3", PlanID: Command{ID: "c", Created: at(0)}.PlanName()}, {Node: "n4", PlanID: Command{ID: "d", Created: at(0)}.PlanName()}},
			want:    "n3",
		},
		{name: "to and fro", moves: moved(underutilized, three...), pods: []snapshot.Pod{pod("a", "n5")}, want: "n5 until 10m0s"},
		{name: "for other reasons", moves: moved("Drifted", three...), pods: []snapshot.Pod{pod("a", "n5")}},
		{name: "twice", moves: moved(underutilized, three[:2]...), pods: []snapshot.Pod{pod("a", "n5")}},
		{name: "one of them is too long ago", moves: moved(underutilized, 61*time.Minute, 2*time.Minute, time.Minute), pods: []snapshot.Pod{pod("a", "n5")}},
		{name: "more pods than moves", moves: moved(underutilized, three...), pods: []snapshot.Pod{pod("a", "n5"), pod("b", "n5"), pod("c", "n6"), pod("d", "n6")}},
		{
			name: "taken back, and got pods", commands: []Command{back(0, time.Minute), {Phase: Done, Targets: []string{"n1"}, Changed: now}},
			want: "n1 taken back until 10m0s",
		},
	} {
		s := &snapshot.Snapshot{Now: now, Pods: tc.pods}
		for n, ago := range tc.events {
			s.NodeClaims = append(s.NodeClaims, snapshot.NodeClaim{Name: "claim-" + n, NodeName: n, LastPodEvent: now.Add(-ago)})
		}
		s.Rests = Rests(s, tc.commands, tc.moves, tc.records)
		s.Normalize()
		var got []string
		for _, r := range s.Rests {
			line := r.Node
			if r.TakenBack {
				line += " taken back"
			}
			if !r.Until.IsZero() {
				line += fmt.Sprintf(" until %s", r.Until.Sub(now))
			}
			if r.Why == "" || !r.Live(now) || !r.Until.IsZero() && r.Live(r.Until) {
				t.Errorf("%s: %+v", tc.name, r)
			}
			got = append(got, line)
		}
		if strings.Join(got, ", ") != tc.want {
			t.Errorf("%s: %q, want %q", tc.name, got, tc.want)
		}
	}
}
