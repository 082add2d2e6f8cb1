package execute

import (
	"context"
	"time"

	"kerf.sh/kerf/internal/cloud/launch"
	"kerf.sh/kerf/internal/kube/api"
	"kerf.sh/kerf/internal/lifecycle"
	"kerf.sh/kerf/internal/snapshot"
)

// Memory is what is written down. *ledger.Ledger is one; its docs say what the methods
// promise.
type Memory interface {
	Split(records []lifecycle.Record) ([][]lifecycle.Record, error)
	Renew(ctx context.Context, lease lifecycle.Lease, ttl time.Duration) (lifecycle.Lease, error)
	Commit(ctx context.Context, lease lifecycle.Lease, records []lifecycle.Record, limits lifecycle.Limits) ([]lifecycle.Record, error)
	Begin(ctx context.Context, lease lifecycle.Lease, a lifecycle.Attempt, records []lifecycle.Record, reserved map[string]lifecycle.Usage, limits lifecycle.Limits) (lifecycle.Begun, error)
	Answer(ctx context.Context, was, next lifecycle.Attempt) (lifecycle.Attempt, error)
	Settle(ctx context.Context, a lifecycle.Attempt, known func(claim string, in lifecycle.Instance) lifecycle.Known) (lifecycle.Settlement, error)
	Record(ctx context.Context, claim string) (r lifecycle.Record, ok bool, err error)
	Save(ctx context.Context, changes ...lifecycle.Change) ([]lifecycle.Record, error)
	Shortage(ctx context.Context, o lifecycle.Offer, code string) error
	Learn(ctx context.Context, s lifecycle.Learned) error
	Decide(ctx context.Context, d lifecycle.Decision) error
}

// Cloud is what is asked of EC2: *fleet.Fleet and *template.Store together. Errors are
// *awserr.Error.
type Cloud interface {
	Ensure(ctx context.Context, templates []launch.Template) error
	Forget(templates ...string)
	Create(ctx context.Context, stored []byte) (*launch.Outcome, error)
	ByAttempt(ctx context.Context, attempts ...string) (map[string][]launch.Described, error)
	Describe(ctx context.Context, ids []string) (found []launch.Described, missing []string, err error)
	List(ctx context.Context, cluster string) ([]launch.Described, error)
	Terminate(ctx context.Context, ids []string) (ending, missing []string, err error)
	TagRegistered(ctx context.Context, i *launch.Described, cluster, claim, node string) error
	Templates(ctx context.Context, cluster string) ([]launch.Stored, error)
	DeleteTemplates(ctx context.Context, templates []launch.Stored) ([]string, error)
}

// Cluster is what is written to Kubernetes. *live.Client is one; errors compare with the
// Err values of package api.
type Cluster interface {
	CreateNodeClaim(ctx context.Context, n api.NewNodeClaim) (uid string, err error)
	ChangeNode(ctx context.Context, name, uid string, change api.NodeChange) (changed bool, err error)
	Delete(ctx context.Context, kind, namespace, name, uid string) error
	AddFinalizer(ctx context.Context, kind, name, uid, finalizer string) error
	RemoveFinalizer(ctx context.Context, kind, name, uid, finalizer string) error
	Label(ctx context.Context, kind, name, uid string, labels map[string]string) (changed bool, err error)
	Annotate(ctx context.Context, kind, name, uid string, annotations map[string]string) (changed bool, err error)
	PatchStatus(ctx context.Context, kind, name, uid string, s api.Status) (changed bool, err error)
	Nominate(ctx context.Context, p api.PodName, node string) (waits bool, err error)
	Evict(ctx context.Context, p api.PodName, grace *int64) (there bool, err error)
	DeletePod(ctx context.Context, p api.PodName, grace *int64) (there bool, err error)
	Emit(ctx context.Context, e api.Event) (fresh bool, err error)
}

// Sender puts messages on one queue, each not before its delay. Some may be sent and others
// not; what is sent twice is done once by whoever gets it.
type Sender interface {
	Send(ctx context.Context, messages ...lifecycle.Outgoing) error
}

// poolOwner is the NodePool that a NodeClaim goes with.
func poolOwner(p *snapshot.NodePool) api.Owner {
	return api.Owner{APIVersion: "karpenter.sh/v1", Kind: "NodePool", Name: p.Name, UID: p.UID}
}
