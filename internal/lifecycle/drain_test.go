package lifecycle

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"kerf.sh/kerf/internal/snapshot"
)

// drainPod is a pod from a few words: critical, daemon, mirror, tolerates, done, dnd,
// grace=N, leaving=D (its end, from now).
func drainPod(t *testing.T, name, words string, now time.Time) snapshot.Pod {
	p := snapshot.Pod{Namespace: "x", Name: name, UID: name, Started: now.Add(-time.Hour)}
	for _, w := range strings.Fields(words) {
		key, value, _ := strings.Cut(w, "=")
		switch key {
		case "critical":
			p.Spec.PriorityClass = "system-node-critical"
		case "daemon":
			p.Owner = &snapshot.Owner{Kind: "DaemonSet", Name: "d"}
		case "mirror":
			p.Owner = &snapshot.Owner{Kind: "Node", Name: "n"}
		case "tolerates":
			p.Spec.Tolerations = []snapshot.Toleration{{Operator: "Exists"}}
		case "done":
			p.Phase = "Succeeded"
		case "dnd":
			p.Annotations = map[string]string{"karpenter.sh/do-not-disrupt": "true"}
		case "grace":
			var g int64
			fmt.Sscan(value, &g)
			p.Spec.TerminationGrace = &g
		case "leaving":
			d, err := time.ParseDuration(value)
			if err != nil {
				t.Fatal(err)
			}
			p.Deleting = now.Add(d)
		default:
			t.Fatalf("unknown word %q", w)
		}
	}
	return p
}

func TestPlanDrain(t *testing.T) {
	now := time.Date(2026, 11, 30, 12, 0, 0, 0, time.UTC)
	for _, tt := range []struct {
		name     string
		pods     []string // name: words
		deadline time.Duration
		want     string // evictions, "name!grace" by force; then the number waiting; then held
	}{
		{"nothing", nil, 0, " 0"},
		{"what does not hold", []string{"a: done", "b: mirror", "c: tolerates", "d: daemon tolerates", "e: leaving=-61s"}, 0, " 0"},
		{"groups in order", []string{"a: critical", "b: daemon", "c:", "d: critical daemon"}, 0, "c 4"},
		{"daemons second", []string{"a: critical", "b: daemon", "d: critical daemon"}, 0, "b 3"},
		{"critical third", []string{"a: critical", "d: critical daemon"}, 0, "a 2"},
		{"critical daemons last", []string{"d: critical daemon"}, 0, "d 1"},
		{"one that leaves holds its group", []string{"a: leaving=20s", "b: critical"}, 0, " 2"},
		{"do-not-disrupt holds", []string{"a: dnd", "b:"}, 0, "b 2 held a"},
		{"do-not-disrupt keeps the next group waiting", []string{"a: dnd", "b: critical"}, 0, " 2 held a"},
		{"a deadline far away changes nothing", []string{"a:", "b: critical"}, time.Hour, "a 2"},
		{"when the grace no longer fits, budgets do not count", []string{"a: grace=120", "b: grace=10"}, time.Minute, "a!60 b 2"},
		{"nor do-not-disrupt, nor groups", []string{"a: dnd grace=60", "b: critical grace=90", "c: grace=1"}, time.Minute, "a!60 b!60 c 3"},
		{"at the deadline a second is left", []string{"a:"}, time.Nanosecond, "a!1 1"},
		{"past it too", []string{"a:"}, -time.Minute, "a!1 1"},
		{"one that would leave too late is told again", []string{"a: leaving=300s grace=300"}, time.Minute, "a!60 1"},
		{"one that leaves in time is not", []string{"a: leaving=30s grace=30"}, time.Minute, " 1"},
		{"a grace of nothing", []string{"a: grace=0"}, time.Minute, "a 1"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			var pods []snapshot.Pod
			for _, p := range tt.pods {
				name, words, _ := strings.Cut(p, ":")
				pods = append(pods, drainPod(t, name, words, now))
			}
			var deadline time.Time
			if tt.deadline != 0 {
				deadline = now.Add(tt.deadline)
			}
			d := PlanDrain(pods, deadline, now)
			var parts []string
			for _, e := range d.Evictions {
				s := e.Pod.Name
				if e.Force {
					s += fmt.Sprintf("!%d", *e.Grace)
				}
				parts = append(parts, s)
			}
			got := strings.Join(parts, " ") + fmt.Sprintf(" %d", len(d.Waiting))
			for i, h := range d.Held {
				if i == 0 {
					got += " held"
				}
				got += " " + h.Name
			}
			if got != tt.want {
				t.Errorf("%q; want %q", got, tt.want)
			}
		})
	}
}

// TestDrainEnds: whatever the pods are, following the plan ends before the deadline, and no
// pod is told to end with no grace at all.
func TestDrainEnds(t *testing.T) {
	start := time.Date(2026, 11, 30, 12, 0, 0, 0, time.UTC)
	deadline := start.Add(2 * time.Minute)
	words := []string{"", "critical", "daemon", "dnd", "grace=600", "grace=0", "dnd critical grace=119", "leaving=500s grace=500"}
	var pods []snapshot.Pod
	for i, w := range words {
		pods = append(pods, drainPod(t, fmt.Sprint(i), w, start))
	}
	for now := start; ; now = now.Add(time.Second) {
		var left []snapshot.Pod
		for _, p := range pods {
			if p.Deleting.IsZero() || now.Before(p.Deleting) {
				left = append(left, p)
			}
		}
		pods = left
		if len(pods) == 0 {
			break
		}
		if now.After(deadline.Add(time.Second)) {
			t.Fatalf("%d pods are left after the deadline", len(pods))
		}
		for _, e := range PlanDrain(pods, deadline, now).Evictions {
			if !e.Force {
				continue // a budget says no, for ever
			}
			if *e.Grace < 1 {
				t.Fatalf("%s is told to end with grace %d", e.Pod.Name, *e.Grace)
			}
			for i := range pods {
				if pods[i].UID == e.Pod.UID {
					pods[i].Deleting = now.Add(time.Duration(*e.Grace) * time.Second)
				}
			}
		}
	}
}
