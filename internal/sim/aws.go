package sim

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	awssdk "github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/ec2"
	"github.com/aws/aws-sdk-go-v2/service/ec2/types"

	"kerf.sh/kerf/internal/catalog"
	"kerf.sh/kerf/internal/cloud/ec2fake"
	"kerf.sh/kerf/internal/cloud/nodeclass"
	"kerf.sh/kerf/internal/snapshot"
)

// Where the world is.
const (
	region      = "us-east-1"
	clusterName = "sim"
)

// zones of the world with their subnets.
var zones = []struct{ zone, id, subnet string }{
	{"us-east-1a", "use1-az1", "subnet-a"}, {"us-east-1b", "use1-az2", "subnet-b"}, {"us-east-1c", "use1-az4", "subnet-c"},
}

// typeNames are the instance types of the world: real ones of the embedded table.
var typeNames = []string{
	"c5.large", "c5.xlarge", "c5.2xlarge", "c5.4xlarge", "m5.large", "m5.xlarge", "m5.2xlarge", "m5.4xlarge", "r5.large", "r5.xlarge", "r5.2xlarge",
	"c6g.large", "c6g.xlarge", "m6g.large", "m6g.xlarge", "m6g.4xlarge",
}

// aws is EC2 with what belongs to it.
type aws struct {
	w     *World
	ec2   *ec2fake.EC2
	ssm   *ec2fake.SSM
	iam   *ec2fake.IAM
	table *catalog.Catalog
	sizes map[string]catalog.Resolved
	said  map[string]said
	// seen counts the instances that the cluster knows of.
	seen int
	s    *service
	dice dice
}

func newAWS(w *World) *aws {
	now := w.now
	a := &aws{w: w, ec2: ec2fake.New(now), said: map[string]said{}, sizes: map[string]catalog.Resolved{}, dice: newDice(w.Seed, "aws")}
	a.ec2.Seed = itoa(int64(w.Seed))
	a.ec2.VisibleAfter, a.ec2.RunningAfter = w.Profile.VisibleAfter, w.Profile.RunningAfter
	for _, z := range zones {
		a.ec2.AddSubnet(z.subnet, z.zone, z.id, w.Profile.Free, "discovery", clusterName)
	}
	a.ec2.AddGroup("sg-nodes", "nodes", "discovery", clusterName)
	a.ec2.AddImage("ami-amd64", "al2023-amd64", "x86_64", epoch.Add(-24*time.Hour))
	a.ec2.AddImage("ami-arm64", "al2023-arm64", "arm64", epoch.Add(-24*time.Hour))
	a.ssm = &ec2fake.SSM{Parameters: map[string]string{
		"/aws/service/eks/optimized-ami/1.35/amazon-linux-2023/x86_64/standard/recommended/image_id": "ami-amd64",
		"/aws/service/eks/optimized-ami/1.35/amazon-linux-2023/arm64/standard/recommended/image_id":  "ami-arm64",
	}}
	a.iam = &ec2fake.IAM{Now: now, Roles: map[string]bool{"nodes": true}}
	a.table = worldTable(w.Profile.Types)
	for i := range a.table.Types {
		t := &a.table.Types[i]
		one := ec2fake.Type{Name: t.Name, Arch: t.Arch, VCPU: t.VCPU}
		for _, o := range t.Offerings {
			switch o.CapacityType {
			case catalog.OnDemand:
				one.OnDemand = o.Price
			case catalog.Spot:
				one.Spot = o.Price
			}
		}
		a.ec2.AddType(one)
	}
	c := snapshot.NodeClass{Name: "size", AMIFamily: "AL2023", AMIAlias: "al2023@latest", Images: []snapshot.Image{
		{ID: "ami-amd64", Requirements: []snapshot.SelectorRequirement{{Key: "kubernetes.io/arch", Operator: "In", Values: []string{"amd64"}}}},
		{ID: "ami-arm64", Requirements: []snapshot.SelectorRequirement{{Key: "kubernetes.io/arch", Operator: "In", Values: []string{"arm64"}}}},
	}}
	sizes, err := a.table.Resolve(&c, w.settings())
	if err != nil {
		panic(err)
	}
	for _, r := range sizes {
		a.sizes[r.Type.Name] = r
	}
	a.s = &service{
		name: "ec2", least: 30 * time.Millisecond, most: 900 * time.Millisecond, dice: newDice(w.Seed, "ec2"),
		errors: func(b *bound, d dice) error {
			if !b.Write && d.IntN(2) == 0 {
				return ec2fake.Error("InternalError", "An internal error has occurred")
			}
			return ec2fake.Error("RequestLimitExceeded", "Request limit exceeded.")
		},
		lost: func(*bound) error { return errors.New("read tcp 10.0.0.1:443: connection reset by peer") },
		gone: func(_ *bound, err error) error { return fmt.Errorf("operation error EC2: %w", err) },
	}
	return a
}

// worldTable is the embedded table with few types, in the zones of the world.
func worldTable(names []string) *catalog.Catalog {
	if len(names) == 0 {
		names = typeNames
	}
	full := catalog.Default()
	out := &catalog.Catalog{Region: full.Region, Date: full.Date, Source: "the world's table"}
	for _, z := range zones {
		out.Zones = append(out.Zones, z.zone)
	}
	for _, t := range full.Types {
		if !slices.Contains(names, t.Name) {
			continue
		}
		t.Offerings = slices.DeleteFunc(slices.Clone(t.Offerings), func(o catalog.Offering) bool { return !slices.Contains(out.Zones, o.Zone) })
		out.Types = append(out.Types, t)
	}
	return out
}

// ec2Client is EC2 as one container calls it.
type ec2Client struct {
	c *container
	a *aws
}

func ec2call[I, O any](ctx context.Context, e *ec2Client, b bound, in I, f func(context.Context, I, ...func(*ec2.Options)) (O, error)) (O, error) {
	return call(ctx, e.c, e.a.s, b, func() (O, error) {
		out, err := f(context.Background(), in)
		if b.Write {
			e.a.w.cluster.watchMachines()
		}
		return out, err
	})
}

// CreateFleet makes instances, whoever asks.
func (e *ec2Client) CreateFleet(ctx context.Context, in *ec2.CreateFleetInput, _ ...func(*ec2.Options)) (*ec2.CreateFleetOutput, error) {
	b := bound{Op: "CreateFleet", Object: fmt.Sprintf("%s x%d", awssdk.ToString(in.ClientToken), awssdk.ToInt32(in.TargetCapacitySpecification.TotalTargetCapacity)), Write: true}
	return ec2call(ctx, e, b, in, func(ctx context.Context, in *ec2.CreateFleetInput, _ ...func(*ec2.Options)) (*ec2.CreateFleetOutput, error) {
		before := len(e.a.ec2.Instances())
		e.a.w.checks.launching(attemptOf(in))
		out, err := e.a.ec2.CreateFleet(ctx, in)
		if out != nil {
			for _, f := range out.Errors {
				e.a.w.tracef("    %s %s", awssdk.ToString(f.ErrorCode), f.LaunchTemplateAndOverrides.Overrides.InstanceType)
			}
		}
		e.a.w.checks.launched(e.a.ec2.Instances()[before:])
		return out, err
	})
}

// attemptOf is the attempt that a request says it belongs to, by the tag that its instances
// will have.
func attemptOf(in *ec2.CreateFleetInput) string {
	for _, s := range in.TagSpecifications {
		for _, t := range s.Tags {
			if s.ResourceType == types.ResourceTypeInstance && awssdk.ToString(t.Key) == nodeclass.TagAttempt {
				return awssdk.ToString(t.Value)
			}
		}
	}
	return ""
}

// DescribeInstances implements fleet.Client.
func (e *ec2Client) DescribeInstances(ctx context.Context, in *ec2.DescribeInstancesInput, _ ...func(*ec2.Options)) (*ec2.DescribeInstancesOutput, error) {
	return ec2call(ctx, e, bound{Op: "DescribeInstances", Object: fmt.Sprint(len(in.InstanceIds))}, in,
		func(ctx context.Context, in *ec2.DescribeInstancesInput, _ ...func(*ec2.Options)) (*ec2.DescribeInstancesOutput, error) {
			if len(in.InstanceIds) == 1 && e.a.w.bus.strangers[in.InstanceIds[0]] {
				return stranger(in.InstanceIds[0]), nil
			}
			return e.a.ec2.DescribeInstances(ctx, in)
		})
}

// stranger is an instance of somebody else in the account.
func stranger(id string) *ec2.DescribeInstancesOutput {
	return &ec2.DescribeInstancesOutput{Reservations: []types.Reservation{{Instances: []types.Instance{{
		InstanceId: awssdk.String(id), InstanceType: "m5.large", State: &types.InstanceState{Name: types.InstanceStateNameRunning},
		Placement: &types.Placement{AvailabilityZone: awssdk.String(zones[0].zone)}, Tags: []types.Tag{{Key: awssdk.String("Name"), Value: awssdk.String("somebody else's")}},
	}}}}}
}

// TerminateInstances implements fleet.Client.
func (e *ec2Client) TerminateInstances(ctx context.Context, in *ec2.TerminateInstancesInput, _ ...func(*ec2.Options)) (*ec2.TerminateInstancesOutput, error) {
	return ec2call(ctx, e, bound{Op: "TerminateInstances", Object: strings.Join(in.InstanceIds, " "), Write: true}, in,
		func(ctx context.Context, in *ec2.TerminateInstancesInput, _ ...func(*ec2.Options)) (*ec2.TerminateInstancesOutput, error) {
			e.a.w.checks.terminating(in.InstanceIds)
			return e.a.ec2.TerminateInstances(ctx, in)
		})
}

// CreateTags implements fleet.Client.
func (e *ec2Client) CreateTags(ctx context.Context, in *ec2.CreateTagsInput, _ ...func(*ec2.Options)) (*ec2.CreateTagsOutput, error) {
	return ec2call(ctx, e, bound{Op: "CreateTags", Object: strings.Join(in.Resources, " "), Write: true}, in, e.a.ec2.CreateTags)
}

// CreateLaunchTemplate implements template.Client.
func (e *ec2Client) CreateLaunchTemplate(ctx context.Context, in *ec2.CreateLaunchTemplateInput, _ ...func(*ec2.Options)) (*ec2.CreateLaunchTemplateOutput, error) {
	return ec2call(ctx, e, bound{Op: "CreateLaunchTemplate", Object: awssdk.ToString(in.LaunchTemplateName), Write: true}, in, e.a.ec2.CreateLaunchTemplate)
}

// DescribeLaunchTemplates implements template.Client.
func (e *ec2Client) DescribeLaunchTemplates(ctx context.Context, in *ec2.DescribeLaunchTemplatesInput, _ ...func(*ec2.Options)) (*ec2.DescribeLaunchTemplatesOutput, error) {
	return ec2call(ctx, e, bound{Op: "DescribeLaunchTemplates"}, in, e.a.ec2.DescribeLaunchTemplates)
}

// DeleteLaunchTemplate implements template.Client.
func (e *ec2Client) DeleteLaunchTemplate(ctx context.Context, in *ec2.DeleteLaunchTemplateInput, _ ...func(*ec2.Options)) (*ec2.DeleteLaunchTemplateOutput, error) {
	return ec2call(ctx, e, bound{Op: "DeleteLaunchTemplate", Object: awssdk.ToString(in.LaunchTemplateId), Write: true}, in, e.a.ec2.DeleteLaunchTemplate)
}

// DescribeSubnets implements network.Client.
func (e *ec2Client) DescribeSubnets(ctx context.Context, in *ec2.DescribeSubnetsInput, _ ...func(*ec2.Options)) (*ec2.DescribeSubnetsOutput, error) {
	return ec2call(ctx, e, bound{Op: "DescribeSubnets"}, in, e.a.ec2.DescribeSubnets)
}

// DescribeSecurityGroups implements network.Client.
func (e *ec2Client) DescribeSecurityGroups(ctx context.Context, in *ec2.DescribeSecurityGroupsInput, _ ...func(*ec2.Options)) (*ec2.DescribeSecurityGroupsOutput, error) {
	return ec2call(ctx, e, bound{Op: "DescribeSecurityGroups"}, in, e.a.ec2.DescribeSecurityGroups)
}

// DescribePlacementGroups implements network.Client.
func (e *ec2Client) DescribePlacementGroups(ctx context.Context, in *ec2.DescribePlacementGroupsInput, _ ...func(*ec2.Options)) (*ec2.DescribePlacementGroupsOutput, error) {
	return ec2call(ctx, e, bound{Op: "DescribePlacementGroups"}, in, e.a.ec2.DescribePlacementGroups)
}

// DescribeImages implements image.EC2.
func (e *ec2Client) DescribeImages(ctx context.Context, in *ec2.DescribeImagesInput, _ ...func(*ec2.Options)) (*ec2.DescribeImagesOutput, error) {
	return ec2call(ctx, e, bound{Op: "DescribeImages"}, in, e.a.ec2.DescribeImages)
}

// DescribeCapacityReservations implements pricing.EC2.
func (e *ec2Client) DescribeCapacityReservations(ctx context.Context, in *ec2.DescribeCapacityReservationsInput, _ ...func(*ec2.Options)) (*ec2.DescribeCapacityReservationsOutput, error) {
	return ec2call(ctx, e, bound{Op: "DescribeCapacityReservations"}, in, e.a.ec2.DescribeCapacityReservations)
}

// DescribeSpotPriceHistory implements pricing.EC2.
func (e *ec2Client) DescribeSpotPriceHistory(ctx context.Context, in *ec2.DescribeSpotPriceHistoryInput, _ ...func(*ec2.Options)) (*ec2.DescribeSpotPriceHistoryOutput, error) {
	return ec2call(ctx, e, bound{Op: "DescribeSpotPriceHistory"}, in, e.a.ec2.DescribeSpotPriceHistory)
}
