package live

import (
	"kerf.sh/kerf/internal/kube/api"
	"kerf.sh/kerf/internal/snapshot"
)

// The words of a cluster are in package api, so that who asks for something need not know
// this package.
type (
	Error        = api.Error
	Version      = api.Version
	Meta         = api.Meta
	LeaseState   = api.LeaseState
	Owner        = api.Owner
	NewNodeClaim = api.NewNodeClaim
	NodeChange   = api.NodeChange
	PodName      = api.PodName
	Event        = api.Event
	Status       = api.Status
)

// MaxNote is the most bytes that the API takes of a note.
const MaxNote = api.MaxNote

// What an error of this package can be, for errors.Is.
var (
	ErrUnauthorized = api.ErrUnauthorized
	ErrForbidden    = api.ErrForbidden
	ErrNotFound     = api.ErrNotFound
	ErrMissingKind  = api.ErrMissingKind
	ErrConflict     = api.ErrConflict
	ErrBlocked      = api.ErrBlocked
	ErrInvalid      = api.ErrInvalid
	ErrUnavailable  = api.ErrUnavailable
)

// ClaimStatus is the status of a NodeClaim, as far as c says something (api.ClaimStatus).
func ClaimStatus(c *snapshot.NodeClaim) Status { return api.ClaimStatus(c) }
