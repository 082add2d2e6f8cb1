package profile_test

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	"kerf.sh/kerf/internal/cloud/awserr"
	"kerf.sh/kerf/internal/cloud/ec2fake"
	"kerf.sh/kerf/internal/cloud/nodeclass"
	"kerf.sh/kerf/internal/cloud/profile"
)

var (
	ctx = context.Background()
	now = time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)
)

func world() (*ec2fake.IAM, *profile.Profiles, *time.Duration) {
	f := &ec2fake.IAM{Now: func() time.Time { return now }, Roles: map[string]bool{"nodes": true, "other": true}}
	slept := new(time.Duration)
	return f, &profile.Profiles{Client: f, Cluster: "prod", Region: "us-east-1", Sleep: func(_ context.Context, d time.Duration) error {
		*slept += d
		return nil
	}}, slept
}

func class(role string) *nodeclass.Class {
	return &nodeclass.Class{Name: "default", UID: "u1", Spec: nodeclass.Spec{Role: role, Tags: map[string]string{"team": "blue"}}}
}

func TestResolve(t *testing.T) {
	f, p, slept := world()
	f.VisibleAfter = 3
	name, err := p.Resolve(ctx, class("path/to/nodes")) // a role's path is no part of its name
	if err != nil {
		t.Fatal(err)
	}
	if got := f.Profiles(); !slices.Equal(got, []string{name + " nodes"}) || *slept != 3*time.Second {
		t.Errorf("profiles %v, waited %v", got, *slept)
	}
	calls := len(f.Ops)
	if again, err := p.Resolve(ctx, class("nodes")); err != nil || again != name || len(f.Ops) != calls+1 {
		t.Errorf("second time: %s, %v, %d calls", again, err, len(f.Ops)-calls)
	}
	other, err := p.Resolve(ctx, class("other"))
	if err != nil || other == name || len(f.Profiles()) != 2 {
		t.Errorf("another role: %s, %v, %v; the old profile must stay", other, err, f.Profiles())
	}
	more := class("nodes")
	more.Spec.Tags["cost"] = "center"
	if _, err := p.Resolve(ctx, more); err != nil || !slices.Contains(f.Ops, "TagInstanceProfile") {
		t.Errorf("a new tag: %v, %v", err, f.Ops)
	}
}

// TestEveryStepMayBeDone: a profile without its role, or with a stranger's, is put right.
func TestEveryStepMayBeDone(t *testing.T) {
	for _, stop := range []string{"AddRoleToInstanceProfile", "CreateInstanceProfile"} {
		f, p, _ := world()
		f.Fault = func(op string) error {
			if op == stop {
				return ec2fake.Error("ServiceUnavailable", "x")
			}
			return nil
		}
		if _, err := p.Resolve(ctx, class("nodes")); !awserr.Is(err, awserr.Transient) {
			t.Errorf("%s fails: %v", stop, err)
		}
		f.Fault = nil
		name, err := p.Resolve(ctx, class("nodes"))
		if err != nil || !slices.Equal(f.Profiles(), []string{name + " nodes"}) {
			t.Errorf("after %s failed: %v, %v", stop, f.Profiles(), err)
		}
	}
}

func TestRefusals(t *testing.T) {
	f, p, _ := world()
	_, isolated, _ := world()
	isolated.Client = nil
	for name, tt := range map[string]struct {
		p            *profile.Profiles
		c            *nodeclass.Class
		deny         bool
		reason, want string
	}{
		"isolated VPC": {isolated, class("nodes"), false, nodeclass.RoleNotUsable, "spec.instanceProfile"},
		"neither":      {p, class(""), false, nodeclass.InstanceProfileNotFound, "spec.role"},
		"no such role": {p, class("missing"), false, nodeclass.RoleNotUsable, `"missing"`},
		"denied":       {p, class("nodes"), true, nodeclass.RoleNotUsable, "iam:CreateInstanceProfile"},
	} {
		f.Fault = nil
		if tt.deny {
			f.Fault = func(op string) error {
				if op != "CreateInstanceProfile" {
					return nil
				}
				return ec2fake.Error("AccessDenied", "User: arn:x is not authorized to perform: iam:CreateInstanceProfile on resource: arn:y because no identity-based policy allows it")
			}
		}
		_, err := tt.p.Resolve(ctx, tt.c)
		var no *nodeclass.Refusal
		if !errors.As(err, &no) || no.Reason != tt.reason || !strings.Contains(no.Message, tt.want) {
			t.Errorf("%s: %v; want %s with %q", name, err, tt.reason, tt.want)
		}
	}
	named := class("")
	named.Spec.InstanceProfile = "mine"
	if got, err := isolated.Resolve(ctx, named); got != "mine" || err != nil {
		t.Errorf("a named profile in an isolated VPC: %s, %v", got, err)
	}
}

func TestNeverVisible(t *testing.T) {
	f, p, _ := world()
	f.VisibleAfter = 1000
	if _, err := p.Resolve(ctx, class("nodes")); err == nil || !strings.Contains(err.Error(), "does not show it") {
		t.Errorf("%v", err)
	}
	p.Sleep = func(context.Context, time.Duration) error { return context.DeadlineExceeded }
	if _, err := p.Resolve(ctx, class("other")); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("at the deadline: %v", err)
	}
}

func TestCollect(t *testing.T) {
	f, p, _ := world()
	keep, _ := p.Resolve(ctx, class("nodes"))
	drop, _ := p.Resolve(ctx, class("other"))
	found, err := p.List(ctx)
	if err != nil || len(found) != 2 {
		t.Fatalf("%v, %v", found, err)
	}
	named := map[string]bool{keep: true}
	if got := profile.Unused(found, named, now.Add(59*time.Minute)); len(got) != 0 {
		t.Errorf("before an hour: %v", got)
	}
	unused := profile.Unused(found, named, now.Add(time.Hour))
	if len(unused) != 1 || unused[0].Name != drop {
		t.Fatalf("unused %v", unused)
	}
	for range 2 {
		if err := p.Delete(ctx, unused); err != nil {
			t.Fatal(err)
		}
	}
	if got := f.Profiles(); !slices.Equal(got, []string{keep + " nodes"}) {
		t.Errorf("left: %v", got)
	}
}

func TestName(t *testing.T) {
	long := profile.Name(strings.Repeat("x", 200), "r", class("nodes"))
	if len(long) > 128 {
		t.Errorf("name of %d characters", len(long))
	}
	c := class("nodes")
	c.UID = "u2"
	if profile.Name("prod", "r", c) == profile.Name("prod", "r", class("nodes")) {
		t.Error("a class that was made anew has the old profile")
	}
}
