//go:build local

package local

import (
	"fmt"
	"math"
	"slices"
	"strings"
	"time"

	"kerf.sh/kerf/internal/idle"
)

// Spans in which nothing happens: without a node, and with some.
const (
	quietEmpty = 3 * time.Minute
	quiet      = 5 * time.Minute
)

// settles is how long what is still on its way may take.
const settles = 45 * time.Second

// nothing counts what the functions do for a cluster without a node.
func (s *story) nothing() {
	s.chapter(fmt.Sprintf("Nothing happens at 0 nodes, for %v: what the functions do, beside what docs/cost.md counts with", quietEmpty))
	s.must(s.Cluster.Create(s.ctx, s.read("pools.yaml")))
	s.say("An EC2NodeClass and a NodePool are applied.")
	time.Sleep(settles)
	s.counted(0, quietEmpty)
}

// idle counts what they do while nothing happens in a cluster with nodes.
func (s *story) idle() {
	s.chapter(fmt.Sprintf("Nothing happens, for %v: what the functions do, beside what docs/cost.md counts with", quiet))
	time.Sleep(settles)
	s.counted(1, quiet) // what more nodes add is the size of answers
	metrics, err := s.metrics(s.ctx, "Kerf")
	s.must(err)
	s.say("CloudWatch has %d metrics of Kerf's, after all of the above: %s.", len(metrics), strings.Join(metrics, ", "))
	if len(metrics) >= 10 || len(metrics) == 0 {
		s.t.Errorf("%d metrics, want fewer than ten", len(metrics))
	}
	if wait := s.waiting(); len(wait) > 0 {
		s.t.Errorf("pods wait: %v", wait)
	}
}

// counted lets a span go by, and holds what the functions did against one of the hours that
// docs/cost.md is made of.
func (s *story) counted(which int, span time.Duration) {
	from, to := s.quiet(span)
	measured, err := idle.Measured()
	s.must(err)
	world := &measured[which]
	here := idle.Hour{Nodes: world.Nodes, Functions: map[string]idle.Function{}, ReadUnits: world.ReadUnits, WriteUnits: world.WriteUnits}
	hour := int(time.Hour / span)
	var text strings.Builder
	fmt.Fprintf(&text, "%-36s%14s%14s\n", "in an hour", "here", "docs/cost.md")
	row := func(what string, got, want, most int) {
		fmt.Fprintf(&text, "%-36s%14d%14d\n", what, got, want)
		if diff := got - want; diff > most || -diff > most {
			s.t.Errorf("%s: %d in an hour, and docs/cost.md counts with %d", what, got, want)
		}
	}
	for _, name := range sorted(count(world.Functions)) {
		n, err := s.sum(s.ctx, "AWS/Lambda", "Invocations", "FunctionName", s.function(name), from, to)
		s.must(err)
		calls, err := s.calls(name, from, to)
		s.must(err)
		w := world.Functions[name]
		f := idle.Function{Invocations: int(n) * hour, Calls: map[string]int{}, Readings: w.Readings}
		row(name+": invocations", f.Invocations, w.Invocations, hour)
		// Catalog asks for other things each time, and comes once in five minutes: its requests are
		// told, and say nothing about an hour.
		tolerance := 4
		if n < 3 {
			tolerance = 0
		}
		for _, service := range []string{"table", "ec2", "sqs"} {
			got, want := 0, 0
			for op, n := range w.Calls {
				if strings.HasPrefix(op, service+".") {
					want += n
				}
			}
			for op, n := range calls {
				of, what, _ := strings.Cut(op, ".")
				if of == service || service == "table" && of == "dynamodb" {
					got += n * hour
					f.Calls[service+"."+what] += n * hour
				}
			}
			// In five minutes a request that comes once more or less makes twelve an hour.
			most := math.MaxInt
			if tolerance > 0 {
				most = max(2*hour, want/tolerance)
			}
			row(name+": requests to "+service, got, want, most)
		}
		for op, n := range w.Calls {
			if strings.HasPrefix(op, "kube.") {
				f.Calls[op] = n
			}
		}
		here.Functions[name] = f
	}
	s.say("%s", strings.TrimRight(text.String(), "\n"))
	got, want := idle.Of(&here, 0, 0), idle.Of(world, 0, 0)
	s.say("A month of that at %d nodes: $%.2f for compute, queues, schedules and table; docs/cost.md says $%.2f.", world.Nodes, got.Core(), want.Core())
	if math.Abs(got.Core()-want.Core()) > want.Core()/8 {
		s.t.Errorf("$%.2f a month, and docs/cost.md says $%.2f", got.Core(), want.Core())
	}
}

// quiet lets whole minutes go by in which the machine did not stand still: a virtual one does now
// and then, its clock goes on, and nobody makes up for the ticks.
func (s *story) quiet(span time.Duration) (from, to time.Time) {
	for range 3 {
		began := time.Now()
		from = began.Truncate(time.Minute).Add(time.Minute)
		to = from.Add(span)
		time.Sleep(time.Until(to.Add(10 * time.Second)))
		still := time.Now().Round(0).Sub(began.Round(0)) - time.Since(began)
		if still < time.Second {
			return from, to
		}
		s.say("The machine stood still for %.0f s: that is counted anew.", still.Seconds())
	}
	s.t.Fatal("the machine stands still again and again: nothing can be counted")
	return from, to
}

func count[V any](m map[string]V) map[string]int {
	out := map[string]int{}
	for k := range m {
		out[k]++
	}
	return out
}

// calls are the requests of a function in a span of time, by service and operation.
func (s *story) calls(function string, from, to time.Time) (map[string]int, error) {
	list, err := s.summaries(s.ctx, function, from)
	out := map[string]int{}
	for _, one := range list {
		if one.Timestamp.Before(to) {
			for op, c := range one.Calls {
				out[op] += c.N
			}
		}
	}
	return out, err
}

// waiting are the pods without a node.
func (s *story) waiting() (out []string) {
	pods, err := s.running(s.ctx, "shop", fewPods)
	for _, p := range pods {
		if p.Spec.NodeName == "" {
			out = append(out, p.Name)
		}
	}
	if err != nil {
		out = append(out, err.Error())
	}
	return slices.Compact(out)
}
