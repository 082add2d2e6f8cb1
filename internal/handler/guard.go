package handler

import (
	"context"
	"fmt"
	"time"

	"kerf.sh/kerf/internal/kube/api"
	"kerf.sh/kerf/internal/snapshot"
)

// ourGroup is the API group of the classes that are ours.
const ourGroup = "karpenter.k8s.aws"

const (
	// KarpenterLease is the name of the Lease under which Karpenter elects its leader.
	KarpenterLease = "karpenter-leader-election"
	// karpenterFresh is how long after a renewal Karpenter counts as running (it renews
	// every few seconds).
	karpenterFresh = time.Minute
)

// Alive reports whether Karpenter runs, and as whom: somebody holds one of its Leases and
// renewed it within the last minute.
func Alive(leases []api.LeaseState, now time.Time) (holder string, alive bool) {
	for _, l := range leases {
		if l.Holder != "" && now.Sub(l.Renewed) < karpenterFresh {
			return l.Namespace + "/" + l.Holder, true
		}
	}
	return "", false
}

// KarpenterError says that Karpenter runs on the cluster: two that launch and remove nodes
// for the same pods would undo each other's work, so Kerf changes nothing.
type KarpenterError struct{ Holder string }

func (e *KarpenterError) Error() string {
	return "Karpenter runs in this cluster (" + e.Holder + "): nothing is changed until it stops; scale its Deployment to 0 to let Kerf take over"
}

// Guard is asked before anything is changed: a *KarpenterError when Karpenter runs, or why
// that is not known, which counts as much.
func Guard(ctx context.Context, c Cluster, now time.Time) error {
	leases, err := c.Leases(ctx, KarpenterLease)
	if err != nil {
		return fmt.Errorf("find out whether Karpenter runs: %w", err)
	}
	if holder, alive := Alive(leases, now); alive {
		return &KarpenterError{Holder: holder}
	}
	return nil
}

// Ours reports whether a class is one that Kerf launches for. EKS Auto Mode has NodePools
// and NodeClaims of the same kinds with classes of its own (eks.amazonaws.com): for us they
// do not exist.
func Ours(ref snapshot.ClassRef) bool { return ref.Group == ourGroup }
