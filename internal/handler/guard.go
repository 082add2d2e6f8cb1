package handler

import (
	"context"
	"fmt"
	"time"

	"kerf.sh/kerf/internal/kube/api"
	"kerf.sh/kerf/internal/snapshot"
)

const (
	// KarpenterLease is the name of the Lease under which Karpenter elects its leader.
	KarpenterLease = "karpenter-leader-election"
	// karpenterFresh is how long after a renewal Karpenter counts as running (it renews
	// every few seconds).
	karpenterFresh = time.Minute
)

// Alive finds the Lease by which Karpenter runs: one that somebody holds and renewed within
// the last minute. nil = it does not run.
func Alive(leases []api.LeaseState, now time.Time) *api.LeaseState {
	for i := range leases {
		if l := &leases[i]; l.Holder != "" && now.Sub(l.Renewed) < karpenterFresh {
			return l
		}
	}
	return nil
}

// KarpenterError says that Karpenter runs on the cluster: two that launch and remove nodes
// for the same pods would undo each other's work, so Kerf changes nothing.
type KarpenterError struct{ Lease api.LeaseState }

func (e *KarpenterError) Error() string {
	return fmt.Sprintf("Karpenter runs on this cluster (lease %s/%s, held by %s, renewed at %s): nothing is changed until it stops; scale its Deployment to 0 to let Kerf take over",
		e.Lease.Namespace, e.Lease.Name, e.Lease.Holder, e.Lease.Renewed.UTC().Format(time.RFC3339))
}

// Guard is asked before anything is changed: a *KarpenterError when Karpenter runs, or why
// that is not known, which counts as much.
func Guard(ctx context.Context, c Cluster, now time.Time) error {
	leases, err := c.Leases(ctx, KarpenterLease)
	if err != nil {
		return fmt.Errorf("find out whether Karpenter runs: %w", err)
	}
	if l := Alive(leases, now); l != nil {
		return &KarpenterError{Lease: *l}
	}
	return nil
}

// Ours reports whether a class is one that Kerf launches for. EKS Auto Mode has NodePools
// and NodeClaims of the same kinds with classes of its own (eks.amazonaws.com): for us they
// do not exist.
func Ours(ref snapshot.ClassRef) bool { return ref.Group == "karpenter.k8s.aws" }
