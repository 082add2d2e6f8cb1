package sim

import (
	"kerf.sh/kerf/internal/plan"
	"kerf.sh/kerf/internal/provision"
	"kerf.sh/kerf/internal/snapshot"
)

// anew is a plan for some of the pods that there are, those of DaemonSets aside, as if no node
// were there.
func (w *World) anew(of func(*snapshot.Pod) bool) *plan.Plan {
	s := &snapshot.Snapshot{Cluster: clusterName, Region: region, Now: w.now(), Settings: w.settings(), DaemonSets: w.cluster.daemons.list(), NodePools: w.cluster.pools.list()}
	for _, c := range w.cluster.classes.list() {
		s.NodeClasses = append(s.NodeClasses, c.NodeClass)
	}
	for _, p := range w.cluster.pods.list() {
		if !isDaemon(&p) && of(&p) {
			p.NodeName, p.NominatedNode, p.Phase, p.Scheduled = "", "", "Pending", nil
			s.Pods = append(s.Pods, p)
		}
	}
	s.Normalize()
	return provision.Plan(s, w.aws.table, provision.Options{})
}
