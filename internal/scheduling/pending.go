package scheduling

import (
	"cmp"
	"fmt"
	"slices"

	"kerf.sh/kerf/internal/plan"
	"kerf.sh/kerf/internal/snapshot"
)

// NotPlanned returns why a pod is no candidate for a new node, with a sentence;
// "" for a pod that is pending. Pods that have a node already, and are therefore
// no question at all, get "" too: look at NodeName first.
//
// A pod without the PodScheduled condition is pending: manifests and many dumps
// carry none (Karpenter wants the condition with reason Unschedulable).
func NotPlanned(p *snapshot.Pod) (plan.Code, string) {
	switch {
	case p.Terminal():
		return plan.Finished, "the pod is in phase " + p.Phase
	case !p.Deleting.IsZero():
		return plan.BeingDeleted, "the pod is being deleted"
	case isMirror(p):
		return plan.MirrorPod, "a static pod belongs to its node"
	case isDaemon(p):
		return plan.DaemonSetPod, "DaemonSet " + p.Owner.Name + " runs it on nodes that exist for other pods"
	case len(p.Spec.Gates) > 0:
		return plan.SchedulingGated, fmt.Sprintf("waits for scheduling gates %v", p.Spec.Gates)
	case len(p.Spec.ResourceClaims) > 0:
		return plan.ResourceClaims, fmt.Sprintf("uses dynamic resource claims %v, which are not planned for", p.Spec.ResourceClaims)
	case p.Scheduled != nil && p.Scheduled.Reason != "" && p.Scheduled.Reason != "Unschedulable":
		if p.Scheduled.Reason == "SchedulingGated" {
			return plan.SchedulingGated, "waits for its scheduling gates"
		}
		return plan.NotUnschedulable, fmt.Sprintf("PodScheduled is %s with reason %q, not Unschedulable", p.Scheduled.Status, p.Scheduled.Reason)
	}
	return "", ""
}

// isDaemon reports whether a DaemonSet controls the pod.
func isDaemon(p *snapshot.Pod) bool { return p.Daemon() }

// isMirror reports whether the pod stands for a static pod of a kubelet.
func isMirror(p *snapshot.Pod) bool { return p.Mirror() }

// podOrder returns the indices of the pods by namespace and name. Snapshots are
// sorted; one that is not is read in this order, so that the plan is the same.
func podOrder(pods []snapshot.Pod) []int32 {
	order := make([]int32, len(pods))
	sorted := true
	for i := range pods {
		order[i] = int32(i)
		if i > 0 && sorted && comparePods(&pods[i-1], &pods[i]) > 0 {
			sorted = false
		}
	}
	if !sorted {
		slices.SortFunc(order, func(a, b int32) int {
			return cmp.Or(comparePods(&pods[a], &pods[b]), cmp.Compare(a, b))
		})
	}
	return order
}

// splitPods sorts the pods without a node into those that are planned, and
// verdicts about the others.
func (w *World) splitPods() {
	s := w.Snapshot
	other := map[string]int{}
	w.order = podOrder(s.Pods)
	w.pending = make([]int32, 0, len(s.Pods))
	going := goingNodes(s)
	for _, i := range w.order {
		p := &s.Pods[i]
		if p.NodeName != "" {
			if !going[p.NodeName] {
				continue
			}
			planned, code, detail := w.displaced(p)
			if code != "" {
				w.Skipped = append(w.Skipped, plan.Verdict{Object: "pod/" + p.Ref(), Code: code, Detail: detail})
			}
			if !planned {
				continue
			}
			w.Displaced++
		} else if code, detail := NotPlanned(p); code != "" {
			w.Skipped = append(w.Skipped, plan.Verdict{Object: "pod/" + p.Ref(), Code: code, Detail: detail})
			continue
		}
		if n := p.Spec.SchedulerName; n != "" && n != "default-scheduler" {
			if other[n] == 0 {
				w.warn("pod/"+p.Ref(), plan.SchedulerIgnored, "")
			}
			other[n]++
		}
		w.pending = append(w.pending, i)
	}
	for i := range w.Warnings {
		if warn := &w.Warnings[i]; warn.Code == plan.SchedulerIgnored {
			p := w.podByRef(warn.Object)
			n := p.Spec.SchedulerName
			warn.Detail = fmt.Sprintf("schedulerName %s is ignored, as by Karpenter: planned with the rules of the default scheduler (%s)", n, plan.Count(other[n], "pod"))
		}
	}
}

func (w *World) podByRef(object string) *snapshot.Pod {
	i, ok := slices.BinarySearchFunc(w.order, object, func(i int32, object string) int {
		p := &w.Snapshot.Pods[i]
		ns, name := cutRef(object)
		return cmp.Or(cmp.Compare(p.Namespace, ns), cmp.Compare(p.Name, name))
	})
	if !ok {
		return nil
	}
	return &w.Snapshot.Pods[w.order[i]]
}
