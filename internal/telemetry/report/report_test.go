package report

import (
	"regexp"
	"strings"
	"testing"
)

// TestTable: CloudWatch bills each name with its dimensions, and there are few.
func TestTable(t *testing.T) {
	if n := Series(); n >= 10 {
		t.Errorf("%d metrics are billed by default, want fewer than ten", n)
	}
	seen := map[Metric]bool{}
	for _, r := range Table() {
		if seen[r.Metric] || !regexp.MustCompile(`^[A-Z][A-Za-z]+$`).MatchString(string(r.Metric)) {
			t.Errorf("%s: there twice, or no name of a metric", r.Metric)
		}
		seen[r.Metric] = true
		if len(r.Functions) == 0 || r.Meaning == "" || r.Unit != Count && r.Unit != Seconds && r.Unit != Dollars {
			t.Errorf("%+v", r)
		}
		if strings.HasSuffix(string(r.Metric), "Seconds") != (r.Unit == Seconds) {
			t.Errorf("%s in %s", r.Metric, r.Unit)
		}
		if !strings.Contains(Markdown(), "| `"+string(r.Metric)+"` |") {
			t.Errorf("%s is not in the reference", r.Metric)
		}
	}
	for _, m := range []Metric{TickSuccess, PendingPods, OldestPendingSeconds, Unschedulable, Launched, InFlight, Failures, Left, NodesRemoved, MovesRolledBack, MovesHeld, PricePerHour, PriceReachable, PriceFloor} {
		if !seen[m] {
			t.Errorf("%s is not in the table", m)
		}
	}
}

func TestDecisionID(t *testing.T) {
	a := DecisionID("plan-1", "8f5c")
	if a != DecisionID("plan-1", "8f5c") || !strings.HasPrefix(a, "plan-1-") || len(a) != len("plan-1-")+8 {
		t.Error(a)
	}
	for _, other := range []string{DecisionID("plan-1", "8f5d"), DecisionID("plan-2", "8f5c"), DecisionID("", "8f5c")} {
		if other == a {
			t.Error(other)
		}
	}
}

func TestReport(t *testing.T) {
	var r Report
	if _, ok := r.Value(Launched); ok {
		t.Error("something was reported of nothing")
	}
	r.Add(Launched, 0)
	if v, ok := r.Value(Launched); v != 0 || !ok {
		t.Error("0 is not reported")
	}
	r.Say("n", "text")
	r.Count("n", 2)
	r.Count("m", 1)
	if p := r.Properties(); len(p) != 2 || p[0] != (Property{"n", 2}) || p[1] != (Property{"m", 1}) {
		t.Error(p)
	}
}
