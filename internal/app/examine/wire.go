package examine

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	awsconfig "github.com/aws/aws-sdk-go-v2/config"
	"github.com/aws/aws-sdk-go-v2/service/cloudformation"
	"github.com/aws/aws-sdk-go-v2/service/cloudwatch"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/ec2"
	awseks "github.com/aws/aws-sdk-go-v2/service/eks"
	"github.com/aws/aws-sdk-go-v2/service/eventbridge"
	"github.com/aws/aws-sdk-go-v2/service/iam"
	"github.com/aws/aws-sdk-go-v2/service/lambda"
	"github.com/aws/aws-sdk-go-v2/service/scheduler"
	"github.com/aws/aws-sdk-go-v2/service/servicequotas"
	"github.com/aws/aws-sdk-go-v2/service/sqs"
	"github.com/aws/aws-sdk-go-v2/service/ssm"
	"github.com/aws/aws-sdk-go-v2/service/sts"

	"kerf.sh/kerf/internal/app"
	"kerf.sh/kerf/internal/cloud/checkup"
	"kerf.sh/kerf/internal/cloud/fleet"
	"kerf.sh/kerf/internal/cloud/image"
	"kerf.sh/kerf/internal/cloud/nodeclass"
	"kerf.sh/kerf/internal/config"
	"kerf.sh/kerf/internal/doctor"
	"kerf.sh/kerf/internal/kube/eks"
	"kerf.sh/kerf/internal/kube/kubeconfig"
	"kerf.sh/kerf/internal/kube/live"
	"kerf.sh/kerf/internal/ledger"
	"kerf.sh/kerf/internal/snapshot"
)

// target is what is to be looked at, and as whom.
type target struct {
	cluster, region, stack, table string
	inside                        bool
	settings                      snapshot.Settings
	kube                          *kubeconfig.Target // nil = by AWS credentials
}

// StackName is the stack of a cluster, as infra/autoscaler names it.
func StackName(cluster string) string {
	if !strings.Contains(cluster, "_") {
		return "kerf-" + cluster
	}
	sum := sha256.Sum256([]byte(cluster))
	return "kerf-" + strings.ReplaceAll(cluster, "_", "-") + "-" + hex.EncodeToString(sum[:3])
}

// Function is the doctor of the plan function, for the cluster of its environment; nil when
// that names none.
func Function(environ []string) (func(ctx context.Context) (*doctor.Report, error), error) {
	conf, err := config.Load(environ)
	if err != nil {
		return nil, fmt.Errorf("read the function's settings: %w", err)
	}
	to := target{cluster: conf.Cluster, table: conf.Stack.Table, settings: conf.Settings, inside: true}
	for _, kv := range environ {
		if v, ok := strings.CutPrefix(kv, "AWS_REGION="); ok {
			to.region = v
		}
	}
	if to.cluster == "" || to.region == "" {
		return nil, nil
	}
	return func(ctx context.Context) (*doctor.Report, error) {
		x, err := to.examiner(ctx)
		if err != nil {
			return nil, err
		}
		return doctor.Examine(x.Facts(ctx)), nil
	}, nil
}

// examiner joins the clients. It asks for nothing but credentials.
func (to *target) examiner(ctx context.Context) (*Examiner, error) {
	var with []func(*awsconfig.LoadOptions) error
	if to.region != "" {
		with = append(with, awsconfig.WithRegion(to.region))
	}
	with = append(with, awsconfig.WithRetryMaxAttempts(2))
	conf, err := awsconfig.LoadDefaultConfig(ctx, with...)
	if err != nil {
		return nil, fmt.Errorf("read the configuration of AWS: %w", err)
	}
	switch {
	case conf.Region == "":
		return nil, errors.New("no region: give it with --region, or set AWS_REGION")
	case to.cluster == "":
		return nil, errors.New("the kubeconfig does not say which EKS cluster it is: give --cluster NAME")
	}
	if !to.inside {
		if _, err := conf.Credentials.Retrieve(ctx); err != nil {
			return nil, fmt.Errorf("no credentials of AWS: sign in (aws sso login, or AWS_PROFILE): %w", err)
		}
	}
	if to.stack == "" {
		to.stack = StackName(to.cluster)
	}
	machines, clusters := ec2.NewFromConfig(conf), awseks.NewFromConfig(conf)
	patience := timeout
	if to.inside { // a function has less time; what it cannot reach has no endpoint
		patience = 4 * time.Second
	}
	images := &image.Resolver{EC2: machines, SSM: ssm.NewFromConfig(conf), Now: time.Now}
	return &Examiner{
		Cluster: to.cluster, Region: conf.Region, Inside: to.inside, Table: to.table, Now: time.Now,
		Cloud: &checkup.Checkup{
			Stacks: cloudformation.NewFromConfig(conf), Functions: lambda.NewFromConfig(conf), Schedules: scheduler.NewFromConfig(conf),
			Rules: eventbridge.NewFromConfig(conf), Queues: sqs.NewFromConfig(conf), Alarms: cloudwatch.NewFromConfig(conf),
			Identities: iam.NewFromConfig(conf), Cluster: clusters, EC2: machines, Quotas: servicequotas.NewFromConfig(conf),
			Caller: sts.NewFromConfig(conf), Stack: to.stack, Timeout: patience,
		},
		Kube: func(ctx context.Context) (Cluster, error) { return to.open(ctx, conf, clusters) },
		Memory: func(table string) Memory {
			return ledger.New(ledger.Config{Table: ledger.NewDynamoDB(dynamodb.NewFromConfig(conf, ledger.Options), table), Owner: "doctor", Now: time.Now, Wait: app.BackOff, Tries: 4})
		},
		Images: func(ctx context.Context, c *nodeclass.Class, kubernetes string) ([]nodeclass.Image, error) {
			version, err := image.ParseVersion(kubernetes)
			if err != nil {
				return nil, err
			}
			return images.Resolve(ctx, c, version)
		},
		Instances: (&fleet.Fleet{Client: machines}).List,
	}, nil
}

// open is the way to the API server.
func (to *target) open(ctx context.Context, conf aws.Config, clusters eks.API) (Cluster, error) {
	if to.kube != nil {
		client, err := live.New(to.kube.Config, live.Options{})
		if err != nil {
			return nil, err
		}
		return app.NewCluster(client, to.cluster, conf.Region, to.settings), nil
	}
	home, err := eks.Describe(ctx, clusters, to.cluster)
	if err != nil {
		return nil, err
	}
	access := eks.NewAccess(home, eks.NewTokens(to.cluster, conf.Region, conf.Credentials, time.Now))
	access.Config.UserAgent, access.Config.Timeout = "kerf/doctor", timeout
	client, err := live.New(access.Config, live.Options{Renew: access.Renew})
	if err != nil {
		return nil, err
	}
	return app.NewCluster(client, to.cluster, conf.Region, to.settings), nil
}
