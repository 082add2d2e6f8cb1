package awserr_test

import (
	"context"
	"errors"
	"fmt"
	"testing"

	"github.com/aws/smithy-go"

	"kerf.sh/kerf/internal/cloud/awserr"
)

func TestFrom(t *testing.T) {
	api := func(code string, fault smithy.ErrorFault) error {
		return fmt.Errorf("operation error EC2: X, %w", &smithy.GenericAPIError{Code: code, Message: "m", Fault: fault})
	}
	for _, tt := range []struct {
		err  error
		want awserr.Kind
	}{
		{nil, ""},
		{context.DeadlineExceeded, awserr.Transient},
		{errors.New("connection reset"), awserr.Transient},
		{api("RequestLimitExceeded", smithy.FaultClient), awserr.Throttled},
		{api("Mystery", smithy.FaultServer), awserr.Transient},
		{api("Mystery", smithy.FaultClient), awserr.Other},
		{api("InvalidParameterValue", smithy.FaultClient), awserr.Invalid},
		{api("IdempotentParameterMismatch", smithy.FaultClient), awserr.Mismatch},
		{fmt.Errorf("wrapped: %w", awserr.New("NoSuchEntity", "x")), awserr.NotFound},
	} {
		if got := awserr.KindOf(tt.err); got != tt.want {
			t.Errorf("%v is %s, want %s", tt.err, got, tt.want)
		}
	}
	if !errors.Is(awserr.From(context.DeadlineExceeded), context.DeadlineExceeded) {
		t.Error("the cause is lost")
	}
}

func TestDenied(t *testing.T) {
	for _, tt := range []struct{ message, permission, resource, cause string }{
		{"User: arn:x is not authorized to perform: ec2:CreateTags on resource: arn:aws:ec2:r:1:instance/* because no identity-based policy allows the ec2:CreateTags action", "ec2:CreateTags", "arn:aws:ec2:r:1:instance/*", "identity policy"},
		{"User: arn:x is not authorized to perform: iam:PassRole on resource: arn:aws:iam::1:role/nodes with an explicit deny in a service control policy", "iam:PassRole", "arn:aws:iam::1:role/nodes", "service control policy"},
		{"not authorized to perform: ec2:RunInstances on resource: arn because no permissions boundary allows it", "ec2:RunInstances", "arn", "permissions boundary"},
		{"You are not authorized to perform this operation.", "", "", ""},
	} {
		e := awserr.New("UnauthorizedOperation", tt.message)
		if e.Permission != tt.permission || e.Resource != tt.resource || e.Cause != tt.cause {
			t.Errorf("%q: %q %q %q", tt.message, e.Permission, e.Resource, e.Cause)
		}
	}
}

func TestDecoded(t *testing.T) {
	for _, text := range []string{"", "{}", "no JSON"} {
		if err := (&awserr.Error{}).Decoded(text); err == nil {
			t.Errorf("%q was decoded", text)
		}
	}
	e := &awserr.Error{}
	if err := e.Decoded(`{"explicitDeny":true,"context":{"action":"ec2:RunInstances","resource":"r"}}`); err != nil || e.Permission != "ec2:RunInstances" || e.Cause != "a policy denies it explicitly" {
		t.Errorf("%+v, %v", e, err)
	}
	// Nobody to ask, or nothing to decode: the error stays as it is.
	same := awserr.New("UnauthorizedOperation", "Encoded authorization failure message: abc")
	if got := awserr.Explain(context.Background(), nil, same); got != same {
		t.Errorf("explained by nobody: %+v", got)
	}
}
