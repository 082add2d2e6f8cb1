package live

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strings"

	policyv1 "k8s.io/api/policy/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// What an error of this package can be, for errors.Is.
var (
	// ErrUnauthorized: the API server does not accept who we are, not even with a new
	// token. The pass must end: nothing that it read or did not read is to be trusted.
	ErrUnauthorized = errors.New("the API server does not accept our identity")
	// ErrForbidden: the identity is known and lacks a permission. Repeating is no use.
	ErrForbidden = errors.New("a permission is missing")
	// ErrNotFound: the object is not there.
	ErrNotFound = errors.New("not found")
	// ErrMissingKind: the API server does not serve the kind: its CRD is not installed.
	ErrMissingKind = errors.New("the kind is not served")
	// ErrConflict: the object is not, or is not any more, the one that was meant: another
	// UID or resource version, or a name that someone else has taken.
	ErrConflict = errors.New("the object is another one, or has changed")
	// ErrBlocked: the API server keeps to a PodDisruptionBudget. Later it may be different.
	ErrBlocked = errors.New("a PodDisruptionBudget is in the way")
	// ErrInvalid: the API server will never take this: validation, or a webhook's no.
	ErrInvalid = errors.New("the API server refuses the object")
	// ErrUnavailable: no answer, a broken one, or "not now". Later it may be different.
	ErrUnavailable = errors.New("the API server gives no usable answer")
)

// Error is a request that did not succeed.
type Error struct {
	// Verb is that of Kubernetes: list, get, create, patch, delete.
	Verb string
	// Resource is as RBAC writes it: pods, pods/eviction, nodeclaims; Group is its API
	// group, "" for the core.
	Group, Resource string
	Namespace, Name string
	// Is is one of the Err values.
	Is error
	// Detail says it in the words of the API server, or of the network.
	Detail string
	Err    error
}

func (e *Error) Error() string {
	what := e.Verb + " " + e.resource()
	if e.Name != "" {
		what += " " + strings.TrimPrefix(e.Namespace+"/"+e.Name, "/")
	}
	switch e.Is {
	case ErrForbidden:
		return fmt.Sprintf("%s: not permitted: the identity lacks verb %q on resource %q of API group %q (ClusterRole: apiGroups [%q], resources [%q], verbs [%q]): %s",
			what, e.Verb, e.Resource, e.Group, e.Group, e.Resource, e.Verb, e.Detail)
	case ErrUnauthorized:
		return what + ": " + ErrUnauthorized.Error() + " (401): its access entry, or the credentials of the kubeconfig, are missing or have expired"
	case ErrMissingKind:
		return fmt.Sprintf("%s: the API server does not serve %s: the CRD is not installed, or not in this version", what, e.resource())
	}
	return what + ": " + e.Detail
}

func (e *Error) resource() string {
	if e.Group == "" {
		return e.Resource
	}
	name, sub, _ := strings.Cut(e.Resource, "/")
	if sub != "" {
		sub = "/" + sub
	}
	return name + "." + e.Group + sub
}

func (e *Error) Unwrap() []error { return []error{e.Is, e.Err} }

// errorOf makes an *Error of what the REST client says about a request.
func errorOf(q *request, err error) error {
	out := &Error{Verb: q.verb, Group: q.group, Resource: q.resource, Namespace: q.namespace, Name: q.name, Err: err}
	if q.sub != "" {
		out.Resource += "/" + q.sub
	}
	out.Detail, out.Is = classify(q, err)
	return out
}

func classify(q *request, err error) (detail string, is error) {
	var status apierrors.APIStatus
	if !errors.As(err, &status) {
		if errors.Is(err, context.DeadlineExceeded) {
			return "no answer in time: " + err.Error(), ErrUnavailable
		}
		return err.Error(), ErrUnavailable
	}
	s := status.Status()
	detail = s.Message
	switch s.Code {
	case http.StatusUnauthorized:
		return detail, ErrUnauthorized
	case http.StatusForbidden:
		// Admission says no with 403 as well; only the authorizer's no is about permissions.
		if q.verb == "create" && !strings.Contains(detail, " cannot "+q.verb+" resource ") {
			return detail, ErrInvalid
		}
		return detail, ErrForbidden
	case http.StatusNotFound:
		if q.name == "" || s.Details == nil || s.Details.Name == "" {
			return detail, ErrMissingKind
		}
		return detail, ErrNotFound
	case http.StatusConflict:
		return detail, ErrConflict
	case http.StatusTooManyRequests:
		if why := budget(s.Details); q.sub == "eviction" && why != "" {
			return detail + " " + why, ErrBlocked
		}
		return detail, ErrUnavailable
	case http.StatusInternalServerError:
		if q.sub == "eviction" && strings.Contains(detail, "more than one PodDisruptionBudget") {
			return detail + " Nobody can evict it until only one of its budgets selects it.", ErrBlocked
		}
	case http.StatusUnprocessableEntity:
		if changedUID(detail) {
			return detail, ErrConflict
		}
		return detail, ErrInvalid
	case http.StatusBadRequest, http.StatusRequestEntityTooLarge, http.StatusMethodNotAllowed:
		return detail, ErrInvalid
	}
	return fmt.Sprintf("%s (%d)", detail, s.Code), ErrUnavailable
}

// expired tells the end of a continue token from other errors.
func expired(err error) bool {
	return apierrors.IsResourceExpired(err) || apierrors.IsGone(err)
}

// budget is what a refused eviction says about the budget, "" if it was refused for
// something else.
func budget(d *metav1.StatusDetails) string {
	if d == nil {
		return ""
	}
	for _, c := range d.Causes {
		if c.Type == policyv1.DisruptionBudgetCause {
			return c.Message
		}
	}
	return ""
}
