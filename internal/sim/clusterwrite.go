package sim

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"time"

	"kerf.sh/kerf/internal/kube/api"
	"kerf.sh/kerf/internal/snapshot"
)

// conflicts is how often a change is tried again when somebody else was quicker, as the
// client does.
const conflicts = 5

const creationAnnotation = "kerf.sh/creation"

func write[T any](ctx context.Context, k *clusterClient, op, what string, f func() (T, error)) (T, error) {
	return call(ctx, k.c, k.s, bound{Op: op, Object: what, Write: true}, f)
}

func conflict(verb, resource, name, detail string) error {
	return &api.Error{Verb: verb, Resource: resource, Name: name, Is: api.ErrConflict, Detail: detail}
}

// CreateNodeClaim implements execute.Cluster.
func (k *clusterClient) CreateNodeClaim(ctx context.Context, n api.NewNodeClaim) (string, error) {
	if n.Creation == "" || n.Pool.UID == "" {
		return "", fmt.Errorf("create nodeclaim %s: want the id of the intent and the UID of the NodePool", n.Claim.Name)
	}
	c := n.Claim
	uid, err := write(ctx, k, "create", "nodeclaim "+c.Name, func() (string, error) {
		if k.k.w.now().Before(k.k.webhook) {
			return "", &api.Error{Verb: "create", Resource: "nodeclaims", Name: c.Name, Is: api.ErrUnavailable, Detail: "failed calling webhook: no endpoints available (500)"}
		}
		v := snapshot.NodeClaim{
			Name: c.Name, Labels: maps.Clone(c.Labels), Annotations: maps.Clone(c.Annotations), Requirements: c.Requirements, Taints: c.Taints,
			StartupTaints: c.StartupTaints, Requests: c.Requests, ClassRef: c.ClassRef, ExpireAfter: c.ExpireAfter, TerminationGracePeriod: c.TerminationGracePeriod,
		}
		if v.Annotations == nil {
			v.Annotations = map[string]string{}
		}
		v.Annotations[creationAnnotation] = n.Creation
		it, made := k.k.claims.create(c.Name, v, []api.Owner{n.Pool}, finalizer)
		if !made {
			return "", conflict("create", "nodeclaims", c.Name, "already exists")
		}
		k.k.orphaned("") // its owner may be gone already
		return it.uid, nil
	})
	if !errors.Is(err, api.ErrConflict) {
		return uid, err
	}
	return read(ctx, k, "get", "nodeclaim "+c.Name, func() (string, error) {
		it := k.k.claims.by[c.Name]
		if it == nil {
			return "", notFound("get", "nodeclaims", c.Name)
		}
		if by := it.v.Annotations[creationAnnotation]; by != n.Creation {
			return "", conflict("create", "nodeclaims", c.Name, fmt.Sprintf("made by %q and not by %q", by, n.Creation))
		}
		return it.uid, nil
	})
}

// change reads an object and writes it, as long as somebody else is quicker.
func (k *clusterClient) change(ctx context.Context, name, key, uid string, goneIsFine bool, apply func() (bool, error)) (changed bool, err error) {
	what := name + " " + key
	for range conflicts {
		var version int64
		stop, err := read(ctx, k, "get", what, func() (bool, error) {
			o := k.k.kindOf(name)
			if o == nil {
				return true, missingKind("get", name)
			}
			m := o.find(key)
			switch {
			case m == nil && goneIsFine:
				return true, nil
			case m == nil:
				return true, notFound("get", name, key)
			case uid != "" && m.uid != uid && goneIsFine:
				return true, nil
			case uid != "" && m.uid != uid:
				return true, conflict("patch", name, key, fmt.Sprintf("the object has UID %s, the one that was meant %s", m.uid, uid))
			}
			version = m.version
			return false, nil
		})
		if err != nil || stop {
			return false, err
		}
		changed, err := write(ctx, k, "patch", what, func() (bool, error) {
			m := k.k.kindOf(name).find(key)
			switch {
			case m == nil && goneIsFine:
				return false, nil
			case m == nil:
				return false, notFound("patch", name, key)
			case m.version != version:
				return false, errRaced
			}
			return apply()
		})
		if !errors.Is(err, errRaced) {
			return changed, err
		}
	}
	return false, conflict("patch", name, key, "the object has been modified")
}

// errRaced is that somebody else was quicker between reading and writing.
var errRaced = errors.New("the object has been modified; please apply your changes to the latest version")

// ChangeNode implements execute.Cluster.
func (k *clusterClient) ChangeNode(ctx context.Context, name, uid string, x api.NodeChange) (bool, error) {
	return k.change(ctx, "Node", name, uid, false, func() (bool, error) {
		it := k.k.nodes.by[name]
		n, changed := it.v, false
		if _, done := n.Labels[x.Unless]; done && x.Unless != "" {
			return false, nil
		}
		n.Labels, changed = texts(n.Labels, x.Labels, x.DropLabels, changed)
		n.Annotations, changed = texts(n.Annotations, x.Annotations, x.DropAnnotations, changed)
		if taints := taintsWith(&x, n.Taints); !slices.Equal(taints, n.Taints) {
			n.Taints, changed = taints, true
		}
		if x.Unschedulable != nil && *x.Unschedulable != n.Unschedulable {
			n.Unschedulable, changed = *x.Unschedulable, true
		}
		if x.Owner != nil && !slices.Contains(it.owners, *x.Owner) {
			it.owners = append(slices.DeleteFunc(slices.Clone(it.owners), func(o api.Owner) bool { return o.Kind == x.Owner.Kind }), *x.Owner)
			changed = true
			k.k.orphaned("")
		}
		if x.Finalizer != "" && !slices.Contains(it.finalizers, x.Finalizer) {
			if !it.deleting.IsZero() {
				return false, &api.Error{Verb: "patch", Resource: "nodes", Name: name, Is: api.ErrInvalid, Detail: "no new finalizers can be added if the object is being deleted"}
			}
			it.finalizers, changed = append(slices.Clone(it.finalizers), x.Finalizer), true
		}
		if changed {
			it.v = n
			k.k.nodes.touch(it)
			k.k.w.tracef("    node %s has taints %v, cordoned %v, finalizers %v, labels %v", name, n.Taints, n.Unschedulable, it.finalizers, x.Labels)
		}
		return changed, nil
	})
}

// ChangeNodes implements handler.Cluster.
func (k *clusterClient) ChangeNodes(ctx context.Context, nodes []api.NodeName, x api.NodeChange) []error {
	errs := make([]error, len(nodes))
	for i, n := range nodes {
		_, errs[i] = k.ChangeNode(ctx, n.Name, n.UID, x)
	}
	return errs
}

func texts(have, set map[string]string, drop []string, was bool) (map[string]string, bool) {
	out := maps.Clone(have)
	if out == nil {
		out = map[string]string{}
	}
	maps.Copy(out, set)
	for _, k := range drop {
		delete(out, k)
	}
	if maps.Equal(out, have) {
		return have, was
	}
	return out, true
}

func taintsWith(x *api.NodeChange, have []snapshot.Taint) []snapshot.Taint {
	out := slices.DeleteFunc(slices.Clone(have), func(t snapshot.Taint) bool {
		return slices.ContainsFunc(x.DropTaints, func(d snapshot.Taint) bool { return d.Key == t.Key && (d.Effect == "" || d.Effect == t.Effect) })
	})
	for _, t := range x.Taints {
		i := slices.IndexFunc(out, func(o snapshot.Taint) bool { return o.Key == t.Key && o.Effect == t.Effect })
		if i < 0 {
			out = append(out, t)
		} else {
			out[i].Value = t.Value
		}
	}
	return out
}

// Delete implements execute.Cluster.
func (k *clusterClient) Delete(ctx context.Context, name, namespace, object, uid string) error {
	if uid == "" {
		return fmt.Errorf("delete %s %s: no UID: it would take whatever has the name", name, object)
	}
	key := object
	if namespace != "" {
		key = namespace + "/" + object
	}
	_, err := write(ctx, k, "delete", name+" "+key, func() (struct{}, error) {
		o := k.k.kindOf(name)
		if o == nil {
			return struct{}{}, missingKind("delete", name)
		}
		if m := o.find(key); m != nil && m.uid == uid {
			o.deleteUID(key)
		}
		return struct{}{}, nil
	})
	return err
}

// AddFinalizer implements execute.Cluster.
func (k *clusterClient) AddFinalizer(ctx context.Context, name, object, uid, finalizer string) error {
	_, err := k.change(ctx, name, object, uid, false, func() (bool, error) {
		o := k.k.kindOf(name)
		m := o.find(object)
		if slices.Contains(m.finalizers, finalizer) {
			return false, nil
		}
		if !m.deleting.IsZero() {
			return false, &api.Error{Verb: "patch", Resource: name, Name: object, Is: api.ErrInvalid, Detail: "no new finalizers can be added if the object is being deleted"}
		}
		o.finalizeKey(object, append(slices.Clone(m.finalizers), finalizer))
		return true, nil
	})
	return err
}

// RemoveFinalizer implements execute.Cluster.
func (k *clusterClient) RemoveFinalizer(ctx context.Context, name, object, uid, finalizer string) error {
	_, err := k.change(ctx, name, object, uid, true, func() (bool, error) {
		o := k.k.kindOf(name)
		m := o.find(object)
		left := slices.DeleteFunc(slices.Clone(m.finalizers), func(f string) bool { return f == finalizer })
		if len(left) == len(m.finalizers) {
			return false, nil
		}
		k.k.w.checks.released(name, object)
		o.finalizeKey(object, left)
		return true, nil
	})
	return err
}

// PatchStatus implements execute.Cluster.
func (k *clusterClient) PatchStatus(ctx context.Context, name, object, uid string, s api.Status) (bool, error) {
	return k.change(ctx, name, object, uid, false, func() (bool, error) {
		switch name {
		case "NodeClaim":
			it := k.k.claims.by[object]
			v := it.v
			changed, err := claimStatus(&v, &s)
			if err == nil && changed {
				it.v = v
				k.k.claims.touch(it)
			}
			return changed, err
		case "NodePool":
			it := k.k.pools.by[object]
			v, changed := it.v, false
			v.Conditions, changed = conditionsWith(v.Conditions, s.Conditions, s.Gone)
			changed = changed || !v.HasStatus && len(s.Fields) > 0
			if changed {
				v.HasStatus = true
				it.v = v
				k.k.pools.touch(it)
			}
			return changed, nil
		case "EC2NodeClass":
			it := k.k.classes.by[object]
			v := it.v
			v.status = maps.Clone(v.status)
			if v.status == nil {
				v.status = map[string]any{}
			}
			cs, changed := conditionsWith(v.Conditions, s.Conditions, s.Gone)
			v.status["conditions"] = conditionDocs(cs)
			for f, value := range s.Fields {
				p := plain(value)
				if p == nil {
					if _, ok := v.status[f]; ok {
						changed = true
					}
					delete(v.status, f)
					continue
				}
				if !reflect.DeepEqual(v.status[f], p) {
					v.status[f], changed = p, true
				}
			}
			if changed {
				it.v = v
				k.k.classes.touch(it)
			}
			return changed, nil
		}
		return false, missingKind("patch", name)
	})
}

// claimStatus applies a patch to the status of a NodeClaim.
func claimStatus(c *snapshot.NodeClaim, s *api.Status) (changed bool, err error) {
	c.Conditions, changed = conditionsWith(c.Conditions, s.Conditions, s.Gone)
	for f, value := range s.Fields {
		switch p := plain(value).(type) {
		case string:
			to := map[string]*string{"providerID": &c.ProviderID, "nodeName": &c.NodeName, "imageID": &c.ImageID}[f]
			if f == "lastPodEventTime" {
				t, err := time.Parse(time.RFC3339, p)
				if err != nil {
					return false, fmt.Errorf("status.%s: %w", f, err)
				}
				changed = changed || !c.LastPodEvent.Equal(t)
				c.LastPodEvent = t.UTC()
				continue
			}
			if to == nil {
				return false, fmt.Errorf("status.%s is no field of a NodeClaim", f)
			}
			changed = changed || *to != p
			*to = p
		case map[string]any:
			to := map[string]*snapshot.Resources{"capacity": &c.Capacity, "allocatable": &c.Allocatable}[f]
			if to == nil {
				return false, fmt.Errorf("status.%s is no field of a NodeClaim", f)
			}
			r, err := resources(p)
			if err != nil {
				return false, fmt.Errorf("status.%s: %w", f, err)
			}
			changed = changed || !reflect.DeepEqual(*to, r)
			*to = r
		case nil:
		default:
			return false, fmt.Errorf("status.%s: %v is no value of it", f, p)
		}
	}
	return changed, nil
}

// Nominate implements execute.Cluster.
func (k *clusterClient) Nominate(ctx context.Context, p api.PodName, node string) (bool, error) {
	return write(ctx, k, "patch", fmt.Sprintf("pod %s/%s nominated to %q", p.Namespace, p.Name, node), func() (bool, error) {
		it := k.k.pods.by[p.Namespace+"/"+p.Name]
		if it == nil || it.uid != p.UID || it.v.NodeName != "" {
			return false, nil
		}
		if it.v.NominatedNode != node {
			it.v.NominatedNode = node
			k.k.pods.touch(it)
		}
		return true, nil
	})
}

// Emit implements execute.Cluster.
func (k *clusterClient) Emit(ctx context.Context, e api.Event) (bool, error) {
	if e.Key == "" || e.Object.Name == "" || e.Object.Kind == "" {
		return false, errors.New("write an event: want its key, and kind and name of its object")
	}
	key := fmt.Sprintf("%s/%s/%s/%s %s", e.Object.Kind, e.Object.Namespace, e.Object.Name, e.Object.UID, e.Key)
	return write(ctx, k, "create", "event "+e.Reason+" of "+e.Object.Namespace+"/"+e.Object.Name, func() (bool, error) {
		if old, ok := k.k.events[key]; ok && k.k.w.now().Sub(old.Time) < time.Hour {
			return false, nil
		}
		e.Time = k.k.w.now()
		k.k.events[key] = e
		k.k.w.checks.said(&e)
		return true, nil
	})
}

// Annotate implements execute.Cluster.
func (k *clusterClient) Annotate(ctx context.Context, name, object, uid string, annotations map[string]string) (bool, error) {
	return k.change(ctx, name, object, uid, false, func() (changed bool, err error) {
		if name != "NodeClaim" {
			return false, missingKind("patch", name)
		}
		it := k.k.claims.by[object]
		if it.v.Annotations, changed = texts(it.v.Annotations, annotations, nil, false); changed {
			k.k.claims.touch(it)
		}
		return changed, nil
	})
}

// Label implements execute.Cluster.
func (k *clusterClient) Label(ctx context.Context, name, object, uid string, labels map[string]string) (bool, error) {
	return k.change(ctx, name, object, uid, false, func() (changed bool, err error) {
		switch name {
		case "NodeClaim":
			it := k.k.claims.by[object]
			if it.v.Labels, changed = texts(it.v.Labels, labels, nil, false); changed {
				k.k.claims.touch(it)
			}
			return changed, nil
		case "Node":
			it := k.k.nodes.by[object]
			if it.v.Labels, changed = texts(it.v.Labels, labels, nil, false); changed {
				k.k.nodes.touch(it)
			}
			return changed, nil
		}
		return false, missingKind("patch", name)
	})
}
