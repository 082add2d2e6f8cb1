package report

import (
	"fmt"
	"strings"
)

// Metric is the name of a custom metric in CloudWatch.
type Metric string

// The metrics.
const (
	// TickSuccess is 1 for each sweep that came to its end.
	TickSuccess Metric = "TickSuccess"
	// PendingPods are the pods that wait for a node.
	PendingPods Metric = "PendingPods"
	// OldestPendingSeconds is for how long the oldest of them waits that is to get a node.
	OldestPendingSeconds Metric = "OldestPendingSeconds"
	// Unschedulable are the pending pods that get none.
	Unschedulable Metric = "Unschedulable"
	// Launched are the instances that EC2 gave.
	Launched Metric = "Launched"
	// InFlight are the nodes that are coming.
	InFlight Metric = "InFlight"
	// BlockedDrains are the nodes that are to go and whose pods may not leave.
	BlockedDrains Metric = "BlockedDrains"
	// Failures is what was tried and did not come about.
	Failures Metric = "Failures"
	// Left is what was not begun because the time was up.
	Left Metric = "Left"

	// NodesRemoved, MovesRolledBack and MovesHeld are what became of consolidation's moves.
	NodesRemoved    Metric = "NodesRemoved"
	MovesRolledBack Metric = "MovesRolledBack"
	MovesHeld       Metric = "MovesHeld"
	// PricePerHour is what the nodes cost, PriceReachable after the moves of the pass,
	// PriceFloor what no cluster for the same pods goes below. In dollars.
	PricePerHour   Metric = "PricePerHour"
	PriceReachable Metric = "PriceReachable"
	PriceFloor     Metric = "PriceFloor"
)

// Units of CloudWatch.
const (
	Count   = "Count"
	Seconds = "Seconds"
	Dollars = "None" // CloudWatch has no unit of money
)

// Namespace is where the metrics are in CloudWatch. Each has the dimension Cluster alone: CloudWatch
// bills every value of a dimension as a metric of its own.
const (
	Namespace         = "Kerf"
	DimensionCluster  = "Cluster"
	DimensionFunction = "Function"
)

// Row is one row of the table of metrics.
type Row struct {
	Metric Metric
	Unit   string
	// Functions are those that report it.
	Functions []string
	// Optional metrics are properties of the line, and become metrics where they are asked
	// for (KERF_CONSOLIDATION_METRICS): each is billed.
	Optional bool
	Meaning  string
	// Karpenter is the metric of Karpenter's that says the nearest thing, "" for none.
	Karpenter string
}

const (
	sweep     = "sweep"
	lifecycle = "lifecycle"
	catalog   = "catalog"

	interruption  = "interruption"
	consolidation = "consolidation"
)

// Table returns all metrics, in the order of the documentation.
func Table() []Row {
	return []Row{
		{Metric: TickSuccess, Unit: Count, Functions: []string{sweep},
			Meaning: "1 for each sweep that came to its end, whether it launched something or found nothing to do. None for three minutes: nobody looks for pending pods."},
		{Metric: PendingPods, Unit: Count, Functions: []string{sweep}, Karpenter: "karpenter_pods_state",
			Meaning: "Pods that wait for a node, as a sweep found them."},
		{Metric: OldestPendingSeconds, Unit: Seconds, Functions: []string{sweep}, Karpenter: "karpenter_pods_unbound_time_seconds",
			Meaning: "For how long the oldest pod waits that is to get a node. Pods that can have none (Unschedulable) do not count, or one of them would hide all others."},
		{Metric: Unschedulable, Unit: Count, Functions: []string{sweep}, Karpenter: "karpenter_scheduler_unschedulable_pods_count",
			Meaning: "Pending pods that get no node; each has an Event and a verdict that say why."},
		{Metric: Launched, Unit: Count, Functions: []string{sweep}, Karpenter: "karpenter_nodeclaims_created_total",
			Meaning: "Instances that EC2 gave."},
		{Metric: InFlight, Unit: Count, Functions: []string{sweep, lifecycle}, Karpenter: "karpenter_cluster_state_node_count",
			Meaning: "Nodes that were asked for and are not ready yet."},
		{Metric: BlockedDrains, Unit: Count, Functions: []string{lifecycle},
			Meaning: "Nodes that are to go and whose pods may not leave: a PodDisruptionBudget or do-not-disrupt keeps them, or they wait for the node that takes them. The condition Drained of the NodeClaim and its Event FailedDraining name the pods and the budgets."},
		{Metric: Failures, Unit: Count, Functions: []string{sweep, lifecycle, catalog, interruption, consolidation}, Karpenter: "karpenter_cloudprovider_errors_total",
			Meaning: "What was tried and did not come about: launches that EC2 refused, nodes that never became ready, NodeClasses that do not resolve. The lines of the log say which and why. That an offer has no capacity is no failure as long as another one has."},
		{Metric: Left, Unit: Count, Functions: []string{sweep, lifecycle, interruption, consolidation},
			Meaning: "What an invocation did not begin because its time was up. The next one does. Of consolidation: nodes that the work of a pass ended before."},
		{Metric: NodesRemoved, Unit: Count, Functions: []string{consolidation}, Optional: true, Karpenter: "karpenter_voluntary_disruption_decisions_total",
			Meaning: "Nodes that consolidation let go: empty, underutilized, drifted, expired, ill or too many. The line says how many for which reason."},
		{Metric: MovesRolledBack, Unit: Count, Functions: []string{consolidation}, Optional: true, Karpenter: "karpenter_voluntary_disruption_queue_failures_total",
			Meaning: "Moves that were begun and taken back, because something had changed or a replacement could not be had."},
		{Metric: MovesHeld, Unit: Count, Functions: []string{consolidation}, Optional: true,
			Meaning: "Moves that wait for a person, because they would take more of a NodePool than expected."},
		{Metric: PricePerHour, Unit: Dollars, Functions: []string{consolidation}, Optional: true, Karpenter: "karpenter_nodepools_cost_total",
			Meaning: "What all nodes cost, in dollars per hour."},
		{Metric: PriceReachable, Unit: Dollars, Functions: []string{consolidation}, Optional: true,
			Meaning: "What they would cost after all moves that are allowed now."},
		{Metric: PriceFloor, Unit: Dollars, Functions: []string{consolidation}, Optional: true,
			Meaning: "What no cluster for the same pods goes below under the rules of scheduler and NodePools."},
	}
}

// Series is how many metrics CloudWatch sees, and bills, where no others are asked for.
func Series() int {
	n := 0
	for _, r := range Table() {
		if !r.Optional {
			n++
		}
	}
	return n
}

// Markdown writes the reference of all metrics: docs/metrics.md.
func Markdown() string {
	var b strings.Builder
	fmt.Fprintf(&b, `# Metrics

<!-- Generated from internal/telemetry/report by go run ./scripts/docs. Do not edit. -->

The functions write their metrics as lines of their logs (embedded metric format); CloudWatch makes metrics of them, in the
namespace `+"`%s`"+`. They make %d metrics per cluster, with the dimension `+"`%s`"+`, each at CloudWatch's price of a custom metric. Everything else that an
invocation has to say (plan id, how long a pass took, counts, prices, requests by API) is in the same line, as a property: CloudWatch
Logs Insights finds it there, and it costs nothing but its bytes.

What Lambda, SQS and DynamoDB measure by themselves (errors, throttles, durations, depth and age of queues) is not measured
again.

| metric | unit | reported by | meaning | nearest of Karpenter's |
|---|---|---|---|---|
`, Namespace, Series(), DimensionCluster)
	for _, r := range Table() {
		near := "none"
		if r.Karpenter != "" {
			near = "`" + r.Karpenter + "`"
		}
		meaning := r.Meaning
		if r.Optional {
			meaning += " A metric with `KERF_CONSOLIDATION_METRICS=true`, a property of the line without."
		}
		fmt.Fprintf(&b, "| `%s` | %s | %s | %s | %s |\n", r.Metric, r.Unit, strings.Join(r.Functions, ", "), meaning, near)
	}
	b.WriteString(`
## The line

| field | what |
|---|---|
| ` + "`timestamp`, `level`, `message`" + ` | as in every line; the message is ` + "`summary`" + ` |
| ` + "`requestId`" + ` | Lambda's id of the invocation |
| ` + "`Cluster`, `Function`" + ` | whose line it is |
| the metrics above | those that the invocation has |
| ` + "`seconds`" + ` | how long the invocation took |
| ` + "`passSeconds`" + ` | of sweep and consolidation: how long the pass took, from the reading of the cluster to the last launch (Karpenter: ` + "`karpenter_scheduler_scheduling_duration_seconds`" + `) |
| ` + "`calls`" + ` | requests by API and operation, tries included; ` + "`kube`" + ` is the cluster's API server |
| others | what the function has to say |
| ` + "`_aws`" + ` | what CloudWatch is to make metrics of |
`)
	return b.String()
}
