package sim

import (
	"context"
	"encoding/json"
	"fmt"
	"math"
	"time"

	"kerf.sh/kerf/internal/cloud/ec2fake"
	"kerf.sh/kerf/internal/config"
	"kerf.sh/kerf/internal/handler"
	"kerf.sh/kerf/internal/lifecycle"
	"kerf.sh/kerf/internal/snapshot"
)

// The day of a shop in New York. The world begins at 09:00 UTC, which is 04:00 there.
var dayZone = time.FixedZone("New York", -5*60*60)

const (
	dayLength = 24 * time.Hour
	dayBegins = 4 * time.Hour // by the clock of the shop
	dayStep   = 5 * time.Minute
)

// dayAt is a time of day as the shop reads it, in the world's time: 3:00 is the next night.
func dayAt(hour, minute int) time.Duration {
	t := time.Duration(hour)*time.Hour + time.Duration(minute)*time.Minute - dayBegins
	if t < 0 {
		t += 24 * time.Hour
	}
	return t
}

// point is how many replicas a workload wants at an hour of the day.
type point struct{ hour, replicas float64 }

// dayLoad is one workload of the day.
type dayLoad struct {
	name     string
	cpu, mem int64 // of a pod, milli and MiB
	curve    []point
	noise    float64 // how far an autoscaler is off, of the replicas
	zones    bool    // spread over zones
	apart    bool    // one to a node
	capacity string  // "" = any
	budget   string  // maxUnavailable
	hold     string  // do-not-disrupt
	grace    int64   // seconds; 0 = 30
}

// working is the curve of something that people use in the daytime.
func working(night, day float64) []point {
	return []point{{4, night}, {6, night}, {7.5, night + (day-night)*0.45}, {9, day * 0.95}, {11, day}, {12.5, day * 0.93}, {14, day * 0.93}, {16, day},
		{18, day * 0.96}, {19.5, night + (day-night)*0.6}, {21, night + (day-night)*0.35}, {23, night + (day-night)*0.08}, {25, night}, {28, night}}
}

func flat(n float64) []point { return []point{{4, n}, {28, n}} }

// dayLoads are the workloads of the day: at noon they ask for five times as much as at night.
// Nothing grows between 12:15 and 14:00.
var dayLoads = []dayLoad{
	{name: "storefront", cpu: 1000, mem: 2048, curve: working(5, 38), noise: 0.03, zones: true, budget: "10%"},
	{name: "api", cpu: 1900, mem: 3584, curve: working(4, 24), noise: 0.03, zones: true, budget: "10%"},
	{name: "search", cpu: 3400, mem: 13_312, curve: working(2, 8), budget: "1", grace: 60},
	{name: "checkout", cpu: 950, mem: 1920, curve: working(3, 12), capacity: "on-demand", budget: "1", grace: 60},
	{name: "cache", cpu: 1800, mem: 12_288, curve: flat(3), capacity: "on-demand", apart: true, budget: "1"},
	{name: "workers", cpu: 1900, mem: 3072, noise: 0.03, capacity: "spot",
		curve: []point{{4, 2}, {8, 3}, {11, 9}, {14.2, 9}, {16, 11}, {19, 18}, {20.5, 19}, {22, 11}, {24, 3}, {28, 2}}},
	{name: "reports", cpu: 3600, mem: 6656, capacity: "spot", hold: "true",
		curve: []point{{4, 0}, {24.99, 0}, {25, 12}, {26.4, 12}, {26.41, 5}, {27, 5}, {27.01, 0}, {28, 0}}},
}

// wants is how many replicas a workload wants at an hour of the day.
func (l *dayLoad) wants(hour float64) float64 {
	for i := 1; i < len(l.curve); i++ {
		if a, b := l.curve[i-1], l.curve[i]; hour <= b.hour {
			return a.replicas + (b.replicas-a.replicas)*max(0, hour-a.hour)/(b.hour-a.hour)
		}
	}
	return l.curve[len(l.curve)-1].replicas
}

// dayTypes are the instance types of the day.
var dayTypes = func() (out []string) {
	for _, family := range []string{"c6i", "c7i", "c6g", "c7g", "m6i", "m7i", "m6g", "m7g", "r6i", "r6g", "r7g"} {
		for _, size := range []string{"xlarge", "2xlarge", "4xlarge"} {
			out = append(out, family+"."+size)
		}
	}
	return out
}()

// dayProfile is a world in which nothing goes wrong by chance: what does is in the script.
func dayProfile() *Profile {
	return &Profile{
		Trouble: dayLength, Free: 1000, VisibleAfter: 3 * time.Second, RunningAfter: 12 * time.Second, Types: dayTypes, Daemons: 2, SpotToSpot: true,
		Pools: []Pool{{Name: "general", CapacityType: []string{"on-demand", "spot"}, Arch: []string{"amd64", "arm64"}, Class: "default"}},
	}
}

var dayHook func(*World)

// daySeed is that of the world.
const daySeed = 7

// runDay lets the day go by, with consolidation or, as NodePools say it, with
// consolidateAfter: Never. It has to be called in a bubble.
func runDay(never bool) (*Report, *dayRecord) {
	rec := &dayRecord{}
	rep := Run(daySeed, Options{Profile: dayProfile(), Short: true, Verbose: *trace != "", Before: func(w *World) {
		w.checks.sparing = 50
		rec.begin(w)
		pool := w.cluster.pools.by["general"]
		pool.v.Disruption = snapshot.Disruption{ConsolidationPolicy: "WhenEmptyOrUnderutilized", ConsolidateAfter: "2m", Budgets: []snapshot.Budget{{Nodes: "10%"}}}
		if never {
			pool.v.Disruption.ConsolidateAfter = "Never"
		}
		w.cluster.pools.touch(pool)
		for _, d := range w.cluster.daemons.all() { // as system-node-critical
			d.v.Template.Spec.Priority = 2_000_001_000
			w.cluster.daemons.touch(d)
		}
		w.dayConsolidation(rec)
		for i := range dayLoads {
			w.dayLoad(&dayLoads[i])
		}
		if dayHook != nil {
			dayHook(w)
		}
		w.daySpot(rec)
		w.dayImages(rec)
	}})
	rec.end()
	return rep, rec
}

// dayLoad has an autoscaler set the replicas of a workload. Like the one of Kubernetes it
// leaves them as they are when they are off by a tenth or less.
func (w *World) dayLoad(l *dayLoad) {
	own := &snapshot.LabelSelector{MatchLabels: map[string]string{"app": l.name}}
	spec := snapshot.PodSpec{Requests: snapshot.Resources{CPU: l.cpu, Memory: l.mem * mib, Pods: 1}, SchedulerName: "default-scheduler"}
	if l.zones {
		spec.Spread = []snapshot.TopologySpread{{MaxSkew: 1, TopologyKey: zoneKey, WhenUnsatisfiable: "ScheduleAnyway", Selector: own}}
	}
	if l.apart {
		spec.Anti = []snapshot.PodAffinityTerm{{TopologyKey: hostKey, Selector: own}}
	}
	if l.capacity != "" {
		spec.NodeSelector = map[string]string{"karpenter.sh/capacity-type": l.capacity}
	}
	if l.grace > 0 {
		spec.TerminationGrace = &l.grace
	}
	d := snapshot.Workload{Kind: "Deployment", Namespace: "default", Name: l.name, Selector: own, Template: snapshot.PodTemplate{Labels: own.MatchLabels, Spec: spec}}
	if l.hold != "" {
		d.Template.Annotations = map[string]string{snapshot.DoNotDisrupt: l.hold}
	}
	if l.budget != "" {
		w.cluster.budgets.create("default/"+l.name, snapshot.PodDisruptionBudget{Namespace: "default", Name: l.name, Selector: own, MaxUnavailable: l.budget, HasStatus: true}, nil)
	}
	it, _ := w.cluster.loads.create("default/"+l.name, d, nil)
	dice := newDice(w.Seed, "load "+l.name)
	last := math.Inf(-1)
	phase := time.Duration(dice.IntN(240)) * time.Second
	for at := time.Duration(0); at < dayLength; at += dayStep {
		n := l.wants((dayBegins + at).Hours())
		n *= 1 + l.noise*(2*dice.Float64()-1)
		if math.Abs(n-last) <= 0.1*last {
			continue
		}
		last = math.Round(n)
		replicas := int64(last)
		when := at + phase
		if at == 0 {
			when = 20 * time.Second
		}
		w.at(epoch.Add(when), func() {
			if it.v.Replicas != replicas {
				it.v.Replicas = replicas
				w.cluster.loads.touch(it)
			}
		})
	}
}

// daySpot has EC2 take spot instances.
func (w *World) daySpot(rec *dayRecord) {
	take := func(at time.Duration, n int, typ string) {
		w.at(epoch.Add(at), func() {
			dice := newDice(w.Seed, fmt.Sprint("spot at ", at))
			for range n {
				var of []*ec2fake.Instance
				for _, i := range w.aws.ec2.Instances() {
					if m := w.cluster.machines[i.ID]; i.Spot && i.ShuttingFrom.IsZero() && m != nil && m.node != "" && !w.bus.warned[i.ID] && (typ == "" || i.Type == typ) {
						of = append(of, i)
					}
				}
				if len(of) == 0 {
					return
				}
				i := pick(dice, of)
				if typ == "" && n > 1 { // they come by type, as machines are taken back
					typ = i.Type
				}
				rec.warned(i)
				w.bus.warn(i)
			}
		})
	}
	take(dayAt(7, 52), 1, "")
	take(dayAt(10, 41), 3, "")
	take(dayAt(16, 23), 2, "")
	take(dayAt(20, 8), 1, "")
	take(dayAt(1, 40), 1, "")
}

// dayImages publishes an image whose nodes never join, takes it back, and publishes a good one.
func (w *World) dayImages(rec *dayRecord) {
	publish := func(at time.Duration, suffix, what string, bad bool) {
		w.at(epoch.Add(at), func() {
			for _, a := range []struct{ ami, ssm, arch string }{{"amd64", "x86_64", "x86_64"}, {"arm64", "arm64", "arm64"}} {
				id := "ami-" + a.ami + suffix
				if suffix != "" {
					w.aws.ec2.AddImage(id, "al2023-"+a.ami+suffix, a.arch, w.now())
				}
				if bad {
					w.badImages = append(w.badImages, id)
				}
				w.aws.ssm.Parameters["/aws/service/eks/optimized-ami/1.35/amazon-linux-2023/"+a.ssm+"/standard/recommended/image_id"] = id
			}
			rec.said(what)
		})
	}
	publish(dayAt(12, 30), "-bad", "AWS publishes a new AMI. Nodes that run it never join.", true)
	publish(dayAt(13, 45), "-good", "AWS publishes another AMI, and this one works.", false)
}

// dayConsolidation adds the function consolidation, once a minute.
func (w *World) dayConsolidation(rec *dayRecord) {
	kube, mail, lambda := newKubeService(w), newSQSService(w), newLambdaService(w)
	f := &function{w: w, name: "consolidation", timeout: 5 * time.Minute, concurrency: 1, dice: newDice(w.Seed, "lambda consolidation")}
	f.begin = func(c *container) func(context.Context, json.RawMessage) (any, error) {
		p := &parts{c: c, w: w, m: &Mutant{}, kube: kube, mail: mail, lambda: lambda, table: w.table.live}
		p.make()
		s := &handler.Sweep{
			Cluster: p.cluster, Executor: p.executor, Ticks: p.ticks, Facts: p.facts, Resolve: p.resolve, Journal: p.journal,
			ClusterName: clusterName, Region: region, Interval: interval, Instance: "kerf.sh/consolidation", Now: p.c.now, Wait: p.c.wait, Log: p.c.log(),
		}
		h := &handler.Consolidation{Sweep: s, Kick: p.lifecycle.Kick, MassShare: int(config.Default().Functions.MassRemovalPercent), Notices: rec}
		return func(ctx context.Context, _ json.RawMessage) (any, error) {
			p.begin()
			s.Memory = p.memory
			rep, err := h.Handle(ctx)
			w.tracef("  %s consolidation: %+v", p.c.proc.name, rep)
			return rep, err
		}
	}
	w.lambdas["consolidation"] = f
	var minute func(n int)
	minute = func(n int) {
		w.at(epoch.Add(time.Duration(n)*time.Minute+20*time.Second), func() {
			minute(n + 1)
			if f.free() {
				f.invoke(nil, func(any, error, bool) {})
			}
		})
	}
	minute(1)
}

// Notify implements handler.Notifier: the record keeps what consolidation tells.
func (r *dayRecord) Notify(_ context.Context, notices []lifecycle.Notice) error {
	r.notices = append(r.notices, notices...)
	return nil
}
