package worldtest

import (
	"maps"
	"slices"
	"strings"

	"kerf.sh/kerf/internal/catalog"
	"kerf.sh/kerf/internal/plan"
	"kerf.sh/kerf/internal/snapshot"
)

// attachLimits are what a node of a type can attach before its own drivers say so, by
// driver: the least that live nodes of the type say, else ebs for EBS volumes.
func attachLimits(s *snapshot.Snapshot, typ string, ebs int64) map[string]int64 {
	out := map[string]int64{}
	for _, c := range s.CSINodes {
		for _, n := range s.Nodes {
			if n.Name != c.Name || typ == "" || n.Labels[labelType] != typ {
				continue
			}
			for driver, limit := range c.Drivers {
				if old, ok := out[driver]; limit >= 0 && (!ok || limit < old) {
					out[driver] = limit
				}
			}
		}
	}
	if _, ok := out[ebsDriver]; !ok && ebs > 0 {
		out[ebsDriver] = ebs
	}
	return out
}

// expectVolumes fills in what a node will be able to attach.
func (v *nodeView) expectVolumes(s *snapshot.Snapshot, c *catalog.Catalog) {
	typ := v.labels[labelType]
	ebs := int64(0)
	devices := int64(1)
	for i := range s.NodeClasses {
		if s.NodeClasses[i].Name == v.labels[labelClass] {
			devices = devicesOf(&s.NodeClasses[i])
		}
	}
	for i := range c.Types {
		if c.Types[i].Name == typ {
			ebs = c.Types[i].EBSVolumes(devices)
		}
	}
	v.volumes = attachLimits(s, typ, ebs)
}

// limitsWith are the limits that a node says, and for other drivers what is expected.
func limitsWith(said, expected map[string]int64) map[string]int64 {
	out := maps.Clone(expected)
	if out == nil {
		out = map[string]int64{}
	}
	maps.Copy(out, said)
	return out
}

// made reports whether a claim of a class that provisions nothing finds a volume that is
// there: unclaimed or kept for it, large enough, and within reach of a node.
func (st *storage) made(u *use, labels map[string]string, nodeName string) bool {
	kept := false
	for _, v := range st.volumes {
		kept = kept || v.StorageClass == u.class.Name && v.Claim == u.claim && !v.Deleting
	}
	for _, name := range sortedKeys(st.volumes) {
		v := st.volumes[name]
		if kept && v.Claim != u.claim {
			continue
		}
		if v.StorageClass != u.class.Name || v.Deleting || v.Phase == "Bound" || v.Phase == "Released" || v.Phase == "Failed" {
			continue
		}
		if v.Claim != u.claim && (v.Claim != "" || v.Bytes < u.bytes || !containsAll(v.AccessModes, u.modes)) {
			continue
		}
		if v.Required == nil || slices.ContainsFunc(v.Required, func(t snapshot.NodeSelectorTerm) bool { return termSelects(t, labels, nodeName) }) {
			return true
		}
	}
	return false
}

func containsAll(list, want []string) bool {
	return !slices.ContainsFunc(want, func(w string) bool { return !slices.Contains(list, w) })
}

// settleZones notes where the volumes will be that the plan's pods share and that are not
// made yet: in the zone of the first of them. The others must follow.
func (j *judge) settleZones() {
	st := j.storage
	st.zone = map[string]string{}
	note := func(pods []*snapshot.Pod, zone string) {
		for _, p := range pods {
			for _, u := range st.uses(p) {
				if u.pv == nil && u.class != nil && u.class.Provisioner != "kubernetes.io/no-provisioner" && u.class.Provisioner != "efs.csi.aws.com" && st.zone[u.claim] == "" {
					st.zone[u.claim] = zone
				}
			}
		}
	}
	for _, name := range sortedKeys(j.onNode) {
		if v := j.nodes[name]; v != nil {
			note(j.onNode[name], v.labels[labelZone])
		}
	}
	for i := range j.p.Launches {
		l := &j.p.Launches[i]
		note(j.inLaunch[l.Name], l.Chosen.Zone)
	}
	// A claim of one pod may be made anywhere.
	users := map[string]int{}
	count := func(p *snapshot.Pod) {
		mine := map[string]bool{}
		for _, u := range st.uses(p) {
			if !mine[u.claim] {
				mine[u.claim] = true
				users[u.claim]++
			}
		}
	}
	for _, p := range j.placedPods() {
		count(p)
	}
	for _, v := range j.p.Verdicts {
		if p := j.pods[strings.TrimPrefix(v.Object, "pod/")]; p != nil && v.Code != plan.VolumeInUse && v.Code != plan.VolumeProblem && notPlanned(p) == "" {
			count(p)
		}
	}
	for claim := range st.zone {
		if users[claim] < 2 {
			delete(st.zone, claim)
		}
	}
}
