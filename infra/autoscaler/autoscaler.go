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

// Autoscaler is Kerf for one cluster.
type Autoscaler struct {
	constructs.Construct
	// Plan answers dry-runs. Whoever may invoke it may see the cluster's objects that
	// are sent to it, and change nothing.
	Plan awslambda.Function
	// PlanLogs is the log group of Plan.
	PlanLogs awslogs.LogGroup
}

// New adds Kerf to a scope. The error names every property that cannot be used and
// what to write instead; nothing is added then.
func New(scope constructs.Construct, id string, props Props) (*Autoscaler, error) {
	props = props.withDefaults()
	if err := props.validate(); err != nil {
		return nil, err
	}
	a := &Autoscaler{Construct: constructs.NewConstruct(scope, &id)}
	a.Plan, a.PlanLogs = a.function(props, function{
		id: "Plan", name: "plan", memory: props.PlanMemoryMiB, timeout: props.PlanTimeoutSeconds,
		description: "Kerf: what would be launched for " + props.ClusterName + ", at what price, and why. Changes nothing.",
	})
	return a, nil
}

// function is in what one function differs from the others.
type function struct {
	id, name, description string
	memory, timeout       int // MiB, seconds
}

// function is what all functions have in common: a log group of their own with a
// retention, JSON logs, and a role that can write there and do nothing else.
func (a *Autoscaler) function(props Props, f function) (awslambda.Function, awslogs.LogGroup) {
	scope := constructs.NewConstruct(a.Construct, &f.id)
	logs := awslogs.NewLogGroup(scope, jsii.String("Logs"), &awslogs.LogGroupProps{
		Retention:     awslogs.RetentionDays(retention(props.LogRetentionDays)),
		RemovalPolicy: awscdk.RemovalPolicy_DESTROY,
	})
	role := awsiam.NewRole(scope, jsii.String("Role"), &awsiam.RoleProps{
		AssumedBy:   awsiam.NewServicePrincipal(jsii.String("lambda.amazonaws.com"), nil),
		Description: jsii.String("Kerf " + f.name + " function: writes its own logs"),
		InlinePolicies: &map[string]awsiam.PolicyDocument{
			"logs": awsiam.NewPolicyDocument(&awsiam.PolicyDocumentProps{
				Statements: &[]awsiam.PolicyStatement{
					awsiam.NewPolicyStatement(&awsiam.PolicyStatementProps{
						Actions:   jsii.Strings("logs:CreateLogStream", "logs:PutLogEvents"),
						Resources: &[]*string{logs.LogGroupArn()},
					}),
				},
			}),
		},
	})
	env := map[string]*string{clusterVariable: jsii.String(props.ClusterName)}
	for k, v := range props.Settings {
		env[k] = jsii.String(v)
	}
	architecture := awslambda.Architecture_ARM_64()
	if props.Architecture == AMD64 {
		architecture = awslambda.Architecture_X86_64()
	}
	fn := awslambda.NewFunction(scope, jsii.String("Function"), &awslambda.FunctionProps{
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
		ApplicationLogLevelV2: awslambda.ApplicationLogLevel_INFO,
		SystemLogLevelV2:      awslambda.SystemLogLevel_WARN,
		Environment:           &env,
	})
	return fn, logs
}
