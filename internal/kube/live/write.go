package live

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
)

// Media types of patches.
const (
	mergePatch = "application/merge-patch+json"
	jsonPatch  = "application/json-patch+json"
)

// conflicts is how often a change is tried on what is there when somebody else changes the
// object at the same time.
const conflicts = 5

// patch sends a patch; body is marshalled.
func (c *Client) patch(ctx context.Context, q request, media string, body any) error {
	raw, err := json.Marshal(body)
	if err != nil {
		return fmt.Errorf("patch %s %s: %w", q.resource, q.name, err)
	}
	q.verb, q.body, q.content, q.accept = "patch", raw, media, plainJSON
	_, err = c.do(ctx, &q)
	return err
}

// object is the request for one object of a kind that is read.
func object(kind, namespace, name string) (request, error) {
	k := kindNamed(kind)
	if k == nil {
		return request{}, fmt.Errorf("%s is no kind that is read", kind)
	}
	q := *k.request("get")
	q.namespace, q.name, q.accept = namespace, name, plainJSON
	if name == "" {
		return q, fmt.Errorf("%s: no name", k.resource)
	}
	return q, nil
}

// meta reads the metadata of one object of any kind.
func (c *Client) meta(ctx context.Context, q request) (*metav1.ObjectMeta, error) {
	q.verb, q.accept = "get", plainJSON
	a, err := c.do(ctx, &q)
	if err != nil {
		return nil, err
	}
	var o customObject
	if err := json.Unmarshal(a.body, &o); err != nil {
		return nil, &Error{Verb: q.verb, Group: q.group, Resource: q.resource, Namespace: q.namespace, Name: q.name, Is: ErrUnavailable, Err: err, Detail: "decode the answer: " + err.Error()}
	}
	return &o.Metadata, nil
}

// another is the error about an object that has the name and not the UID.
func another(q request, want, got string) error {
	return &Error{Verb: "patch", Group: q.group, Resource: q.resource, Namespace: q.namespace, Name: q.name, Is: ErrConflict,
		Detail: fmt.Sprintf("the object has UID %s, the one that was meant %s: it was deleted and made anew", got, want)}
}

// Label puts labels on an object ("NodeClaim", ...), if it has this UID. It reports whether
// something was written: nothing is where the object has them already.
func (c *Client) Label(ctx context.Context, kind, name, uid string, labels map[string]string) (changed bool, err error) {
	return c.mark(ctx, kind, name, uid, "labels", labels)
}

// Annotate merges annotations into an object, as Label does labels.
func (c *Client) Annotate(ctx context.Context, kind, name, uid string, annotations map[string]string) (changed bool, err error) {
	return c.mark(ctx, kind, name, uid, "annotations", annotations)
}

// mark merges texts into a field of an object's metadata: labels or annotations.
func (c *Client) mark(ctx context.Context, kind, name, uid, field string, set map[string]string) (changed bool, err error) {
	q, err := object(kind, "", name)
	if err != nil {
		return false, fmt.Errorf("change the %s: %w", field, err)
	}
	m, err := c.meta(ctx, q)
	if err != nil {
		return false, err
	}
	if uid != "" && string(m.UID) != uid {
		return false, another(q, uid, string(m.UID))
	}
	have := m.Labels
	if field == "annotations" {
		have = m.Annotations
	}
	diff := texts(have, set, nil)
	if diff == nil {
		return false, nil
	}
	err = c.patch(ctx, q, mergePatch, map[string]any{"metadata": map[string]any{"uid": m.UID, field: diff}})
	return err == nil, err
}

// RemoveFinalizer takes a finalizer off an object ("NodeClaim", "Node", ...). Success: the
// object does not carry it, or the object with this UID is not there any more.
func (c *Client) RemoveFinalizer(ctx context.Context, kind, name, uid, finalizer string) error {
	q, err := object(kind, "", name)
	if err != nil {
		return fmt.Errorf("remove finalizer: %w", err)
	}
	return c.finalizers(ctx, q, uid, func(have []string) []string {
		return slices.DeleteFunc(have, func(f string) bool { return f == finalizer })
	}, true)
}

// AddFinalizer puts a finalizer on an object. Success: the object carries it.
func (c *Client) AddFinalizer(ctx context.Context, kind, name, uid, finalizer string) error {
	q, err := object(kind, "", name)
	if err != nil {
		return fmt.Errorf("add finalizer: %w", err)
	}
	return c.finalizers(ctx, q, uid, func(have []string) []string {
		if slices.Contains(have, finalizer) {
			return have
		}
		return append(have, finalizer)
	}, false)
}

// finalizers changes the list of finalizers, which a patch can only replace as a whole: so
// it is conditional on the state that was read.
func (c *Client) finalizers(ctx context.Context, q request, uid string, change func([]string) []string, goneIsFine bool) error {
	return c.retry(func() error {
		m, err := c.meta(ctx, q)
		if goneIsFine && errors.Is(err, ErrNotFound) {
			return nil
		}
		if err != nil {
			return err
		}
		if uid != "" && string(m.UID) != uid {
			if goneIsFine {
				return nil
			}
			return another(q, uid, string(m.UID))
		}
		want := change(slices.Clone(m.Finalizers))
		if slices.Equal(want, m.Finalizers) {
			return nil
		}
		err = c.patch(ctx, q, mergePatch, map[string]any{"metadata": map[string]any{
			"uid": m.UID, "resourceVersion": m.ResourceVersion, "finalizers": want,
		}})
		if goneIsFine && errors.Is(err, ErrNotFound) {
			return nil
		}
		return err
	})
}

// retry repeats a change that reads what it changes while somebody else is quicker.
func (c *Client) retry(change func() error) error {
	var err error
	for range conflicts {
		if err = change(); !errors.Is(err, ErrConflict) {
			return err
		}
	}
	return err
}

// Delete deletes an object of any kind that is read, if it has this UID. Success: it is
// gone, or marked to go once its finalizers are off. An object of that name with another
// UID is left alone: the one that was meant is gone.
func (c *Client) Delete(ctx context.Context, kind, namespace, name, uid string) error {
	q, err := object(kind, namespace, name)
	if err != nil {
		return fmt.Errorf("delete: %w", err)
	}
	if uid == "" {
		return fmt.Errorf("delete %s %s: no UID: it would take whatever has the name", q.resource, name)
	}
	return c.remove(ctx, q, metav1.DeleteOptions{Preconditions: preconditions(uid)})
}

func (c *Client) remove(ctx context.Context, q request, o metav1.DeleteOptions) error {
	o.APIVersion, o.Kind = "v1", "DeleteOptions"
	raw, err := json.Marshal(o)
	if err != nil {
		return fmt.Errorf("delete %s %s: %w", q.resource, q.name, err)
	}
	q.verb, q.body, q.content = "delete", raw, plainJSON
	_, err = c.do(ctx, &q)
	if errors.Is(err, ErrNotFound) || errors.Is(err, ErrConflict) && otherUID(err) {
		return nil
	}
	return err
}

func preconditions(uid string) *metav1.Preconditions {
	id := types.UID(uid)
	return &metav1.Preconditions{UID: &id}
}

// otherUID tells the conflict about a UID from others. The API server has a text for it
// and no code, and not the same everywhere.
func otherUID(err error) bool {
	var e *Error
	if !errors.As(err, &e) {
		return false
	}
	return strings.Contains(e.Detail, "UID in precondition") || strings.Contains(e.Detail, "UID in the precondition") || changedUID(e.Detail)
}

// changedUID tells the refusal to give an object another UID, which is how a patch of a
// pod with the UID of its predecessor ends.
func changedUID(detail string) bool { return strings.Contains(detail, "metadata.uid: Invalid value") }
