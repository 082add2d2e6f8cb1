package fakeaws

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"strconv"
	"strings"

	"kerf.sh/kerf/internal/cloud/ec2fake"
)

// method answers one target of a service of AWS's JSON protocol: in is the body.
type method func(ctx context.Context, caller string, in []byte) (any, error)

// takes makes a method of a function of a typed body. A field that the body's type does not
// have is refused.
func takes[I any](call func(ctx context.Context, in *I) (any, error)) method {
	return func(ctx context.Context, _ string, body []byte) (any, error) {
		in := new(I)
		d := json.NewDecoder(strings.NewReader(string(body)))
		d.DisallowUnknownFields()
		if err := d.Decode(in); err != nil {
			return nil, ec2fake.Error("SerializationException", "read the request: %v", err)
		}
		return call(ctx, in)
	}
}

// target serves a service of the JSON protocol: X-Amz-Target names the method.
type target struct {
	version string // of the protocol: 1.0, 1.1
	methods map[string]method
	begin   func(caller, action string)
}

func (t *target) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	body, err := readAll(r)
	name := r.Header.Get("X-Amz-Target")
	_, action, _ := strings.Cut(name, ".")
	if t.begin != nil {
		t.begin(callerOf(r), action)
	}
	var out any
	if m, ok := t.methods[name]; err == nil && ok {
		out, err = m(r.Context(), callerOf(r), body)
	} else if err == nil {
		err = ec2fake.Error("UnknownOperationException", "this AWS does not serve %q", name)
	}
	w.Header().Set("Content-Type", "application/x-amz-json-"+t.version)
	if err != nil {
		code, message, status := describe(err)
		w.Header().Set("X-Amzn-ErrorType", code)
		w.WriteHeader(status)
		answer(w, map[string]string{"__type": code, "message": message})
		return
	}
	answer(w, out)
}

func answer(w http.ResponseWriter, v any) {
	raw, err := json.Marshal(v)
	if err != nil {
		http.Error(w, err.Error(), http.StatusInternalServerError)
		return
	}
	w.Header().Set("Content-Length", strconv.Itoa(len(raw)))
	w.Write(raw)
}

// micro writes micro-dollars as dollars.
func micro(n int64) string { return fmt.Sprintf("%d.%010d", n/1_000_000, n%1_000_000*10_000) }
