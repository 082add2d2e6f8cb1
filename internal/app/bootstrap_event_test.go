package app

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/aws/aws-lambda-go/cfn"

	"kerf.sh/kerf/internal/kube/live"
)

// rawEvent is an event as CloudFormation writes it.
const rawEvent = `{"RequestType": %q, "ServiceToken": "arn:aws:lambda:eu-west-1:123456789012:function:b", "ResponseURL": "https://replaced", "StackId": "arn:aws:cloudformation:eu-west-1:123456789012:stack/kerf-prod/x",
  "RequestId": "r-1", "ResourceType": "Custom::KerfCluster", "LogicalResourceId": "KerfCluster35BFD7B3", "PhysicalResourceId": %q,
  "ResourceProperties": {"ServiceToken": "arn:aws:lambda:eu-west-1:123456789012:function:b", "ServiceTimeout": "360", "Version": "0123456789abcdef", "Crds": %q, "NodeRoles": ["new"]},
  "OldResourceProperties": {"ServiceToken": "arn:aws:lambda:eu-west-1:123456789012:function:b", "Version": "old", "Crds": "apply"}}`

// TestBootstrapStackLife: what CloudFormation sends in the life of a stack, the failures and
// the ways back included; each answer is one that it goes on with.
func TestBootstrapStackLife(t *testing.T) {
	api := &setupAPI{applied: map[live.Target]json.RawMessage{}}
	send, _ := bootstrapWorld(t, api, nil)
	event := func(typ, id, crds string) cfn.Event {
		var e cfn.Event
		if err := json.Unmarshal(fmt.Appendf(nil, rawEvent, typ, id, crds), &e); err != nil {
			t.Fatal(err)
		}
		return e
	}
	refused := &live.Error{Is: live.ErrUnauthorized, Detail: "no entry"}
	for _, s := range []struct {
		what, typ, id, crds string
		err                 error
		want                cfn.StatusType
		reason              string
	}{
		{"it is not let in", "Create", "", "apply", refused, cfn.StatusFailed, "access entry"},
		{"what was not made is taken back", "Delete", "kerf-prod", "apply", refused, cfn.StatusSuccess, ""},
		{"once more", "Create", "", "apply", nil, cfn.StatusSuccess, ""},
		{"the same again, for a new version of the code", "Update", "kerf-prod", "apply", nil, cfn.StatusSuccess, ""},
		{"a property that is wrong", "Update", "kerf-prod", "sometimes", nil, cfn.StatusFailed, `"sometimes" is not known`},
		{"the rollback of that", "Update", "kerf-prod", "apply", nil, cfn.StatusSuccess, ""},
		{"a cluster that does not answer", "Update", "kerf-prod", "apply", &live.Error{Is: live.ErrUnavailable, Detail: "i/o timeout"}, cfn.StatusFailed, "vpcId, subnetIds"},
		{"definitions are somebody else's from now on", "Update", "kerf-prod", "leave", nil, cfn.StatusSuccess, ""},
		{"the end", "Delete", "kerf-prod", "leave", nil, cfn.StatusSuccess, ""},
		{"the end, told twice", "Delete", "kerf-prod", "leave", nil, cfn.StatusSuccess, ""},
	} {
		api.err = s.err
		got := send(event(s.typ, s.id, s.crds))
		if got.Status != s.want || !strings.Contains(got.Reason, s.reason) || len(got.Reason) > 2000 {
			t.Errorf("%s: %+v", s.what, got)
		}
		// Another id would be another resource: CloudFormation would delete the one of before.
		if got.PhysicalResourceID != "kerf-prod" {
			t.Errorf("%s: its id is %q", s.what, got.PhysicalResourceID)
		}
	}
	for target := range api.applied {
		if target.Resource != "customresourcedefinitions" {
			t.Errorf("%v is left", target)
		}
	}
	if len(api.applied) != 5 {
		t.Errorf("%d definitions are left, want 5: with them NodePools and nodes stay", len(api.applied))
	}
}

// TestBootstrapKnowsItsProperties: what the stack's template gives the resource, the function
// takes.
func TestBootstrapKnowsItsProperties(t *testing.T) {
	text, err := os.ReadFile(filepath.Join("..", "..", "infra", "autoscaler", "testdata", "template.json"))
	if err != nil {
		t.Fatal(err)
	}
	var tm struct {
		Resources map[string]struct {
			Type       string
			Properties map[string]any
		}
	}
	if err := json.Unmarshal(text, &tm); err != nil {
		t.Fatal(err)
	}
	found := 0
	for _, r := range tm.Resources {
		if r.Type != "Custom::KerfCluster" {
			continue
		}
		found++
		for key, v := range r.Properties { // what only CloudFormation knows
			switch v.(type) {
			case map[string]any:
				r.Properties[key] = "known once it is made"
			case []any:
				r.Properties[key] = []any{"known once it is made"}
			}
		}
		raw, err := json.Marshal(r.Properties)
		if err != nil {
			t.Fatal(err)
		}
		if got, err := decodeBootstrap(raw); err != nil || got.Version == "" || len(got.NodeRoles) != 1 || len(r.Properties) != 5 {
			t.Errorf("%s: %+v, %v", raw, got, err)
		}
	}
	if found != 1 {
		t.Errorf("%d such resources in the template", found)
	}
}
