package sim

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/labels"

	"kerf.sh/kerf/internal/kube/api"
	"kerf.sh/kerf/internal/plan"
	"kerf.sh/kerf/internal/snapshot"
)

// clusterClient is the API server as one container calls it. It implements
// handler.Cluster.
type clusterClient struct {
	c *container
	k *cluster
	s *service
}

func newKubeService(w *World) *service {
	return &service{
		name: "kube", least: 3 * time.Millisecond, most: 90 * time.Millisecond, dice: newDice(w.Seed, "kube"),
		errors: func(b *bound, d dice) error {
			e := &api.Error{Verb: b.Op, Resource: b.Object, Is: api.ErrUnavailable, Detail: "etcdserver: request timed out (500)"}
			if d.in(w.Profile.Faults.Auth * 20) {
				e.Is, e.Detail = pick(d, []error{api.ErrUnauthorized, api.ErrForbidden}), "no"
			}
			return e
		},
		lost: func(b *bound) error {
			return &api.Error{Verb: b.Op, Resource: b.Object, Is: api.ErrUnavailable, Detail: "no answer in time"}
		},
		gone: func(b *bound, err error) error {
			return &api.Error{Verb: b.Op, Resource: b.Object, Is: api.ErrUnavailable, Detail: "no answer in time: " + err.Error(), Err: err}
		},
	}
}

// read makes a request that changes nothing.
func read[T any](ctx context.Context, k *clusterClient, op, what string, f func() (T, error)) (T, error) {
	return call(ctx, k.c, k.s, bound{Op: op, Object: what}, f)
}

// Read implements handler.Cluster: the lists are of different moments, pods come last. One
// that cannot be read is named, without nodes or pods there is no snapshot.
func (k *clusterClient) Read(ctx context.Context, now time.Time) (*snapshot.Snapshot, []plan.Warning, error) {
	s := &snapshot.Snapshot{Cluster: clusterName, Region: region, Now: now, Settings: k.c.w.settings()}
	list := func(what string, vital bool, f func()) error {
		_, err := read(ctx, k, "list", what, func() (struct{}, error) { f(); return struct{}{}, nil })
		switch {
		case err == nil:
			return nil
		case vital, errors.Is(err, api.ErrUnauthorized), ctx.Err() != nil:
			return fmt.Errorf("read the cluster: %w", err)
		}
		s.Incomplete = append(s.Incomplete, err.Error())
		return nil
	}
	if err := list("nodes", true, func() { s.Nodes = k.k.nodes.list() }); err != nil {
		return nil, nil, err
	}
	if err := list("nodeclaims", false, func() { s.NodeClaims = k.k.claims.list() }); err != nil {
		return nil, nil, err
	}
	if err := list("nodepools", false, func() { s.NodePools = k.k.pools.list() }); err != nil {
		return nil, nil, err
	}
	err := list("others", false, func() {
		for _, c := range k.k.classes.list() {
			s.NodeClasses = append(s.NodeClasses, c.NodeClass)
		}
		s.DaemonSets, s.Workloads, s.Budgets = k.k.daemons.list(), k.k.loads.list(), k.k.statuses()
		s.Namespaces = []snapshot.Namespace{{Name: "default"}, {Name: "kube-system"}}
	})
	if err != nil {
		return nil, nil, err
	}
	if err := list("pods", true, func() { s.Pods = k.k.pods.list() }); err != nil {
		return nil, nil, err
	}
	s.Normalize()
	return s, nil, nil
}

// PendingPods implements handler.Cluster.
func (k *clusterClient) PendingPods(ctx context.Context) ([]snapshot.Pod, error) {
	return read(ctx, k, "list", "pods of no node", func() ([]snapshot.Pod, error) {
		pods := k.k.podsWhere(func(p *snapshot.Pod) bool { return p.NodeName == "" })
		k.c.sawPods = k.c.sawPods || len(pods) > 0
		return pods, nil
	})
}

// PendingVersions implements handler.Cluster.
func (k *clusterClient) PendingVersions(ctx context.Context) (map[string]uint64, error) {
	return read(ctx, k, "list", "versions of pods of no node", func() (map[string]uint64, error) {
		out := map[string]uint64{}
		for _, p := range k.k.pods.all() {
			if p.v.NodeName == "" {
				out[p.uid] = uint64(p.version)
			}
		}
		return out, nil
	})
}

// PodsOn implements handler.Cluster.
func (k *clusterClient) PodsOn(ctx context.Context, node string) ([]snapshot.Pod, error) {
	return read(ctx, k, "list", "pods of "+node, func() ([]snapshot.Pod, error) {
		return k.k.podsWhere(func(p *snapshot.Pod) bool { return p.NodeName == node }), nil
	})
}

func (c *cluster) podsWhere(ok func(*snapshot.Pod) bool) []snapshot.Pod {
	var out []snapshot.Pod
	for _, p := range c.pods.all() {
		if ok(&p.v) {
			out = append(out, p.v)
		}
	}
	return out
}

// Nodes implements handler.Cluster.
func (k *clusterClient) Nodes(ctx context.Context, selector string) ([]snapshot.Node, error) {
	sel, err := labels.Parse(selector)
	if err != nil {
		return nil, &api.Error{Verb: "list", Resource: "nodes", Is: api.ErrInvalid, Detail: err.Error()}
	}
	return read(ctx, k, "list", "nodes "+selector, func() ([]snapshot.Node, error) {
		var out []snapshot.Node
		for _, n := range k.k.nodes.all() {
			if sel.Matches(labels.Set(n.v.Labels)) {
				out = append(out, n.v)
			}
		}
		return out, nil
	})
}

func missingKind(verb, kind string) error {
	return &api.Error{Verb: verb, Resource: strings.ToLower(kind), Is: api.ErrMissingKind, Detail: "the server could not find the requested resource"}
}

// Metadata implements handler.Cluster.
func (k *clusterClient) Metadata(ctx context.Context, name string) ([]api.Meta, error) {
	return read(ctx, k, "list", "metadata of "+name, func() ([]api.Meta, error) {
		o := k.k.kindOf(name)
		if o == nil {
			return nil, missingKind("list", name)
		}
		return o.metas(), nil
	})
}

// NodeClaim implements handler.Cluster.
func (k *clusterClient) NodeClaim(ctx context.Context, name string) (api.Meta, error) {
	return read(ctx, k, "get", "nodeclaim "+name, func() (api.Meta, error) {
		it := k.k.claims.by[name]
		if it == nil {
			return api.Meta{}, notFound("get", "nodeclaims", name)
		}
		return it.apiMeta("NodeClaim"), nil
	})
}

func notFound(verb, resource, name string) error {
	return &api.Error{Verb: verb, Resource: resource, Name: name, Is: api.ErrNotFound, Detail: fmt.Sprintf("%s %q not found", resource, name)}
}

// Some implements handler.Cluster.
func (k *clusterClient) Some(ctx context.Context, kinds ...string) (*snapshot.Snapshot, error) {
	s := &snapshot.Snapshot{Cluster: clusterName, Region: region, Now: k.c.now(), Settings: k.c.w.settings()}
	for _, name := range kinds {
		_, err := read(ctx, k, "list", name, func() (struct{}, error) {
			switch name {
			case "Pod":
				s.Pods = k.k.pods.list()
			case "Node":
				s.Nodes = k.k.nodes.list()
			case "NodePool":
				s.NodePools = k.k.pools.list()
			case "NodeClaim":
				s.NodeClaims = k.k.claims.list()
			case "EC2NodeClass":
				for _, c := range k.k.classes.list() {
					s.NodeClasses = append(s.NodeClasses, c.NodeClass)
				}
			case "DaemonSet":
				s.DaemonSets = k.k.daemons.list()
			case "Deployment":
				s.Workloads = k.k.loads.list()
			case "PodDisruptionBudget":
				s.Budgets = k.k.statuses()
			case "Namespace":
				s.Namespaces = []snapshot.Namespace{{Name: "default"}, {Name: "kube-system"}}
			default: // there are none
			}
			return struct{}{}, nil
		})
		if err != nil {
			return nil, fmt.Errorf("list %s: %w", name, err)
		}
	}
	s.Normalize()
	return s, nil
}

// Leases implements handler.Cluster.
func (k *clusterClient) Leases(ctx context.Context, name string) ([]api.LeaseState, error) {
	return read(ctx, k, "list", "leases "+name, func() ([]api.LeaseState, error) {
		if k.k.leader.Name != name {
			return nil, nil
		}
		return []api.LeaseState{k.k.leader}, nil
	})
}

// Node implements handler.Cluster.
func (k *clusterClient) Node(ctx context.Context, name string) (snapshot.Node, error) {
	return read(ctx, k, "get", "node "+name, func() (snapshot.Node, error) {
		it := k.k.nodes.by[name]
		if it == nil {
			return snapshot.Node{}, notFound("get", "nodes", name)
		}
		return it.v, nil
	})
}
