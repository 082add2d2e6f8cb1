package scheduling

import (
	"fmt"
	"slices"

	"kerf.sh/kerf/internal/catalog"
	"kerf.sh/kerf/internal/packing"
	"kerf.sh/kerf/internal/plan"
	"kerf.sh/kerf/internal/snapshot"
)

// claimUser is the pod that has a claim which is for one pod at a time.
type claimUser struct {
	pod    int32
	runs   bool // on a node; else it is planned
	others int  // planned pods that are refused for its sake
}

// onceClaims are the claims of a pod that are ReadWriteOncePod, namespace/name. Generic
// ephemeral volumes are nobody else's.
func (a *attachments) onceClaims(p *snapshot.Pod) []string {
	var out []string
	for k := range p.Spec.Volumes {
		if p.Spec.Volumes[k].Ephemeral != nil {
			continue
		}
		c, name := a.v.claim(p, &p.Spec.Volumes[k])
		if c != nil && slices.Contains(c.Spec.AccessModes, "ReadWriteOncePod") {
			out = append(out, p.Namespace+"/"+name)
		}
	}
	return out
}

// firstCome gives claims that are for one pod to the pods that have them: those on nodes,
// pods to be moved left aside, then planned ones by name, those that had their turn last.
func (a *attachments) firstCome(pending []int32) {
	s := a.w.Snapshot
	any := false
	for i := range s.Claims {
		any = any || slices.Contains(s.Claims[i].Spec.AccessModes, "ReadWriteOncePod")
	}
	if !any {
		return
	}
	a.users = map[string]*claimUser{}
	take := func(i int32, runs bool) {
		p := &s.Pods[i]
		claims := a.onceClaims(p)
		if !runs && slices.ContainsFunc(claims, func(c string) bool { return a.users[c] != nil && a.users[c].pod != i }) {
			return
		}
		for _, c := range claims {
			if a.users[c] == nil {
				a.users[c] = &claimUser{pod: i, runs: runs}
			}
		}
	}
	for _, i := range a.w.order {
		if p := &s.Pods[i]; p.NodeName != "" && !p.Terminal() && !a.planned[i] {
			take(i, true)
		}
	}
	for _, last := range []bool{false, true} {
		for _, i := range pending {
			if a.w.hadTurn[i] == last && a.v.problem(&s.Pods[i]) == "" {
				take(i, false)
			}
		}
	}
}

// onlyOnePod refuses a pod whose claim is for one pod at a time and has that pod
// (kube-scheduler: VolumeRestrictions, ReadWriteOncePod).
func (a *attachments) onlyOnePod(i int32, p *snapshot.Pod) (plan.Code, string) {
	if a.users == nil {
		return "", ""
	}
	for _, c := range a.onceClaims(p) {
		u := a.users[c]
		if u == nil || u.pod == i {
			continue
		}
		_, name := cutRef("/" + c)
		user := a.w.Snapshot.Pods[u.pod].Ref()
		if u.runs {
			return plan.VolumeInUse, fmt.Sprintf("persistentVolumeClaim %s is ReadWriteOncePod, and pod %s has it", name, user)
		}
		u.others++
		return plan.VolumeInUse, fmt.Sprintf("persistentVolumeClaim %s is ReadWriteOncePod, and pod %s gets it in this plan", name, user)
	}
	return "", ""
}

// HandOver looks for pods that a solution has no place for although they were given a
// claim that is for one pod, and that other pods want too. It returns a world in which
// those others have their turn; nil when there are none.
func (w *World) HandOver(r *packing.Result) *World {
	if w.attach == nil || w.attach.users == nil {
		return nil
	}
	without := map[int32]bool{}
	for _, u := range r.Unplaced {
		pods := w.Classes[u.Class].Pods
		for _, i := range pods[len(pods)-u.Count*w.Classes[u.Class].PodsPerUnit():] {
			without[i] = true
		}
	}
	turn := map[int32]bool{}
	for i := range w.hadTurn {
		turn[i] = true
	}
	for _, u := range w.attach.users {
		if u.others > 0 && !u.runs && without[u.pod] {
			turn[u.pod] = true
		}
	}
	if len(turn) == len(w.hadTurn) {
		return nil
	}
	return newWorld(w.Snapshot, w.Catalog, turn)
}

func newWorld(s *snapshot.Snapshot, c *catalog.Catalog, hadTurn map[int32]bool) *World {
	w := &World{Snapshot: s, Catalog: c, universes: map[string]*universe{}, hadTurn: hadTurn}
	w.read()
	return w
}
