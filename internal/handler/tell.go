package handler

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"kerf.sh/kerf/internal/execute"
	"kerf.sh/kerf/internal/kube/api"
	"kerf.sh/kerf/internal/plan"
	"kerf.sh/kerf/internal/scheduling"
	"kerf.sh/kerf/internal/snapshot"
)

const (
	// maxEvents is how many Events one pass writes: a person reads some, and the cluster's
	// store has to take all.
	maxEvents = 100
	// toldFor is how long an Event is not written again by the same process; the API server
	// knows those of others for about as long.
	toldFor = time.Hour
	// maxTold bounds what is remembered of Events.
	maxTold = 20_000
)

// told remembers which Events were written, so that a pass does not write them again.
type told struct {
	mu   sync.Mutex
	when map[string]time.Time
}

// fresh reports whether an Event is to be written, and notes that it was.
func (t *told) fresh(key string, now time.Time) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	if at, ok := t.when[key]; ok && now.Sub(at) < toldFor {
		return false
	}
	if t.when == nil {
		t.when = map[string]time.Time{}
	}
	if len(t.when) >= maxTold {
		maps.DeleteFunc(t.when, func(_ string, at time.Time) bool { return now.Sub(at) >= toldFor })
		if len(t.when) >= maxTold {
			clear(t.when)
		}
	}
	t.when[key] = now
	return true
}

// forget takes the note back: the Event was not written.
func (t *told) forget(key string) {
	t.mu.Lock()
	defer t.mu.Unlock()
	delete(t.when, key)
}

// tell writes Events: why pods have no place, where others will run, and why launches
// failed.
func (h *Sweep) tell(ctx context.Context, w *reading, p *plan.Plan, rep *SweepReport) {
	var events []api.Event
	now := h.Now()
	pods := make(map[string]*snapshot.Pod, len(w.snap.Pods))
	for i := range w.snap.Pods {
		pods[w.snap.Pods[i].Ref()] = &w.snap.Pods[i]
	}
	failed := map[string]*execute.Failed{}
	for i := range rep.Failed {
		for _, pod := range rep.Failed[i].Pods {
			failed[pod.Namespace+"/"+pod.Name] = &rep.Failed[i]
		}
	}
	about := func(ref string, reason, action, key, note string, warning bool) {
		pod := pods[ref]
		if pod == nil {
			return
		}
		events = append(events, api.Event{
			Object: api.Reference{APIVersion: "v1", Kind: "Pod", Namespace: pod.Namespace, Name: pod.Name, UID: pod.UID},
			Reason: reason, Action: action, Key: key, Note: note, Warning: warning,
		})
	}
	for i := range p.Verdicts {
		v := &p.Verdicts[i]
		if ref, ok := strings.CutPrefix(v.Object, "pod/"); ok {
			about(ref, "FailedScheduling", "Provision", string(plan.Telling(v)), noteOf(v), true)
		}
	}
	for i := range p.Launches {
		l := &p.Launches[i]
		for _, ref := range l.Pods {
			if f := failed[ref]; f != nil {
				about(ref, f.Code, "Launch", f.Code, fmt.Sprintf("the node for this pod could not be launched in NodePool %s: %s", f.NodePool, f.Message), true)
				continue
			}
			about(ref, "Nominated", "Launch", "Nominated", fmt.Sprintf("a node of NodePool %s comes for this pod (%s or one of %d alternatives)", l.NodePool, l.Chosen.InstanceType, len(l.Options)-1), false)
		}
	}
	events = append(events, h.failures(rep)...)
	h.emit(ctx, events, now, rep)
}

// noteOf is a verdict in a few lines: the pods' reason, then each pool's.
func noteOf(v *plan.Verdict) string {
	detail, pools := v.Tree()
	lines := []string{detail}
	for _, p := range pools {
		lines = append(lines, fmt.Sprintf("NodePool %s: %s", p.NodePool, p.Detail))
	}
	return strings.Join(slices.DeleteFunc(lines, func(s string) bool { return s == "" }), "; ")
}

// failures are Events at what is to blame for failed launches: the EC2NodeClass where a
// field of it or a permission is, else the NodePool.
func (h *Sweep) failures(rep *SweepReport) []api.Event {
	var out []api.Event
	for _, f := range rep.Failed {
		e := api.Event{
			Object: api.Reference{APIVersion: "karpenter.sh/v1", Kind: "NodePool", Name: f.NodePool},
			Reason: f.Code, Action: "Launch", Key: f.Code, Warning: true, Note: "a node could not be launched: " + f.Message,
		}
		if f.Field != "" || f.Permission != "" {
			e.Object = api.Reference{APIVersion: ourGroup + "/v1", Kind: "EC2NodeClass", Name: f.NodeClass}
			e.Key += f.Field + f.Permission
			if f.Field != "" {
				e.Note += " (look at " + f.Field + ")"
			}
		}
		out = append(out, e)
	}
	return out
}

// emit writes what is new of events, at most maxEvents, several at a time: whoever has asked
// for the lease waits for them. The rest is counted.
func (h *Sweep) emit(ctx context.Context, events []api.Event, now time.Time, rep *SweepReport) {
	var send []api.Event
	var keys []string
	left := 0
	for _, e := range events {
		key := strings.Join([]string{e.Object.Kind, e.Object.Namespace, e.Object.Name, e.Object.UID, e.Key}, "\x00")
		if !h.told.fresh(key, now) {
			continue
		}
		if len(send) == maxEvents {
			h.told.forget(key)
			left++
			continue
		}
		e.Time, e.Controller, e.Instance = now, "kerf.sh/sweep", h.Instance
		send, keys = append(send, e), append(keys, key)
	}
	errs := make([]error, len(send))
	var late atomic.Int64
	var failed atomic.Bool // the others would fail too, and time is short
	h.Executor.Parallel(len(send), func(i int) {
		if failed.Load() || !enough(ctx, h.Now()) {
			late.Add(1)
			h.told.forget(keys[i])
			return
		}
		if _, errs[i] = h.Cluster.Emit(ctx, send[i]); errs[i] != nil {
			failed.Store(true)
			h.told.forget(keys[i])
		}
	})
	if i := slices.IndexFunc(errs, func(err error) bool { return err != nil }); i >= 0 {
		rep.warn(fmt.Errorf("write an Event: %w", errs[i]))
	}
	if left > 0 {
		rep.Warnings = append(rep.Warnings, fmt.Sprintf("%s not written in this pass: one pass writes %d", plan.Count(left, "Event"), maxEvents))
	}
	if n := int(late.Load()); n > 0 && !failed.Load() {
		rep.Warnings = append(rep.Warnings, fmt.Sprintf("%s not written in this pass for lack of time", plan.Count(n, "Event")))
	}
}

// waiting are the pods of a snapshot that a sweep is for.
func waiting(s *snapshot.Snapshot) []snapshot.Pod {
	var out []snapshot.Pod
	for i := range s.Pods {
		p := &s.Pods[i]
		if code, _ := scheduling.NotPlanned(p); p.NodeName == "" && code == "" {
			out = append(out, *p)
		}
	}
	return out
}

func sortedKeys[V any](m map[string]V) []string { return slices.Sorted(maps.Keys(m)) }
