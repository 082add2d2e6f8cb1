package handler

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"kerf.sh/kerf/internal/catalog"
	"kerf.sh/kerf/internal/cloud/nodeclass"
	"kerf.sh/kerf/internal/kube/api"
	"kerf.sh/kerf/internal/requirements"
	"kerf.sh/kerf/internal/snapshot"
)

// Conditions of a NodePool (Karpenter: same).
const (
	poolReady      = "Ready"
	poolValid      = "ValidationSucceeded"
	poolClassReady = "NodeClassReady"
)

// poolConditions are the conditions of a NodePool that follow from it and its class.
var poolConditions = []string{poolValid, poolClassReady, poolReady}

// pools brings the statuses of the NodePools that are ours up to what their classes are now.
// whole: the snapshot has the nodes too.
func (r *catalogRun) pools(ctx context.Context, s *snapshot.Snapshot, whole bool) error {
	touched := map[string]bool{}
	for _, c := range r.rep.Classes {
		touched[c.Name] = true
	}
	r.fillRest(s, touched)
	var errs []error
	for i := range s.NodePools {
		p := &s.NodePools[i]
		if !Ours(p.ClassRef) || !whole && !touched[p.ClassRef.Name] {
			continue
		}
		status := PoolStatus(p, s)
		if !whole {
			for _, field := range poolFields {
				delete(status.Fields, field)
			}
		}
		changed, err := r.Cluster.PatchStatus(ctx, kindPool, p.Name, p.UID, status)
		if err != nil && !errors.Is(err, api.ErrNotFound) {
			errs = append(errs, fmt.Errorf("write the status of NodePool %s: %w", p.Name, err))
		}
		if changed {
			r.rep.Pools++
		}
	}
	return errors.Join(errs...)
}

// poolsOnly brings the statuses of NodePools up to what their nodes are now, by what is known
// of classes.
func (r *catalogRun) poolsOnly(ctx context.Context) error {
	s, err := r.Cluster.Some(ctx, kindClass, kindPool, kindClaim, kindNode)
	if err != nil {
		return fmt.Errorf("read the NodePools: %w", err)
	}
	s.Now = r.Now()
	if len(s.Incomplete) > 0 {
		r.rep.Left = append(r.rep.Left, "statuses of NodePools: the reading is not whole")
		return nil // what is missing is not what has gone
	}
	return r.pools(ctx, s, true)
}

// fillRest gives the classes that this run has not resolved what is known of them.
func (r *catalogRun) fillRest(s *snapshot.Snapshot, done map[string]bool) {
	rest := snapshot.Snapshot{Now: r.Now()}
	for i := range s.NodeClasses {
		if !done[s.NodeClasses[i].Name] {
			rest.NodeClasses = append(rest.NodeClasses, s.NodeClasses[i])
		}
	}
	r.facts.Fill(&rest)
	for i := range rest.NodeClasses {
		at := slices.IndexFunc(s.NodeClasses, func(c snapshot.NodeClass) bool { return c.Name == rest.NodeClasses[i].Name })
		s.NodeClasses[at] = rest.NodeClasses[i]
	}
}

// poolFields are the fields of a NodePool's status that come from its nodes.
var poolFields = []string{"resources", "nodes"}

// PoolStatus is the status of a NodePool, from its class, its NodeClaims and its Nodes, as
// the snapshot has them: conditions, and what its nodes have together (Karpenter:
// status.resources, status.nodes, status.nodeClassObservedGeneration; those on their way out
// do not count).
func PoolStatus(p *snapshot.NodePool, s *snapshot.Snapshot) api.Status {
	out := api.Status{Fields: map[string]any{}}
	condition := func(typ, status, reason, message string) {
		c := snapshot.Condition{Type: typ, Status: status, Reason: reason, Message: message, ObservedGeneration: p.Generation, Since: s.Now}
		if was := snapshot.FindCondition(p.Conditions, typ); was != nil && was.Status == status && !was.Since.IsZero() {
			c.Since = was.Since
		}
		out.Conditions = append(out.Conditions, c)
	}
	valid, class := nodeclass.True, nodeclass.True
	if errs := requirements.ValidatePool(p.Requirements, p.TemplateLabels, p.Taints, p.StartupTaints); len(errs) > 0 {
		valid = nodeclass.False
		condition(poolValid, valid, "NodePoolValidationFailed", errors.Join(errs...).Error())
	} else {
		condition(poolValid, valid, poolValid, "")
	}
	at := slices.IndexFunc(s.NodeClasses, func(c snapshot.NodeClass) bool { return c.Name == p.ClassRef.Name })
	if at < 0 {
		class = nodeclass.False
		condition(poolClassReady, class, "NodeClassNotFound", "there is no EC2NodeClass "+p.ClassRef.Name)
	} else {
		c := &s.NodeClasses[at]
		ready := snapshot.FindCondition(c.Conditions, nodeclass.Ready)
		switch {
		case !c.Deleting.IsZero():
			class = nodeclass.False
			condition(poolClassReady, class, "NodeClassTerminating", "EC2NodeClass "+c.Name+" is being deleted")
		case ready == nil || ready.Status == nodeclass.Unknown || ready.ObservedGeneration != c.Generation:
			class = nodeclass.Unknown
			message := "EC2NodeClass " + c.Name + " is not resolved yet"
			if ready != nil && ready.Message != "" {
				message = ready.Message
			}
			condition(poolClassReady, class, "NodeClassReadinessUnknown", message)
		case ready.Status != nodeclass.True:
			class = nodeclass.False
			condition(poolClassReady, class, ready.Reason, ready.Message)
		default:
			condition(poolClassReady, class, poolClassReady, "")
		}
		out.Fields["nodeClassObservedGeneration"] = c.Generation
	}
	switch {
	case valid == nodeclass.False || class == nodeclass.False:
		condition(poolReady, nodeclass.False, "UnhealthyDependents", notTrue(out.Conditions, nodeclass.False))
	case class == nodeclass.Unknown:
		condition(poolReady, nodeclass.Unknown, "ReconcilingDependents", notTrue(out.Conditions, nodeclass.Unknown))
	default:
		condition(poolReady, nodeclass.True, poolReady, "")
	}
	nodes, sum := usage(p.Name, s)
	out.Fields["nodes"] = nodes
	out.Fields["resources"] = quantities(nodes, sum)
	return out
}

func notTrue(cs []snapshot.Condition, status string) string {
	var out []string
	for _, c := range cs {
		if c.Status == status {
			out = append(out, c.Type)
		}
	}
	return strings.Join(out, ", ")
}

// usage is what the nodes of a pool have together: a NodeClaim counts with what its Node
// reports once that is registered, a Node without a NodeClaim by itself.
func usage(pool string, s *snapshot.Snapshot) (nodes int64, sum snapshot.Resources) {
	byProvider, byName := map[string]*snapshot.Node{}, map[string]*snapshot.Node{}
	for i := range s.Nodes {
		n := &s.Nodes[i]
		byName[n.Name] = n
		if n.ProviderID != "" {
			byProvider[n.ProviderID] = n
		}
	}
	counted := map[string]bool{}
	for i := range s.NodeClaims {
		c := &s.NodeClaims[i]
		if c.Labels[catalog.LabelNodePool] != pool {
			continue
		}
		n := byName[c.NodeName]
		if n == nil && c.ProviderID != "" {
			n = byProvider[c.ProviderID]
		}
		if n != nil {
			counted[n.Name] = true
		}
		if !c.Deleting.IsZero() || n != nil && !n.Deleting.IsZero() {
			continue
		}
		nodes++
		if n != nil && !n.Capacity.IsZero() {
			sum = sum.Add(n.Capacity)
		} else {
			sum = sum.Add(c.Capacity)
		}
	}
	for i := range s.Nodes {
		n := &s.Nodes[i]
		if n.Labels[catalog.LabelNodePool] == pool && !counted[n.Name] && n.Deleting.IsZero() {
			nodes++
			sum = sum.Add(n.Capacity)
		}
	}
	return nodes, sum
}

// quantities are the resources of a pool as its status has them: the usual ones also when
// there is nothing of them.
func quantities(nodes int64, sum snapshot.Resources) map[string]string {
	out := map[string]string{"nodes": fmt.Sprint(nodes)}
	for _, name := range []string{snapshot.CPU, snapshot.Memory, snapshot.Pods, snapshot.EphemeralStorage} {
		out[name] = "0"
	}
	for name, q := range api.Quantities(sum) {
		out[name] = q
	}
	return out
}
