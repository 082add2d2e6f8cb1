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
