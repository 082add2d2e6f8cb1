package sim

import (
	"flag"
	"os"
	"testing"
	"testing/synctest"
	"time"

	"kerf.sh/kerf/internal/provision"
	"kerf.sh/kerf/internal/snapshot"
)

// repacked is what nodes for the pods that there are would cost if they were bought anew, and
// what any nodes for them cost at least.
func (w *World) repacked() (price, bound int64) {
	s := &snapshot.Snapshot{Cluster: clusterName, Region: region, Now: w.now(), Settings: w.settings(), DaemonSets: w.cluster.daemons.list(), NodePools: w.cluster.pools.list()}
	for _, c := range w.cluster.classes.list() {
		s.NodeClasses = append(s.NodeClasses, c.NodeClass)
	}
	for _, p := range w.cluster.pods.list() {
		if !isDaemon(&p) && p.Deleting.IsZero() {
			p.NodeName, p.NominatedNode, p.Phase, p.Scheduled = "", "", "Pending", nil
			s.Pods = append(s.Pods, p)
		}
	}
	s.Normalize()
	p := provision.Plan(s, w.aws.table, provision.Options{})
	return int64(p.Summary.LaunchPrice), int64(p.Summary.LaunchLowerBound)
}

var day = flag.String("day", "", "write the report of the day to this file")

func TestDay(t *testing.T) {
	if *day == "" {
		t.Skip("-day FILE runs a whole day, twice")
	}
	for _, never := range []bool{false, true} {
		name := map[bool]string{false: "kerf", true: "never"}[never]
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var rep *Report
			var rec *dayRecord
			begun := used()
			synctest.Test(t, func(*testing.T) { rep, rec = runDay(never) })
			t.Logf("cpu %s", used()-begun)
			if *trace != "" {
				os.WriteFile(*trace+name, []byte(rep.Trace), 0o644)
			}
			for _, b := range rep.Broken {
				t.Error(b)
			}
			var cost int64
			for _, s := range rec.samples {
				cost += s.price
				if s.at%(30*time.Minute) == 0 {
					t.Logf("%s price %d floor %d bound %d nodes %d+%d (%d) pods %d pending %d %s", epoch.Add(s.at).In(dayZone).Format("15:04"), s.price, s.floor, s.bound, s.spot, s.onDemand, s.starting, s.wanted, s.pending, s.oldest)
				}
			}
			t.Logf("day: $%.2f", float64(cost)/60/1e6)
			for _, n := range rec.notices {
				t.Logf("%s %s %s %v %d %s | %s", n.At.In(dayZone).Format("15:04:05"), n.Phase, n.Reason, n.Nodes, n.Saving, n.Detail, n.Why)
			}
			for _, x := range rec.warns {
				t.Logf("warn %s %s pods %d drained %s left %d", x.at, x.i.Type, x.pods, x.drained, x.left)
			}
			for i, x := range rec.waits {
				if i < 20 {
					t.Logf("wait %s %s %s", epoch.Add(x.at).In(dayZone).Format("15:04:05"), x.wait, x.pod)
				}
			}
			t.Logf("%d waits, %d left; %+v", len(rec.waits), len(rec.created), rep.Stats)
		})
	}
}
