package fakeaws

import (
	"bytes"
	"context"
	"encoding/xml"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"reflect"

	"github.com/aws/smithy-go"

	"kerf.sh/kerf/internal/cloud/ec2fake"
)

// operation answers one action of a query service.
type operation func(ctx context.Context, d dialect, form url.Values) (any, error)

// serves makes an operation of a method that has the SDK's signature.
func serves[I, O, P any](call func(context.Context, *I, ...func(*P)) (*O, error)) operation {
	return func(ctx context.Context, d dialect, form url.Values) (any, error) {
		in := new(I)
		if err := d.decode(form, in); err != nil {
			return nil, ec2fake.Error("UnknownParameter", "%v", err)
		}
		out, err := call(ctx, in)
		if err != nil {
			return nil, err
		}
		return out, nil
	}
}

// query serves a service of the query protocol.
type query struct {
	dialect
	actions map[string]operation
	// allowed says why a caller may not use an action; nil: everybody may.
	allowed func(caller, action string) error
	// begin is told of every request.
	begin func(caller, action string)
}

func (q *query) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if err := r.ParseForm(); err != nil {
		q.refuse(w, ec2fake.Error("MalformedQueryString", "%v", err))
		return
	}
	action, caller := r.PostForm.Get("Action"), callerOf(r)
	if q.begin != nil {
		q.begin(caller, action)
	}
	if q.allowed != nil {
		if err := q.allowed(caller, action); err != nil {
			q.refuse(w, err)
			return
		}
	}
	op, ok := q.actions[action]
	if !ok {
		q.refuse(w, ec2fake.Error("InvalidAction", "this AWS does not serve the action %q", action))
		return
	}
	out, err := op(r.Context(), q.dialect, r.PostForm)
	if err != nil {
		q.refuse(w, err)
		return
	}
	var b bytes.Buffer
	if err := q.encode(&b, reflect.ValueOf(out).Elem()); err != nil {
		q.refuse(w, ec2fake.Error("InternalError", "%v", err))
		return
	}
	w.Header().Set("Content-Type", "text/xml;charset=UTF-8")
	if q.capital {
		fmt.Fprintf(w, "<%sResponse><%sResult>%s</%sResult><ResponseMetadata><RequestId>r</RequestId></ResponseMetadata></%sResponse>", action, action, b.Bytes(), action, action)
	} else {
		fmt.Fprintf(w, "<%sResponse><requestId>r</requestId>%s</%sResponse>", action, b.Bytes(), action)
	}
}

// refuse answers an error as AWS does.
func (q *query) refuse(w http.ResponseWriter, err error) {
	code, message, status := describe(err)
	var c, m bytes.Buffer
	xml.EscapeText(&c, []byte(code))
	xml.EscapeText(&m, []byte(message))
	w.Header().Set("Content-Type", "text/xml;charset=UTF-8")
	w.WriteHeader(status)
	if q.capital {
		fmt.Fprintf(w, "<ErrorResponse><Error><Type>Sender</Type><Code>%s</Code><Message>%s</Message></Error><RequestId>r</RequestId></ErrorResponse>", c.Bytes(), m.Bytes())
	} else {
		fmt.Fprintf(w, "<Response><Errors><Error><Code>%s</Code><Message>%s</Message></Error></Errors><RequestID>r</RequestID></Response>", c.Bytes(), m.Bytes())
	}
}

// describe is the code, text and HTTP status of an error. One that is none of AWS's is a
// fault of the server.
func describe(err error) (code, message string, status int) {
	api, ok := errors.AsType[smithy.APIError](err)
	if !ok {
		return "InternalError", err.Error(), http.StatusInternalServerError
	}
	status = http.StatusBadRequest
	switch code := api.ErrorCode(); {
	case code == "UnauthorizedOperation" || code == "AccessDenied" || code == "AccessDeniedException":
		status = http.StatusForbidden
	case code == "NoSuchEntity":
		status = http.StatusNotFound
	case code == "RequestLimitExceeded" || code == "ServiceUnavailable" || code == "Unavailable":
		status = http.StatusServiceUnavailable
	case api.ErrorFault() == smithy.FaultServer:
		status = http.StatusInternalServerError
	}
	return api.ErrorCode(), api.ErrorMessage(), status
}
