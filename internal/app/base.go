package app

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"strconv"
	"sync"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	awsconfig "github.com/aws/aws-sdk-go-v2/config"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/ec2"
	awseks "github.com/aws/aws-sdk-go-v2/service/eks"
	"github.com/aws/aws-sdk-go-v2/service/sqs"

	"kerf.sh/kerf/internal/config"
	"kerf.sh/kerf/internal/ledger"
	"kerf.sh/kerf/internal/queue"
	"kerf.sh/kerf/internal/telemetry"
)

// Function is what Lambda invokes: it takes a payload, or a batch of messages, and gives an
// answer that encoding/json can write.
type Function = func(ctx context.Context, payload json.RawMessage) (any, error)

// base is what every function that acts is built of. It lives as long as the process; an
// invocation has it for itself. Clients are made when they are first asked for.
type base struct {
	conf         config.Config
	region, name string
	aws          aws.Config
	tel          *telemetry.Telemetry
	now          func() time.Time

	ec2   func() *ec2.Client
	table func() *kept
	eks   func() *awseks.Client
	sqs   func() *sqs.Client

	home home
}

// newBase reads the environment of a function. It makes no request.
func newBase(ctx context.Context, function string, environ []string, out io.Writer) (*base, error) {
	conf, err := config.Load(environ)
	problems := []error{err}
	b := &base{conf: conf, region: lookup(environ, "AWS_REGION"), name: lookup(environ, "AWS_LAMBDA_FUNCTION_NAME"), now: time.Now}
	for _, need := range []struct{ key, value, what string }{
		{"AWS_REGION", b.region, "the region of the cluster"},
		{"CLUSTER_NAME", conf.Cluster, "the EKS cluster"},
		{"KERF_TABLE", conf.Stack.Table, "the DynamoDB table of the ledger"},
	} {
		if need.value == "" {
			problems = append(problems, fmt.Errorf("%s is not set: name %s", need.key, need.what))
		}
	}
	if err := errors.Join(problems...); err != nil {
		return nil, fmt.Errorf("read the function's settings: %w", err)
	}
	if b.name == "" {
		b.name = "kerf-" + function
	}
	b.tel = telemetry.New(telemetry.Options{Out: out, Level: conf.Functions.LogLevel, Cluster: conf.Cluster, Function: function, Optional: conf.Functions.ConsolidationMetrics, Now: b.now})
	if b.aws, err = awsconfig.LoadDefaultConfig(ctx, awsconfig.WithRegion(b.region)); err != nil {
		return nil, fmt.Errorf("read the configuration of AWS: %w", err)
	}
	b.aws.APIOptions = append(b.aws.APIOptions, b.tel.Calls.AWS)
	b.ec2 = sync.OnceValue(func() *ec2.Client { return ec2.NewFromConfig(b.aws) })
	b.eks = sync.OnceValue(func() *awseks.Client { return awseks.NewFromConfig(b.aws) })
	b.sqs = sync.OnceValue(func() *sqs.Client { return sqs.NewFromConfig(b.aws, queue.Options) })
	b.table = sync.OnceValue(func() *kept {
		return &kept{DynamoDB: ledger.NewDynamoDB(dynamodb.NewFromConfig(b.aws, ledger.Options), conf.Stack.Table), now: b.now}
	})
	return b, nil
}

// stdout is where functions speak to.
func stdout() io.Writer { return os.Stdout }

// keepID is for how long the id of a table is not asked for again. A table that takes the
// place of another one under the same name is noticed after that.
const keepID = 5 * time.Minute

// kept is a table whose id is remembered between invocations: it takes a request of its
// own, of a kind that is throttled early.
type kept struct {
	*ledger.DynamoDB
	now func() time.Time

	mu sync.Mutex
	id string
	at time.Time
}

// ID implements ledger.Table.
func (k *kept) ID(ctx context.Context) (string, error) {
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.id != "" && k.now().Sub(k.at) < keepID {
		return k.id, nil
	}
	id, err := k.DynamoDB.ID(ctx)
	if err == nil {
		k.id, k.at = id, k.now()
	}
	return id, err
}

// ledger is the memory of one invocation.
func (b *base) ledger(ctx context.Context) *ledger.Ledger {
	return b.ledgerOn(b.table(), invocationID(ctx))
}

// invocationID tells an invocation apart from all others.
func invocationID(ctx context.Context) string {
	if id := telemetry.RequestID(ctx); id != "" {
		return id
	}
	return strconv.FormatUint(rand.Uint64(), 36) // outside Lambda: nobody else may have the same
}

// ledgerOn is the memory on a table of somebody whom id tells apart.
func (b *base) ledgerOn(table ledger.Table, id string) *ledger.Ledger {
	return ledger.New(ledger.Config{Table: table, Cluster: b.conf.Cluster, Owner: b.name + "/" + id, Now: b.now, Wait: backOff})
}

// Pauses before a request to the ledger is repeated.
const (
	firstPause = 25 * time.Millisecond
	mostPause  = time.Second
)

// backOff pauses before the n-th repetition, for a time that nobody else chooses.
func backOff(ctx context.Context, n int) error {
	most := mostPause
	if n < 6 {
		most = firstPause << n
	}
	return pause(ctx, most/2+rand.N(most/2))
}

// pause waits, and ends early with the context.
func pause(ctx context.Context, d time.Duration) error {
	if d <= 0 {
		return ctx.Err()
	}
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-t.C:
		return nil
	}
}

// atATime is how many requests to EC2 or Kubernetes one function makes at a time.
const atATime = 8

// each runs f for 0 to n-1, several at a time.
func each(n int, f func(i int)) {
	var group sync.WaitGroup
	slots := make(chan struct{}, atATime)
	for i := range n {
		slots <- struct{}{}
		group.Go(func() {
			defer func() { <-slots }()
			f(i)
		})
	}
	group.Wait()
}
