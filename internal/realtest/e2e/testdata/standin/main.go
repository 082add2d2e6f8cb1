// Command standin stands in for the functions in the test of the rig: it makes one request
// of every kind that they make, through the same adapters. The name that it is run by says
// which function it is.
package main

import (
	"context"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"strings"
	"time"

	"github.com/aws/aws-lambda-go/events"
	"github.com/aws/aws-lambda-go/lambda"
	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/config"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
	"github.com/aws/aws-sdk-go-v2/service/ec2"
	ec2types "github.com/aws/aws-sdk-go-v2/service/ec2/types"
	awseks "github.com/aws/aws-sdk-go-v2/service/eks"
	"github.com/aws/aws-sdk-go-v2/service/sqs"

	"kerf.sh/kerf/internal/catalog"
	"kerf.sh/kerf/internal/cloud/userdata"
	"kerf.sh/kerf/internal/kube/eks"
	"kerf.sh/kerf/internal/kube/live"
	"kerf.sh/kerf/internal/lifecycle"
	"kerf.sh/kerf/internal/queue"
	"kerf.sh/kerf/internal/snapshot"
)

type function struct {
	aws     aws.Config
	cluster *eks.Cluster
	kube    *live.Client
	ec2     *ec2.Client
	dynamo  *dynamodb.Client
}

func main() {
	f, err := start(context.Background())
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	name := os.Getenv("AWS_LAMBDA_FUNCTION_NAME")
	lambda.Start(func(ctx context.Context, in events.SQSEvent) (events.SQSEventResponse, error) {
		switch {
		case strings.HasSuffix(name, "sweep"):
			return events.SQSEventResponse{}, f.sweep(ctx)
		case strings.HasSuffix(name, "lifecycle"):
			var out events.SQSEventResponse
			if err := f.register(ctx); err != nil {
				fmt.Fprintln(os.Stderr, err)
				for _, r := range in.Records {
					out.BatchItemFailures = append(out.BatchItemFailures, events.SQSBatchItemFailure{ItemIdentifier: r.MessageId})
				}
			}
			return out, nil
		}
		return events.SQSEventResponse{}, errors.New("there is no such function")
	})
}

func start(ctx context.Context) (*function, error) {
	cfg, err := config.LoadDefaultConfig(ctx)
	if err != nil {
		return nil, err
	}
	f := &function{aws: cfg, ec2: ec2.NewFromConfig(cfg), dynamo: dynamodb.NewFromConfig(cfg)}
	if f.cluster, err = eks.Describe(ctx, awseks.NewFromConfig(cfg), os.Getenv("CLUSTER_NAME")); err != nil {
		return nil, err
	}
	access := eks.NewAccess(f.cluster, eks.NewTokens(f.cluster.Name, cfg.Region, cfg.Credentials, time.Now))
	f.kube, err = live.New(access.Config, live.Options{Renew: access.Renew})
	return f, err
}

// sweep launches one node, once, when a pod waits.
func (f *function) sweep(ctx context.Context) error {
	pods, err := f.kube.PendingPods(ctx)
	if err != nil || len(pods) == 0 {
		return err
	}
	_, err = f.dynamo.PutItem(ctx, &dynamodb.PutItemInput{
		TableName: aws.String(os.Getenv("KERF_TABLE")), ConditionExpression: aws.String("attribute_not_exists(pk)"),
		Item: map[string]types.AttributeValue{"pk": &types.AttributeValueMemberS{Value: "STANDIN"}, "sk": &types.AttributeValueMemberS{Value: "one"}},
	})
	if _, done := errors.AsType[*types.ConditionalCheckFailedException](err); done {
		return nil
	}
	if err != nil {
		return err
	}
	text, err := userdata.Render(userdata.Input{
		Family: catalog.FamilyAL2023, MaxPods: 58, Labels: map[string]string{"karpenter.sh/nodepool": "general"},
		Cluster: userdata.Cluster{Name: f.cluster.Name, Endpoint: f.cluster.Endpoint, CA: base64.StdEncoding.EncodeToString(f.cluster.CA), DNS: "10.0.0.10", ServiceCIDR: "10.0.0.0/24"},
		Taints:  []snapshot.Taint{{Key: "karpenter.sh/unregistered", Effect: "NoExecute"}},
	})
	if err != nil {
		return err
	}
	_, err = f.ec2.CreateLaunchTemplate(ctx, &ec2.CreateLaunchTemplateInput{LaunchTemplateName: aws.String("standin"), LaunchTemplateData: &ec2types.RequestLaunchTemplateData{
		ImageId: aws.String("ami-10000000000000001"), UserData: aws.String(userdata.Base64(text)), TagSpecifications: []ec2types.LaunchTemplateTagSpecificationRequest{},
	}})
	if err != nil {
		return err
	}
	out, err := f.ec2.CreateFleet(ctx, &ec2.CreateFleetInput{
		Type: ec2types.FleetTypeInstant, ClientToken: aws.String("standin-1"),
		TargetCapacitySpecification: &ec2types.TargetCapacitySpecificationRequest{TotalTargetCapacity: aws.Int32(1), DefaultTargetCapacityType: ec2types.DefaultTargetCapacityTypeSpot},
		LaunchTemplateConfigs: []ec2types.FleetLaunchTemplateConfigRequest{{
			LaunchTemplateSpecification: &ec2types.FleetLaunchTemplateSpecificationRequest{LaunchTemplateName: aws.String("standin"), Version: aws.String("$Latest")},
			Overrides:                   []ec2types.FleetLaunchTemplateOverridesRequest{{InstanceType: "m7g.xlarge", SubnetId: aws.String("subnet-00000000000000002")}},
		}},
		TagSpecifications: []ec2types.TagSpecification{{ResourceType: ec2types.ResourceTypeInstance, Tags: []ec2types.Tag{{Key: aws.String("eks:eks-cluster-name"), Value: &f.cluster.Name}}}},
	})
	if err != nil {
		return err
	}
	if len(out.Instances) != 1 {
		return fmt.Errorf("no instance: %+v", out.Errors)
	}
	body, err := lifecycle.Work{Kind: lifecycle.WorkRegister}.Encode()
	if err != nil {
		return err
	}
	return queue.New(sqs.NewFromConfig(f.aws), os.Getenv("KERF_WORK_QUEUE")).Send(ctx, lifecycle.Outgoing{Body: body, Delay: 8 * time.Second})
}

// register takes the taint off nodes that have joined; without any it fails.
func (f *function) register(ctx context.Context) error {
	nodes, err := f.kube.Nodes(ctx, "karpenter.sh/nodepool,!karpenter.sh/registered")
	if err != nil {
		return err
	}
	if len(nodes) == 0 {
		return errors.New("no node has joined")
	}
	for _, n := range nodes {
		_, v, err := f.kube.Node(ctx, n.Name)
		if err != nil {
			return err
		}
		change := live.NodeChange{Labels: map[string]string{"karpenter.sh/registered": "true"}, DropTaints: []snapshot.Taint{{Key: "karpenter.sh/unregistered"}}}
		if _, err := f.kube.ChangeNode(ctx, n.Name, v.UID, change); err != nil {
			return err
		}
	}
	text, err := json.Marshal(nodes[0].Name)
	fmt.Fprintln(os.Stderr, "registered", string(text))
	return err
}
