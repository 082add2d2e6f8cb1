package sim

import (
	"context"
	"fmt"
	"strconv"
	"strings"
	"time"

	"kerf.sh/kerf/internal/kube/api"
	"kerf.sh/kerf/internal/snapshot"
)

// Evict implements execute.Cluster: the API server asks the budgets.
func (k *clusterClient) Evict(ctx context.Context, p api.PodName, grace *int64) (bool, error) {
	return write(ctx, k, "create", "eviction of pod "+p.Namespace+"/"+p.Name, func() (bool, error) {
		it := k.k.pods.by[p.Namespace+"/"+p.Name]
		if it == nil || it.uid != p.UID {
			return false, nil
		}
		if !it.deleting.IsZero() {
			return true, nil
		}
		if why := k.k.refuses(&it.v); why != "" {
			return false, fmt.Errorf("evict pod %s: %s: %w", it.key, why, api.ErrBlocked)
		}
		k.k.w.checks.evicting(k.c, it)
		k.k.endPod(it, grace)
		return true, nil
	})
}

// DeletePod implements execute.Cluster.
func (k *clusterClient) DeletePod(ctx context.Context, p api.PodName, grace *int64) (bool, error) {
	return write(ctx, k, "delete", "pod "+p.Namespace+"/"+p.Name, func() (bool, error) {
		it := k.k.pods.by[p.Namespace+"/"+p.Name]
		if it == nil || it.uid != p.UID {
			return false, nil
		}
		k.k.w.checks.forcing(k.c, it, grace)
		k.k.endPod(it, grace)
		return true, nil
	})
}

// refuses says which budget does not allow the eviction of a pod now, "" when none does.
func (c *cluster) refuses(p *snapshot.Pod) string {
	var covering []*snapshot.PodDisruptionBudget
	for _, b := range c.budgets.all() {
		if b.v.Namespace == p.Namespace && b.v.Selector.Selects(p.Labels) {
			covering = append(covering, &b.v)
		}
	}
	switch {
	case len(covering) == 0:
		return ""
	case len(covering) > 1:
		return "more than one PodDisruptionBudget covers it"
	}
	if allowed := c.allowed(covering[0]); allowed <= 0 {
		return "PodDisruptionBudget " + covering[0].Name + " allows none now"
	}
	return ""
}

// allowed is how many of its pods a budget lets go now: status.disruptionsAllowed.
func (c *cluster) allowed(b *snapshot.PodDisruptionBudget) int {
	expected, healthy := 0, 0
	for _, it := range c.pods.all() {
		p := &it.v
		if p.Namespace != b.Namespace || !b.Selector.Selects(p.Labels) || p.Terminal() {
			continue
		}
		expected++
		if p.Phase == "Running" && it.deleting.IsZero() {
			healthy++
		}
	}
	if b.MinAvailable != "" {
		return healthy - share(b.MinAvailable, expected)
	}
	return healthy - (expected - share(b.MaxUnavailable, expected))
}

// statuses are the budgets with what the disruption controller says in their status now.
func (c *cluster) statuses() []snapshot.PodDisruptionBudget {
	out := c.budgets.list()
	for i := range out {
		out[i].DisruptionsAllowed = int32(max(0, c.allowed(&out[i])))
	}
	return out
}

// share is "3", or a percentage of a total, rounded up.
func share(text string, total int) int {
	if p, ok := strings.CutSuffix(text, "%"); ok {
		n, _ := strconv.Atoi(p)
		return (n*total + 99) / 100
	}
	n, _ := strconv.Atoi(text)
	return n
}

// endPod lets a pod end: its kubelet has its grace period, or that of the deletion.
func (c *cluster) endPod(it *item[snapshot.Pod], grace *int64) {
	seconds := int64(30)
	if g := it.v.Spec.TerminationGrace; g != nil {
		seconds = *g
	}
	if grace != nil {
		seconds = *grace
	}
	end := c.w.now().Add(time.Duration(seconds) * time.Second)
	if !it.deleting.IsZero() && !end.Before(it.deleting) {
		return
	}
	it.deleting = end
	c.pods.touch(it)
	uid := it.uid
	// Most programs end long before they have to.
	c.w.after(min(time.Duration(seconds)*time.Second, time.Second+time.Duration(len(it.key)%7)*time.Second), func() {
		if now := c.pods.by[it.key]; now != nil && now.uid == uid {
			c.pods.remove(now)
		}
	})
}
