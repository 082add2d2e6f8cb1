package api

import (
	"errors"
	"fmt"
	"strings"
	"time"

	"kerf.sh/kerf/internal/snapshot"
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

// Version is the state of an object that a change is conditional on.
type Version struct {
	// UID is that of the object: another one of the same name has another. Resource is its
	// resourceVersion; "" where any state of the object will do.
	UID, Resource string
}

// Meta is the metadata of an object.
type Meta struct {
	Namespace, Name     string
	Version             Version
	Generation          int64
	Labels, Annotations map[string]string
	Finalizers          []string
	Created, Deleting   time.Time
}

// LeaseState is what a leader-election Lease says.
type LeaseState struct {
	Namespace, Name, Holder string
	Renewed                 time.Time
}

// Owner is the object that another one goes with.
type Owner struct{ APIVersion, Kind, Name, UID string }

// NewNodeClaim is a NodeClaim to be made.
type NewNodeClaim struct {
	// Claim gives name, labels, annotations and spec; what a status holds is not used.
	Claim snapshot.NodeClaim
	// Pool is the NodePool that it belongs to: deleting that deletes it.
	Pool Owner
	// Creation is the id of the intent, the same whenever this NodeClaim is made again.
	Creation string
}

// NodeChange is what a Node is to be. What it does not mention stays as it is.
type NodeChange struct {
	// Labels and Annotations are set; those in DropLabels and DropAnnotations are taken off.
	Labels, Annotations         map[string]string
	DropLabels, DropAnnotations []string
	// Taints are put on, in the place of those of the same key and effect; DropTaints are
	// taken off, by key and effect ("" = whatever effect).
	Taints, DropTaints []snapshot.Taint
	// Finalizer is added; Owner too, in the place of another owner of its kind.
	Finalizer string
	Owner     *Owner
	// Unschedulable cordons (true) or uncordons the Node; nil leaves that as it is.
	Unschedulable *bool
	// Unless is a label: a Node that has it by then is left as it is. Somebody was quicker.
	Unless string
}

// NodeName names one Node; UID tells it from its successor of the same name.
type NodeName struct{ Name, UID string }

// PodName names one pod; UID tells it from its successor of the same name.
type PodName struct{ Namespace, Name, UID string }

// Event is something that people should read at an object.
type Event struct {
	// Object is what it is about. Namespace is "" for objects without one.
	Object Reference
	// Key makes events one: of those with the same Key about the same object only the first
	// is written, as long as the API server keeps it (an hour). Reason and what matters of
	// the note belong in it, numbers that always change do not.
	Key string
	// Reason and Action are words in CamelCase, at most 128 bytes; Warning is its type.
	Reason, Action string
	Warning        bool
	// Note is for people. It is cut at MaxNote bytes.
	Note string
	Time time.Time
	// Controller and Instance tell who writes ("kerf.sh/sweep").
	Controller, Instance string
}

// MaxNote is the most bytes that the API takes of a note.
const MaxNote = 1024

// Status is what the status of a custom resource is to say. What it does not mention
// stays as it is.
type Status struct {
	// Conditions take the place of those of the same type. Since is the time of a change:
	// it is written where the status of the condition differs from what was there. A reason
	// that is "" becomes the type.
	Conditions []snapshot.Condition
	// Gone are types of conditions that are taken away.
	Gone []string
	// Fields are fields of the status by name, as they are marshalled; nil takes a field
	// away. Maps are taken as a whole.
	Fields map[string]any
}

// Reference names an object. Namespace is "" for objects without one.
type Reference struct{ APIVersion, Kind, Namespace, Name, UID string }

// NoNodes begins the reason why a reading is incomplete that shows NodeClaims and no Node:
// implausible, unless none of their instances has joined yet.
const NoNodes = "list nodes: the API server gave none"
