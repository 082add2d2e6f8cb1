package app

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/aws/aws-lambda-go/cfn"
	awseks "github.com/aws/aws-sdk-go-v2/service/eks"
	"github.com/aws/aws-sdk-go-v2/service/eks/types"

	"kerf.sh/kerf/internal/config"
	"kerf.sh/kerf/internal/kube/eks"
	"kerf.sh/kerf/internal/kube/live"
	"kerf.sh/kerf/internal/kube/setup"
	"kerf.sh/kerf/internal/telemetry"
)

// setupAPI is a cluster that takes everything, until it fails.
type setupAPI struct {
	err     error
	applied map[live.Target]json.RawMessage
}

func (a *setupAPI) Get(_ context.Context, t live.Target) (json.RawMessage, error) {
	if raw, ok := a.applied[t]; ok {
		return append(raw[:len(raw)-1:len(raw)-1], `,"status":{"conditions":[{"type":"Established","status":"True"}]}}`...), nil
	}
	return nil, &live.Error{Is: live.ErrNotFound}
}

func (a *setupAPI) Apply(_ context.Context, t live.Target, _ string, raw json.RawMessage) (json.RawMessage, error) {
	if a.err != nil {
		return nil, a.err
	}
	a.applied[t] = raw
	return raw, nil
}

func (a *setupAPI) Remove(_ context.Context, t live.Target) error {
	delete(a.applied, t)
	return a.err
}

// bootstrapWorld is the function with CloudFormation behind it.
func bootstrapWorld(t *testing.T, api *setupAPI, described error) (send func(event cfn.Event) (answer cfn.Response), f *bootstrapFunction) {
	t.Helper()
	conf := config.Default()
	conf.Cluster = "prod"
	b := &base{conf: conf, region: "us-east-1", name: "kerf-bootstrap", now: time.Now}
	b.tel = telemetry.New(telemetry.Options{Out: &bytes.Buffer{}, Cluster: "prod", Function: "bootstrap", Now: time.Now})
	f = &bootstrapFunction{base: b, respond: cfn.LambdaWrap, entries: func() eks.EntryAPI { return entries{} }, installer: func(context.Context) (*setup.Installer, error) {
		now := time.Now()
		return &setup.Installer{API: api, Version: "1.33", Karpenter: func(context.Context) (string, error) { return "", nil },
			Now: func() time.Time { return now }, Wait: func(_ context.Context, d time.Duration) error { now = now.Add(d); return nil }}, described
	}}
	var got []cfn.Response
	server := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		raw, _ := io.ReadAll(r.Body)
		var x cfn.Response
		if err := json.Unmarshal(raw, &x); err != nil || r.Method != http.MethodPut {
			t.Errorf("%s %s: %v", r.Method, raw, err)
		}
		got = append(got, x)
	}))
	t.Cleanup(server.Close)
	return func(event cfn.Event) cfn.Response {
		t.Helper()
		event.ResponseURL, event.RequestID, event.StackID, event.LogicalResourceID = server.URL, "r", "s", "l"
		raw, err := json.Marshal(event)
		if err != nil {
			t.Fatal(err)
		}
		got = nil
		if _, err := f.invocation(f.invoke)(t.Context(), raw); err != nil {
			t.Fatal(err)
		}
		if len(got) != 1 {
			t.Fatalf("%d answers", len(got))
		}
		return got[0]
	}, f
}

// TestBootstrap: create and update set the cluster up, delete takes away what was given, and
// never keeps a stack from going.
func TestBootstrap(t *testing.T) {
	api := &setupAPI{applied: map[live.Target]json.RawMessage{}}
	send, _ := bootstrapWorld(t, api, nil)
	properties := map[string]any{"ServiceToken": "arn", "Version": "1", "Crds": "apply", "NodeRoles": []string{"new", "linux", "person"}}
	made := send(cfn.Event{RequestType: cfn.RequestCreate, ResourceProperties: properties})
	if made.Status != cfn.StatusSuccess || made.PhysicalResourceID != "kerf-prod" || len(api.applied) < 10 || !strings.Contains(fmt.Sprint(made.Data["Notes"]), "node role person has an access entry of type STANDARD") || strings.Contains(fmt.Sprint(made.Data["Notes"]), "linux") {
		t.Fatalf("%+v", made)
	}
	properties["Version"] = "2"
	changed := send(cfn.Event{RequestType: cfn.RequestUpdate, PhysicalResourceID: "kerf-prod", ResourceProperties: properties})
	if changed.Status != cfn.StatusSuccess || changed.PhysicalResourceID != made.PhysicalResourceID {
		t.Errorf("another id would delete what is there: %+v", changed)
	}
	gone := send(cfn.Event{RequestType: cfn.RequestDelete, PhysicalResourceID: "kerf-prod", ResourceProperties: properties})
	if gone.Status != cfn.StatusSuccess || len(api.applied) != 5 {
		t.Errorf("%+v; %d objects are left, want the 5 definitions", gone, len(api.applied))
	}
	api.err = &live.Error{Is: live.ErrUnauthorized, Detail: "no entry"}
	gone = send(cfn.Event{RequestType: cfn.RequestDelete, PhysicalResourceID: "kerf-prod", ResourceProperties: map[string]any{"Crds": "no such"}})
	if gone.Status != cfn.StatusSuccess || !strings.Contains(fmt.Sprint(gone.Data["Notes"]), "left in the cluster") {
		t.Errorf("a cluster that lets nobody in: %+v", gone)
	}
	send, _ = bootstrapWorld(t, api, fmt.Errorf("describe cluster prod: %w", &types.ResourceNotFoundException{}))
	if gone = send(cfn.Event{RequestType: cfn.RequestDelete, PhysicalResourceID: "kerf-prod"}); gone.Status != cfn.StatusSuccess || !strings.Contains(fmt.Sprint(gone.Data["Notes"]), "is gone") {
		t.Errorf("a cluster that is gone: %+v", gone)
	}
}

// entries are access entries of a cluster.
type entries struct{}

func (entries) CreateAccessEntry(_ context.Context, in *awseks.CreateAccessEntryInput, _ ...func(*awseks.Options)) (*awseks.CreateAccessEntryOutput, error) {
	switch {
	case *in.ClusterName != "prod" || *in.Type != "EC2_LINUX" || len(in.KubernetesGroups) > 0:
		return nil, fmt.Errorf("%+v", in)
	case *in.PrincipalArn == "new":
		return &awseks.CreateAccessEntryOutput{}, nil
	case *in.PrincipalArn == "forbidden":
		return nil, errors.New("AccessDenied")
	}
	return nil, &types.ResourceInUseException{}
}

func (entries) DescribeAccessEntry(_ context.Context, in *awseks.DescribeAccessEntryInput, _ ...func(*awseks.Options)) (*awseks.DescribeAccessEntryOutput, error) {
	kind := map[string]string{"linux": "EC2_LINUX", "person": "STANDARD"}[*in.PrincipalArn]
	return &awseks.DescribeAccessEntryOutput{AccessEntry: &types.AccessEntry{Type: &kind}}, nil
}

// TestBootstrapFails: a person reads in the events of the stack what is to be done.
func TestBootstrapFails(t *testing.T) {
	api := &setupAPI{applied: map[live.Target]json.RawMessage{}, err: &live.Error{Is: live.ErrUnauthorized, Detail: strings.Repeat("long ", 1000)}}
	send, f := bootstrapWorld(t, api, nil)
	for what, tt := range map[string]struct {
		event cfn.Event
		want  string
	}{
		"nobody is let in": {cfn.Event{RequestType: cfn.RequestCreate}, "does not know the role of the bootstrap function"},
		"a mode":           {cfn.Event{RequestType: cfn.RequestCreate, ResourceProperties: map[string]any{"Crds": "some"}}, `property Crds: "some" is not known; want apply, force or leave`},
		"a property":       {cfn.Event{RequestType: cfn.RequestCreate, ResourceProperties: map[string]any{"Crd": "x"}}, `unknown field "Crd"`},
		"a request":        {cfn.Event{RequestType: "Look"}, `request type "Look" is not known`},
	} {
		got := send(tt.event)
		if got.Status != cfn.StatusFailed || !strings.Contains(got.Reason, tt.want) || len(got.Reason) > 2000 {
			t.Errorf("%s: %+v", what, got)
		}
	}
	api.err = nil
	got := send(cfn.Event{RequestType: cfn.RequestCreate, ResourceProperties: map[string]any{"NodeRoles": []string{"forbidden"}}})
	if got.Status != cfn.StatusFailed || !strings.Contains(got.Reason, "make the access entry of node role forbidden: AccessDenied") {
		t.Errorf("a node role that is not let in: %+v", got)
	}
	clear(api.applied)
	for _, p := range []struct {
		payload string
		ok      bool
	}{{`{"Crds":"leave"}`, false}, {`{"crd":1}`, false}, {`{}`, true}, {``, true}, {`{"Crds":"leave"}`, true}} {
		if _, err := f.invocation(f.invoke)(t.Context(), json.RawMessage(p.payload)); (err == nil) != p.ok {
			t.Errorf("directly with %s: %v", p.payload, err)
		}
	}
	if err := reason(errors.New("short")); err.Error() != "short" {
		t.Error(err)
	}
}
