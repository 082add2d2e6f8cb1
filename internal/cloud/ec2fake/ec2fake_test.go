package ec2fake_test

import (
	"context"
	"encoding/base64"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/ec2"
	"github.com/aws/aws-sdk-go-v2/service/ec2/types"
	"github.com/aws/smithy-go"

	"kerf.sh/kerf/internal/cloud/ec2fake"
)

var ctx = context.Background()

type world struct {
	*ec2fake.EC2
	now time.Time
}

func newWorld(t *testing.T) *world {
	w := &world{now: time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)}
	w.EC2 = ec2fake.New(func() time.Time { return w.now })
	w.AddSubnet("subnet-a", "a", "1", 10)
	w.AddImage("ami-1", "x", "x86_64", w.now)
	w.AddType(ec2fake.Type{Name: "m5.large", Arch: "amd64", VCPU: 2, OnDemand: 96, Spot: 40}, ec2fake.Type{Name: "m7g.large", Arch: "arm64", VCPU: 2, OnDemand: 80, Spot: 30},
		ec2fake.Type{Name: "m5.xlarge", Arch: "amd64", VCPU: 4, OnDemand: 190, Spot: 39})
	w.template(t, "plain", &types.RequestLaunchTemplateData{ImageId: aws.String("ami-1")})
	return w
}

func (w *world) template(t *testing.T, name string, data *types.RequestLaunchTemplateData) {
	t.Helper()
	if _, err := w.CreateLaunchTemplate(ctx, &ec2.CreateLaunchTemplateInput{LaunchTemplateName: aws.String(name), LaunchTemplateData: data}); err != nil {
		t.Fatal(err)
	}
}

// request asks for n instances of types in subnet-a.
func request(token string, target types.DefaultTargetCapacityType, n int32, names ...types.InstanceType) *ec2.CreateFleetInput {
	c := types.FleetLaunchTemplateConfigRequest{LaunchTemplateSpecification: &types.FleetLaunchTemplateSpecificationRequest{LaunchTemplateName: aws.String("plain")}}
	for _, name := range names {
		c.Overrides = append(c.Overrides, types.FleetLaunchTemplateOverridesRequest{InstanceType: name, SubnetId: aws.String("subnet-a")})
	}
	return &ec2.CreateFleetInput{Type: types.FleetTypeInstant, ClientToken: aws.String(token), LaunchTemplateConfigs: []types.FleetLaunchTemplateConfigRequest{c},
		TargetCapacitySpecification: &types.TargetCapacitySpecificationRequest{TotalTargetCapacity: aws.Int32(n), DefaultTargetCapacityType: target}}
}

const onDemand, spot = types.DefaultTargetCapacityTypeOnDemand, types.DefaultTargetCapacityTypeSpot

func code(err error) string {
	var api smithy.APIError
	if errors.As(err, &api) {
		return api.ErrorCode()
	}
	return ""
}

func TestTokens(t *testing.T) {
	w := newWorld(t)
	first, err := w.CreateFleet(ctx, request("t", onDemand, 2, "m5.large"))
	if err != nil {
		t.Fatal(err)
	}
	if again, err := w.CreateFleet(ctx, request("t", onDemand, 2, "m5.large")); err != nil || *again.FleetId != *first.FleetId || len(w.Instances()) != 2 {
		t.Errorf("the same token: %v, %d instances", err, len(w.Instances()))
	}
	if _, err := w.CreateFleet(ctx, request("t", onDemand, 1, "m5.large")); code(err) != "IdempotentParameterMismatch" {
		t.Errorf("another request: %v", err)
	}
	w.now = w.now.Add(25 * time.Hour)
	if _, err := w.CreateFleet(ctx, request("t", onDemand, 2, "m5.large")); err != nil || len(w.Instances()) != 4 {
		t.Errorf("a day later the token is new: %v, %d instances", err, len(w.Instances()))
	}
}

// TestStrict: what EC2 refuses as a whole.
func TestStrict(t *testing.T) {
	w := newWorld(t)
	tagged := request("a", onDemand, 1, "m5.large")
	tagged.TagSpecifications = []types.TagSpecification{{ResourceType: types.ResourceTypeSpotInstancesRequest}}
	missing := request("b", onDemand, 1, "m5.large")
	missing.LaunchTemplateConfigs[0].LaunchTemplateSpecification.LaunchTemplateName = aws.String("gone")
	zone := request("c", onDemand, 1, "m5.large")
	zone.LaunchTemplateConfigs[0].Overrides[0].AvailabilityZone = aws.String("b")
	dry := request("d", onDemand, 1, "m5.large")
	dry.DryRun = aws.Bool(true)
	for want, in := range map[string]*ec2.CreateFleetInput{
		"InvalidTagSpecification": tagged, "InvalidLaunchTemplateName.NotFoundException": missing, "InvalidParameterValue": zone,
		"InvalidFleetConfig": request("e", onDemand, 1, "m5.large", "m5.large"), "InvalidTargetCapacitySpecification": request("f", onDemand, 0, "m5.large"), "DryRunOperation": dry,
	} {
		if _, err := w.CreateFleet(ctx, in); code(err) != want {
			t.Errorf("%v; want %s", err, want)
		}
	}
	w.template(t, "spotty", &types.RequestLaunchTemplateData{ImageId: aws.String("ami-1"), TagSpecifications: []types.LaunchTemplateTagSpecificationRequest{{ResourceType: types.ResourceTypeSpotInstancesRequest}}})
	in := request("g", onDemand, 1, "m5.large")
	in.LaunchTemplateConfigs[0].LaunchTemplateSpecification.LaunchTemplateName = aws.String("spotty")
	if _, err := w.CreateFleet(ctx, in); code(err) != "InvalidTagSpecification" {
		t.Errorf("a template that tags a spot request: %v", err)
	}
	if len(w.Instances()) != 0 {
		t.Errorf("%d instances", len(w.Instances()))
	}
	if _, err := w.CreateLaunchTemplate(ctx, &ec2.CreateLaunchTemplateInput{LaunchTemplateName: aws.String("plain"), LaunchTemplateData: &types.RequestLaunchTemplateData{}}); code(err) != "InvalidLaunchTemplateName.AlreadyExistsException" {
		t.Errorf("a name twice: %v", err)
	}
	large := base64.StdEncoding.EncodeToString([]byte(strings.Repeat("x", 16385)))
	if _, err := w.CreateLaunchTemplate(ctx, &ec2.CreateLaunchTemplateInput{LaunchTemplateName: aws.String("large"), LaunchTemplateData: &types.RequestLaunchTemplateData{UserData: &large}}); code(err) != "InvalidUserData.Malformed" {
		t.Errorf("too much user data: %v", err)
	}
}

// TestShort: what EC2 refuses per offer.
func TestShort(t *testing.T) {
	for want, tt := range map[string]struct {
		change func(w *world)
		in     *ec2.CreateFleetInput
	}{
		"InsufficientInstanceCapacity":                      {func(w *world) { w.Short = []ec2fake.Offer{{Type: "*", Zone: "a", CapacityType: "spot"}} }, request("t", spot, 1, "m5.large")},
		"MaxSpotInstanceCountExceeded":                      {func(w *world) { w.SpotLimit = 1 }, request("t", spot, 2, "m5.large")},
		"VcpuLimitExceeded":                                 {func(w *world) { w.VCPULimit = 3 }, request("t", onDemand, 2, "m5.large")},
		"InsufficientFreeAddressesInSubnet":                 {func(w *world) { *w.Subnets[0].AvailableIpAddressCount = 1 }, request("t", onDemand, 2, "m5.large")},
		"AuthFailure.ServiceLinkedRoleCreationNotPermitted": {func(w *world) { w.NoSpotRole = true }, request("t", spot, 1, "m5.large")},
		"InvalidParameterValue":                             {func(*world) {}, request("t", onDemand, 1, "m7g.large")}, // wrong architecture
		"UnauthorizedOperation":                             {func(w *world) { w.Denied["ec2:RunInstances"] = true }, request("t", onDemand, 1, "m5.large")},
		"InvalidAMIID.NotFound":                             {func(w *world) { w.Images = nil }, request("t", onDemand, 1, "m5.large")},
	} {
		w := newWorld(t)
		tt.change(w)
		out, err := w.CreateFleet(ctx, tt.in)
		if err != nil || len(out.Errors) != 1 || *out.Errors[0].ErrorCode != want {
			t.Errorf("%s: %+v, %v", want, out, err)
			continue
		}
		if served, asked := len(w.Instances()), int(*tt.in.TargetCapacitySpecification.TotalTargetCapacity); served != asked-1 {
			t.Errorf("%s: %d served of %d", want, served, asked)
		}
	}
}

func TestStrategy(t *testing.T) {
	w := newWorld(t)
	out, err := w.CreateFleet(ctx, request("t", spot, 1, "m5.large", "m5.xlarge"))
	if err != nil || out.Instances[0].InstanceType != "m5.xlarge" {
		t.Errorf("the cheapest spot offer is m5.xlarge: %+v, %v", out, err)
	}
	in := request("u", onDemand, 1, "m5.large", "m5.xlarge")
	in.OnDemandOptions = &types.OnDemandOptionsRequest{AllocationStrategy: types.FleetOnDemandAllocationStrategyPrioritized}
	in.LaunchTemplateConfigs[0].Overrides[0].Priority, in.LaunchTemplateConfigs[0].Overrides[1].Priority = aws.Float64(2), aws.Float64(1)
	if out, err = w.CreateFleet(ctx, in); err != nil || out.Instances[0].InstanceType != "m5.xlarge" {
		t.Errorf("the first by priority is m5.xlarge: %+v, %v", out, err)
	}
}

// TestLife: young instances are not shown, ending ones give back what they hold, ended ones
// are forgotten.
func TestLife(t *testing.T) {
	w := newWorld(t)
	w.VisibleAfter, w.RunningAfter = 10*time.Second, 20*time.Second
	out, err := w.CreateFleet(ctx, request("t", onDemand, 1, "m5.large"))
	if err != nil {
		t.Fatal(err)
	}
	id := out.Instances[0].InstanceIds[0]
	state := func() string {
		got, err := w.DescribeInstances(ctx, &ec2.DescribeInstancesInput{InstanceIds: []string{id}})
		if err != nil {
			return code(err)
		}
		return string(got.Reservations[0].Instances[0].State.Name)
	}
	steps := []struct {
		after time.Duration
		want  string
	}{{0, "InvalidInstanceID.NotFound"}, {10 * time.Second, "pending"}, {10 * time.Second, "running"}}
	for _, s := range steps {
		w.now = w.now.Add(s.after)
		if got := state(); got != s.want {
			t.Errorf("%v later it is %s, want %s", s.after, got, s.want)
		}
	}
	if free := *w.Subnets[0].AvailableIpAddressCount; free != 9 {
		t.Errorf("%d addresses free", free)
	}
	for range 2 {
		if _, err := w.TerminateInstances(ctx, &ec2.TerminateInstancesInput{InstanceIds: []string{id}}); err != nil {
			t.Fatal(err)
		}
	}
	if free := *w.Subnets[0].AvailableIpAddressCount; free != 10 || state() != "shutting-down" {
		t.Errorf("%d addresses free, %s", free, state())
	}
	w.now = w.now.Add(time.Minute)
	if got := state(); got != "terminated" {
		t.Errorf("a minute later it is %s", got)
	}
	w.now = w.now.Add(time.Hour)
	if got := state(); got != "InvalidInstanceID.NotFound" {
		t.Errorf("an hour later it is %s", got)
	}
	if _, err := w.TerminateInstances(ctx, &ec2.TerminateInstancesInput{InstanceIds: []string{"i-1", "i-2"}}); code(err) != "InvalidInstanceID.NotFound" || !strings.Contains(err.Error(), "i-1, i-2") {
		t.Errorf("unknown ids: %v", err)
	}
}

func TestFaults(t *testing.T) {
	w := newWorld(t)
	lost := errors.New("lost")
	w.Hook = func(c ec2fake.Call) ec2fake.Fault {
		if c.Op == "CreateFleet" {
			return ec2fake.Fault{After: lost}
		}
		return ec2fake.Fault{Before: ec2fake.Error("RequestLimitExceeded", "x")}
	}
	if _, err := w.CreateFleet(ctx, request("t", onDemand, 1, "m5.large")); !errors.Is(err, lost) || len(w.Instances()) != 1 {
		t.Errorf("a lost answer: %v, %d instances", err, len(w.Instances()))
	}
	if _, err := w.DescribeInstances(ctx, &ec2.DescribeInstancesInput{}); code(err) != "RequestLimitExceeded" {
		t.Errorf("throttled: %v", err)
	}
}

func TestDeterministic(t *testing.T) {
	ids := func(seed string) string {
		w := newWorld(t)
		w.Seed = seed
		out, _ := w.CreateFleet(ctx, request("t", onDemand, 3, "m5.large"))
		return strings.Join(out.Instances[0].InstanceIds, " ")
	}
	first, again, other := ids("1"), ids("1"), ids("2")
	if first != again || first == other {
		t.Errorf("ids %s, again %s, with another seed %s", first, again, other)
	}
}

func TestWildcard(t *testing.T) {
	for pattern, want := range map[string]bool{"nodes-blue": true, "nodes-*": true, "*": true, "nodes-bl?e": true, "*blue": true, "nodes": false, "?": false, "": false, "*red*": false} {
		if got := ec2fake.Wildcard(pattern, "nodes-blue"); got != want {
			t.Errorf("%q matches nodes-blue: %v", pattern, got)
		}
	}
}
