package lifecycle

import (
	"reflect"
	"slices"
	"time"

	"kerf.sh/kerf/internal/snapshot"
)

// startRemoval begins the end of a node that is live, if something calls for it: a person
// deleted its NodeClaim or its Node, or its instance is no more. An attempt under way is
// not forgotten: the record stays until it is known what it brought.
func (s *step) startRemoval() bool {
	r := &s.Record
	why, message := s.removal()
	if why == "" {
		return false
	}
	if r.Phase == Launched && len(s.o.Nodes) == 0 && !s.o.NodesComplete {
		s.wait(pollFast) // pods may be there already: the write of the registration may be lost
		return true
	}
	if r.DeletingSince.IsZero() {
		r.DeletingSince = s.now
		if o := s.o.Object; o != nil && !o.Deleting.IsZero() {
			r.DeletingSince = o.Deleting
		}
	}
	r.Deadline = s.deadline()
	s.reason(why, message)
	s.remark(why, message)
	if !r.Deadline.IsZero() && r.Doomed == nil {
		s.remark("TerminationGracePeriodExpiring", "what is left on it ends by force at "+r.Deadline.UTC().Format(time.RFC3339))
	}
	registered := r.Node != "" || slices.ContainsFunc(s.o.Nodes, func(n Node) bool { return n.Labels[LabelRegistered] == "true" })
	if !registered || why == ReasonInstanceGone || why == ReasonInstanceTerminated {
		s.enter(Terminating)
		return true
	}
	s.taint()
	s.enter(Draining)
	return true
}

// removal says why a node has to go, "" when it need not.
func (s *step) removal() (reason, message string) {
	r := &s.Record
	if o := s.o.Object; o != nil && o.UID == r.UID && !o.Deleting.IsZero() {
		return ReasonDeleted, "the NodeClaim was deleted"
	}
	if r.UID == "" && s.o.PoolGone && r.ObjectGone.Gone(s.now) {
		return ReasonDeleted, "NodePool " + r.NodePool + " was deleted before the NodeClaim could be made"
	}
	if r.UID != "" && r.ObjectGone.Gone(s.now) {
		return ReasonDeleted, "the NodeClaim is not there any more"
	}
	for _, n := range s.o.Nodes {
		if !n.Deleting.IsZero() {
			return ReasonDeleted, "the Node " + n.Name + " was deleted"
		}
	}
	if r.NodeGone.Count >= GoneCount && s.now.Sub(r.NodeGone.Since) >= NodeGoneFor {
		// Somebody took its finalizer off: nothing can run on the machine any more.
		return ReasonDeleted, "the Node " + r.Node + " is not there any more"
	}
	if r.Doomed != nil {
		return r.Doomed.Reason, "EC2 takes instance " + r.Instance.ID
	}
	if i := s.o.Instance; i != nil && i.ID == r.Instance.ID && r.Instance.ID != "" && (i.State == "terminated" || i.State == "shutting-down") {
		return ReasonInstanceTerminated, "instance " + i.ID + " is " + i.State
	}
	if r.InstanceGone.Gone(s.now) && !s.nodeReady() {
		return ReasonInstanceGone, "EC2 does not know instance " + r.Instance.ID + " any more"
	}
	return "", ""
}

// nodeReady reports whether the Node says that it runs, whatever EC2 shows (Karpenter: a
// claim is collected only when its Node is missing or not Ready).
func (s *step) nodeReady() bool {
	return slices.ContainsFunc(s.o.Nodes, func(n Node) bool {
		c := snapshot.FindCondition(n.Conditions, "Ready")
		return c != nil && c.Status == "True"
	})
}

// deadline is when a node goes whatever is left on it: the earliest of what the NodeClaim
// says, what its grace period gives, what EC2 said, and what was set before.
func (s *step) deadline() time.Time {
	r := &s.Record
	out := r.Deadline
	earlier := func(t time.Time) {
		if !t.IsZero() && (out.IsZero() || t.Before(out)) {
			out = t
		}
	}
	if o := s.o.Object; o != nil {
		if t, err := time.Parse(time.RFC3339, o.Annotations[AnnotationEnd]); err == nil {
			earlier(t)
		}
	}
	if d, err := time.ParseDuration(r.Spec.TerminationGracePeriod); err == nil && r.Spec.TerminationGracePeriod != "" {
		earlier(r.DeletingSince.Add(d))
	}
	if r.Doomed != nil {
		earlier(r.Doomed.Deadline)
	}
	return out
}

// taint keeps new pods and load balancers away from a node that is to go.
func (s *step) taint() {
	for _, n := range s.o.Nodes {
		taints := slices.DeleteFunc(slices.Clone(n.Taints), func(t snapshot.Taint) bool { return t.Key == Disrupted.Key })
		taints = append(taints, Disrupted)
		if slices.Contains(n.Taints, Disrupted) && n.Labels[LabelExclude] != "" {
			continue
		}
		s.do(PatchNode{Node: n.Name, UID: n.UID, Labels: map[string]string{LabelExclude: "karpenter"}, Taints: taints, SetTaints: true})
	}
}

// drain waits until a node is empty, or its deadline has passed. Evicting its pods is not
// done here.
func (s *step) drain() {
	r := &s.Record
	r.Deadline = s.deadline()
	s.taint()
	if o := s.o.Object; o != nil && o.UID == r.UID && o.Deleting.IsZero() {
		s.do(DeleteObject{r.Claim, r.UID})
	}
	past := !r.Deadline.IsZero() && !s.now.Before(r.Deadline)
	ended := s.o.Instance != nil && s.o.Instance.ID == r.Instance.ID && (s.o.Instance.State == "terminated" || s.o.Instance.State == "shutting-down")
	gone := r.InstanceGone.Gone(s.now) && !s.nodeReady()
	empty := s.o.PodsComplete && s.o.Pods == 0 && s.now.Sub(r.DeletingSince) >= DrainMin
	nodeGone := s.o.NodesComplete && len(s.o.Nodes) == 0
	s.emptied(empty)
	switch {
	case past:
		s.reason(reasonElapsed, "the node's time is over")
	case ended || gone:
		s.reason(ReasonInstanceGone, "the instance is gone before its pods left")
	case nodeGone:
		s.reason(r.Reason, "the Node is gone")
	case empty && s.o.Volumes == 0:
		s.reason(r.Reason, "no pod is left")
	case empty:
		s.reason("AwaitingVolumeDetachment", "waits for volumes to be detached")
		s.wait(pollFast)
		return
	default:
		s.wait(pollFast)
		return
	}
	s.enter(Terminating)
	s.terminate() // at once: what was just seen is what it rests on
}

// emptied notes how far a drain has come.
func (s *step) emptied(empty bool) {
	r := &s.Record
	switch {
	case !empty && s.o.PodsComplete && s.o.Pods > 0:
		r.DrainedAt, r.DetachedAt = time.Time{}, time.Time{} // a pod that tolerates nothing came after all
	case empty && r.DrainedAt.IsZero():
		r.DrainedAt, r.Blocked = s.now, ""
	}
	if empty && s.o.Volumes == 0 && r.DetachedAt.IsZero() {
		r.DetachedAt = s.now
	}
}

// terminate ends the instance, then lets go of Node and NodeClaim, then closes the record.
func (s *step) terminate() {
	r := &s.Record
	if r.Attempt != "" && r.Instance.ID == "" {
		s.remark("AwaitingAttempt", "it is not known yet whether attempt "+r.Attempt+" brought an instance")
		s.wait(pollSlow)
		return
	}
	if o := s.o.Object; o != nil && o.UID == r.UID && o.Deleting.IsZero() {
		s.do(DeleteObject{r.Claim, r.UID})
	}
	if r.Instance.ID != "" && !s.instanceEnded() {
		if i := s.o.Instance; i == nil || i.State != "shutting-down" {
			s.do(Terminate{r.Instance.ID})
		}
		s.wait(pollFast)
		return
	}
	// The instance is no more. What still carries the finalizer is let go of, and the record
	// is closed when both are seen to be gone.
	left := false
	for _, n := range s.o.Nodes {
		left = true
		if n.Deleting.IsZero() {
			s.do(DeleteNode{n.Name, n.UID})
		}
		if slices.Contains(n.Finalizers, Finalizer) {
			s.do(ReleaseNode{n.Name, n.UID})
		}
	}
	if o := s.o.Object; o != nil && o.UID == r.UID {
		left = true
		if slices.Contains(o.Finalizers, Finalizer) {
			s.do(ReleaseObject{r.Claim, r.UID})
		}
	}
	// Where no instance ever came there is no Node to look for.
	if left || !s.o.NodesComplete && r.Instance.ID != "" || !s.o.ObjectsComplete {
		s.wait(pollFast)
		return
	}
	r.Phase, r.ClosedAt, r.NextAt = Closed, s.now, time.Time{}
	r.Step++
}

// instanceEnded reports whether the instance is no more: EC2 says so, or does not know it
// although it had the time to.
func (s *step) instanceEnded() bool {
	r := &s.Record
	if i := s.o.Instance; i != nil && i.ID == r.Instance.ID {
		return i.State == "terminated"
	}
	return r.InstanceGone.Gone(s.now)
}

// changed reports whether a record has to be saved. A next look that was only put off a
// little is not worth a write: who is late by less looks again anyway.
func changed(was, is Record) bool {
	if !is.NextAt.IsZero() && !was.NextAt.IsZero() && was.Phase == is.Phase && is.NextAt.Sub(was.NextAt) < pollSlow && !is.NextAt.Before(was.NextAt) {
		is.NextAt = was.NextAt
	}
	return !reflect.DeepEqual(was, is)
}
