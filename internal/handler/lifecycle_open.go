package handler

import (
	"context"
	"fmt"
	"sync"
	"time"

	"kerf.sh/kerf/internal/execute"
	"kerf.sh/kerf/internal/kube/api"
	"kerf.sh/kerf/internal/lifecycle"
	"kerf.sh/kerf/internal/snapshot"
)

// openingAnnotation marks a Node that is cordoned until its pods are nominated, with the
// time: a cordon of a person is not ours to lift.
const openingAnnotation = "kerf.sh/opening"

// shutAtMost is how long a Node stays cordoned because its pods cannot be nominated.
const shutAtMost = 30 * time.Second

// opening cordons a Node that registers and was made for pods, in the same write that takes
// the unregistered taint off: the pods of DaemonSets come, others wait for their nomination
// (docs/adr/0005).
func opening(now time.Time) func(s *execute.Stepped, e lifecycle.PatchNode, change *api.NodeChange) {
	return func(s *execute.Stepped, e lifecycle.PatchNode, change *api.NodeChange) {
		n := nodeNamed(s, e.Node)
		if n == nil || e.Labels[lifecycle.LabelRegistered] != "true" || n.Labels[lifecycle.LabelRegistered] == "true" {
			return
		}
		if len(s.Was.Nominated) == 0 || n.Unschedulable {
			return
		}
		yes := true
		change.Unschedulable = &yes
		annotations := map[string]string{openingAnnotation: now.UTC().Format(time.RFC3339)}
		for k, v := range change.Annotations {
			annotations[k] = v
		}
		change.Annotations = annotations
	}
}

func nodeNamed(s *execute.Stepped, name string) *lifecycle.Node {
	for i := range s.Nodes {
		if s.Nodes[i].Name == name {
			return &s.Nodes[i]
		}
	}
	return nil
}

// openAll opens the Nodes that are ready for their pods, one after the other: the pods that
// still wait are nominated, then the cordon is lifted. It returns the claims whose Node is
// still shut and whose step has to wait for that: a Node that counts as initialized is not
// looked at any more.
func (h *Lifecycle) openAll(ctx context.Context, steps []execute.Stepped, now time.Time, rep *LifecycleReport) map[string]bool {
	shut := map[string]bool{}
	for i := range steps {
		s := &steps[i]
		if s.Was.Phase != lifecycle.Registered || len(s.Nodes) != 1 {
			continue
		}
		n := &s.Nodes[0]
		if n.Annotations[openingAnnotation] == "" || !opens(&s.Was, n) {
			continue
		}
		err := h.nominate(ctx, &s.Was, n.Name)
		if err != nil {
			rep.Problems = append(rep.Problems, fmt.Sprintf("nodeclaim %s: %v", s.Was.Claim, err))
		}
		// The pods may also come without: a node that stays shut is worse.
		since, perr := time.Parse(time.RFC3339, n.Annotations[openingAnnotation])
		if err != nil && perr == nil && age(since, now) < shutAtMost {
			shut[s.Was.Claim] = true
			continue
		}
		if err := h.uncordon(ctx, n.Name, n.UID); err != nil {
			rep.Problems = append(rep.Problems, fmt.Sprintf("nodeclaim %s: %v", s.Was.Claim, err))
			shut[s.Was.Claim] = true
		}
	}
	return shut
}

// opens reports whether pods may come: the Node is Ready and no taint is left that goes by
// itself.
func opens(r *lifecycle.Record, n *lifecycle.Node) bool {
	if c := snapshot.FindCondition(n.Conditions, "Ready"); c == nil || c.Status != "True" {
		return false
	}
	for _, t := range n.Taints {
		if lifecycle.Ephemeral(t) {
			return false
		}
		for _, s := range r.Spec.StartupTaints {
			if s.Key == t.Key && s.Effect == t.Effect {
				return false
			}
		}
	}
	return true
}

// nominate tells kube-scheduler which node the pods of a record are meant for, those that
// still wait.
func (h *Lifecycle) nominate(ctx context.Context, r *lifecycle.Record, name string) error {
	var mu sync.Mutex
	var failed error
	h.each(len(r.Nominated), func(i int) {
		p := r.Nominated[i]
		_, err := h.Cluster.Nominate(ctx, api.PodName{Namespace: p.Namespace, Name: p.Name, UID: p.UID}, name)
		if err != nil {
			mu.Lock()
			failed = fmt.Errorf("nominate pod %s/%s to node %s: %w", p.Namespace, p.Name, name, err)
			mu.Unlock()
		}
	})
	return failed
}

func (h *Lifecycle) uncordon(ctx context.Context, name, uid string) error {
	no := false
	_, err := h.Cluster.ChangeNode(ctx, name, uid, api.NodeChange{Unschedulable: &no, DropAnnotations: []string{openingAnnotation}})
	if err != nil {
		return fmt.Errorf("open node %s: %w", name, err)
	}
	return nil
}
