package daypage

import (
	"bytes"
	"regexp"
	"strings"
	"testing"
	"time"
)

// small is a day of four hours with something of everything.
func small() *Day {
	d := &Day{Begins: time.Date(2026, 11, 30, 22, 0, 0, 0, time.UTC), Step: time.Hour, BadImage: Span{time.Hour, 2 * time.Hour}, Pools: "one <pool>"}
	for i := range 5 {
		d.Kerf.Samples = append(d.Kerf.Samples, Sample{Price: int64(1+i%2) * 1_000_000, Spot: 3, OnDemand: 1, Starting: i % 2, Running: 10, Pending: i})
		d.Never.Samples = append(d.Never.Samples, Sample{Price: 3_000_000, Spot: 6, OnDemand: 2, Running: 10})
		d.Floor = append(d.Floor, 500_000)
	}
	d.Kerf.Longest = Wait{Pod: "web-1", Long: 95 * time.Second}
	d.Image = Image{Launched: 2, RolledBack: 1, Cost: 123_456}
	d.Interruptions = []Interruption{{At: time.Hour, Node: "c6g.large spot a", Pods: 3, Empty: 70 * time.Second, New: []string{"m6g.large spot b"}}, {At: 2 * time.Hour, Node: "c6g.large spot c", Pods: 2, Lost: 2}}
	d.Moves = []Move{
		{At: 30 * time.Minute, Took: 2 * time.Minute, Reason: "Empty", Nodes: []string{"c6g.large spot a"}, Detail: "no pod would have to move", Saving: 27_200},
		{At: 90 * time.Minute, Took: 17 * time.Minute, Reason: "Drifted", Nodes: []string{"c6g.large spot b"}, New: []string{"c6g.large spot b"}, Detail: "AMIDrift: <image>", Why: "its replacement never became useful"},
		{At: 3 * time.Hour, Reason: "Underutilized", Nodes: []string{"a", "b"}, Open: true, Saving: -3_000, Pods: 2},
	}
	d.Chapters = []Chapter{{Span: Span{0, 4 * time.Hour}, Title: "All <of> it", Text: []string{"It went well."}, Kind: "calm"}}
	return d
}

// TestPage: everything is on the page, escaped, and nothing is asked of anybody.
func TestPage(t *testing.T) {
	out, err := HTML(small())
	if err != nil {
		t.Fatal(err)
	}
	page := string(out)
	for _, want := range []string{
		"$6.00 instead of $12.00: 50 % less", "one &lt;pool&gt;", "All &lt;of&gt; it", "AMIDrift: &lt;image&gt;", "Taken back after 17 min: its replacement never became useful",
		"Under way when the day ends.", "−$0.027", "&#43;$0.003", "1 min 35 s", "3 of 5", "2 pods were still on it when it ended.", "Launched meanwhile: m6g.large spot b", "22:00", "bad image",
	} {
		if !strings.Contains(page, want) {
			t.Errorf("%q is missing", want)
		}
	}
	if bad := regexp.MustCompile(`(?i)(https?:)?//[a-z]|\burl\(|@import|<link|\bsrc=|ZgotmplZ|%!`).FindString(page); bad != "" {
		t.Errorf("the page has %q: it would ask somebody, or something is escaped away", bad)
	}
	if again, err := HTML(small()); err != nil || !bytes.Equal(out, again) {
		t.Errorf("the same day is another page (%v)", err)
	}
}

// TestText: the figures of the terminal are those of the page.
func TestText(t *testing.T) {
	text := string(Text(small()))
	for _, want := range []string{"$6.00   50 % less than $12.00 without consolidation; the floor is $2.00", "3 of 5 pods left in time", "1   moves taken back; 2 instances never joined and cost $0.12", "1 empty, 2 to save, 0 renewed"} {
		if !strings.Contains(text, want) {
			t.Errorf("%q is missing in\n%s", want, text)
		}
	}
}

// TestCurves: a curve of steps starts at the left, ends at the right, and an area comes back.
func TestCurves(t *testing.T) {
	d := small()
	price := func(i int) int64 { return d.Kerf.Samples[i].Price }
	if got, want := d.line(4_000_000, price), "M0 150H360V100H720V150H1080V100H1440V150H1440"; got != want {
		t.Errorf("line %s, want %s", got, want)
	}
	if got, want := d.area(4_000_000, price, func(int) int64 { return 0 }), "M0 150H360V100H720V150H1080V100H1440V150H1440V200H0Z"; got != want {
		t.Errorf("area %s, want %s", got, want)
	}
}

func TestWords(t *testing.T) {
	for want, got := range map[string]string{
		"$1.00": Dollars(999_999), "$0.05": Dollars(54_400), "−$2.50": Dollars(-2_500_000), "59 s": Long(59 * time.Second), "1 min 30 s": Long(90 * time.Second),
		"2 min": Long(2 * time.Minute), "17 min": Long(17*time.Minute + 12*time.Second), "2 h 05 min": Long(125 * time.Minute), "30 %": percentLess(70, 100), "1 node": count(1, "node"), "2 nodes": count(2, "node"),
	} {
		if got != want {
			t.Errorf("%q, want %q", got, want)
		}
	}
}
