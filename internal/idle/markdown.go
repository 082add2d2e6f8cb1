package idle

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"kerf.sh/kerf/internal/catalog"
)

// What is compared with: two nodes that only carry a controller.
const (
	controllerNode = "m7g.large"
	smallNode      = "t4g.medium"
	// fargateHour is a pod of 1 vCPU and 2 GiB on Fargate.
	fargateHour = 0.04048 + 2*0.004445
)

// month is what a node of a type costs in a month on demand, 0 when the table has no such
// type.
func month(instanceType string) float64 {
	c := catalog.Default()
	for i := range c.Types {
		if c.Types[i].Name != instanceType {
			continue
		}
		for _, o := range c.Types[i].Offerings {
			if o.CapacityType == catalog.OnDemand {
				return float64(o.Price) / 1e6 * hours
			}
		}
	}
	return 0
}

// Headline is the comparison in one sentence, for those who will not read the page.
func Headline(metrics, alarms int) (string, error) {
	measured, err := Measured()
	if err != nil || len(measured) == 0 {
		return "", fmt.Errorf("nothing was measured: %w", err)
	}
	var parts []string
	for i := range measured {
		c := Of(&measured[i], metrics, alarms)
		parts = append(parts, fmt.Sprintf("$%.1f at %d nodes", c.Core(), c.Nodes))
	}
	c := Of(&measured[0], metrics, alarms)
	return fmt.Sprintf("By list prices, without a free tier, about %s a month for compute, queues, schedules and table, and $%.0f for metrics, alarms and logs. "+
		"Two %s nodes that only carry a controller cost $%.0f, two %s $%.0f.",
		strings.Join(parts, ", "), c.Observability(), controllerNode, 2*month(controllerNode), smallNode, 2*month(smallNode)), nil
}

// Markdown is the page on cost.
func Markdown(metrics, alarms int) string {
	var b strings.Builder
	line := func(format string, args ...any) { fmt.Fprintf(&b, format+"\n", args...) }
	measured, err := Measured()
	if err != nil {
		return err.Error()
	}
	line("# What it costs")
	line("")
	line("<!-- Generated from internal/idle by go run ./scripts/docs. Do not edit. -->")
	line("")
	line("What Kerf takes in a cluster in which nothing happens: no pod waits, no node changes. Launching a node adds a few seconds of a")
	line("function and some hundred requests, far below a cent; the instances are yours and are not in here.")
	line("")
	line("**How it was computed.** An hour of a cluster with so many full nodes goes by in the deterministic world of the tests, in which the real handlers")
	line("run on their schedules; a test counts their invocations, requests and DynamoDB units (internal/idle/measured.json), and fails when what they cost")
	line("moves by a tenth. Those counts times list prices of us-east-1 (%s), %d hours a month, without any free tier, are the tables here. What the world", pricesOf, hours)
	line("cannot know is assumed, and named below. The stack on an emulator (`make local`) counts invocations and requests for five minutes of a cluster")
	line("with a few nodes, and fails when they are others than these ([local.md](local.md)). No bill of an AWS account was seen.")
	line("")
	line("## Public endpoint")
	line("")
	line("| a month, in dollars | %s |", joined(measured, func(h *Hour) string { return fmt.Sprintf("%d nodes", h.Nodes) }))
	line("|---|%s", strings.Repeat("---|", len(measured)))
	costs := make([]Cost, len(measured))
	names := map[string]bool{}
	for i := range measured {
		costs[i] = Of(&measured[i], metrics, alarms)
		for n := range costs[i].ByFunction {
			names[n] = true
		}
	}
	row := func(what string, of func(*Cost) float64) {
		var cells []string
		for i := range costs {
			cells = append(cells, fmt.Sprintf("%.2f", of(&costs[i])))
		}
		line("| %s | %s |", what, strings.Join(cells, " | "))
	}
	for _, n := range slices.Sorted(maps.Keys(names)) {
		row("Lambda: "+n, func(c *Cost) float64 { return c.ByFunction[n] })
	}
	row("SQS", func(c *Cost) float64 { return c.Queues })
	row("EventBridge Scheduler", func(c *Cost) float64 { return c.Schedules })
	row("DynamoDB", func(c *Cost) float64 { return c.Table })
	row("**in all**", (*Cost).Core)
	row("beside it: logs", func(c *Cost) float64 { return c.Logs })
	row(fmt.Sprintf("beside it: %d metrics", metrics), func(c *Cost) float64 { return c.Metrics })
	row(fmt.Sprintf("beside it: alarms, on %d metrics", alarms), func(c *Cost) float64 { return c.Alarms })
	line("")
	line("The free tier, where the account has not used it up, takes Lambda to nothing and a million requests off SQS. EC2, EKS, SSM, IAM and the price list ask nothing")
	line("for their calls. Most of SQS's part is Lambda asking three queues whether there is something in them: AWS says that it asks less where traffic is low,")
	line("but not where an event source has a maximum concurrency, as these have ([Lambda](https://docs.aws.amazon.com/lambda/latest/dg/services-sqs-scaling.html)).")
	line("")
	line("## Private endpoint")
	line("")
	line("Functions in a VPC cost what they cost outside it. What the network takes comes on top:")
	line("")
	line("| | a month, in dollars |")
	line("|---|---|")
	line("| subnets with NAT that is there anyway, and a gateway endpoint for DynamoDB (free) | 0 |")
	for i := range measured {
		line("| the same without that endpoint, %d nodes: what DynamoDB answers goes through NAT | %.2f |", measured[i].Nodes, hours*float64(measured[i].ReadUnits)*4096/1e9*natGigabyte)
	}
	line("| `endpoints=true`: seven interface endpoints, in two zones | %.2f |", 7*2*endpointHour*hours)
	line("| a NAT gateway only for this | %.2f |", natHour*hours)
	line("")
	line("## Beside a controller in the cluster")
	line("")
	line("| | a month, in dollars |")
	line("|---|---|")
	for _, n := range []string{controllerNode, smallNode} {
		line("| two %s nodes, on demand, that only carry a controller | %.2f |", n, 2*month(n))
	}
	line("| two pods of 1 vCPU and 2 GiB on Fargate | %.2f |", 2*fargateHour*hours)
	for i := range costs {
		line("| Kerf at %d nodes, public endpoint, with metrics, alarms and logs | %.2f |", costs[i].Nodes, costs[i].Core()+costs[i].Observability())
	}
	line("")
	line("## What is assumed")
	line("")
	line("- An answer takes, with a warm connection in the same region: %s. One answer is waited for after the other, but for lists of everything (%d at a time) and the status of instances (%d).", latencies(), parallel, together["ec2.DescribeInstanceStatus"])
	line("- An invocation computes %d ms besides, and %d us for each object that is read. A node has %d pods.", codeMillis, objectMicros, podsPerNode)
	line("- A reading of everything takes %d lists (the world has %d kinds), in pages of %d objects. At 0 nodes consolidation makes none: it looks whether there is a node.", kinds, worldKinds, page)
	line("- Lambda asks each of %d queues with %d pollers, each every 20 s, and once more for each message.", queues, pollers)
	line("- Functions that are asked every minute stay warm.")
	line("- An invocation logs %d bytes.", lineBytes)
	line("")
	line("## What was counted")
	line("")
	line("In one hour:")
	line("")
	line("| | %s |", joined(measured, func(h *Hour) string { return fmt.Sprintf("%d nodes", h.Nodes) }))
	line("|---|%s", strings.Repeat("---|", len(measured)))
	for _, n := range slices.Sorted(maps.Keys(names)) {
		line("| %s: invocations | %s |", n, joined(measured, func(h *Hour) string { return fmt.Sprint(h.Functions[n].Invocations) }))
		for _, service := range []struct{ key, name string }{{"kube", "the API server"}, {"table", "DynamoDB"}, {"ec2", "EC2"}, {"sqs", "SQS"}} {
			line("| %s: requests to %s | %s |", n, service.name, joined(measured, func(h *Hour) string { return fmt.Sprint(h.Functions[n].asked(service.key)) }))
		}
	}
	line("| read units of DynamoDB | %s |", joined(measured, func(h *Hour) string { return fmt.Sprint(h.ReadUnits) }))
	line("| write units of DynamoDB | %s |", joined(measured, func(h *Hour) string { return fmt.Sprint(h.WriteUnits) }))
	return b.String()
}

func joined(hs []Hour, of func(*Hour) string) string {
	var out []string
	for i := range hs {
		out = append(out, of(&hs[i]))
	}
	return strings.Join(out, " | ")
}

func latencies() string {
	names := map[string]string{"kube": "the API server", "table": "DynamoDB", "sqs": "SQS", "ec2": "EC2", "ssm": "SSM", "lambda": "Lambda"}
	var out []string
	for _, k := range slices.Sorted(maps.Keys(millis)) {
		out = append(out, fmt.Sprintf("%s %.0f ms", names[k], millis[k]))
	}
	return strings.Join(out, ", ")
}
