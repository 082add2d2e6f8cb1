package fakeaws

import (
	"fmt"
	"io"
	"maps"
	"net"
	"net/http"
	"slices"
	"strings"
	"sync"

	"kerf.sh/kerf/internal/cloud/ec2fake"
)

// Call is a request that was made: by whom (an access key), of which service, and what.
type Call struct{ Caller, Service, Action string }

// AWS is what is served. Its parts are exported, to be prepared and looked at.
type AWS struct {
	EC2    *ec2fake.EC2
	SSM    *ec2fake.SSM
	IAM    *ec2fake.IAM
	Queues *Queues
	EKS    EKS
	// Invoke calls a function for another one; event: the answer is not waited for.
	Invoke func(name string, payload []byte, event bool) (out []byte, failed bool, err error)
	// Elsewhere are services that something else serves, with their addresses ("DYNAMODB").
	Elsewhere map[string]string
	// Allowed says whether a caller may use an action of a service; nil: everybody may.
	Allowed func(caller, service, action string) bool

	mu    sync.Mutex
	calls []Call
	base  string
	http  *http.Server
}

// services are the names that AWS_ENDPOINT_URL_<name> has. Each is served on a path.
var services = []string{"EC2", "EKS", "IAM", "LAMBDA", "PRICING", "SQS", "SSM", "STS"}

// Start serves on a port of its own of 127.0.0.1.
func (a *AWS) Start() error {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return fmt.Errorf("start AWS: %w", err)
	}
	a.base = "http://" + l.Addr().String()
	a.http = &http.Server{Handler: a.handler()}
	go a.http.Serve(l) //nolint:errcheck // it ends with Stop
	return nil
}

// Stop ends it.
func (a *AWS) Stop() {
	if a.http != nil {
		a.http.Close()
	}
}

// Endpoint is the address of a service ("EC2").
func (a *AWS) Endpoint(service string) string {
	return a.base + "/" + strings.ToLower(service)
}

// Environment are the variables by which the SDK finds every service.
func (a *AWS) Environment() []string {
	var out []string
	for _, name := range services {
		out = append(out, "AWS_ENDPOINT_URL_"+name+"="+a.Endpoint(name))
	}
	for _, name := range slices.Sorted(maps.Keys(a.Elsewhere)) {
		out = append(out, "AWS_ENDPOINT_URL_"+name+"="+a.Elsewhere[name])
	}
	return out
}

// Calls are the requests so far.
func (a *AWS) Calls() []Call {
	a.mu.Lock()
	defer a.mu.Unlock()
	return slices.Clone(a.calls)
}

func (a *AWS) handler() http.Handler {
	begin := func(service string) func(caller, action string) {
		return func(caller, action string) { a.note(Call{caller, service, action}) }
	}
	allowed := func(service string) func(caller, action string) error {
		return func(caller, action string) error { return a.permit(caller, service, action) }
	}
	handlers := map[string]http.Handler{
		"EC2": &query{ec2Query, ec2Actions(a.EC2), allowed("ec2"), begin("ec2")},
		"IAM": &query{awsQuery, iamActions(a.IAM), allowed("iam"), begin("iam")},
		"STS": &query{awsQuery, stsActions(), allowed("sts"), begin("sts")},
		"SSM": &target{"1.1", ssmMethods(a.SSM), begin("ssm")}, "PRICING": &target{"1.1", pricingMethods(a.EC2), begin("pricing")},
		"SQS": &target{"1.0", a.Queues.methods(), begin("sqs")},
		"EKS": http.HandlerFunc(a.serveEKS), "LAMBDA": http.HandlerFunc(a.serveLambda),
	}
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		service, _, _ := strings.Cut(strings.TrimPrefix(r.URL.Path, "/"), "/")
		h, ok := handlers[strings.ToUpper(service)]
		if !ok {
			http.NotFound(w, r)
			return
		}
		http.StripPrefix("/"+service, h).ServeHTTP(w, r)
	})
}

func (a *AWS) note(c Call) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.calls = append(a.calls, c)
}

func (a *AWS) permit(caller, service, action string) error {
	if a.Allowed == nil || a.Allowed(caller, service, action) {
		return nil
	}
	what, code := service+":"+action, "AccessDenied"
	if service == "ec2" {
		code = "UnauthorizedOperation"
	}
	return ec2fake.Error(code, "You are not authorized to perform this operation. User: arn:aws:sts::%s:assumed-role/%s/session is not authorized to perform: %s because no identity-based policy allows the %s action", Account, caller, what, what)
}

// Account is the account of everything.
const Account = "111122223333"

// callerOf is the access key that a request is signed with, "" for an unsigned one.
func callerOf(r *http.Request) string {
	_, rest, ok := strings.Cut(r.Header.Get("Authorization"), "Credential=")
	if !ok {
		return ""
	}
	key, _, _ := strings.Cut(rest, "/")
	return key
}

// readAll reads a body of at most 2 MB.
func readAll(r *http.Request) ([]byte, error) {
	body, err := io.ReadAll(io.LimitReader(r.Body, 2<<20))
	if err != nil {
		return nil, ec2fake.Error("RequestTimeout", "%v", err)
	}
	return body, nil
}
