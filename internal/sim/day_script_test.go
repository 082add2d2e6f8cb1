package sim

import (
	"fmt"
	"math"
	"time"

	"kerf.sh/kerf/internal/cloud/ec2fake"
	"kerf.sh/kerf/internal/handler"
	"kerf.sh/kerf/internal/sim/daypage"
	"kerf.sh/kerf/internal/snapshot"
)

// The day of a shop in New York. The world begins at 09:00 UTC, which is 04:00 there, with
// an empty cluster; an hour later the day begins.
var dayZone = time.FixedZone("New York", -5*60*60)

const (
	dayLength = 24 * time.Hour
	dayWarm   = time.Hour
	dayBegins = 5 * time.Hour // by the clock of the shop
	dayStep   = 5 * time.Minute
)

// dayTime is a time of the day in the world.
func dayTime(at time.Duration) time.Time { return epoch.Add(dayWarm + at) }

// dayAt is when the shop's clock says so, since the day began: 3:00 is the next night.
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
		{18, day * 0.96}, {19.5, night + (day-night)*0.6}, {21, night + (day-night)*0.35}, {23, night + (day-night)*0.08}, {25, night}, {29, night}}
}

func flat(n float64) []point { return []point{{4, n}, {29, n}} }

// dayLoads are the workloads of the day: at noon they ask for five times as much as at night.
// Nothing grows between 12:15 and 14:00.
var dayLoads = []dayLoad{
	{name: "storefront", cpu: 900, mem: 1536, curve: working(4, 26), noise: 0.03, zones: true, budget: "15%"},
	{name: "api", cpu: 1850, mem: 3072, curve: working(2, 13), noise: 0.03, zones: true, budget: "15%"},
	{name: "search", cpu: 3400, mem: 13_312, curve: working(1, 4), budget: "1", grace: 60},
	{name: "checkout", cpu: 900, mem: 1536, curve: working(2, 8), capacity: "on-demand", budget: "25%", grace: 60},
	{name: "cache", cpu: 1800, mem: 12_288, curve: flat(2), capacity: "on-demand", apart: true, budget: "1"},
	{name: "workers", cpu: 1850, mem: 3072, noise: 0.03, capacity: "spot",
		curve: []point{{4, 2}, {8, 2}, {11, 5}, {14.2, 5}, {16, 6}, {19, 10}, {20.5, 11}, {22, 5}, {24, 2}, {29, 2}}},
	{name: "reports", cpu: 3600, mem: 6144, capacity: "spot", hold: "true",
		curve: []point{{4, 0}, {24.99, 0}, {25, 6}, {26.4, 6}, {26.41, 2}, {27, 2}, {27.01, 0}, {29, 0}}},
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
	for _, family := range []string{"c6g", "c6i", "c7g", "m6g", "m6i", "m7g", "r6g"} {
		for _, size := range []string{"xlarge", "2xlarge", "4xlarge"} {
			out = append(out, family+"."+size)
		}
	}
	return out
}()

// dayProfile is a world in which nothing goes wrong by chance: what does is in the script.
// never: the NodePool says consolidateAfter: Never.
func dayProfile(never bool) *Profile {
	after := "2m"
	if never {
		after = "Never"
	}
	return &Profile{
		Free: 1000, VisibleAfter: 3 * time.Second, RunningAfter: 12 * time.Second, Types: dayTypes, Daemons: 2, SpotToSpot: true, Consolidate: true,
		Pools: []Pool{{Name: "general", CapacityType: []string{"on-demand", "spot"}, Arch: []string{"amd64", "arm64"}, Class: "default",
			Disruption: Disruption{Policy: "WhenEmptyOrUnderutilized", After: after, Budgets: []Budget{{Nodes: "10%"}}}}},
	}
}

const dayPools = "one NodePool for spot and on-demand, amd64 and arm64, consolidationPolicy WhenEmptyOrUnderutilized, consolidateAfter 2m, a budget of 10 % of the nodes; spot-to-spot consolidation is on"

// daySeed is that of the world.
const daySeed = 7

// runDay lets the day go by, up to a time. It has to be called in a bubble.
func runDay(never bool, until time.Duration) (*Report, *dayRecord) {
	rec, profile := &dayRecord{}, dayProfile(never)
	profile.Trouble = dayWarm + until
	m := &Mutant{Memory: func(m handler.Memory) handler.Memory { return dayMemory{m, rec} }}
	rep := Run(daySeed, Options{Profile: profile, Mutant: m, Short: true, Verbose: *trace != "", Before: func(w *World) {
		w.checks.sparing = 50
		rec.begin(w, !never)
		for _, d := range w.cluster.daemons.all() { // as system-node-critical
			d.v.Template.Spec.Priority = 2_000_001_000
			w.cluster.daemons.touch(d)
		}
		for i := range dayLoads {
			w.dayLoad(&dayLoads[i])
		}
		w.daySpot(rec)
		w.dayImages()
	}})
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
	for at := -dayWarm; at < dayLength; at += dayStep {
		n := l.wants((dayBegins + at).Hours())
		n *= 1 + l.noise*(2*dice.Float64()-1)
		if math.Abs(n-last) <= 0.1*last {
			continue
		}
		last = math.Round(n)
		replicas := int64(last)
		when := at + phase
		if at == -dayWarm {
			when = 20*time.Second - dayWarm
		}
		w.at(dayTime(when), func() {
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
		w.at(dayTime(at), func() {
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
	take(dayAt(22, 47), 1, "")
}

// dayBadImage is from when to when the newest image is one whose nodes never join.
var dayBadImage = daypage.Span{From: dayAt(12, 30), To: dayAt(13, 45)}

// dayImages publishes an image whose nodes never join, and then one that works.
func (w *World) dayImages() {
	publish := func(at time.Duration, suffix string, bad bool) {
		w.at(dayTime(at), func() {
			for _, a := range []struct{ ami, arch string }{{"amd64", "x86_64"}, {"arm64", "arm64"}} {
				id := "ami-" + a.ami + suffix
				w.aws.ec2.AddImage(id, "al2023-"+a.ami+suffix, a.arch, w.now())
				if bad {
					w.badImages = append(w.badImages, id)
				}
				w.aws.ssm.Parameters["/aws/service/eks/optimized-ami/1.35/amazon-linux-2023/"+a.arch+"/standard/recommended/image_id"] = id
			}
		})
	}
	publish(dayBadImage.From, "-new", true)
	publish(dayBadImage.To, "-newer", false)
}
