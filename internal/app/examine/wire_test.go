//go:build wire

package examine

import (
	"archive/zip"
	"bytes"
	"context"
	"encoding/json"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	awsconfig "github.com/aws/aws-sdk-go-v2/config"
	"github.com/aws/aws-sdk-go-v2/service/cloudformation"
	cfntypes "github.com/aws/aws-sdk-go-v2/service/cloudformation/types"
	awseks "github.com/aws/aws-sdk-go-v2/service/eks"
	ekstypes "github.com/aws/aws-sdk-go-v2/service/eks/types"
	"github.com/aws/aws-sdk-go-v2/service/eventbridge"
	"github.com/aws/aws-sdk-go-v2/service/lambda"

	"kerf.sh/kerf/internal/cloud/launch"
	"kerf.sh/kerf/internal/cloud/nodeclass"
	"kerf.sh/kerf/internal/doctor"
	"kerf.sh/kerf/internal/snapshot"
)

// emulator starts the program that KERF_EMULATOR names (make test-doctor installs it) and
// leads the SDK to it.
func emulator(t *testing.T) string {
	t.Helper()
	program := os.Getenv("KERF_EMULATOR")
	if program == "" {
		t.Fatal("KERF_EMULATOR does not name the emulator's program: use make test-doctor")
	}
	free, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	address := free.Addr().String()
	_, port, _ := net.SplitHostPort(address)
	free.Close()
	dir := t.TempDir()
	cmd := exec.Command(program)
	cmd.Env = append(os.Environ(), "GATEWAY_PORT="+port, "BIND_HOST=127.0.0.1", "LOG_LEVEL=WARNING", "TMPDIR="+dir, "STATE_DIR="+dir)
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL)
		_ = cmd.Wait()
	})
	for range 600 {
		if c, err := net.Dial("tcp", address); err == nil {
			c.Close()
			break
		}
		time.Sleep(100 * time.Millisecond)
	}
	url := "http://" + address
	for k, v := range map[string]string{"AWS_ENDPOINT_URL": url, "AWS_ACCESS_KEY_ID": "test", "AWS_SECRET_ACCESS_KEY": "test", "AWS_CONFIG_FILE": "/dev/null", "AWS_SHARED_CREDENTIALS_FILE": "/dev/null"} {
		t.Setenv(k, v)
	}
	return url
}

// put makes a bucket, or an object in one.
func put(t *testing.T, url string, body []byte) {
	t.Helper()
	q, err := http.NewRequestWithContext(t.Context(), http.MethodPut, url, bytes.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	a, err := http.DefaultClient.Do(q)
	if err != nil || a.StatusCode >= 300 {
		t.Fatal(err, a)
	}
	a.Body.Close()
}

// deployable is the golden template without what the emulator's CloudFormation cannot take: a
// custom resource, whose function it would have to run, access entries, and alarms on sums.
func deployable(t *testing.T) []byte {
	t.Helper()
	text, err := os.ReadFile(filepath.Join("..", "..", "..", "infra", "autoscaler", "testdata", "template.json"))
	if err != nil {
		t.Fatal(err)
	}
	var tm map[string]any
	if err := json.Unmarshal(text, &tm); err != nil {
		t.Fatal(err)
	}
	delete(tm, "Parameters")
	delete(tm, "Rules")
	resources := tm["Resources"].(map[string]any)
	for id, v := range resources {
		r := v.(map[string]any)
		p, _ := r["Properties"].(map[string]any)
		switch typ := r["Type"]; {
		case typ == "Custom::KerfCluster", typ == "AWS::EKS::AccessEntry", typ == "AWS::CloudWatch::Alarm" && p["Metrics"] != nil:
			delete(resources, id)
		case typ == "AWS::Lambda::Function":
			p["Code"] = map[string]any{"S3Bucket": "assets", "S3Key": "code.zip"}
		}
	}
	for _, v := range resources {
		r := v.(map[string]any)
		if on, ok := r["DependsOn"].([]any); ok {
			r["DependsOn"] = slices.DeleteFunc(on, func(id any) bool { return resources[id.(string)] == nil })
		}
	}
	out, err := json.Marshal(tm)
	if err != nil {
		t.Fatal(err)
	}
	return out
}

// TestWireStack: the stack as it is synthesised, deployed by an emulator of CloudFormation, is
// found whole over HTTP; and so is what somebody turns off.
func TestWireStack(t *testing.T) {
	url := emulator(t)
	var code bytes.Buffer
	z := zip.NewWriter(&code)
	if _, err := z.Create("bootstrap"); err != nil {
		t.Fatal(err)
	}
	z.Close()
	put(t, url+"/assets", nil)
	put(t, url+"/assets/code.zip", code.Bytes())
	put(t, url+"/assets/template.json", deployable(t))
	conf, err := awsconfig.LoadDefaultConfig(t.Context(), awsconfig.WithRegion("us-east-1"))
	if err != nil {
		t.Fatal(err)
	}
	if _, err := awseks.NewFromConfig(conf).CreateCluster(t.Context(), &awseks.CreateClusterInput{Name: aws.String("prod"), RoleArn: aws.String("arn:aws:iam::000000000000:role/x"), Version: aws.String("1.33"),
		ResourcesVpcConfig: &ekstypes.VpcConfigRequest{SubnetIds: []string{"subnet-1"}}}); err != nil {
		t.Fatal(err)
	}
	stacks := cloudformation.NewFromConfig(conf)
	if _, err := stacks.CreateStack(t.Context(), &cloudformation.CreateStackInput{StackName: aws.String("kerf-prod"), TemplateURL: aws.String(url + "/assets/template.json"), Capabilities: []cfntypes.Capability{"CAPABILITY_IAM"}}); err != nil {
		t.Fatal(err)
	}
	if err := cloudformation.NewStackCreateCompleteWaiter(stacks, func(o *cloudformation.StackCreateCompleteWaiterOptions) { o.MinDelay = time.Second }).
		Wait(t.Context(), &cloudformation.DescribeStacksInput{StackName: aws.String("kerf-prod")}, time.Minute); err != nil {
		t.Fatal(err)
	}
	to := target{cluster: "prod", region: "us-east-1", settings: snapshot.DefaultSettings()}
	x, err := to.examiner(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	kube := &fakeKube{objects: manifests}
	x.Kube = func(context.Context) (Cluster, error) { return kube, nil }
	x.Images = func(context.Context, *nodeclass.Class, string) ([]nodeclass.Image, error) {
		return make([]nodeclass.Image, 1), nil
	}
	x.Instances = func(context.Context, string) ([]launch.Described, error) { return nil, nil }
	f := x.Facts(t.Context())
	s := f.Stack
	if s == nil || s.Status != "CREATE_COMPLETE" || len(s.Functions) != 5 || len(s.Triggers) != 3 || len(s.Schedules) != 3 || len(s.Rules) != 5 || len(s.Queues) != 5 {
		t.Fatalf("%+v", s)
	}
	for _, step := range doctor.Examine(f).Steps {
		for _, found := range step.Findings {
			// The emulator made no access entries, and the table is empty.
			if (step.Name == "stack" && found.Code != doctor.FunctionNotLetIn && found.Code != doctor.NotSeen || step.Name == "interruption") && found.Status == doctor.Broken {
				t.Errorf("%s: %+v", step.Name, found)
			}
		}
	}
	if !f.Ledger.Missing || !strings.Contains(f.Ledger.Table, "KerfLedger") || s.Functions[0].Logs == "" || f.Concurrency == nil {
		t.Errorf("%+v %+v", f.Ledger, s.Functions[0])
	}
	// Somebody turns three things off.
	lambdas, events := lambda.NewFromConfig(conf), eventbridge.NewFromConfig(conf)
	if _, err := events.DisableRule(t.Context(), &eventbridge.DisableRuleInput{Name: &s.Rules[0].ID}); err != nil {
		t.Fatal(err)
	}
	if _, err := lambdas.UpdateEventSourceMapping(t.Context(), &lambda.UpdateEventSourceMappingInput{UUID: &s.Triggers[0].ID, Enabled: aws.Bool(false)}); err != nil {
		t.Fatal(err)
	}
	i := slices.IndexFunc(s.Functions, func(fn doctor.Function) bool { return fn.Name == "lifecycle" })
	if _, err := lambdas.PutFunctionConcurrency(t.Context(), &lambda.PutFunctionConcurrencyInput{FunctionName: &s.Functions[i].ID, ReservedConcurrentExecutions: aws.Int32(0)}); err != nil {
		t.Fatal(err)
	}
	got := codes(doctor.Examine(x.Facts(t.Context())))
	for _, want := range []string{"interruption RuleDisabled", "stack TriggerDisabled", "stack FunctionStopped"} {
		if !slices.Contains(got, want) {
			t.Errorf("%s is missing in %v", want, got)
		}
	}
}
