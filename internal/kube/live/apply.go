package live

import (
	"context"
	"encoding/json"
	"errors"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// Target names an object of any kind that has no namespace, for those who set a cluster up.
type Target struct{ Group, Version, Resource, Name string }

func (t Target) request(verb string) request {
	return request{verb: verb, group: t.Group, version: t.Version, resource: t.Resource, name: t.Name, accept: plainJSON}
}

// applyPatch is the media type of a server-side apply; JSON is YAML.
const applyPatch = "application/apply-patch+yaml"

// Get reads an object as JSON. ErrNotFound: there is none. ErrMissingKind: nor its kind.
func (c *Client) Get(ctx context.Context, t Target) (json.RawMessage, error) {
	q := t.request("get")
	a, err := c.do(ctx, &q)
	return a.body, err
}

// Apply makes an object what it is to be, and takes the fields over that somebody else set:
// a server-side apply in the name of manager. object is complete, as JSON. What comes back is
// the object as it is then.
func (c *Client) Apply(ctx context.Context, t Target, manager string, object json.RawMessage) (json.RawMessage, error) {
	q := t.request("patch")
	q.body, q.content = object, applyPatch
	q.params = map[string]string{"fieldManager": manager, "force": "true"}
	a, err := c.do(ctx, &q)
	return a.body, err
}

// Remove deletes an object, whatever its UID. Success: there is none, or its kind is not
// there.
func (c *Client) Remove(ctx context.Context, t Target) error {
	err := c.remove(ctx, t.request("delete"), metav1.DeleteOptions{})
	if errors.Is(err, ErrMissingKind) {
		return nil
	}
	return err
}

// ConfigMap reads the data of a ConfigMap. ErrNotFound: there is none.
func (c *Client) ConfigMap(ctx context.Context, namespace, name string) (map[string]string, error) {
	q := request{verb: "get", version: "v1", resource: "configmaps", namespace: namespace, name: name, accept: plainJSON}
	a, err := c.do(ctx, &q)
	if err != nil {
		return nil, err
	}
	var out struct{ Data map[string]string }
	if err := json.Unmarshal(a.body, &out); err != nil {
		return nil, &Error{Verb: q.verb, Resource: q.resource, Namespace: namespace, Name: name, Is: ErrUnavailable, Err: err, Detail: "decode the answer: " + err.Error()}
	}
	return out.Data, nil
}
