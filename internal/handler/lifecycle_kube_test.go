package handler_test

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"kerf.sh/kerf/internal/handler"
	"kerf.sh/kerf/internal/kube/api"
	"kerf.sh/kerf/internal/plan"
	"kerf.sh/kerf/internal/snapshot"
)

// lifeObject is an object as the fake API server has it.
type lifeObject struct {
	meta   api.Meta
	claim  snapshot.NodeClaim
	node   snapshot.Node
	status api.Status // of a NodeClaim, all that was ever written, the last wins
	owner  string
}

// lifeKube is an API server with as much behaviour as looking after nodes needs: finalizers,
// UIDs, lists that can fail, and writes that can be refused.
type lifeKube struct {
	now    func() time.Time
	claims map[string]*lifeObject
	nodes  map[string]*lifeObject
	pods   []snapshot.Pod
	pools  []snapshot.NodePool
	rest   snapshot.Snapshot // attachments, claims
	leases []api.LeaseState
	events []api.Event
	keys   map[string]bool
	uids   int
	// fail is asked before everything; verb is list, get, create, patch, delete, ...
	fail func(verb, kind, name string) error
	// hide makes lists of a kind empty and whole.
	hide  map[string]bool
	calls []string
	// nominated pods, in order.
	nominated []string
	// before is called before a write, to do something in between.
	before func(verb, kind, name string)
}

func newLifeKube(now func() time.Time) *lifeKube {
	return &lifeKube{now: now, claims: map[string]*lifeObject{}, nodes: map[string]*lifeObject{}, keys: map[string]bool{}, hide: map[string]bool{}}
}

var _ handler.Cluster = (*lifeKube)(nil)

func (k *lifeKube) ask(verb, kind, name string) error {
	k.calls = append(k.calls, verb+" "+kind+" "+name)
	if k.before != nil && verb != "list" && verb != "get" {
		k.before(verb, kind, name)
	}
	if k.fail != nil {
		return k.fail(verb, kind, name)
	}
	return nil
}

func noObject(kind, name string) error {
	return &api.Error{Verb: "get", Resource: strings.ToLower(kind) + "s", Name: name, Is: api.ErrNotFound, Detail: "not found"}
}

func otherObject(kind, name string) error {
	return &api.Error{Verb: "patch", Resource: strings.ToLower(kind) + "s", Name: name, Is: api.ErrConflict, Detail: "another UID"}
}

func (k *lifeKube) of(kind string) map[string]*lifeObject {
	if kind == "Node" {
		return k.nodes
	}
	return k.claims
}

func (k *lifeKube) find(kind, name, uid string) (*lifeObject, error) {
	o := k.of(kind)[name]
	switch {
	case o == nil:
		return nil, noObject(kind, name)
	case uid != "" && o.meta.Version.UID != uid:
		return nil, otherObject(kind, name)
	}
	return o, nil
}

func (k *lifeKube) uid(prefix string) string {
	k.uids++
	return fmt.Sprintf("%s-uid-%d", prefix, k.uids)
}

// reap removes objects that are being deleted and that nothing holds.
func (k *lifeKube) reap() {
	for _, m := range []map[string]*lifeObject{k.claims, k.nodes} {
		maps.DeleteFunc(m, func(_ string, o *lifeObject) bool { return !o.meta.Deleting.IsZero() && len(o.meta.Finalizers) == 0 })
	}
	k.pods = slices.DeleteFunc(k.pods, func(p snapshot.Pod) bool { return p.NodeName != "" && k.nodes[p.NodeName] == nil })
}

func (k *lifeKube) Read(context.Context, time.Time) (*snapshot.Snapshot, []plan.Warning, error) {
	return nil, nil, fmt.Errorf("nobody reads all of it here")
}

func (k *lifeKube) PendingPods(context.Context) ([]snapshot.Pod, error) {
	if err := k.ask("list", "Pod", "pending"); err != nil {
		return nil, err
	}
	return k.podsOn(""), nil
}

func (k *lifeKube) PendingVersions(context.Context) (map[string]uint64, error) {
	if err := k.ask("list", "Pod", "versions"); err != nil {
		return nil, err
	}
	out := map[string]uint64{}
	for i, p := range k.podsOn("") {
		out[p.UID] = uint64(i + 1)
	}
	return out, nil
}

func (k *lifeKube) PodsOn(_ context.Context, node string) ([]snapshot.Pod, error) {
	if err := k.ask("list", "Pod", node); err != nil {
		return nil, err
	}
	return k.podsOn(node), nil
}

func (k *lifeKube) podsOn(node string) (out []snapshot.Pod) {
	for _, p := range k.pods {
		if p.NodeName == node {
			out = append(out, p)
		}
	}
	return out
}

func (k *lifeKube) Nodes(_ context.Context, labels string) ([]snapshot.Node, error) {
	if err := k.ask("list", "Node", labels); err != nil {
		return nil, err
	}
	var out []snapshot.Node
	for _, name := range slices.Sorted(maps.Keys(k.nodes)) {
		n := k.snapshotNode(k.nodes[name])
		_, pool := n.Labels["karpenter.sh/nodepool"]
		_, initialized := n.Labels["karpenter.sh/initialized"]
		switch labels {
		case "":
		case "karpenter.sh/nodepool,!karpenter.sh/initialized":
			if !pool || initialized {
				continue
			}
		default:
			panic("selector " + labels)
		}
		if !k.hide["Node"] {
			out = append(out, n)
		}
	}
	return out, nil
}

func (k *lifeKube) snapshotNode(o *lifeObject) snapshot.Node {
	n := o.node
	n.Name, n.UID, n.Labels, n.Annotations = o.meta.Name, o.meta.Version.UID, maps.Clone(o.meta.Labels), maps.Clone(o.meta.Annotations)
	n.Created, n.Deleting, n.Taints = o.meta.Created, o.meta.Deleting, slices.Clone(o.node.Taints)
	return n
}

func (k *lifeKube) Node(_ context.Context, name string) (snapshot.Node, error) {
	if err := k.ask("get", "Node", name); err != nil {
		return snapshot.Node{}, err
	}
	o, err := k.find("Node", name, "")
	if err != nil {
		return snapshot.Node{}, err
	}
	return k.snapshotNode(o), nil
}

func (k *lifeKube) Metadata(_ context.Context, kind string) ([]api.Meta, error) {
	if err := k.ask("list", kind, "metadata"); err != nil {
		return nil, err
	}
	var out []api.Meta
	for _, name := range slices.Sorted(maps.Keys(k.of(kind))) {
		if !k.hide[kind] {
			out = append(out, copyMeta(k.of(kind)[name].meta))
		}
	}
	return out, nil
}

func copyMeta(m api.Meta) api.Meta {
	m.Labels, m.Annotations, m.Finalizers = maps.Clone(m.Labels), maps.Clone(m.Annotations), slices.Clone(m.Finalizers)
	return m
}

func (k *lifeKube) NodeClaim(_ context.Context, name string) (api.Meta, error) {
	if err := k.ask("get", "NodeClaim", name); err != nil {
		return api.Meta{}, err
	}
	o, err := k.find("NodeClaim", name, "")
	if err != nil {
		return api.Meta{}, err
	}
	return copyMeta(o.meta), nil
}

func (k *lifeKube) Some(_ context.Context, kinds ...string) (*snapshot.Snapshot, error) {
	out := &snapshot.Snapshot{}
	for _, kind := range kinds {
		if err := k.ask("list", kind, ""); err != nil {
			return nil, err
		}
		switch kind {
		case "NodePool":
			out.NodePools = slices.Clone(k.pools)
		case "NodeClaim":
			for _, name := range slices.Sorted(maps.Keys(k.claims)) {
				out.NodeClaims = append(out.NodeClaims, k.snapshotClaim(k.claims[name]))
			}
		case "Node":
			for _, name := range slices.Sorted(maps.Keys(k.nodes)) {
				out.Nodes = append(out.Nodes, k.snapshotNode(k.nodes[name]))
			}
		case "Pod":
			out.Pods = slices.Clone(k.pods)
		case "CapacityBuffer":
			out.Buffers = slices.Clone(k.rest.Buffers)
		case "VolumeAttachment":
			out.Attachments = slices.Clone(k.rest.Attachments)
		case "PersistentVolumeClaim":
			out.Claims = slices.Clone(k.rest.Claims)
		default:
			panic(kind)
		}
	}
	return out, nil
}

func (k *lifeKube) snapshotClaim(o *lifeObject) snapshot.NodeClaim {
	c := o.claim
	c.Name, c.UID, c.Labels, c.Annotations = o.meta.Name, o.meta.Version.UID, maps.Clone(o.meta.Labels), maps.Clone(o.meta.Annotations)
	c.Created, c.Deleting, c.Conditions = o.meta.Created, o.meta.Deleting, slices.Clone(o.status.Conditions)
	text := func(name string) string { s, _ := o.status.Fields[name].(string); return s }
	c.ProviderID, c.NodeName, c.ImageID = text("providerID"), text("nodeName"), text("imageID")
	c.LastPodEvent, _ = time.Parse(time.RFC3339, text("lastPodEventTime"))
	return c
}

func (k *lifeKube) Leases(context.Context, string) ([]api.LeaseState, error) {
	return k.leases, k.ask("list", "Lease", "")
}

func (k *lifeKube) CreateNodeClaim(_ context.Context, n api.NewNodeClaim) (string, error) {
	if err := k.ask("create", "NodeClaim", n.Claim.Name); err != nil {
		return "", err
	}
	if o := k.claims[n.Claim.Name]; o != nil {
		if o.meta.Annotations["kerf.sh/creation"] != n.Creation {
			return "", otherObject("NodeClaim", n.Claim.Name)
		}
		return o.meta.Version.UID, nil
	}
	o := &lifeObject{claim: n.Claim, owner: n.Pool.UID}
	o.meta = api.Meta{Name: n.Claim.Name, Version: api.Version{UID: k.uid("claim")}, Labels: maps.Clone(n.Claim.Labels),
		Annotations: map[string]string{"kerf.sh/creation": n.Creation}, Finalizers: []string{"karpenter.sh/termination"}, Created: k.now()}
	k.claims[n.Claim.Name] = o
	return o.meta.Version.UID, nil
}

func (k *lifeKube) ChangeNodes(ctx context.Context, nodes []api.NodeName, c api.NodeChange) []error {
	errs := make([]error, len(nodes))
	for i, n := range nodes {
		_, errs[i] = k.ChangeNode(ctx, n.Name, n.UID, c)
	}
	return errs
}

func (k *lifeKube) ChangeNode(_ context.Context, name, uid string, c api.NodeChange) (bool, error) {
	if err := k.ask("patch", "Node", name); err != nil {
		return false, err
	}
	o, err := k.find("Node", name, uid)
	if err != nil {
		return false, err
	}
	if _, done := o.meta.Labels[c.Unless]; done && c.Unless != "" {
		return false, nil
	}
	if o.meta.Annotations == nil {
		o.meta.Annotations = map[string]string{}
	}
	maps.Copy(o.meta.Labels, c.Labels)
	maps.Copy(o.meta.Annotations, c.Annotations)
	for _, key := range c.DropLabels {
		delete(o.meta.Labels, key)
	}
	for _, key := range c.DropAnnotations {
		delete(o.meta.Annotations, key)
	}
	o.node.Taints = slices.DeleteFunc(o.node.Taints, func(t snapshot.Taint) bool {
		same := func(d snapshot.Taint) bool { return d.Key == t.Key && (d.Effect == "" || d.Effect == t.Effect) }
		return slices.ContainsFunc(c.DropTaints, same) || slices.ContainsFunc(c.Taints, same)
	})
	o.node.Taints = append(o.node.Taints, c.Taints...)
	if c.Finalizer != "" && !slices.Contains(o.meta.Finalizers, c.Finalizer) {
		if !o.meta.Deleting.IsZero() {
			return false, &api.Error{Verb: "patch", Is: api.ErrInvalid, Detail: "no finalizer can be added to what is being deleted"}
		}
		o.meta.Finalizers = append(o.meta.Finalizers, c.Finalizer)
	}
	if c.Owner != nil {
		o.owner = c.Owner.UID
	}
	if c.Unschedulable != nil {
		o.node.Unschedulable = *c.Unschedulable
	}
	return true, nil
}

func (k *lifeKube) Delete(_ context.Context, kind, _, name, uid string) error {
	if err := k.ask("delete", kind, name); err != nil {
		return err
	}
	if o, err := k.find(kind, name, uid); err == nil && o.meta.Deleting.IsZero() {
		o.meta.Deleting = k.now()
	}
	k.reap()
	return nil
}

func (k *lifeKube) AddFinalizer(context.Context, string, string, string, string) error { return nil }

func (k *lifeKube) RemoveFinalizer(_ context.Context, kind, name, uid, finalizer string) error {
	if err := k.ask("release", kind, name); err != nil {
		return err
	}
	if o, err := k.find(kind, name, uid); err == nil {
		o.meta.Finalizers = slices.DeleteFunc(o.meta.Finalizers, func(f string) bool { return f == finalizer })
	}
	k.reap()
	return nil
}

func (k *lifeKube) Label(_ context.Context, kind, name, uid string, labels map[string]string) (bool, error) {
	if err := k.ask("label", kind, name); err != nil {
		return false, err
	}
	o, err := k.find(kind, name, uid)
	if err != nil {
		return false, err
	}
	maps.Copy(o.meta.Labels, labels)
	return true, nil
}

func (k *lifeKube) Annotate(_ context.Context, kind, name, uid string, annotations map[string]string) (bool, error) {
	if err := k.ask("annotate", kind, name); err != nil {
		return false, err
	}
	o, err := k.find(kind, name, uid)
	if err != nil {
		return false, err
	}
	if o.meta.Annotations == nil {
		o.meta.Annotations = map[string]string{}
	}
	maps.Copy(o.meta.Annotations, annotations)
	return true, nil
}

func (k *lifeKube) PatchStatus(_ context.Context, kind, name, uid string, s api.Status) (bool, error) {
	if err := k.ask("status", kind, name); err != nil {
		return false, err
	}
	o, err := k.find(kind, name, uid)
	if err != nil {
		return false, err
	}
	if o.status.Fields == nil {
		o.status.Fields = map[string]any{}
	}
	maps.Copy(o.status.Fields, s.Fields)
	for _, c := range s.Conditions {
		o.status.Conditions = slices.DeleteFunc(o.status.Conditions, func(x snapshot.Condition) bool { return x.Type == c.Type })
		o.status.Conditions = append(o.status.Conditions, c)
	}
	o.status.Conditions = slices.DeleteFunc(o.status.Conditions, func(x snapshot.Condition) bool { return slices.Contains(s.Gone, x.Type) })
	return true, nil
}

func (k *lifeKube) Nominate(_ context.Context, p api.PodName, node string) (bool, error) {
	if err := k.ask("nominate", "Pod", p.Name); err != nil {
		return false, err
	}
	for i := range k.pods {
		if k.pods[i].UID == p.UID && k.pods[i].NodeName == "" {
			k.pods[i].NominatedNode = node
			k.nominated = append(k.nominated, p.Name+" "+node)
			return true, nil
		}
	}
	return false, nil
}

func (k *lifeKube) Emit(_ context.Context, e api.Event) (bool, error) {
	if err := k.ask("emit", "Event", e.Reason); err != nil {
		return false, err
	}
	key := e.Object.Kind + e.Object.Name + e.Object.UID + e.Key
	if k.keys[key] {
		return false, nil
	}
	k.keys[key] = true
	k.events = append(k.events, e)
	return true, nil
}

// condition is "Status Reason" of a NodeClaim's condition.
func (k *lifeKube) condition(claim, typ string) string {
	if o := k.claims[claim]; o != nil {
		if c := snapshot.FindCondition(o.status.Conditions, typ); c != nil {
			return c.Status + " " + c.Reason
		}
	}
	return ""
}

var errTest = &api.Error{Verb: "test", Is: api.ErrUnavailable, Detail: "not now"}
