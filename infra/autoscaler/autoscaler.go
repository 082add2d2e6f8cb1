package autoscaler

import (
	"maps"

	"github.com/aws/aws-cdk-go/awscdk/v2"
	"github.com/aws/aws-cdk-go/awscdk/v2/awsdynamodb"
	"github.com/aws/aws-cdk-go/awscdk/v2/awsec2"
	"github.com/aws/aws-cdk-go/awscdk/v2/awslambda"
	"github.com/aws/aws-cdk-go/awscdk/v2/awssqs"
	"github.com/aws/constructs-go/constructs/v10"
	"github.com/aws/jsii-runtime-go"
)

// Autoscaler is Kerf for one cluster. With Props.PlanOnly everything but Plan is nil.
type Autoscaler struct {
	constructs.Construct
	// Plan answers dry-runs, and says what is in the way of a pending pod. Whoever may invoke
	// it may see the cluster's objects as far as plans depend on them, and change nothing.
	Plan Function
	// Sweep launches nodes for pending pods. To invoke it is to ask for a sweep now.
	Sweep *Function
	// Lifecycle goes one step on with a node.
	Lifecycle *Function
	// Catalog finds out what can be launched: types, prices, NodeClasses.
	Catalog *Function
	// Prices is the half of Catalog that asks what no endpoint leads to, outside the VPC; nil
	// without Props.Endpoints.
	Prices *Function
	// Interruption acts on notices of AWS about instances. To invoke it with an event of
	// EventBridge is to hand it one.
	Interruption *Function
	// Consolidation makes the cluster cheaper. To invoke it is to ask for a pass now.
	Consolidation *Function

	// Bootstrap sets the cluster up for the others. To invoke it is to do so again.
	Bootstrap *Function

	// Table is the ledger.
	Table awsdynamodb.ITable
	// Ticks brings sweeps, Work brings steps; DeadWork has the steps that failed for good.
	Ticks, Work, DeadWork awssqs.Queue
	// Notices brings what AWS says about instances; DeadNotices has what could not be read,
	// or not be acted on.
	Notices, DeadNotices awssqs.Queue

	// group is the security group of functions in a VPC, network what they need there.
	group   awsec2.CfnSecurityGroup
	network []constructs.IDependable
	// ruleARNs are the rules that bring notices.
	ruleARNs []*string
	// ready is there once the cluster is set up for the functions; nil = it is somebody else's
	// to do first.
	ready constructs.IDependable
}

// Seconds that a function may take, and what follows from it for its queue.
const (
	sweepTimeout     = 300
	lifecycleTimeout = 120
	catalogTimeout   = 300

	interruptionTimeout  = 20
	consolidationTimeout = 300
	// bootstrapTimeout holds two minutes of patience with a cluster that does not let it in yet.
	bootstrapTimeout = 300
	// consolidationReserved: one pass at a time. Another one would find the lease taken.
	consolidationReserved = 1

	// A notice is about two minutes: what was lost with a function that was cut off comes back
	// as soon as it cannot be at work any more, and what failed in 2 to 5 seconds, because the
	// function says so. It takes that many deliveries to wait for EC2 to know an instance.
	noticeVisibility  = 30
	noticeReceives    = 60
	noticeRetention   = 3600
	noticeBatch       = 10
	noticeConcurrency = 5

	// A tick that failed is not brought again: it is too old by then, and the next one is a
	// few seconds away. The visibility timeout only has to be longer than the function, which
	// Lambda demands, and the retention ends a tick before that.
	tickVisibility = sweepTimeout + 30
	tickRetention  = 120
	// One sweep plans; the second one finds the lease taken, and asks it for another round.
	tickConcurrency = 2

	// Lambda's advice: six times the function's timeout, for batches that are throttled and
	// tried again. A message that failed comes back sooner: the function says when.
	workVisibility  = 6 * lifecycleTimeout
	workReceives    = 5
	workBatch       = 5
	workConcurrency = 10
	deadRetention   = 14 * 24 * 3600
)

// New adds Kerf to a scope. The error names every property that cannot be used and
// what to write instead; nothing is added then.
func New(scope constructs.Construct, id string, props Props) (*Autoscaler, error) {
	props = props.withDefaults()
	if err := props.validate(); err != nil {
		return nil, err
	}
	a := &Autoscaler{Construct: constructs.NewConstruct(scope, &id)}
	plan := function{
		id: "Plan", name: "plan", memory: props.PlanMemoryMiB, timeout: props.PlanTimeoutSeconds,
		description: "Kerf: what would be launched for " + props.ClusterName + ", at what price, and why. Changes nothing.",
	}
	if props.PlanOnly {
		a.Plan = a.function(props, plan)
		return a, nil
	}
	a.Table = a.table(props)
	a.act(props, plan)
	return a, nil
}

// grants are the permissions to what there is so far.
func (a *Autoscaler) grants(props Props) grants {
	return grants{stack: awscdk.Stack_Of(a.Construct), props: props, auto: a}
}

// act adds what acts, beside the table, and the plan function, which reads all of it.
func (a *Autoscaler) act(props Props, plan function) {
	a.queues()
	a.place(props)
	may := a.grants(props)
	env := map[string]*string{
		"KERF_TABLE": a.Table.TableName(), "KERF_TICK_QUEUE": a.Ticks.QueueUrl(), "KERF_WORK_QUEUE": a.Work.QueueUrl(),
	}
	catalog := a.function(props, function{
		id: "Catalog", home: true, name: "catalog", memory: props.CatalogMemoryMiB, timeout: catalogTimeout,
		description: "Kerf: what can be launched for " + props.ClusterName + ": types, prices, NodeClasses.",
		environs:    map[string]*string{"KERF_TABLE": a.Table.TableName()}, policies: may.catalog(),
	})
	a.Catalog = &catalog
	// It runs again soon anyway: on its schedule, and when a sweep finds a class that is not
	// resolved.
	catalog.Lambda.ConfigureAsyncInvoke(&awslambda.EventInvokeConfigOptions{MaxEventAge: seconds(catalogTimeout), RetryAttempts: jsii.Number(1)})

	env["KERF_CATALOG_FUNCTION"] = catalog.Lambda.FunctionName()
	sweep := a.function(props, function{
		id: "Sweep", home: true, name: "sweep", memory: props.SweepMemoryMiB, timeout: sweepTimeout, loops: true,
		description: "Kerf: launches nodes of " + props.ClusterName + " for pending pods.",
		environs:    env, policies: may.sweep(),
	})
	a.Sweep = &sweep

	delete(env, "KERF_CATALOG_FUNCTION")
	reserved := workConcurrency
	if props.SharedConcurrency {
		reserved = 0
	}
	lifecycle := a.function(props, function{
		id: "Lifecycle", home: true, name: "lifecycle", memory: props.LifecycleMemoryMiB, timeout: lifecycleTimeout, loops: true, concurrency: reserved,
		description: "Kerf: goes one step on with nodes of " + props.ClusterName + ": registered, ready, gone.",
		environs:    env, policies: may.lifecycle(),
	})
	a.Lifecycle = &lifecycle

	consolidating := consolidationReserved
	if props.SharedConcurrency {
		consolidating = 0
	}
	consolidation := a.function(props, function{
		id: "Consolidation", home: true, name: "consolidation", memory: props.ConsolidationMemoryMiB, timeout: consolidationTimeout, concurrency: consolidating,
		description: "Kerf: makes " + props.ClusterName + " cheaper: nodes that are empty, too large or out of date.",
		environs:    env, policies: may.consolidation(),
	})
	a.Consolidation = &consolidation
	// The next minute brings the next pass.
	consolidation.Lambda.ConfigureAsyncInvoke(&awslambda.EventInvokeConfigOptions{MaxEventAge: seconds(60), RetryAttempts: jsii.Number(0)})

	noticing := noticeConcurrency
	if props.SharedConcurrency {
		noticing = 0
	}
	notices := map[string]*string{"KERF_INTERRUPTION_QUEUE": a.Notices.QueueUrl(), "KERF_INTERRUPTION_DEAD_LETTERS": a.DeadNotices.QueueUrl()}
	maps.Copy(notices, env)
	interruption := a.function(props, function{
		id: "Interruption", home: true, name: "interruption", memory: props.InterruptionMemoryMiB, timeout: interruptionTimeout, concurrency: noticing,
		description: "Kerf: acts on what AWS says about instances of " + props.ClusterName + " that will go.",
		environs:    notices, policies: may.interruption(),
	})
	a.Interruption = &interruption

	bootstrap := a.function(props, function{
		id: "Bootstrap", home: true, name: "bootstrap", memory: 256, timeout: bootstrapTimeout,
		description: "Kerf: sets " + props.ClusterName + " up for the other functions.",
		environs:    map[string]*string{"KERF_TABLE": a.Table.TableName()}, policies: may.bootstrap(),
	})
	a.Bootstrap = &bootstrap

	if props.Endpoints {
		prices := a.function(props, function{
			id: "Prices", name: "catalog", memory: props.CatalogMemoryMiB, timeout: catalogTimeout,
			description: "Kerf: types and prices for " + props.ClusterName + ", from outside its VPC.",
			environs:    map[string]*string{"KERF_TABLE": a.Table.TableName()}, policies: may.prices(),
		})
		prices.Lambda.ConfigureAsyncInvoke(&awslambda.EventInvokeConfigOptions{MaxEventAge: seconds(catalogTimeout), RetryAttempts: jsii.Number(1)})
		a.Prices = &prices
	}

	if props.runs() {
		a.rules()
	}
	plan.home, plan.environs, plan.policies = true, map[string]*string{"KERF_TABLE": a.Table.TableName()}, a.grants(props).plan()
	a.Plan = a.function(props, plan)
	a.access(props)
	if props.runs() {
		a.trigger(interruption, a.Notices, noticeBatch, noticeConcurrency)
		a.trigger(sweep, a.Ticks, 1, tickConcurrency)
		a.trigger(lifecycle, a.Work, workBatch, workConcurrency)
		a.schedules(props)
	}
	a.alarms(props)
	if props.Dashboard {
		a.dashboard(props)
	}
}

// ttlAttribute is where the ledger writes when a row ends (internal/ledger).
const ttlAttribute = "ttl"

// table is the ledger's table: a new one, or the one that was restored.
func (a *Autoscaler) table(props Props) awsdynamodb.ITable {
	if props.TableName != "" {
		return awsdynamodb.Table_FromTableName(a.Construct, jsii.String("Ledger"), &props.TableName)
	}
	str := func(name string) *awsdynamodb.Attribute {
		return &awsdynamodb.Attribute{Name: &name, Type: awsdynamodb.AttributeType_STRING}
	}
	return awsdynamodb.NewTable(a.Construct, jsii.String("Ledger"), &awsdynamodb.TableProps{
		PartitionKey: str("pk"), SortKey: str("sk"),
		BillingMode:         awsdynamodb.BillingMode_PAY_PER_REQUEST,
		TimeToLiveAttribute: jsii.String(ttlAttribute),
		PointInTimeRecoverySpecification: &awsdynamodb.PointInTimeRecoverySpecification{
			PointInTimeRecoveryEnabled: jsii.Bool(true),
		},
		// Encrypted with a key that AWS owns: it needs no permission and costs nothing.
		Encryption:         awsdynamodb.TableEncryption_DEFAULT,
		DeletionProtection: jsii.Bool(true),
		// Nodes outlive the stack, and the ledger knows whose they are.
		RemovalPolicy: awscdk.RemovalPolicy_RETAIN,
	})
}

func seconds(n int) awscdk.Duration { return awscdk.Duration_Seconds(jsii.Number(n)) }
