package awserr

import (
	"context"
	"errors"
	"fmt"
	"regexp"
	"strings"

	"github.com/aws/smithy-go"
)

// Kind is what an error asks its reader to do.
type Kind string

// Kinds of errors.
const (
	Capacity          Kind = "Capacity"          // EC2 has no such machine there now: remember, take another offer
	SpotLimit         Kind = "SpotLimit"         // the account may have no more spot instances: all spot is out
	SpotRole          Kind = "SpotRole"          // the service-linked role for spot is missing and may not be made: all spot is out
	VCPULimit         Kind = "VCPULimit"         // the account's vCPU quota of a family is used up
	FleetLimit        Kind = "FleetLimit"        // the account's quota of fleets is used up
	SubnetFull        Kind = "SubnetFull"        // a subnet has no free address
	ReservationFull   Kind = "ReservationFull"   // a capacity reservation is used up
	PlacementFull     Kind = "PlacementFull"     // a spread placement group is full in a zone
	Unauthorized      Kind = "Unauthorized"      // a permission is missing
	Throttled         Kind = "Throttled"         // too many requests: wait, say so
	Invalid           Kind = "Invalid"           // the request is wrong: a field of the NodeClass is to blame
	Mismatch          Kind = "Mismatch"          // the token was used with another request
	NotFound          Kind = "NotFound"          // the named thing is not there (or not yet)
	TemplateNotFound  Kind = "TemplateNotFound"  // the launch template is not there: make it again
	AccountNotAllowed Kind = "AccountNotAllowed" // the account itself may not launch this (pending verification, free tier)
	Transient         Kind = "Transient"         // no answer, or an error of AWS: the outcome is not known
	Other             Kind = "Other"
)

// Short reports whether errors of the kind mean that this offer cannot be had now and
// another one may (Karpenter: insufficient capacity errors).
func (k Kind) Short() bool {
	switch k {
	case Capacity, SpotLimit, SpotRole, VCPULimit, FleetLimit, SubnetFull, ReservationFull, PlacementFull:
		return true
	}
	return false
}

var codes = map[string]Kind{
	"InsufficientInstanceCapacity":                      Capacity,
	"UnfulfillableCapacity":                             Capacity,
	"InsufficientHostCapacity":                          Capacity,
	"InsufficientReservedInstanceCapacity":              Capacity,
	"InsufficientCapacity":                              Capacity,
	"Unsupported":                                       Capacity,
	"MaxSpotInstanceCountExceeded":                      SpotLimit,
	"AuthFailure.ServiceLinkedRoleCreationNotPermitted": SpotRole,
	"VcpuLimitExceeded":                                 VCPULimit,
	"InstanceLimitExceeded":                             VCPULimit,
	"MaxFleetCountExceeded":                             FleetLimit,
	"InsufficientFreeAddressesInSubnet":                 SubnetFull,
	"ReservationCapacityExceeded":                       ReservationFull,

	"UnauthorizedOperation":                Unauthorized,
	"AccessDenied":                         Unauthorized,
	"AccessDeniedException":                Unauthorized,
	"AuthFailure":                          Unauthorized,
	"NotAuthorized":                        Unauthorized,
	"OptInRequired":                        Unauthorized,
	"PendingVerification":                  AccountNotAllowed,
	"Blocked":                              AccountNotAllowed,
	"RequestLimitExceeded":                 Throttled,
	"Throttling":                           Throttled,
	"ThrottlingException":                  Throttled,
	"ThrottledException":                   Throttled,
	"RequestThrottled":                     Throttled,
	"TooManyRequestsException":             Throttled,
	"EC2ThrottledException":                Throttled,
	"SlowDown":                             Throttled,
	"IdempotentParameterMismatch":          Mismatch,
	"IdempotentParameterMismatchException": Mismatch,

	"InvalidLaunchTemplateName.NotFoundException": TemplateNotFound,
	"InvalidLaunchTemplateId.NotFound":            TemplateNotFound,
	"InvalidLaunchTemplateId.NotFoundException":   TemplateNotFound,
	"InvalidInstanceID.NotFound":                  NotFound,
	"InvalidCapacityReservationId.NotFound":       NotFound,
	"InvalidPlacementGroup.Unknown":               NotFound,
	"NoSuchEntity":                                NotFound,
	"NoSuchEntityException":                       NotFound,
	"ParameterNotFound":                           NotFound,
	"ParameterVersionNotFound":                    NotFound,

	"InternalError":               Transient,
	"InternalFailure":             Transient,
	"InternalServiceError":        Transient,
	"InternalServerError":         Transient,
	"ServerInternal":              Transient,
	"ServiceUnavailable":          Transient,
	"ServiceUnavailableException": Transient,
	"Unavailable":                 Transient,
	"RequestTimeout":              Transient,
	"ServiceFailure":              Transient,
}

// Of is the kind of an error code with its text.
func Of(code, message string) Kind {
	lower := strings.ToLower(message)
	switch {
	case code == "InvalidParameterValue" && strings.Contains(lower, "invalid iam instance profile"):
		return Invalid
	case strings.Contains(lower, "spread placement group") && strings.Contains(lower, "instance") && (strings.Contains(lower, "limit") || strings.Contains(lower, "maximum") || strings.Contains(lower, "more than")):
		return PlacementFull
	case strings.Contains(lower, "free tier"):
		return AccountNotAllowed
	}
	if k, ok := codes[code]; ok {
		return k
	}
	switch {
	case strings.HasPrefix(code, "AuthFailure"):
		return Unauthorized
	case strings.HasPrefix(code, "Invalid"), strings.HasPrefix(code, "Missing"), strings.HasPrefix(code, "Malformed"),
		code == "ValidationError", code == "ValidationException", code == "UnsupportedOperation", code == "VolumeTypeNotAvailableInZone", code == "UnknownParameter":
		return Invalid
	}
	return Other
}

// Error is an error of AWS with what it asks for.
type Error struct {
	Kind    Kind
	Code    string
	Message string
	// Permission is the IAM action that was denied ("ec2:RunInstances") and Resource the
	// ARN that it was denied on, as far as the answer says.
	Permission, Resource string
	// Cause is how the denial came about: "identity policy", "permissions boundary",
	// "service control policy", "resource policy"; "" = the answer does not say.
	Cause string
	err   error
}

func (e *Error) Error() string {
	switch {
	case e.Code == "":
		return e.Message
	case e.Permission != "":
		s := fmt.Sprintf("%s: permission %s is missing", e.Code, e.Permission)
		if e.Resource != "" {
			s += " on " + e.Resource
		}
		if e.Cause != "" {
			s += " (" + e.Cause + ")"
		}
		return s
	}
	return e.Code + ": " + e.Message
}

// Unwrap is the error as the SDK gave it.
func (e *Error) Unwrap() error { return e.err }

// From reads an error of the SDK; nil for nil. An error without a code is Transient: no
// answer came, and what became of the request is not known.
func From(err error) *Error {
	if err == nil {
		return nil
	}
	var known *Error
	if errors.As(err, &known) {
		return known
	}
	var api smithy.APIError
	if !errors.As(err, &api) {
		e := &Error{Kind: Transient, Message: err.Error(), err: err}
		if errors.Is(err, context.Canceled) || errors.Is(err, context.DeadlineExceeded) {
			e.Message = "no answer in time: " + e.Message
		}
		return e
	}
	e := New(api.ErrorCode(), api.ErrorMessage())
	e.err = err
	if e.Kind == Other && api.ErrorFault() == smithy.FaultServer {
		e.Kind = Transient
	}
	return e
}

// New reads a code and a text that came inside an answer.
func New(code, message string) *Error {
	e := &Error{Kind: Of(code, message), Code: code, Message: message}
	if e.Kind == Unauthorized {
		e.denied(message)
	}
	return e
}

// KindOf is the kind of an error; "" for nil.
func KindOf(err error) Kind {
	if err == nil {
		return ""
	}
	return From(err).Kind
}

// Is reports whether an error is of a kind.
func Is(err error, k Kind) bool { return err != nil && KindOf(err) == k }

var (
	performs = regexp.MustCompile(`not authorized to perform:? ([a-zA-Z0-9-]+:[A-Za-z0-9*]+)`)
	resource = regexp.MustCompile(`on resource:? (\S+)`)
	encoded  = regexp.MustCompile(`[Ee]ncoded authorization failure message: ?([A-Za-z0-9_\-]+)`)
	because  = []struct{ text, cause string }{
		{"permissions boundary", "permissions boundary"}, {"service control policy", "service control policy"},
		{"resource control policy", "resource control policy"}, {"identity-based policy", "identity policy"},
		{"resource-based policy", "resource policy"}, {"session policy", "session policy"}, {"VPC endpoint policy", "VPC endpoint policy"},
	}
)

func (e *Error) denied(message string) {
	if m := performs.FindStringSubmatch(message); m != nil {
		e.Permission = m[1]
	}
	if m := resource.FindStringSubmatch(message); m != nil {
		e.Resource = strings.TrimRight(m[1], ".,")
	}
	for _, b := range because {
		if strings.Contains(message, b.text) {
			e.Cause = b.cause
			break
		}
	}
}

// Encoded is the encoded part of a denial, "" when there is none. sts:DecodeAuthorizationMessage
// turns it into the JSON that Decoded reads.
func (e *Error) Encoded() string {
	if m := encoded.FindStringSubmatch(e.Message); m != nil {
		return m[1]
	}
	return ""
}
