package local

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/cloudformation"
	cfntypes "github.com/aws/aws-sdk-go-v2/service/cloudformation/types"
	awseks "github.com/aws/aws-sdk-go-v2/service/eks"
	ekstypes "github.com/aws/aws-sdk-go-v2/service/eks/types"
	"github.com/aws/aws-sdk-go-v2/service/iam"
	"github.com/aws/aws-sdk-go-v2/service/lambda"
	"github.com/aws/aws-sdk-go-v2/service/ssm"
	ssmtypes "github.com/aws/aws-sdk-go-v2/service/ssm/types"

	"kerf.sh/kerf/internal/realtest/fakeaws"
)

// deployTimeout is how long a deployment may take on a busy machine.
const deployTimeout = 6 * time.Minute

// Account makes what an account with an EKS cluster has before anybody deploys: the CDK's
// bootstrap, the roles of cluster and nodes, the cluster.
func (s *Stack) Account(ctx context.Context) error {
	c := s.emulator.config()
	if _, err := ssm.NewFromConfig(c).PutParameter(ctx, &ssm.PutParameterInput{Name: aws.String("/cdk-bootstrap/hnb659fds/version"), Value: aws.String("30"), Type: ssmtypes.ParameterTypeString}); err != nil {
		return fmt.Errorf("bootstrap the CDK: %w", err)
	}
	if err := s.emulator.put(ctx, "/"+bucket, nil); err != nil {
		return fmt.Errorf("bootstrap the CDK: %w", err)
	}
	roles := iam.NewFromConfig(c)
	for name, service := range map[string]string{"eks-cluster": "eks", "KarpenterNodeRole-" + s.Name: "ec2"} {
		trust := fmt.Sprintf(`{"Version":"2012-10-17","Statement":[{"Effect":"Allow","Principal":{"Service":"%s.amazonaws.com"},"Action":"sts:AssumeRole"}]}`, service)
		if _, err := roles.CreateRole(ctx, &iam.CreateRoleInput{RoleName: aws.String(name), AssumeRolePolicyDocument: &trust}); err != nil {
			return fmt.Errorf("create role %s: %w", name, err)
		}
	}
	_, err := awseks.NewFromConfig(c).CreateCluster(ctx, &awseks.CreateClusterInput{Name: &s.Name, RoleArn: aws.String("arn:aws:iam::" + fakeaws.Account + ":role/eks-cluster"),
		Version: aws.String("1.36"), ResourcesVpcConfig: &ekstypes.VpcConfigRequest{SubnetIds: []string{"subnet-00000000000000001"}}})
	if err != nil {
		return fmt.Errorf("create cluster %s: %w", s.Name, err)
	}
	return nil
}

// bucket is where the CDK puts assets.
const bucket = "cdk-hnb659fds-assets-" + fakeaws.Account + "-" + fakeaws.Region

// StackName is the stack's name, as infra/autoscaler gives it.
func (s *Stack) StackName() string { return "kerf-" + s.Name }

// Deploy deploys the template, as cdk deploy does: assets, then the stack.
func (s *Stack) Deploy(ctx context.Context) error {
	for key, body := range s.template.assets {
		if err := s.emulator.put(ctx, "/"+bucket+"/"+key, body); err != nil {
			return fmt.Errorf("upload asset %s: %w", key, err)
		}
	}
	if err := s.emulator.put(ctx, "/"+bucket+"/template.json", s.template.text); err != nil {
		return fmt.Errorf("upload the template: %w", err)
	}
	stacks := cloudformation.NewFromConfig(s.emulator.config())
	_, err := stacks.CreateStack(ctx, &cloudformation.CreateStackInput{StackName: aws.String(s.StackName()), TemplateURL: aws.String(s.URL + "/" + bucket + "/template.json"),
		Capabilities: []cfntypes.Capability{cfntypes.CapabilityCapabilityIam}})
	if err != nil {
		return fmt.Errorf("create stack %s: %w", s.StackName(), err)
	}
	ctx, cancel := context.WithTimeout(ctx, deployTimeout)
	defer cancel()
	known := map[string]bool{}
	for {
		out, err := stacks.DescribeStacks(ctx, &cloudformation.DescribeStacksInput{StackName: aws.String(s.StackName())})
		if err != nil {
			return err
		}
		if err := s.learn(ctx, stacks, known); err != nil { // after the status: a complete stack has all functions
			return err
		}
		switch status := out.Stacks[0].StackStatus; status {
		case cfntypes.StackStatusCreateComplete:
			return nil
		case cfntypes.StackStatusCreateInProgress:
		default:
			return errors.Join(fmt.Errorf("stack %s is %s: %s", s.StackName(), status, aws.ToString(out.Stacks[0].StackStatusReason)), s.whyNot(ctx, stacks))
		}
		select {
		case <-ctx.Done():
			return fmt.Errorf("stack %s: %w", s.StackName(), ctx.Err())
		case <-time.After(200 * time.Millisecond):
		}
	}
}

// learn finds out about functions that have been made: EC2 has to know whose keys are whose
// when the first of them runs, which is before the stack is complete.
func (s *Stack) learn(ctx context.Context, stacks *cloudformation.Client, known map[string]bool) error {
	list, err := stacks.DescribeStackResources(ctx, &cloudformation.DescribeStackResourcesInput{StackName: aws.String(s.StackName())})
	if err != nil {
		return err
	}
	for _, r := range list.StackResources {
		id := aws.ToString(r.LogicalResourceId)
		if aws.ToString(r.ResourceType) != "AWS::Lambda::Function" || aws.ToString(r.PhysicalResourceId) == "" || known[id] {
			continue
		}
		out, err := lambda.NewFromConfig(s.emulator.config()).GetFunctionConfiguration(ctx, &lambda.GetFunctionConfigurationInput{FunctionName: r.PhysicalResourceId})
		if err != nil {
			continue // it is being made, and seen the next time
		}
		known[id] = true
		s.let(id, aws.ToString(out.FunctionName), aws.ToString(out.FunctionArn), aws.ToString(out.Role))
	}
	return nil
}

// whyNot are the resources that failed, with their reasons.
func (s *Stack) whyNot(ctx context.Context, stacks *cloudformation.Client) error {
	out, err := stacks.DescribeStackEvents(ctx, &cloudformation.DescribeStackEventsInput{StackName: aws.String(s.StackName())})
	if err != nil {
		return err
	}
	var all []error
	for _, e := range out.StackEvents {
		if strings.HasSuffix(string(e.ResourceStatus), "_FAILED") {
			all = append(all, fmt.Errorf("%s %s: %s", aws.ToString(e.ResourceType), aws.ToString(e.LogicalResourceId), aws.ToString(e.ResourceStatusReason)))
		}
	}
	return errors.Join(all...)
}

// Remove deletes the stack, as cdk destroy does.
func (s *Stack) Remove(ctx context.Context) error {
	stacks := cloudformation.NewFromConfig(s.emulator.config())
	list, err := stacks.DescribeStacks(ctx, &cloudformation.DescribeStacksInput{StackName: aws.String(s.StackName())})
	if err != nil {
		return err
	}
	id := list.Stacks[0].StackId // a stack that is gone is found by its id alone
	if _, err := stacks.DeleteStack(ctx, &cloudformation.DeleteStackInput{StackName: id}); err != nil {
		return fmt.Errorf("delete stack %s: %w", s.StackName(), err)
	}
	ctx, cancel := context.WithTimeout(ctx, deployTimeout)
	defer cancel()
	for {
		list, err := stacks.DescribeStacks(ctx, &cloudformation.DescribeStacksInput{StackName: id})
		if err != nil {
			return err
		}
		switch status := list.Stacks[0].StackStatus; status {
		case cfntypes.StackStatusDeleteComplete:
			return nil
		case cfntypes.StackStatusDeleteFailed:
			return errors.Join(fmt.Errorf("stack %s is %s: %s", s.StackName(), status, aws.ToString(list.Stacks[0].StackStatusReason)), s.whyNot(ctx, stacks))
		}
		select {
		case <-ctx.Done():
			return fmt.Errorf("stack %s: %w", s.StackName(), ctx.Err())
		case <-time.After(200 * time.Millisecond):
		}
	}
}
