package autoscaler

import (
	"path/filepath"

	"github.com/aws/aws-cdk-go/awscdk/v2"
	"github.com/aws/aws-cdk-go/awscdk/v2/awsiam"
	"github.com/aws/aws-cdk-go/awscdk/v2/awslambda"
	"github.com/aws/aws-cdk-go/awscdk/v2/awslogs"
	"github.com/aws/constructs-go/constructs/v10"
	"github.com/aws/jsii-runtime-go"
)

// function is in what one function differs from the others.
type function struct {
	id, name, description string
	memory, timeout       int // MiB, seconds
	// concurrency is what is reserved of the account's, 0 = nothing.
	concurrency int
	// loops: it sends to a queue that can lead back to it. Lambda would stop such a chain
	// after 16 hops; ours end by the step that a record is at, and by deadlines.
	loops    bool
	environs map[string]*string
	policies []policy
	// home: it asks the API server of the cluster, and runs where that can be reached.
	home bool
}

// Function is one of Kerf's functions with what is only its own.
type Function struct {
	Lambda awslambda.Function
	// Role is that of the function alone. Its ARN is what a cluster lets in.
	Role awsiam.Role
	// Logs is its log group.
	Logs awslogs.LogGroup
}

// function is what all functions have in common: a log group of their own with a
// retention, JSON logs, and a role of their own that can do what is listed for it.
func (a *Autoscaler) function(props Props, f function) Function {
	scope := constructs.NewConstruct(a.Construct, &f.id)
	logs := awslogs.NewLogGroup(scope, jsii.String("Logs"), &awslogs.LogGroupProps{
		Retention:     awslogs.RetentionDays(retention(props.LogRetentionDays)),
		RemovalPolicy: awscdk.RemovalPolicy_DESTROY,
	})
	documents := map[string]awsiam.PolicyDocument{}
	own := policy{"logs", []statement{{actions: []string{"logs:CreateLogStream", "logs:PutLogEvents"}, resources: []string{*logs.LogGroupArn()}}}}
	if f.home && props.inVPC() {
		f.policies = append(f.policies, networking())
	}
	for _, p := range append([]policy{own}, f.policies...) {
		documents[p.name] = p.document()
	}
	role := awsiam.NewRole(scope, jsii.String("Role"), &awsiam.RoleProps{
		AssumedBy:      awsiam.NewServicePrincipal(jsii.String("lambda.amazonaws.com"), nil),
		Description:    jsii.String("Kerf " + f.name + " function"),
		InlinePolicies: &documents,
	})
	env := map[string]*string{clusterVariable: jsii.String(props.ClusterName)}
	for k, v := range props.Settings {
		env[k] = jsii.String(v)
	}
	for k, v := range f.environs {
		env[k] = v
	}
	if props.Endpoints && f.home {
		env["ISOLATED_VPC"] = jsii.String("true")
	}
	architecture := awslambda.Architecture_ARM_64()
	if props.Architecture == AMD64 {
		architecture = awslambda.Architecture_X86_64()
	}
	// The functions drop lines below their level themselves. Lambda must not drop more: a
	// summary, which carries the metrics, is a line of level info.
	level := awslambda.ApplicationLogLevel_INFO
	if props.Settings["LOG_LEVEL"] == "debug" {
		level = awslambda.ApplicationLogLevel_DEBUG
	}
	fp := &awslambda.FunctionProps{
		Description:           jsii.String(f.description),
		Runtime:               awslambda.Runtime_PROVIDED_AL2023(),
		Architecture:          architecture,
		Handler:               jsii.String("bootstrap"),
		Code:                  awslambda.Code_FromAsset(jsii.String(filepath.Join(props.CodeDir, f.name)), nil),
		MemorySize:            jsii.Number(f.memory),
		Timeout:               awscdk.Duration_Seconds(jsii.Number(f.timeout)),
		Role:                  role,
		LogGroup:              logs,
		LoggingFormat:         awslambda.LoggingFormat_JSON,
		ApplicationLogLevelV2: level,
		SystemLogLevelV2:      awslambda.SystemLogLevel_WARN,
		Environment:           &env,
	}
	if f.loops {
		fp.RecursiveLoop = awslambda.RecursiveLoop_ALLOW
	}
	if f.concurrency > 0 {
		fp.ReservedConcurrentExecutions = jsii.Number(f.concurrency)
	}
	made := Function{Lambda: awslambda.NewFunction(scope, jsii.String("Function"), fp), Role: role, Logs: logs}
	if f.home && a.group != nil {
		var child awslambda.CfnFunction
		jsii.Get(made.Lambda.Node(), "defaultChild", &child)
		child.SetVpcConfig(&awslambda.CfnFunction_VpcConfigProperty{SubnetIds: jsii.Strings(props.SubnetIDs...), SecurityGroupIds: &[]*string{a.group.AttrGroupId()}})
		for _, d := range a.network {
			made.Lambda.Node().AddDependency(d)
		}
	}
	return made
}
