package resolve_test

import (
	"context"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"kerf.sh/kerf/internal/cloud/ec2fake"
	"kerf.sh/kerf/internal/cloud/image"
	"kerf.sh/kerf/internal/cloud/nodeclass"
	"kerf.sh/kerf/internal/cloud/profile"
	"kerf.sh/kerf/internal/cloud/resolve"
	"kerf.sh/kerf/internal/cloud/userdata"
	"kerf.sh/kerf/internal/snapshot"
)

var (
	ctx = context.Background()
	now = time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)
)

func world() (*ec2fake.EC2, *resolve.Resolver) {
	clock := func() time.Time { return now }
	e := ec2fake.New(clock)
	e.AddSubnet("subnet-1", "a", "1", 5, "discovery", "prod")
	e.AddGroup("sg-1", "nodes", "discovery", "prod")
	e.AddImage("ami-1", "x", "x86_64", now)
	s := &ec2fake.SSM{Parameters: map[string]string{"/aws/service/eks/optimized-ami/1.34/amazon-linux-2023/x86_64/standard/recommended/image_id": "ami-1"}}
	return e, &resolve.Resolver{
		Network: e, Images: &image.Resolver{EC2: e, SSM: s, Now: clock}, Reserved: e, Region: "us-east-1", Now: clock,
		Profiles:   &profile.Profiles{Client: &ec2fake.IAM{Now: clock, Roles: map[string]bool{"nodes": true}}, Cluster: "prod", Region: "us-east-1", Sleep: func(context.Context, time.Duration) error { return nil }},
		Cluster:    userdata.Cluster{Name: "prod", Endpoint: "https://x", CA: "Y2E=", DNS: "172.20.0.10", ServiceCIDR: "172.20.0.0/16"},
		Kubernetes: image.Version{Major: 1, Minor: 34},
	}
}

func class(name, spec string) *snapshot.NodeClass {
	return &snapshot.NodeClass{Name: name, UID: name, Generation: 2, Spec: []byte(spec)}
}

const (
	selectors = `"subnetSelectorTerms":[{"tags":{"discovery":"prod"}}],"securityGroupSelectorTerms":[{"tags":{"discovery":"prod"}}]`
	goodSpec  = `{` + selectors + `,"amiSelectorTerms":[{"alias":"al2023@latest"}],"role":"nodes"}`
)

// why is the message of the first condition that is not True.
func why(o *resolve.Outcome) string {
	for _, c := range o.Status.Conditions {
		if c.Status != nodeclass.True {
			return c.Type + "=" + c.Status + " " + c.Reason + " " + c.Message
		}
	}
	return ""
}

// TestBrokenClasses: each class stands for itself, and says what is wrong with it.
func TestBrokenClasses(t *testing.T) {
	_, r := world()
	for _, tt := range []struct{ name, spec, want string }{
		{"good", goodSpec, ""},
		{"no spec", ``, "SubnetsReady=False SubnetsNotFound"},
		{"no subnets", `{"amiSelectorTerms":[{"alias":"al2023@latest"}],"role":"nodes"}`, "SubnetsReady=False SubnetsNotFound"},
		{"unknown family", `{` + selectors + `,"amiSelectorTerms":[{"alias":"beos@latest"}],"role":"nodes"}`, "SubnetsReady=False"},
		{"al2", `{` + selectors + `,"amiSelectorTerms":[{"alias":"al2@latest"}],"role":"nodes"}`, "AMIsReady=False UnsupportedAlias spec.amiSelectorTerms[0].alias: \"al2@latest\" has no images for Kubernetes 1.34"},
		{"no role", `{` + selectors + `,"amiSelectorTerms":[{"alias":"al2023@latest"}],"role":"missing"}`, "InstanceProfileReady=False RoleNotUsable spec.role"},
		{"placement", `{` + selectors + `,"amiSelectorTerms":[{"alias":"al2023@latest"}],"role":"nodes","placementGroupSelector":{"name":"x"}}`, "PlacementGroupReady=False PlacementGroupNotFound"},
		{"user data", `{` + selectors + `,"amiSelectorTerms":[{"alias":"al2023@latest"}],"role":"nodes","userData":"` + strings.Repeat("x", 17000) + `"}`, "ValidationSucceeded=False UserDataSizeLimitExceeded spec.userData"},
		{"volume", `{` + selectors + `,"amiSelectorTerms":[{"alias":"al2023@latest"}],"role":"nodes","blockDeviceMappings":[{"deviceName":"x","ebs":{"volumeSize":"big"}}]}`, "ValidationSucceeded=False InvalidNodeClass spec.blockDeviceMappings[0]"},
		{"kubelet", `{` + selectors + `,"amiFamily":"Bottlerocket","amiSelectorTerms":[{"id":"ami-1"}],"role":"nodes","kubelet":{"podsPerCore":3}}`, "ValidationSucceeded=False UnsupportedKubeletConfiguration spec.kubelet.podsPerCore"},
		{"good again", goodSpec, ""},
	} {
		o := r.Class(ctx, class(tt.name, tt.spec), nil)
		if got := why(o); !strings.HasPrefix(got, tt.want) || (tt.want == "") != (got == "") {
			t.Errorf("%s: %s; want %s", tt.name, got, tt.want)
		}
		if o.Status.Usable(2) != (tt.want == "") {
			t.Errorf("%s: usable %v", tt.name, o.Status.Usable(2))
		}
	}
}

// TestThrottled: what was known of this generation stays; a changed class waits.
func TestThrottled(t *testing.T) {
	e, r := world()
	first := r.Class(ctx, class("a", goodSpec), nil)
	e.Hook = func(ec2fake.Call) ec2fake.Fault {
		return ec2fake.Fault{Before: ec2fake.Error("RequestLimitExceeded", "x")}
	}
	again := r.Class(ctx, class("a", goodSpec), first.Resolved)
	if !again.Status.Usable(2) || len(again.Resolved.Subnets) != 1 {
		t.Errorf("throttled: %s", why(again))
	}
	if d := cmp.Diff([]string{"SubnetsReady", "SecurityGroupsReady", "AMIsReady"}, again.Kept); d != "" {
		t.Errorf("kept (-want +got):\n%s", d)
	}
	changed := class("a", goodSpec)
	changed.Generation = 3
	if o := r.Class(ctx, changed, first.Resolved); o.Status.Usable(3) || o.Status.Condition(nodeclass.Ready).Status != nodeclass.Unknown {
		t.Errorf("a change that could not be resolved: %s", why(o))
	}
}
