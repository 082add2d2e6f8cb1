package idle

import (
	"strings"
	"testing"
)

// TestTarget: looking after an empty cluster stays well below two dollars a month for compute,
// queues, schedules and table, and what is asked grows slower than the cluster.
func TestTarget(t *testing.T) {
	hours, err := Measured()
	if err != nil || len(hours) != 3 || hours[0].Nodes != 0 || hours[2].Nodes != 1000 {
		t.Fatalf("%+v %v", hours, err)
	}
	empty, large := Of(&hours[0], 9, 16), Of(&hours[2], 9, 16)
	if got := empty.Core(); got >= 1.7 || got < 0.5 {
		t.Errorf("an idle cluster costs $%.2f a month: %+v", got, empty)
	}
	if large.Core() > 10*empty.Core() {
		t.Errorf("1,000 nodes cost $%.2f, none $%.2f", large.Core(), empty.Core())
	}
	if month(controllerNode) < 20 || month(smallNode) < 5 || month("no.such") != 0 {
		t.Errorf("nodes cost %f, %f", month(controllerNode), month(smallNode))
	}
}

// TestPrices: each kind of request costs what the list says.
func TestPrices(t *testing.T) {
	h := Hour{Functions: map[string]Function{"sweep": {Invocations: 1000, Calls: map[string]int{"sqs.SendMessage": 10, "kube.list": 100}}}, ReadUnits: 1_000_000, WriteUnits: 1_000_000}
	c := Of(&h, 2, 3)
	for what, x := range map[string][2]float64{
		"table": {c.Table, hours * 0.75}, "queues": {c.Queues, hours * (10 + 60 + 2700 + 2*1000) * 0.4e-6}, "metrics": {c.Metrics, 0.6}, "alarms": {c.Alarms, 0.3},
		"lambda": {c.Lambda, hours * (1000*0.2e-6 + (1000*.003+100*.01+10*.012)*1769/1024*0.0000133334)}, "schedules": {c.Schedules, hours * 132e-6},
	} {
		if d := x[0] - x[1]; d > 1e-9 || d < -1e-9 {
			t.Errorf("%s: %f, want %f", what, x[0], x[1])
		}
	}
	// Three requests at a time take the time of one, 23 lists four at a time that of six.
	reads := Function{Invocations: 1, Readings: 1, Calls: map[string]int{"kube.list": worldKinds, "ec2.DescribeInstanceStatus": 3, "ec2.DescribeInstances": 1}}
	if got, want := reads.seconds("consolidation", 0), .003+.0575+.1+.1; got < want-1e-9 || got > want+1e-9 {
		t.Errorf("a reading takes %f s, want %f", got, want)
	}
	// 100 nodes with 20 pods each are 2200 objects, or four pages more.
	if got, want := reads.seconds("consolidation", 100)-reads.seconds("consolidation", 0), .01+2200*objectMicros/1e6; got < want-1e-9 || got > want+1e-9 {
		t.Errorf("100 nodes take %f s more, want %f", got, want)
	}
	page := Markdown(9, 16)
	for _, want := range []string{"| 1000 nodes |", "two m7g.large nodes", "## What is assumed", "`endpoints=true`"} {
		if !strings.Contains(page, want) {
			t.Errorf("the page misses %q", want)
		}
	}
	if s, err := Headline(9, 16); err != nil || !strings.Contains(s, "at 1000 nodes") {
		t.Errorf("%s %v", s, err)
	}
}
