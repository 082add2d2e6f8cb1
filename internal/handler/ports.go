package handler

import (
	"context"
	"time"

	"kerf.sh/kerf/internal/cloud/nodeclass"
	"kerf.sh/kerf/internal/execute"
	"kerf.sh/kerf/internal/kube/api"
	"kerf.sh/kerf/internal/lifecycle"
	"kerf.sh/kerf/internal/plan"
	"kerf.sh/kerf/internal/snapshot"
)

// Memory is the ledger as handlers need it. *ledger.Ledger is one; its docs say what the
// methods promise.
type Memory interface {
	execute.Memory
	Open(ctx context.Context) (lifecycle.Meta, error)
	BeginRecovery(ctx context.Context, why string) error
	EndRecovery(ctx context.Context, lease lifecycle.Lease) error
	ReadLease(ctx context.Context) (lifecycle.LeaseState, error)
	Acquire(ctx context.Context, ttl time.Duration) (lifecycle.Lease, error)
	AcquireRecovery(ctx context.Context, ttl time.Duration) (lifecycle.Lease, error)
	SetRerun(ctx context.Context) (held bool, err error)
	Release(ctx context.Context, lease lifecycle.Lease, slot int64) (again bool, err error)
	Remember(ctx context.Context) (lifecycle.Remembered, error)
	Records(ctx context.Context) ([]lifecycle.Record, error)
	Attempts(ctx context.Context) ([]lifecycle.Attempt, error)
	Adopt(ctx context.Context, r lifecycle.Record) (lifecycle.Record, error)
	ClaimOf(ctx context.Context, instance string) (string, error)
	Interrupted(ctx context.Context, o lifecycle.Offer, at time.Time) error
	Counted(ctx context.Context) (map[string]lifecycle.Counted, error)
	Recount(ctx context.Context, counted map[string]lifecycle.Counted, records []lifecycle.Record) ([]lifecycle.Correction, error)
	Part(ctx context.Context, name string) (p lifecycle.Part, ok bool, err error)
	PutPart(ctx context.Context, p lifecycle.Part) error
	Generation(ctx context.Context, name string) (generation int64, ok bool, err error)
	Commands(ctx context.Context) ([]lifecycle.Command, error)
	SaveCommand(ctx context.Context, lease lifecycle.Lease, c lifecycle.Command) (lifecycle.Command, error)
	Moved(ctx context.Context, m lifecycle.WorkloadMove) error
	MovesSince(ctx context.Context, from time.Time) ([]lifecycle.WorkloadMove, error)
	Note(ctx context.Context, name string) (lifecycle.Note, error)
	SaveNote(ctx context.Context, n lifecycle.Note) (lifecycle.Note, error)
}

// Cluster is Kubernetes as handlers need it: *live.Client, with what package kube makes of
// its lists. A list is whole or an error.
type Cluster interface {
	execute.Cluster
	// ChangeNodes makes one change to several Nodes as nearly at one moment as can be, with an
	// error or nil for each.
	ChangeNodes(ctx context.Context, nodes []api.NodeName, change api.NodeChange) []error
	// Read is the whole cluster as a snapshot of a time, normalized but for what the ledger
	// remembers. What could not be read is in Snapshot.Incomplete.
	Read(ctx context.Context, now time.Time) (*snapshot.Snapshot, []plan.Warning, error)
	PendingPods(ctx context.Context) ([]snapshot.Pod, error)
	// PendingVersions are the resource versions of the pending pods, by UID: they stand in the
	// order in which the pods were written last.
	PendingVersions(ctx context.Context) (map[string]uint64, error)
	PodsOn(ctx context.Context, node string) ([]snapshot.Pod, error)
	Nodes(ctx context.Context, labels string) ([]snapshot.Node, error)
	// Node is one node; api.ErrNotFound when there is none of the name.
	Node(ctx context.Context, name string) (snapshot.Node, error)
	Metadata(ctx context.Context, kind string) ([]api.Meta, error)
	NodeClaim(ctx context.Context, name string) (api.Meta, error)
	// Some is the part of a snapshot that a few kinds make ("NodePool", "DaemonSet", ...): an
	// error when one of them cannot be read whole.
	Some(ctx context.Context, kinds ...string) (*snapshot.Snapshot, error)
	Leases(ctx context.Context, name string) ([]api.LeaseState, error)
}

// Resolver asks AWS everything that a class selects. *resolve.Resolver is one.
type Resolver interface {
	Class(ctx context.Context, c *snapshot.NodeClass, old *nodeclass.Resolved) *nodeclass.Outcome
}

// Waiter pauses, and returns early with an error when the context ends.
type Waiter func(ctx context.Context, d time.Duration) error
