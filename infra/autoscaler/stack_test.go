package autoscaler

import (
	"bytes"
	"debug/elf"
	"encoding/json"
	"flag"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/aws/aws-cdk-go/awscdk/v2"
	"github.com/aws/aws-cdk-go/awscdk/v2/assertions"
	"github.com/aws/jsii-runtime-go"
	"github.com/google/go-cmp/cmp"

	"kerf.sh/kerf/internal/config"
)

var rewrite = flag.Bool("rewrite", false, "rewrite the golden template")

func TestMain(m *testing.M) {
	code := m.Run()
	jsii.Close() // the CDK's own process
	os.Exit(code)
}

// resource is one resource of a template, as far as the tests look into it.
type resource struct {
	Type           string
	DeletionPolicy string
	Properties     map[string]any
}

type template struct {
	Resources map[string]resource
	Outputs   map[string]struct{ Value any }
}

func synthesise(t *testing.T, props Props) (template, []byte) {
	t.Helper()
	stack, err := NewStack(awscdk.NewApp(&awscdk.AppProps{AnalyticsReporting: jsii.Bool(false)}), props)
	if err != nil {
		t.Fatal(err)
	}
	var buf bytes.Buffer
	enc := json.NewEncoder(&buf)
	enc.SetEscapeHTML(false)
	enc.SetIndent("", "  ")
	if err := enc.Encode(assertions.Template_FromStack(stack, nil).ToJSON()); err != nil {
		t.Fatal(err)
	}
	var out template
	if err := json.Unmarshal(buf.Bytes(), &out); err != nil {
		t.Fatal(err)
	}
	return out, buf.Bytes()
}

// only returns the one resource of a type.
func (tm template) only(t *testing.T, typ string) (string, resource) {
	t.Helper()
	var ids []string
	for id, r := range tm.Resources {
		if r.Type == typ {
			ids = append(ids, id)
		}
	}
	if len(ids) != 1 {
		t.Fatalf("%d resources of type %s: %v", len(ids), typ, ids)
	}
	return ids[0], tm.Resources[ids[0]]
}

func demoProps(t *testing.T) Props {
	return Props{ClusterName: "prod", CodeDir: builtCode(t, elf.EM_AARCH64), Settings: map[string]string{"RESERVED_ENIS": "1"}}
}

// TestGolden shows every change of the template in review.
func TestGolden(t *testing.T) {
	_, got := synthesise(t, demoProps(t))
	file := filepath.Join("testdata", "template.json")
	if *rewrite {
		if err := os.WriteFile(file, got, 0o644); err != nil {
			t.Fatal(err)
		}
		return
	}
	want, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	if d := cmp.Diff(string(want), string(got)); d != "" {
		t.Errorf("the template changed (go test ./autoscaler -rewrite, then read the diff):\n%s", d)
	}
}

// TestResources: nothing is in the stack but what is meant to be.
func TestResources(t *testing.T) {
	tm, _ := synthesise(t, demoProps(t))
	var types []string
	for _, r := range tm.Resources {
		types = append(types, r.Type)
	}
	slices.Sort(types)
	want := []string{"AWS::IAM::Role", "AWS::Lambda::Function", "AWS::Logs::LogGroup"}
	if d := cmp.Diff(want, types); d != "" {
		t.Error(d)
	}
}

// TestRole: the function may write to its own log group, and nothing else; nobody
// but Lambda may take the role.
func TestRole(t *testing.T) {
	tm, _ := synthesise(t, demoProps(t))
	logs, _ := tm.only(t, "AWS::Logs::LogGroup")
	id, role := tm.only(t, "AWS::IAM::Role")
	for _, more := range []string{"ManagedPolicyArns", "PermissionsBoundary"} {
		if v, ok := role.Properties[more]; ok {
			t.Errorf("%s: %v", more, v)
		}
	}
	want := []any{map[string]any{"PolicyName": "logs", "PolicyDocument": map[string]any{"Version": "2012-10-17", "Statement": []any{map[string]any{
		"Effect":   "Allow",
		"Action":   []any{"logs:CreateLogStream", "logs:PutLogEvents"},
		"Resource": map[string]any{"Fn::GetAtt": []any{logs, "Arn"}},
	}}}}}
	if d := cmp.Diff(want, role.Properties["Policies"]); d != "" {
		t.Error(d)
	}
	trust := map[string]any{"Version": "2012-10-17", "Statement": []any{map[string]any{
		"Effect": "Allow", "Action": "sts:AssumeRole", "Principal": map[string]any{"Service": "lambda.amazonaws.com"},
	}}}
	if d := cmp.Diff(trust, role.Properties["AssumeRolePolicyDocument"]); d != "" {
		t.Error(d)
	}
	_, fn := tm.only(t, "AWS::Lambda::Function")
	if d := cmp.Diff(map[string]any{"Fn::GetAtt": []any{id, "Arn"}}, fn.Properties["Role"]); d != "" {
		t.Errorf("the function runs under another role: %s", d)
	}
}

func TestFunction(t *testing.T) {
	tm, _ := synthesise(t, demoProps(t))
	logs, group := tm.only(t, "AWS::Logs::LogGroup")
	_, fn := tm.only(t, "AWS::Lambda::Function")
	for key, want := range map[string]any{
		"Runtime":       "provided.al2023",
		"Handler":       "bootstrap",
		"Architectures": []any{"arm64"},
		"MemorySize":    float64(1769),
		"Timeout":       float64(60),
		"Environment":   map[string]any{"Variables": map[string]any{"CLUSTER_NAME": "prod", "RESERVED_ENIS": "1"}},
		"LoggingConfig": map[string]any{"LogFormat": "JSON", "ApplicationLogLevel": "INFO", "SystemLogLevel": "WARN", "LogGroup": map[string]any{"Ref": logs}},
	} {
		if d := cmp.Diff(want, fn.Properties[key]); d != "" {
			t.Errorf("%s: %s", key, d)
		}
	}
	if group.Properties["RetentionInDays"] != float64(30) || group.DeletionPolicy != "Delete" {
		t.Errorf("log group: %+v", group)
	}
	if _, ok := fn.Properties["VpcConfig"]; ok {
		t.Error("the plan function needs no VPC")
	}
}

// TestChoices: what a person sets arrives in the template.
func TestChoices(t *testing.T) {
	tm, _ := synthesise(t, Props{
		ClusterName: "a_b", CodeDir: builtCode(t, elf.EM_X86_64), Architecture: AMD64,
		LogRetentionDays: 7, PlanMemoryMiB: 512, PlanTimeoutSeconds: 30,
	})
	_, fn := tm.only(t, "AWS::Lambda::Function")
	_, group := tm.only(t, "AWS::Logs::LogGroup")
	got := []any{fn.Properties["Architectures"], fn.Properties["MemorySize"], fn.Properties["Timeout"], group.Properties["RetentionInDays"]}
	if d := cmp.Diff([]any{[]any{"x86_64"}, float64(512), float64(30), float64(7)}, got); d != "" {
		t.Error(d)
	}
}

// TestEnvironment: every variable that the stack sets is one that the function knows.
func TestEnvironment(t *testing.T) {
	props := demoProps(t)
	known := map[string]bool{}
	for _, s := range config.Table() {
		if s.Scope == config.Made {
			continue
		}
		known[s.Key] = true
		if s.Key != clusterVariable {
			props.Settings[s.Key] = s.Default
		}
	}
	tm, _ := synthesise(t, props)
	_, fn := tm.only(t, "AWS::Lambda::Function")
	set, _ := fn.Properties["Environment"].(map[string]any)["Variables"].(map[string]any)
	if len(set) != len(known) {
		t.Errorf("the stack sets %d variables, the function knows %d", len(set), len(known))
	}
	var environ []string
	for k, v := range set {
		if !known[k] {
			t.Errorf("%s is set and not known", k)
		}
		environ = append(environ, k+"="+v.(string))
	}
	if _, err := config.Load(environ); err != nil {
		t.Errorf("the function would not start: %v", err)
	}
}

func TestOutputs(t *testing.T) {
	tm, _ := synthesise(t, demoProps(t))
	if len(tm.Outputs) != 3 {
		t.Errorf("outputs: %v", tm.Outputs)
	}
	invoke, _ := json.Marshal(tm.Outputs["PlanInvoke"].Value)
	for _, part := range []string{"aws lambda invoke --region ", "AWS::Region", " --function-name ", "KerfPlanFunction", "--payload file://request.json"} {
		if !strings.Contains(string(invoke), part) {
			t.Errorf("PlanInvoke misses %q: %s", part, invoke)
		}
	}
}

// TestRefused: a mistake is an error before anything is made.
func TestRefused(t *testing.T) {
	app := awscdk.NewApp(nil)
	if _, err := NewStack(app, Props{}); err == nil {
		t.Error("a stack without a cluster")
	}
	if n := len(*app.Node().Children()); n != 0 {
		t.Errorf("%d things were made all the same", n)
	}
	stack := awscdk.NewStack(app, jsii.String("S"), nil)
	if _, err := New(stack, "Kerf", Props{ClusterName: "prod", CodeDir: t.TempDir()}); err == nil {
		t.Error("a construct without code")
	}
	if n := len(*stack.Node().Children()); n != 0 {
		t.Errorf("%d things were made all the same", n)
	}
}
