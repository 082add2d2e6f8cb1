package live

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"strings"

	corev1 "k8s.io/api/core/v1"
	eventsv1 "k8s.io/api/events/v1"
	policyv1 "k8s.io/api/policy/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"kerf.sh/kerf/internal/kube/api"
)

func podRequest(p PodName) (request, error) {
	q, err := object("Pod", p.Namespace, p.Name)
	if err == nil && (p.Namespace == "" || p.UID == "") {
		err = fmt.Errorf("pod %q: want its namespace and UID", p.Name)
	}
	return q, err
}

// Nominate tells kube-scheduler which node a pod is meant for (status.nominatedNodeName,
// which it tries first); "" takes that back. It reports whether the pod still waits: one
// that is bound, or not there any more, needs no nomination.
func (c *Client) Nominate(ctx context.Context, p PodName, node string) (waits bool, err error) {
	q, err := podRequest(p)
	if err != nil {
		return false, fmt.Errorf("nominate a node: %w", err)
	}
	q.sub = "status"
	var value any
	if node != "" {
		value = node
	}
	waits, err = gone(c.patch(ctx, q, mergePatch, map[string]any{
		"metadata": map[string]any{"uid": p.UID},
		"status":   map[string]any{"nominatedNodeName": value},
	}))
	var e *Error
	if errors.As(err, &e) && e.Is == ErrInvalid && strings.Contains(e.Detail, "already bound to a node") {
		return false, nil
	}
	return waits, err
}

// gone takes it for an answer that the object is not there any more, or is another one.
func gone(err error) (there bool, _ error) {
	if errors.Is(err, ErrNotFound) || errors.Is(err, ErrConflict) && otherUID(err) {
		return false, nil
	}
	return err == nil, err
}

// Evict asks for a pod to leave, within its PodDisruptionBudgets. It reports whether the
// pod was there. ErrBlocked: a budget does not allow it now, which the error explains.
// grace is the pod's own grace period, nil = what the pod says.
func (c *Client) Evict(ctx context.Context, p PodName, grace *int64) (there bool, err error) {
	q, err := podRequest(p)
	if err != nil {
		return false, fmt.Errorf("evict: %w", err)
	}
	// An eviction of a pod with another UID is refused, but only after its budget has been
	// charged for two minutes. So the pod is looked at first.
	look := q
	look.accept = metadataOfOne
	if there, err := get[metav1.PartialObjectMetadata](ctx, c, &look, "PartialObjectMetadata", p.Name); err != nil {
		return gone(err)
	} else if string(there.UID) != p.UID {
		return false, nil
	}
	q.verb, q.sub, q.content, q.once = "create", "eviction", plainJSON, true
	q.body, err = json.Marshal(policyv1.Eviction{
		TypeMeta:      metav1.TypeMeta{APIVersion: "policy/v1", Kind: "Eviction"},
		ObjectMeta:    metav1.ObjectMeta{Namespace: p.Namespace, Name: p.Name},
		DeleteOptions: &metav1.DeleteOptions{Preconditions: preconditions(p.UID), GracePeriodSeconds: grace},
	})
	if err != nil {
		return false, fmt.Errorf("evict %s/%s: %w", p.Namespace, p.Name, err)
	}
	_, err = c.do(ctx, &q)
	return gone(err)
}

// DeletePod deletes a pod without asking its budgets, which only a termination grace
// period that has ended may do. It reports whether the pod was there.
func (c *Client) DeletePod(ctx context.Context, p PodName, grace *int64) (there bool, err error) {
	q, err := podRequest(p)
	if err != nil {
		return false, fmt.Errorf("delete a pod: %w", err)
	}
	return gone(c.remove(ctx, q, metav1.DeleteOptions{Preconditions: preconditions(p.UID), GracePeriodSeconds: grace}))
}

// Emit writes an event (events.k8s.io). It reports whether it is new.
func (c *Client) Emit(ctx context.Context, e Event) (fresh bool, err error) {
	if e.Key == "" || e.Object.Name == "" || e.Object.Kind == "" {
		return false, errors.New("write an event: want its key, and kind and name of its object")
	}
	ev := wireEvent(&e)
	q := request{verb: "create", group: "events.k8s.io", version: "v1", resource: "events", namespace: ev.Namespace, name: ev.Name, content: plainJSON}
	if q.body, err = json.Marshal(ev); err != nil {
		return false, fmt.Errorf("write an event: %w", err)
	}
	_, err = c.do(ctx, &q)
	if errors.Is(err, ErrConflict) {
		return false, nil // it has been said
	}
	return err == nil, err
}

func wireEvent(e *Event) eventsv1.Event {
	sum := sha256.Sum256([]byte(strings.Join([]string{e.Object.Kind, e.Object.Namespace, e.Object.Name, e.Object.UID, e.Key}, "\x00")))
	namespace := e.Object.Namespace
	if namespace == "" {
		namespace = metav1.NamespaceDefault
	}
	kind := corev1.EventTypeNormal
	if e.Warning {
		kind = corev1.EventTypeWarning
	}
	name := e.Object.Name
	const most = 253 - 1 - 2*eventHash
	if len(name) > most {
		name = strings.TrimRight(name[:most], ".-")
	}
	return eventsv1.Event{
		TypeMeta:            metav1.TypeMeta{APIVersion: "events.k8s.io/v1", Kind: "Event"},
		ObjectMeta:          metav1.ObjectMeta{Namespace: namespace, Name: name + "." + hex.EncodeToString(sum[:eventHash])},
		EventTime:           metav1.NewMicroTime(e.Time),
		ReportingController: e.Controller,
		ReportingInstance:   e.Instance,
		Action:              e.Action,
		Reason:              e.Reason,
		Regarding:           objectReference(e.Object),
		Note:                cut(e.Note, MaxNote),
		Type:                kind,
	}
}

// eventHash is how many bytes of its hash name an event.
const eventHash = 8

// cut keeps the beginning of a text, whole characters of it.
func cut(s string, most int) string {
	if len(s) <= most {
		return s
	}
	const dots = "..."
	return strings.ToValidUTF8(s[:most-len(dots)], "") + dots
}

func objectReference(r api.Reference) corev1.ObjectReference {
	return corev1.ObjectReference{APIVersion: r.APIVersion, Kind: r.Kind, Namespace: r.Namespace, Name: r.Name, UID: types.UID(r.UID)}
}
