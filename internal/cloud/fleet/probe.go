package fleet

import (
	"context"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/ec2"
	"github.com/aws/aws-sdk-go-v2/service/ec2/types"

	"kerf.sh/kerf/internal/cloud/awserr"
	"kerf.sh/kerf/internal/cloud/launch"
	"kerf.sh/kerf/internal/cloud/nodeclass"
	"kerf.sh/kerf/internal/cloud/template"
)

// Runner is the call that tells whether instances themselves would be allowed.
type Runner interface {
	RunInstances(ctx context.Context, in *ec2.RunInstancesInput, opts ...func(*ec2.Options)) (*ec2.RunInstancesOutput, error)
}

// Probe asks EC2 whether a planned launch would be allowed, without making an instance
// (Karpenter: validation of an EC2NodeClass): it makes the templates, then asks for the
// fleet and for an instance in each subnet, where one success is enough. It returns what
// EC2 denies, or could not be asked for now (Unknown). Only a denial is held against a
// class: whatever else is wrong may pass, or is said better by the launch.
func (f *Fleet) Probe(ctx context.Context, store *template.Store, run Runner, p *launch.Planned) []nodeclass.Check {
	if err := store.Ensure(ctx, p.Templates); err != nil {
		return f.check(ctx, nodeclass.CreateLaunchTemplateAuthFailed, err)
	}
	in := Input(&p.Request)
	in.DryRun, in.ClientToken = aws.Bool(true), nil
	if _, err := f.Client.CreateFleet(ctx, in); err != nil {
		if no := f.check(ctx, nodeclass.CreateFleetAuthFailed, err); no != nil {
			return no
		}
	}
	var first []nodeclass.Check
	seen := map[string]bool{}
	for _, c := range p.Request.Configs {
		groups := groupsOf(p, c.Template)
		for _, o := range c.Overrides {
			if seen[o.Subnet] {
				continue
			}
			seen[o.Subnet] = true
			_, err := run.RunInstances(ctx, &ec2.RunInstancesInput{
				DryRun: aws.Bool(true), MinCount: aws.Int32(1), MaxCount: aws.Int32(1), InstanceType: types.InstanceType(o.Type),
				LaunchTemplate: &types.LaunchTemplateSpecification{LaunchTemplateName: aws.String(c.Template), Version: aws.String("$Latest")},
				// Templates bring their interfaces; a subnet beside them is refused, so it goes into them.
				NetworkInterfaces: []types.InstanceNetworkInterfaceSpecification{{DeviceIndex: aws.Int32(0), SubnetId: aws.String(o.Subnet), Groups: groups}},
				TagSpecifications: []types.TagSpecification{
					{ResourceType: types.ResourceTypeInstance, Tags: template.Tags(p.Request.Tags)}, {ResourceType: types.ResourceTypeVolume, Tags: template.Tags(p.Request.Tags)},
				},
			})
			no := f.check(ctx, nodeclass.RunInstancesAuthFailed, err)
			if no == nil {
				return nil
			}
			if first == nil {
				first = no
			}
		}
	}
	return first
}

// groupsOf are the security groups of a planned template.
func groupsOf(p *launch.Planned, name string) []string {
	for _, t := range p.Templates {
		if t.Name == name && len(t.Interfaces) > 0 {
			return t.Interfaces[0].SecurityGroups
		}
	}
	return nil
}

// check is what an error of a dry run says about a class; nil when it says nothing.
func (f *Fleet) check(ctx context.Context, reason string, err error) []nodeclass.Check {
	if err == nil {
		return nil
	}
	e := awserr.Explain(ctx, f.Decoder, awserr.From(err))
	switch {
	case e.Code == "DryRunOperation":
		return nil
	case e.Kind == awserr.Unauthorized:
		return []nodeclass.Check{{Reason: reason, Message: e.Error()}}
	case e.Kind == awserr.Throttled || e.Kind == awserr.Transient:
		return []nodeclass.Check{{Reason: reason, Message: "not checked: " + e.Error(), Unknown: true}}
	}
	return nil
}
