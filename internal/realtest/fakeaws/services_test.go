package fakeaws

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"net/url"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	awseks "github.com/aws/aws-sdk-go-v2/service/eks"
	awspricing "github.com/aws/aws-sdk-go-v2/service/pricing"
	"github.com/aws/aws-sdk-go-v2/service/sqs"
	"github.com/aws/aws-sdk-go-v2/service/sqs/types"
	"github.com/aws/aws-sdk-go-v2/service/ssm"
	"github.com/aws/aws-sdk-go-v2/service/sts"
	"github.com/aws/smithy-go"

	"kerf.sh/kerf/internal/cloud/ec2fake"
	"kerf.sh/kerf/internal/cloud/pricing"
	"kerf.sh/kerf/internal/kube/eks"
)

func asAPI(err error, api *smithy.APIError) bool { return errors.As(err, api) }

func parse(t *testing.T, form string) url.Values {
	t.Helper()
	v, err := url.ParseQuery(form)
	if err != nil {
		t.Fatal(err)
	}
	return v
}

func code(err error) string {
	var api smithy.APIError
	if errors.As(err, &api) {
		return api.ErrorCode()
	}
	return ""
}

func started(t *testing.T) *AWS {
	t.Helper()
	a := &AWS{EC2: ec2fake.New(time.Now), IAM: &ec2fake.IAM{Now: time.Now}, SSM: &ec2fake.SSM{Parameters: map[string]string{"/a": "ami-1"}}, Queues: &Queues{}}
	if err := a.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(a.Stop)
	return a
}

// TestSmallServices: parameters, prices, the cluster, who one is.
func TestSmallServices(t *testing.T) {
	a, ctx := started(t), context.Background()
	params := ssm.New(ssm.Options{Region: Region, BaseEndpoint: aws.String(a.Endpoint("SSM")), Credentials: keys})
	if out, err := params.GetParameter(ctx, &ssm.GetParameterInput{Name: aws.String("/a")}); err != nil || *out.Parameter.Value != "ami-1" {
		t.Errorf("parameter: %+v, %v", out, err)
	}
	if _, err := params.GetParameter(ctx, &ssm.GetParameterInput{Name: aws.String("/b")}); code(err) != "ParameterNotFound" {
		t.Errorf("no parameter: %v", err)
	}

	for _, name := range []string{"m5.large", "m5.xlarge", "c5.large"} {
		a.EC2.AddType(ec2fake.Type{Name: name, Arch: "amd64", VCPU: 2, OnDemand: 96_000})
	}
	list, err := pricing.OnDemand(ctx, awspricing.New(awspricing.Options{Region: Region, BaseEndpoint: aws.String(a.Endpoint("PRICING")), Credentials: keys}), Region)
	if err != nil || len(list) != 3 || list["m5.xlarge"] != 96_000 {
		t.Errorf("prices: %v, %v", list, err)
	}

	a.EKS = EKS{Name: "prod", Version: "1.36", Endpoint: "https://127.0.0.1:1", CA: []byte("-----BEGIN CERTIFICATE-----\nQQ==\n-----END CERTIFICATE-----\n")}
	api := awseks.New(awseks.Options{Region: Region, BaseEndpoint: aws.String(a.Endpoint("EKS")), Credentials: keys})
	if c, err := eks.Describe(ctx, api, "prod"); err != nil || c.Endpoint != a.EKS.Endpoint || !bytes.Equal(c.CA, a.EKS.CA) || c.AuthMode != "API" || !c.Public {
		t.Errorf("cluster: %+v, %v", c, err)
	}
	if _, err := eks.Describe(ctx, api, "other"); code(err) != "ResourceNotFoundException" {
		t.Errorf("another cluster: %v", err)
	}
	who, err := sts.New(sts.Options{Region: Region, BaseEndpoint: aws.String(a.Endpoint("STS")), Credentials: keys}).GetCallerIdentity(ctx, &sts.GetCallerIdentityInput{})
	if err != nil || *who.Account != Account {
		t.Errorf("who: %+v, %v", who, err)
	}
}

// TestQueues: delay, visibility, batches, limits, dead letters.
func TestQueues(t *testing.T) {
	a, ctx := started(t), context.Background()
	a.Queues.Add(Queue{Name: "work", Visibility: 200 * time.Millisecond, MaxReceive: 2, Dead: "dead"}, Queue{Name: "dead"}, Queue{Name: "twice", Twice: true})
	c := sqs.New(sqs.Options{Region: Region, BaseEndpoint: aws.String(a.Endpoint("SQS")), Credentials: keys})
	work := aws.String(a.URL("work"))
	if _, err := c.SendMessage(ctx, &sqs.SendMessageInput{QueueUrl: work, MessageBody: aws.String("now"), MessageAttributes: map[string]types.MessageAttributeValue{
		"k": {DataType: aws.String("String"), StringValue: aws.String("v")}}}); err != nil {
		t.Fatal(err)
	}
	out, err := c.SendMessageBatch(ctx, &sqs.SendMessageBatchInput{QueueUrl: work, Entries: []types.SendMessageBatchRequestEntry{
		{Id: aws.String("1"), MessageBody: aws.String("later"), DelaySeconds: 1}, {Id: aws.String("2"), MessageBody: aws.String("never"), DelaySeconds: 901}}})
	if err != nil || len(out.Successful) != 1 || len(out.Failed) != 1 || *out.Failed[0].Code != "InvalidParameterValue" {
		t.Errorf("batch: %+v, %v", out, err)
	}
	for want, in := range map[string]*sqs.SendMessageInput{
		"QueueDoesNotExist":     {QueueUrl: aws.String(a.URL("gone")), MessageBody: aws.String("x")},
		"InvalidParameterValue": {QueueUrl: work, MessageBody: aws.String(strings.Repeat("x", maxBody+1))},
	} {
		if _, err := c.SendMessage(ctx, in); code(err) != want {
			t.Errorf("got %v, want %s", err, want)
		}
	}
	first := a.Queues.Receive("work", 10)
	if len(first) != 1 || first[0].Body != "now" || first[0].Attributes["k"].StringValue != "v" {
		t.Fatalf("received %+v", first)
	}
	if again := a.Queues.Receive("work", 10); len(again) != 0 {
		t.Errorf("a hidden message is received: %+v", again)
	}
	hidden, err := c.ChangeMessageVisibilityBatch(ctx, &sqs.ChangeMessageVisibilityBatchInput{QueueUrl: work, Entries: []types.ChangeMessageVisibilityBatchRequestEntry{
		{Id: aws.String("1"), ReceiptHandle: &first[0].Handle, VisibilityTimeout: 1}, {Id: aws.String("2"), ReceiptHandle: aws.String("gone")}}})
	if err != nil || len(hidden.Successful) != 1 || len(hidden.Failed) != 1 {
		t.Errorf("hide: %+v, %v", hidden, err)
	}
	time.Sleep(500 * time.Millisecond)
	if again := a.Queues.Receive("work", 10); len(again) != 0 {
		t.Errorf("it is hidden no longer than the queue says: %+v", again)
	}
	time.Sleep(600 * time.Millisecond)
	second := a.Queues.Receive("work", 10)
	if len(second) != 2 || second[0].Received != 2 || second[1].Body != "later" {
		t.Fatalf("received %+v", second)
	}
	last := second[1]
	raw, err := Event("work", second)
	var event struct {
		Records []struct{ MessageID, Body, EventSourceARN string }
	}
	if err != nil || json.Unmarshal(raw, &event) != nil || len(event.Records) != 2 || event.Records[0].Body != "now" || event.Records[0].EventSourceARN != ARN("work") {
		t.Errorf("event %s, %v", raw, err)
	}
	if err := a.Queues.Delete("work", last.Handle); err != nil {
		t.Error(err)
	}
	time.Sleep(300 * time.Millisecond)
	if more := a.Queues.Receive("work", 10); len(more) != 0 {
		t.Errorf("received a third time: %+v", more)
	}
	if dead := a.Queues.Waiting("dead"); !slices.Equal(dead, []string{"now"}) {
		t.Errorf("dead letters: %q", dead)
	}
	if left := a.Queues.Messages("work"); len(left) != 0 {
		t.Errorf("left: %+v", left)
	}
	if _, err := c.SendMessage(ctx, &sqs.SendMessageInput{QueueUrl: aws.String(a.URL("twice")), MessageBody: aws.String("x")}); err != nil || len(a.Queues.Receive("twice", 10)) != 2 {
		t.Errorf("delivered not twice: %v", err)
	}
}
