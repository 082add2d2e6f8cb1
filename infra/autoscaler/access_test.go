package autoscaler

import (
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// dependsOn are the ids that a resource waits for.
func (r resource) dependsOn() []string {
	switch v := r.DependsOn.(type) {
	case string:
		return []string{v}
	case []any:
		var out []string
		for _, s := range v {
			out = append(out, s.(string))
		}
		return out
	}
	return nil
}

// TestAccess: each function gets into its own group and nothing else, bootstrap is an
// administrator, and nothing starts before the cluster is set up.
func TestAccess(t *testing.T) {
	tm := demo(t)
	cluster := tm.find(t, "Custom::KerfCluster", "")
	var entries []string
	for _, f := range functions {
		e := tm.find(t, "AWS::EKS::AccessEntry", "Kerf"+f)
		entries = append(entries, e.id)
		want := map[string]any{"ClusterName": "prod", "Type": "STANDARD", "PrincipalArn": map[string]any{"Fn::GetAtt": []any{tm.role(t, f).id, "Arn"}}}
		if f == "Bootstrap" {
			want["AccessPolicies"] = []any{map[string]any{
				"PolicyArn":   map[string]any{"Fn::Join": []any{"", []any{"arn:", map[string]any{"Ref": "AWS::Partition"}, ":eks::aws:cluster-access-policy/AmazonEKSClusterAdminPolicy"}}},
				"AccessScope": map[string]any{"Type": "cluster"}}}
		} else {
			want["KubernetesGroups"] = []any{"kerf:" + strings.ToLower(f)}
		}
		if d := cmp.Diff(want, e.Properties); d != "" {
			t.Errorf("%s: %s", f, d)
		}
	}
	slices.Sort(entries)
	if d := cmp.Diff(entries, cluster.dependsOn()); d != "" {
		t.Errorf("the cluster is set up after: %s", d)
	}
	if target(cluster.Properties["ServiceToken"]) != tm.function(t, "Bootstrap").id || cluster.Properties["ServiceTimeout"].(string) != "360" {
		t.Errorf("%v", cluster.Properties)
	}
	for _, typ := range []string{"AWS::Scheduler::Schedule", "AWS::Lambda::EventSourceMapping"} {
		for _, r := range tm.all(typ) {
			if !slices.Contains(r.dependsOn(), cluster.id) {
				t.Errorf("%s starts a function that is not let in yet", r.id)
			}
		}
	}
	roles := list(cluster.Properties["NodeRoles"])
	if d := cmp.Diff([]string{"arn:aws-us-gov:iam::123456789012:role/KarpenterNodeRole-prod"}, roles); d != "" {
		t.Error(d)
	}
	// The names of groups and modes are those of the function.
	source, err := os.ReadFile(filepath.Join("..", "..", "internal", "kube", "setup", "objects.go"))
	if err != nil || !strings.Contains(string(source), `return "`+groupPrefix+`" + function`) {
		t.Errorf("groups do not begin with %s in the cluster (%v)", groupPrefix, err)
	}
	source, err = os.ReadFile(filepath.Join("..", "..", "internal", "kube", "setup", "install.go"))
	for _, m := range CRDModes {
		if err != nil || !strings.Contains(string(source), `Mode = "`+m+`"`) {
			t.Errorf("the function does not know mode %s (%v)", m, err)
		}
	}
}

// TestUpdate: new code of bootstrap sets the cluster up anew.
func TestUpdate(t *testing.T) {
	version := func(props Props) any { return made(t, props).find(t, "Custom::KerfCluster", "").Properties["Version"] }
	props := demoProps()
	props.CodeDir = t.TempDir()
	if err := os.CopyFS(props.CodeDir, os.DirFS(codeDir)); err != nil {
		t.Fatal(err)
	}
	before := version(props)
	f, err := os.OpenFile(filepath.Join(props.CodeDir, "bootstrap", "bootstrap"), os.O_APPEND|os.O_WRONLY, 0)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := f.WriteString("more"); err != nil {
		t.Fatal(err)
	}
	f.Close()
	if after := version(props); after == before || before == nil {
		t.Errorf("version %v, then %v", before, after)
	}
}

// TestOtherWaysIn: with aws-auth nothing runs until the lines are in it, and with the lines
// everybody is let in.
func TestOtherWaysIn(t *testing.T) {
	props := demoProps()
	props.Access = AccessConfigMap
	tm := made(t, props)
	for _, typ := range []string{"AWS::EKS::AccessEntry", "Custom::KerfCluster", "AWS::Scheduler::Schedule", "AWS::Lambda::EventSourceMapping", "AWS::Events::Rule"} {
		if n := len(tm.all(typ)); n > 0 {
			t.Errorf("configMap: %d of %s", n, typ)
		}
	}
	lines := list(tm.Outputs["AwsAuthRoles"].Value)
	if len(lines) != 1 {
		t.Fatalf("%v", tm.Outputs)
	}
	for _, want := range []string{`groups: ["kerf:plan"]`, `groups: ["kerf:sweep"]`, `groups: ["kerf:lifecycle"]`, `groups: ["kerf:catalog"]`, `groups: ["kerf:interruption"]`, `groups: ["kerf:consolidation"]`,
		`groups: ["system:masters"]`, "role/KarpenterNodeRole-prod\n  username: \"system:node:{{EC2PrivateDNSName}}\"\n  groups: [\"system:bootstrappers\", \"system:nodes\"]"} {
		if !strings.Contains(lines[0], want) {
			t.Errorf("%s is missing in:\n%s", want, lines[0])
		}
	}
	props.Access = AccessExisting
	tm = made(t, props)
	cluster := tm.find(t, "Custom::KerfCluster", "")
	if len(tm.all("AWS::EKS::AccessEntry")) > 0 || len(tm.all("AWS::Lambda::EventSourceMapping")) != 3 || cluster.Properties["NodeRoles"] != nil {
		t.Errorf("existing: %v", cluster.Properties)
	}
	for _, s := range statements(tm.role(t, "Bootstrap")) {
		if slices.Contains(list(s["Action"]), "eks:CreateAccessEntry") {
			t.Error("existing: bootstrap may make access entries")
		}
	}
}

// TestNetwork: in a VPC the functions that ask the API server are in the subnets, it lets
// them in, and with endpoints they need nothing else to reach AWS.
func TestNetwork(t *testing.T) {
	props := demoProps()
	props.VPCID, props.SubnetIDs, props.ClusterSecurityGroupID = "vpc-01234567", []string{"subnet-01234567", "subnet-89abcdef"}, "sg-01234567"
	tm := made(t, props)
	group := tm.find(t, "AWS::EC2::SecurityGroup", "KerfNetworkGroup")
	in := func(tm template, group string) []string {
		var out []string
		for _, f := range functions {
			fn := tm.function(t, f)
			if fn.at("VpcConfig") == nil {
				continue
			}
			out = append(out, f)
			want := map[string]any{"SubnetIds": []any{"subnet-01234567", "subnet-89abcdef"}, "SecurityGroupIds": []any{map[string]any{"Fn::GetAtt": []any{group, "GroupId"}}}}
			if d := cmp.Diff(want, fn.at("VpcConfig")); d != "" {
				t.Errorf("%s: %s", f, d)
			}
			if !slices.ContainsFunc(statements(tm.role(t, f)), func(s map[string]any) bool { return s["Sid"] == "AllowNetworkInterfaces" }) {
				t.Errorf("%s: Lambda may not put it into a VPC", f)
			}
			if !slices.ContainsFunc(fn.dependsOn(), func(d string) bool { return strings.HasPrefix(d, "KerfNetworkToAPIServer") }) {
				t.Errorf("%s may run before the API server lets it in: %v", f, fn.dependsOn())
			}
		}
		return out
	}
	all := []string{"Plan", "Sweep", "Lifecycle", "Catalog", "Interruption", "Consolidation", "Bootstrap"}
	if d := cmp.Diff(all, in(tm, group.id)); d != "" {
		t.Error(d)
	}
	door := tm.find(t, "AWS::EC2::SecurityGroupIngress", "KerfNetworkToAPIServer")
	want := map[string]any{"GroupId": "sg-01234567", "SourceSecurityGroupId": map[string]any{"Fn::GetAtt": []any{group.id, "GroupId"}}, "IpProtocol": "tcp", "FromPort": 443., "ToPort": 443.,
		"Description": "Functions of Kerf to the API server"}
	if d := cmp.Diff(want, door.Properties); d != "" {
		t.Error(d)
	}
	if got := tm.function(t, "Catalog").at("Environment", "Variables", "ISOLATED_VPC"); got != nil || len(tm.all("AWS::EC2::VPCEndpoint")) > 0 {
		t.Errorf("with NAT: isolated %v", got)
	}
	props.Endpoints, props.RouteTableIDs = true, []string{"rtb-01234567"}
	props.Settings["KERF_NOTICE_BUS"] = "people" // it has an endpoint of its own then
	tm = made(t, props)
	in(tm, tm.find(t, "AWS::EC2::SecurityGroup", "KerfNetworkGroup").id)
	got := map[string]any{}
	for _, e := range tm.all("AWS::EC2::VPCEndpoint") {
		got[strings.TrimPrefix(list(e.Properties["ServiceName"])[0], "com.amazonaws.ap-southeast-4.")] = e.Properties["VpcEndpointType"]
	}
	reached := map[string]bool{}
	for _, f := range functions {
		for _, s := range statements(tm.role(t, f)) {
			for _, a := range list(s["Action"]) {
				if f == "Plan" && !slices.Contains([]string{"AllowReadingLedger", "AllowAPIServerEndpointDiscovery"}, fmt.Sprint(s["Sid"])) {
					continue // the doctor says what it could not reach
				}
				service, _, _ := strings.Cut(a, ":")
				reached[service] = true
			}
		}
	}
	for service := range reached {
		if !slices.Contains([]string{"iam", "pricing"}, service) && got[service] == nil {
			t.Errorf("functions ask %s, and there is no endpoint: %v", service, slices.Sorted(maps.Keys(got)))
		}
	}
	if got["s3"] != "Gateway" || got["dynamodb"] != "Gateway" || got["ec2"] != "Interface" {
		t.Errorf("%v", got)
	}
	for _, f := range all {
		if v := tm.function(t, f).at("Environment", "Variables", "ISOLATED_VPC"); v != "true" {
			t.Errorf("%s does not know that IAM has no endpoint: %v", f, v)
		}
	}
	// What has no endpoint is asked from outside, by a function that can do nothing else.
	prices := tm.function(t, "Prices")
	if prices.at("VpcConfig") != nil || prices.at("Environment", "Variables", "ISOLATED_VPC") != nil || prices.at("Code", "S3Key") != tm.function(t, "Catalog").at("Code", "S3Key") {
		t.Errorf("prices: %v", prices.Properties)
	}
	var may []string
	for _, s := range statements(tm.role(t, "Prices")) {
		may = append(may, list(s["Action"])...)
	}
	slices.Sort(may)
	if d := cmp.Diff(strings.Fields("dynamodb:ConditionCheckItem dynamodb:DeleteItem dynamodb:DescribeTable dynamodb:GetItem dynamodb:PutItem dynamodb:Query dynamodb:UpdateItem"+
		" ec2:DescribeInstanceTypeOfferings ec2:DescribeInstanceTypes ec2:DescribeSpotPriceHistory logs:CreateLogStream logs:PutLogEvents pricing:GetProducts"), may); d != "" {
		t.Error(d)
	}
	refresh := tm.find(t, "AWS::Scheduler::Schedule", "KerfPriceRefresh")
	if target(refresh.at("Target", "Arn")) != prices.id || refresh.at("Target", "Input") != `{"only":"prices"}` {
		t.Errorf("%v", refresh.Properties)
	}
}
