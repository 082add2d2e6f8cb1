package idle

import (
	_ "embed"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"
)

// Function is what a function did in an hour, as it was counted.
type Function struct {
	Invocations int `json:"invocations"`
	// Calls are the requests by service and operation.
	Calls map[string]int `json:"calls,omitempty"`
	// Readings are those of the whole cluster, whose lists are among Calls.
	Readings int `json:"readings,omitempty"`
}

// Hour is an hour of a cluster in which nothing happens.
type Hour struct {
	Nodes     int                 `json:"nodes"`
	Functions map[string]Function `json:"functions"`
	// ReadUnits and WriteUnits are DynamoDB's.
	ReadUnits  int `json:"readUnits"`
	WriteUnits int `json:"writeUnits"`
}

//go:embed measured.json
var measured []byte

// Measured are the hours that were counted, by nodes.
func Measured() ([]Hour, error) {
	var out []Hour
	if err := json.Unmarshal(measured, &out); err != nil {
		return nil, fmt.Errorf("read what was measured: %w", err)
	}
	return out, nil
}

// List prices of us-east-1, in dollars, without a free tier.
const (
	lambdaRequest = 0.20 / 1e6
	lambdaSecond  = 0.0000133334 // a GiB on arm64
	sqsRequest    = 0.40 / 1e6
	schedulerCall = 1.00 / 1e6
	readUnit      = 0.125 / 1e6
	writeUnit     = 0.625 / 1e6
	logGigabyte   = 0.50
	metricMonth   = 0.30
	alarmMonth    = 0.10
	endpointHour  = 0.01 // in each zone
	natHour       = 0.045
	natGigabyte   = 0.045
)

// pricesOf is the month of the prices above.
const pricesOf = "2026-11"

// What is assumed and was not counted.
const (
	hours = 730 // of a month
	// codeMillis is what an invocation computes besides, objectMicros what an object that is
	// read takes to transfer and decode (50,000 pods and 5,000 nodes: 0.7 s on one core).
	codeMillis   = 3
	objectMicros = 25
	podsPerNode  = 20
	// page is how many objects a list has in one answer, kinds how many lists a reading of the
	// whole cluster takes, lists at a time; worldKinds are those that the world has.
	page, kinds, parallel, worldKinds = 500, 23, 4, 6
	// pollers are Lambda's, for each queue that starts a function, each asking every 20 s. AWS:
	// "When traffic is low, Lambda scales back the processing to five concurrent batches, and can
	// optimize to as few as 2 [...]. However, this optimization is not available when you enable
	// the maximum concurrency setting" (Lambda, scaling of SQS event sources), as the stack does:
	// functions with a reserved concurrency would be throttled otherwise, and notices get lost.
	pollers, pollsPerHour = 5, 180
	// lineBytes is what an invocation logs.
	lineBytes = 900
)

// millis is how long an answer takes, in the same region and with a warm connection.
var millis = map[string]float64{"kube": 10, "table": 6, "sqs": 12, "ec2": 100, "ssm": 50, "lambda": 20}

// together is how many requests of a kind are made at a time; others come one after the other.
var together = map[string]int{"ec2.DescribeInstanceStatus": 3}

// queues start functions; memory is what a function has, in MiB (infra/autoscaler: defaults).
var (
	queues = 3
	memory = map[string]int{"sweep": 1769, "lifecycle": 512, "catalog": 1024, "consolidation": 1769, "interruption": 512}
)

// objects are those that a function reads in an hour.
func (f Function) objects(name string, nodes int) int {
	switch name {
	case "sweep": // once a minute NodeClaims and Nodes
		return 60 * 2 * nodes
	case "consolidation":
		return f.Readings * (2 + podsPerNode) * nodes
	case "catalog": // nodes, NodeClaims, classes
		return 12 * 2 * nodes
	}
	return 0
}

// asked are the requests to a service.
func (f Function) asked(service string) int {
	n := 0
	for op, k := range f.Calls {
		if of, _, _ := strings.Cut(op, "."); of == service {
			n += k
		}
	}
	return n
}

// seconds is how long a function runs in an hour: what it waits for, one answer after the
// other but for lists of everything, and what it computes.
func (f Function) seconds(name string, nodes int) float64 {
	ms := float64(codeMillis * f.Invocations)
	for _, op := range slices.Sorted(maps.Keys(f.Calls)) {
		service, _, _ := strings.Cut(op, ".")
		ms += float64(f.Calls[op]) * millis[service] / float64(max(together[op], 1))
	}
	// What a reading lists is counted above as if one list waited for the other.
	lists := float64(kinds*f.Readings + f.objects(name, nodes)/page)
	if f.Readings > 0 {
		ms += (lists/parallel - float64(worldKinds*f.Readings)) * millis["kube"]
	}
	return ms/1e3 + float64(f.objects(name, nodes))*objectMicros/1e6
}

// Cost is a month, in dollars.
type Cost struct {
	Nodes int
	// ByFunction is what Lambda takes for each.
	ByFunction map[string]float64
	// Lambda is the sum of it; Queues are requests to SQS, Schedules those of the scheduler.
	Lambda, Queues, Schedules, Table float64
	// Logs and the rest are observability, which is beside the above.
	Logs, Metrics, Alarms float64
}

// Core is compute, queues, schedules and table.
func (c *Cost) Core() float64 { return c.Lambda + c.Queues + c.Schedules + c.Table }

// Observability is logs, metrics and alarms.
func (c *Cost) Observability() float64 { return c.Logs + c.Metrics + c.Alarms }

// Of is what a month of such hours costs, with so many metrics, and metrics that alarms watch.
func Of(h *Hour, metrics, alarms int) Cost {
	c := Cost{Nodes: h.Nodes, ByFunction: map[string]float64{}, Metrics: float64(metrics) * metricMonth, Alarms: float64(alarms) * alarmMonth}
	invocations, messages := 0, 0
	for _, name := range slices.Sorted(maps.Keys(h.Functions)) {
		f := h.Functions[name]
		invocations += f.Invocations
		c.ByFunction[name] = hours * (float64(f.Invocations)*lambdaRequest + f.seconds(name, h.Nodes)*float64(memory[name])/1024*lambdaSecond)
		c.Lambda += c.ByFunction[name]
		messages += f.asked("sqs")
	}
	sweeps := h.Functions["sweep"].Invocations
	// What the functions send; what the schedule sends; what the pollers ask, when nothing is there
	// and, at most, once more for each message, which ends their wait; what Lambda deletes.
	c.Queues = hours * sqsRequest * float64(messages+60+queues*pollers*pollsPerHour+2*sweeps)
	c.Schedules = hours * schedulerCall * (60 + 60 + 12)
	c.Table = hours * (float64(h.ReadUnits)*readUnit + float64(h.WriteUnits)*writeUnit)
	c.Logs = hours * float64(invocations*lineBytes) / 1e9 * logGigabyte
	return c
}
