package autoscaler

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/aws/aws-cdk-go/awscdk/v2"
	"github.com/aws/aws-cdk-go/awscdk/v2/awsec2"
	"github.com/aws/aws-cdk-go/awscdk/v2/awseks"
	"github.com/aws/constructs-go/constructs/v10"
	"github.com/aws/jsii-runtime-go"
)

// groupPrefix and the name of a function make its group in Kubernetes (internal/kube/setup).
const groupPrefix = "kerf:"

// member is a function with its name in the cluster.
type member struct {
	name string
	fn   *Function
}

// members are the functions that ask the API server of the cluster, but for bootstrap.
func (a *Autoscaler) members() []member {
	return []member{{"plan", &a.Plan}, {"sweep", a.Sweep}, {"lifecycle", a.Lifecycle}, {"catalog", a.Catalog}, {"interruption", a.Interruption}, {"consolidation", a.Consolidation}}
}

// access lets the functions into the cluster, and sets it up for them. Entries go after the
// custom resource when a stack goes: it can still clean up.
func (a *Autoscaler) access(props Props) {
	var entries []constructs.IDependable
	if props.Access == AccessEntries {
		for _, m := range a.members() {
			entries = append(entries, awseks.NewCfnAccessEntry(m.fn.Lambda, jsii.String("Access"), &awseks.CfnAccessEntryProps{
				ClusterName: &props.ClusterName, PrincipalArn: m.fn.Role.RoleArn(), Type: jsii.String("STANDARD"), KubernetesGroups: jsii.Strings(groupPrefix + m.name),
			}))
		}
		admin := "arn:" + *awscdk.Stack_Of(a.Construct).Partition() + ":eks::aws:cluster-access-policy/AmazonEKSClusterAdminPolicy"
		entries = append(entries, awseks.NewCfnAccessEntry(a.Bootstrap.Lambda, jsii.String("Access"), &awseks.CfnAccessEntryProps{
			ClusterName: &props.ClusterName, PrincipalArn: a.Bootstrap.Role.RoleArn(), Type: jsii.String("STANDARD"),
			AccessPolicies: []any{&awseks.CfnAccessEntry_AccessPolicyProperty{
				PolicyArn: &admin, AccessScope: &awseks.CfnAccessEntry_AccessScopeProperty{Type: jsii.String("cluster")},
			}},
		}))
	}
	if !props.runs() {
		return
	}
	properties := map[string]any{"Version": codeHash(props, "bootstrap"), "Crds": props.CRDs}
	if props.Access == AccessEntries {
		properties["NodeRoles"] = a.grants(props).nodeRoles()
	}
	cluster := awscdk.NewCustomResource(a.Construct, jsii.String("Cluster"), &awscdk.CustomResourceProps{
		ResourceType: jsii.String("Custom::KerfCluster"), ServiceToken: a.Bootstrap.Lambda.FunctionArn(),
		ServiceTimeout: seconds(bootstrapTimeout + 60), Properties: &properties,
	})
	for _, e := range entries {
		cluster.Node().AddDependency(e)
	}
	a.ready = cluster
}

// codeHash changes when a function does. validate has seen that it is there.
func codeHash(props Props, fn string) string {
	code, err := os.ReadFile(filepath.Join(props.CodeDir, fn, "bootstrap"))
	if err != nil {
		panic(fmt.Sprintf("autoscaler: the code of %s was there a moment ago: %v", fn, err))
	}
	sum := sha256.Sum256(code)
	return hex.EncodeToString(sum[:8])
}

// awsAuth are the lines that let the functions and the nodes in by ConfigMap aws-auth.
func (a *Autoscaler) awsAuth(props Props) *string {
	var parts []*string
	add := func(arn *string, username string, groups ...string) {
		parts = append(parts, jsii.String("- rolearn: "), arn, jsii.String("\n  username: "+username+"\n  groups: ["+strings.Join(groups, ", ")+"]\n"))
	}
	for _, m := range a.members() {
		add(m.fn.Role.RoleArn(), groupPrefix+m.name, `"`+groupPrefix+m.name+`"`)
	}
	add(a.Bootstrap.Role.RoleArn(), groupPrefix+"bootstrap", `"system:masters"`)
	for _, r := range a.grants(props).nodeRoles() {
		add(&r, `"system:node:{{EC2PrivateDNSName}}"`, `"system:bootstrappers"`, `"system:nodes"`)
	}
	return awscdk.Fn_Join(jsii.String(""), &parts)
}

// endpoints are the services that functions in a VPC use: by an interface in the subnets.
var endpoints = []string{"ec2", "eks", "sqs", "ssm", "sts", "logs", "lambda"}

// place makes what functions need in a VPC, if they are to run in one.
func (a *Autoscaler) place(props Props) {
	if !props.inVPC() {
		return
	}
	scope := constructs.NewConstruct(a.Construct, jsii.String("Network"))
	stack := awscdk.Stack_Of(a.Construct)
	https := func(from string) []any {
		return []any{map[string]any{"ipProtocol": "tcp", "fromPort": 443, "toPort": 443, "cidrIp": from, "description": "HTTPS to the API server and to AWS"}}
	}
	a.group = awsec2.NewCfnSecurityGroup(scope, jsii.String("Group"), &awsec2.CfnSecurityGroupProps{
		GroupDescription: jsii.String("Functions of Kerf for " + props.ClusterName), VpcId: &props.VPCID, SecurityGroupEgress: https("0.0.0.0/0"),
	})
	into := func(id, description string, group *string) {
		a.network = append(a.network, awsec2.NewCfnSecurityGroupIngress(scope, &id, &awsec2.CfnSecurityGroupIngressProps{
			GroupId: group, SourceSecurityGroupId: a.group.AttrGroupId(), IpProtocol: jsii.String("tcp"), FromPort: jsii.Number(443), ToPort: jsii.Number(443), Description: &description,
		}))
	}
	into("ToAPIServer", "Functions of Kerf to the API server", &props.ClusterSecurityGroupID)
	if !props.Endpoints {
		return
	}
	doors := awsec2.NewCfnSecurityGroup(scope, jsii.String("EndpointGroup"), &awsec2.CfnSecurityGroupProps{
		GroupDescription: jsii.String("Endpoints that functions of Kerf for " + props.ClusterName + " use"), VpcId: &props.VPCID,
	})
	into("ToEndpoints", "Functions of Kerf to the endpoints", doors.AttrGroupId())
	service := func(name string) *string { return jsii.String("com.amazonaws." + *stack.Region() + "." + name) }
	doorsTo := endpoints
	if props.Settings["KERF_NOTICE_BUS"] != "" {
		doorsTo = append(slices.Clone(endpoints), "events")
	}
	for _, e := range doorsTo {
		a.network = append(a.network, awsec2.NewCfnVPCEndpoint(scope, jsii.String("To-"+e), &awsec2.CfnVPCEndpointProps{
			VpcId: &props.VPCID, ServiceName: service(e), VpcEndpointType: jsii.String("Interface"), PrivateDnsEnabled: jsii.Bool(true),
			SubnetIds: anys(props.SubnetIDs), SecurityGroupIds: &[]any{doors.AttrGroupId()},
		}))
	}
	for _, e := range []string{"dynamodb", "s3"} { // s3: where CloudFormation waits for answers
		a.network = append(a.network, awsec2.NewCfnVPCEndpoint(scope, jsii.String("To-"+e), &awsec2.CfnVPCEndpointProps{
			VpcId: &props.VPCID, ServiceName: service(e), VpcEndpointType: jsii.String("Gateway"), RouteTableIds: anys(props.RouteTableIDs),
		}))
	}
}

func anys(list []string) *[]any {
	out := make([]any, len(list))
	for i := range list {
		out[i] = list[i]
	}
	return &out
}
