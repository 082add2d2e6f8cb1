package disruption

import (
	"testing"
	"time"

	"kerf.sh/kerf/internal/plan"
	"kerf.sh/kerf/internal/snapshot"
)

// TestBudgets: reference 5.3, S-20 and S-21. Ten nodes.
func TestBudgets(t *testing.T) {
	saturday, tuesday := time.Date(2026, 3, 7, 12, 0, 0, 0, time.UTC), time.Date(2026, 3, 3, 12, 0, 0, 0, time.UTC)
	office := snapshot.Budget{Nodes: "0", Reasons: []string{"Underutilized"}, Schedule: "0 9 * * mon-fri", Duration: "8h"}
	type want map[plan.MoveReason]int
	for name, c := range map[string]struct {
		budgets []snapshot.Budget
		zone    string
		at      time.Time
		nodes   int
		down    int
		want    want
	}{
		"none":                             {nil, "", tuesday, 10, 0, want{plan.MoveEmpty: unlimited}},
		"a number":                         {[]snapshot.Budget{{Nodes: "3"}}, "", tuesday, 10, 0, want{plan.MoveEmpty: 3, plan.MoveDrifted: 3}},
		"a share is rounded up":            {[]snapshot.Budget{{Nodes: "11%"}}, "", tuesday, 10, 0, want{plan.MoveEmpty: 2}},
		"a share of one":                   {[]snapshot.Budget{{Nodes: "10%"}}, "", tuesday, 1, 0, want{plan.MoveEmpty: 1}},
		"nothing":                          {[]snapshot.Budget{{Nodes: "0%"}}, "", tuesday, 10, 0, want{plan.MoveEmpty: 0}},
		"the least counts":                 {[]snapshot.Budget{{Nodes: "50%"}, {Nodes: "2"}}, "", tuesday, 10, 0, want{plan.MoveEmpty: 2}},
		"by reason":                        {[]snapshot.Budget{{Nodes: "5"}, {Nodes: "1", Reasons: []string{"Drifted"}}}, "", tuesday, 10, 0, want{plan.MoveEmpty: 5, plan.MoveDrifted: 1}},
		"a reason alone":                   {[]snapshot.Budget{{Nodes: "1", Reasons: []string{"Drifted"}}}, "", tuesday, 10, 0, want{plan.MoveEmpty: unlimited, plan.MoveDrifted: 1}},
		"less those that are down":         {[]snapshot.Budget{{Nodes: "5"}}, "", tuesday, 10, 2, want{plan.MoveEmpty: 3}},
		"never below nothing":              {[]snapshot.Budget{{Nodes: "1"}}, "", tuesday, 10, 2, want{plan.MoveEmpty: 0}},
		"S-20 on Tuesday":                  {[]snapshot.Budget{office}, "", tuesday, 10, 0, want{plan.MoveUnderutilized: 0, plan.MoveDrifted: unlimited}},
		"S-20 on Saturday":                 {[]snapshot.Budget{office}, "", saturday, 10, 0, want{plan.MoveUnderutilized: unlimited}},
		"S-20 just before":                 {[]snapshot.Budget{office}, "", tuesday.Add(-3*time.Hour - time.Second), 10, 0, want{plan.MoveUnderutilized: unlimited}},
		"S-20 at nine":                     {[]snapshot.Budget{office}, "", tuesday.Add(-3 * time.Hour), 10, 0, want{plan.MoveUnderutilized: 0}},
		"S-20 before five":                 {[]snapshot.Budget{office}, "", tuesday.Add(5*time.Hour - time.Second), 10, 0, want{plan.MoveUnderutilized: 0}},
		"S-20 after five":                  {[]snapshot.Budget{office}, "", tuesday.Add(5*time.Hour + time.Second), 10, 0, want{plan.MoveUnderutilized: unlimited}},
		"in a time zone":                   {[]snapshot.Budget{office}, "America/New_York", tuesday, 10, 0, want{plan.MoveUnderutilized: unlimited}},
		"in a time zone, two hours later":  {[]snapshot.Budget{office}, "America/New_York", tuesday.Add(2 * time.Hour), 10, 0, want{plan.MoveUnderutilized: 0}},
		"a time zone that is not there":    {[]snapshot.Budget{office}, "Mars/Olympus", saturday, 10, 0, want{plan.MoveUnderutilized: 0}},
		"S-21 a range backwards":           {[]snapshot.Budget{{Nodes: "9", Schedule: "0 9 * * sat-sun", Duration: "8h"}}, "", tuesday, 10, 0, want{plan.MoveEmpty: 0}},
		"S-21 a day that is none":          {[]snapshot.Budget{{Nodes: "9", Schedule: "0 9 * * 1-7", Duration: "8h"}}, "", tuesday, 10, 0, want{plan.MoveEmpty: 0}},
		"S-21 in a budget for another one": {[]snapshot.Budget{{Nodes: "9", Reasons: []string{"Drifted"}, Schedule: "x", Duration: "8h"}}, "", tuesday, 10, 0, want{plan.MoveEmpty: 0}},
		"a schedule without a duration":    {[]snapshot.Budget{{Nodes: "9", Schedule: "@daily"}}, "", tuesday, 10, 0, want{plan.MoveEmpty: 0}},
		"no number":                        {[]snapshot.Budget{{Nodes: "many"}}, "", tuesday, 10, 0, want{plan.MoveEmpty: 0}},
		"daily":                            {[]snapshot.Budget{{Nodes: "0", Schedule: "@daily", Duration: "24h"}}, "", tuesday, 10, 0, want{plan.MoveEmpty: 0}},
	} {
		t.Run(name, func(t *testing.T) {
			pool := snapshot.NodePool{Name: "p", Annotations: map[string]string{AnnotationTimeZone: c.zone}, Disruption: snapshot.Disruption{Budgets: c.budgets}}
			x := &search{s: &snapshot.Snapshot{Now: c.at}, allowances: map[string]allowance{}, spent: map[string]int{}}
			for i := range c.nodes {
				x.nodes = append(x.nodes, &node{pool: &pool, node: &snapshot.Node{}, claim: &snapshot.NodeClaim{}, initialized: true, down: i < c.down})
			}
			// What does not count: another pool's, one that is not initialized, one that ends.
			x.nodes = append(x.nodes,
				&node{pool: &snapshot.NodePool{}, node: &snapshot.Node{}, claim: &snapshot.NodeClaim{}, initialized: true, down: true},
				&node{pool: &pool, node: &snapshot.Node{}, claim: &snapshot.NodeClaim{}, down: true},
				&node{pool: &pool, node: &snapshot.Node{}, claim: &snapshot.NodeClaim{Conditions: []snapshot.Condition{{Type: "InstanceTerminating", Status: "True"}}}, initialized: true})
			for reason, n := range c.want {
				a := x.allowed(&pool, reason)
				if a.left != n {
					t.Errorf("%s: %d may go (%s), want %d", reason, a.left, a.why, n)
				}
				if a.left == 0 && a.why == "" {
					t.Errorf("%s: nothing may go, and it is not said why", reason)
				}
			}
		})
	}
}

func TestSchedule(t *testing.T) {
	at := func(s string) time.Time {
		v, err := time.Parse("2006-01-02 15:04", s)
		if err != nil {
			t.Fatal(err)
		}
		return v
	}
	for _, c := range []struct{ expr, after, next string }{
		{"* * * * *", "2026-03-04 12:00", "2026-03-04 12:01"},
		{"*/15 * * * *", "2026-03-04 12:00", "2026-03-04 12:15"},
		{"30 4 * * *", "2026-03-04 12:00", "2026-03-05 04:30"},
		{"0 0 1 * *", "2026-12-04 12:00", "2027-01-01 00:00"},
		{"0 9 * * MON-FRI", "2026-03-06 09:00", "2026-03-09 09:00"},
		{"0 9 13 * fri", "2026-03-04 12:00", "2026-03-06 09:00"},  // either day
		{"0 9 */2 * fri", "2026-03-04 12:00", "2026-03-13 09:00"}, // both: one begins with *
		{"0 0 29 2 *", "2026-03-04 12:00", "2028-02-29 00:00"},
		{"5,10-20/5 * * * ?", "2026-03-04 12:11", "2026-03-04 12:15"},
		{"@weekly", "2026-03-04 12:00", "2026-03-08 00:00"},
		{"@hourly", "2026-03-04 12:00", "2026-03-04 13:00"},
	} {
		s, err := parseSchedule(c.expr)
		if err != nil {
			t.Errorf("%s: %v", c.expr, err)
			continue
		}
		if got, ok := s.next(at(c.after)); !ok || !got.Equal(at(c.next)) {
			t.Errorf("%s after %s: %s (%v), want %s", c.expr, c.after, got, ok, c.next)
		}
	}
	if s, err := parseSchedule("0 0 30 2 *"); err != nil {
		t.Error(err)
	} else if got, ok := s.next(at("2026-03-04 12:00")); ok {
		t.Errorf("30 February comes on %s", got)
	}
	for _, bad := range []string{"", "* * * *", "60 * * * *", "* 24 * * *", "* * 0 * *", "* * * 13 *", "* * * * 7", "a * * * *", "*/0 * * * *", "5-1 * * * *", "-1 * * * *", "@never", "1,,2 * * * *"} {
		if _, err := parseSchedule(bad); err == nil {
			t.Errorf("%q is taken for a schedule", bad)
		}
	}
}

// TestEvictionCost: reference 5.6.
func TestEvictionCost(t *testing.T) {
	for _, c := range []struct {
		deletion string
		priority int32
		want     int64
	}{
		{"", 0, micro}, {"134217728", 0, 2 * micro}, {"", 1 << 25, 2 * micro}, {"-134217728", 0, 0}, {"x", 0, micro},
		{"2147483647", 2_000_000_000, 10 * micro}, {"-2147483647", 0, -10 * micro}, {"", -2_000_000_000, -10 * micro},
	} {
		p := snapshot.Pod{Annotations: map[string]string{"controller.kubernetes.io/pod-deletion-cost": c.deletion}, Spec: snapshot.PodSpec{Priority: c.priority}}
		if got := evictionCost(&p); got != c.want {
			t.Errorf("deletion cost %q, priority %d: %d, want %d", c.deletion, c.priority, got, c.want)
		}
	}
}
