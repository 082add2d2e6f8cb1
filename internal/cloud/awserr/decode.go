package awserr

import (
	"context"
	"encoding/json"
	"fmt"

	"github.com/aws/aws-sdk-go-v2/service/sts"
)

// Decoder is the one call that turns an encoded denial into words.
type Decoder interface {
	DecodeAuthorizationMessage(ctx context.Context, in *sts.DecodeAuthorizationMessageInput, opts ...func(*sts.Options)) (*sts.DecodeAuthorizationMessageOutput, error)
}

// Explain fills in the permission of a denial that only its encoded message names. A nil
// decoder, an error without an encoded message, and a message that may not be decoded
// leave the error as it is: an explanation is never worth a failure.
func Explain(ctx context.Context, d Decoder, e *Error) *Error {
	if d == nil || e == nil || e.Kind != Unauthorized || e.Permission != "" || e.Encoded() == "" {
		return e
	}
	text := e.Encoded()
	out, err := d.DecodeAuthorizationMessage(ctx, &sts.DecodeAuthorizationMessageInput{EncodedMessage: &text})
	if err != nil || out == nil || out.DecodedMessage == nil {
		return e
	}
	more := *e
	if more.Decoded(*out.DecodedMessage) != nil {
		return e
	}
	return &more
}

// Decoded fills in what a decoded message says: the action, the resource, and whether a
// policy denies it or none allows it.
func (e *Error) Decoded(message string) error {
	var m struct {
		Allowed      bool `json:"allowed"`
		ExplicitDeny bool `json:"explicitDeny"`
		Context      struct {
			Action   string `json:"action"`
			Resource string `json:"resource"`
		} `json:"context"`
	}
	if err := json.Unmarshal([]byte(message), &m); err != nil {
		return fmt.Errorf("read decoded authorization message: %w", err)
	}
	if m.Context.Action == "" {
		return fmt.Errorf("read decoded authorization message: it names no action")
	}
	e.Permission, e.Resource = m.Context.Action, m.Context.Resource
	if e.Cause == "" {
		e.Cause = "no policy allows it"
		if m.ExplicitDeny {
			e.Cause = "a policy denies it explicitly"
		}
	}
	return nil
}
