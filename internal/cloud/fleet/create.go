package fleet

import (
	"context"
	"fmt"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/ec2"
	"github.com/aws/aws-sdk-go-v2/service/ec2/types"

	"kerf.sh/kerf/internal/cloud/awserr"
	"kerf.sh/kerf/internal/cloud/launch"
	"kerf.sh/kerf/internal/cloud/template"
)

// Client are the calls of EC2 that instances need.
type Client interface {
	CreateFleet(ctx context.Context, in *ec2.CreateFleetInput, opts ...func(*ec2.Options)) (*ec2.CreateFleetOutput, error)
	DescribeInstances(ctx context.Context, in *ec2.DescribeInstancesInput, opts ...func(*ec2.Options)) (*ec2.DescribeInstancesOutput, error)
	TerminateInstances(ctx context.Context, in *ec2.TerminateInstancesInput, opts ...func(*ec2.Options)) (*ec2.TerminateInstancesOutput, error)
	CreateTags(ctx context.Context, in *ec2.CreateTagsInput, opts ...func(*ec2.Options)) (*ec2.CreateTagsOutput, error)
}

// CallTimeout is how long one CreateFleet may take. Nothing is sent after it: an attempt
// is over one minute after its notAfter, whatever becomes of the answer.
const CallTimeout = 60 * time.Second

// Fleet makes and ends instances. Decoder may be nil: then denials are named as far as
// their text goes.
type Fleet struct {
	Client  Client
	Decoder awserr.Decoder
}

// once keeps the SDK from repeating a call by itself: who repeats an attempt looks at its
// record first.
func once(o *ec2.Options) { o.RetryMaxAttempts = 1 }

// Create sends a stored request. An outcome comes when EC2 decided, whichever way. The
// error, an *awserr.Error, says that it did not, or that nobody knows: Transient and
// Throttled (send the same bytes again), TemplateNotFound (make the template, then the
// same bytes), Mismatch (the token belongs to another request: look for instances by the
// attempt's tag, never send again).
func (f *Fleet) Create(ctx context.Context, stored []byte) (*launch.Outcome, error) {
	r, err := launch.Decode(stored)
	if err != nil {
		return nil, err
	}
	ctx, cancel := context.WithTimeout(ctx, CallTimeout)
	defer cancel()
	out, err := f.Client.CreateFleet(ctx, Input(r), once)
	if err != nil {
		e := awserr.Explain(ctx, f.Decoder, awserr.From(err))
		if o := launch.ReadError(r, e); o != nil {
			return o, nil
		}
		return nil, fmt.Errorf("create fleet %s: %w", r.Token, e)
	}
	return launch.Read(r, f.answer(ctx, out)), nil
}

// Input is a request in the SDK's words. It may not change for requests of one version:
// EC2 compares what comes with a token with what came first.
func Input(r *launch.Request) *ec2.CreateFleetInput {
	in := &ec2.CreateFleetInput{
		Type:        types.FleetTypeInstant,
		ClientToken: aws.String(r.Token),
		TargetCapacitySpecification: &types.TargetCapacitySpecificationRequest{
			TotalTargetCapacity:       aws.Int32(int32(len(r.Claims))),
			DefaultTargetCapacityType: types.DefaultTargetCapacityType(r.Target),
		},
	}
	if r.SpotStrategy != "" {
		in.SpotOptions = &types.SpotOptionsRequest{AllocationStrategy: types.SpotAllocationStrategy(r.SpotStrategy)}
	}
	if r.OnDemandStrategy != "" {
		in.OnDemandOptions = &types.OnDemandOptionsRequest{AllocationStrategy: types.FleetOnDemandAllocationStrategy(r.OnDemandStrategy)}
	}
	if len(r.ReservationTypes) > 0 {
		in.ReservedCapacityOptions = &types.ReservedCapacityOptionsRequest{}
		for _, t := range r.ReservationTypes {
			in.ReservedCapacityOptions.ReservationTypes = append(in.ReservedCapacityOptions.ReservationTypes, types.FleetReservationType(t))
		}
	}
	if r.Context != "" {
		in.Context = aws.String(r.Context)
	}
	for _, c := range r.Configs {
		config := types.FleetLaunchTemplateConfigRequest{
			LaunchTemplateSpecification: &types.FleetLaunchTemplateSpecificationRequest{LaunchTemplateName: aws.String(c.Template), Version: aws.String("$Latest")},
		}
		for _, o := range c.Overrides {
			override := types.FleetLaunchTemplateOverridesRequest{
				InstanceType: types.InstanceType(o.Type), SubnetId: aws.String(o.Subnet), AvailabilityZone: aws.String(o.Zone),
			}
			if r.Prioritized() {
				override.Priority = aws.Float64(float64(o.Price) / 1e6)
			}
			config.Overrides = append(config.Overrides, override)
		}
		in.LaunchTemplateConfigs = append(in.LaunchTemplateConfigs, config)
	}
	// Spot requests are tagged by the template of a spot launch: EC2 refuses a tag
	// specification for them here when nothing is spot (S-26).
	for _, kind := range []types.ResourceType{types.ResourceTypeInstance, types.ResourceTypeVolume, types.ResourceTypeFleet} {
		in.TagSpecifications = append(in.TagSpecifications, types.TagSpecification{ResourceType: kind, Tags: template.Tags(r.Tags)})
	}
	return in
}

func (f *Fleet) answer(ctx context.Context, out *ec2.CreateFleetOutput) *launch.Answer {
	a := &launch.Answer{FleetID: aws.ToString(out.FleetId)}
	for _, i := range out.Instances {
		one := launch.AnswerInstances{IDs: i.InstanceIds, Type: string(i.InstanceType), Zone: aws.ToString(i.AvailabilityZone), Subnet: aws.ToString(i.SubnetId), Lifecycle: string(i.Lifecycle)}
		if t := i.LaunchTemplateAndOverrides; t != nil {
			if t.LaunchTemplateSpecification != nil {
				one.Template = aws.ToString(t.LaunchTemplateSpecification.LaunchTemplateName)
			}
			one.Type, one.Zone, one.Subnet = overridden(t.Overrides, one.Type, one.Zone, one.Subnet)
		}
		a.Instances = append(a.Instances, one)
	}
	for _, e := range out.Errors {
		one := launch.AnswerError{Code: aws.ToString(e.ErrorCode), Message: aws.ToString(e.ErrorMessage), Lifecycle: string(e.Lifecycle)}
		if t := e.LaunchTemplateAndOverrides; t != nil {
			one.Type, one.Zone, one.Subnet = overridden(t.Overrides, "", "", "")
		}
		if x := awserr.Explain(ctx, f.Decoder, awserr.New(one.Code, one.Message)); x.Permission != "" && x.Encoded() != "" {
			one.Message = fmt.Sprintf("not authorized to perform: %s on resource: %s; %s", x.Permission, x.Resource, x.Cause)
		}
		a.Errors = append(a.Errors, one)
	}
	return a
}

// overridden fills what is empty from the overrides of an answer.
func overridden(o *types.FleetLaunchTemplateOverrides, typ, zone, subnet string) (string, string, string) {
	if o == nil {
		return typ, zone, subnet
	}
	if typ == "" {
		typ = string(o.InstanceType)
	}
	if zone == "" {
		zone = aws.ToString(o.AvailabilityZone)
	}
	if subnet == "" {
		subnet = aws.ToString(o.SubnetId)
	}
	return typ, zone, subnet
}
