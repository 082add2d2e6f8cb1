package sim

import "time"

// Faults are how often things go wrong, in a million.
type Faults struct {
	// Kube, EC2, Table, SQS are calls that are refused; Lost are writes whose answer is.
	Kube, EC2, Table, SQS, Lost int
	// Crash and Freeze are boundaries at which an invocation ends or sleeps for minutes.
	Crash, Freeze int
	// Auth are calls of Kubernetes that are answered with 401 or 403.
	Auth int
	// Duplicate and Late are messages that are delivered twice, or much later; Order are
	// those that are overtaken.
	Duplicate, Late, Order int
	// Tick are minutes whose tick is late, missing or doubled.
	Tick int
	// Short are offers that run out of machines for a while, per minute; Spot are spot
	// instances that are taken, per minute and instance.
	Short, Spot int
	// NeverJoins, Slow, Small, Flaps, Bare are instances whose kubelet never joins, joins
	// late, has less than thought, is not Ready now and then, joins without labels.
	NeverJoins, Slow, Small, Flaps, Bare int
	// Webhook: the admission webhook for NodeClaims is down for a while, per minute.
	Webhook int
	// People are minutes in which somebody deletes something by hand.
	People int
	// Skew is how far clocks of invocations are off at most.
	Skew time.Duration
	// Restore: the table is replaced by an older copy once.
	Restore bool
	// Warn are the spot instances, of those that are taken, that get their warning two
	// minutes before; Notices are minutes in which AWS has something else to say of instances;
	// States: every change of state is told, those that Kerf asked for too.
	Warn, Notices int  `json:",omitempty"`
	States        bool `json:",omitempty"`
}

func (f *Faults) of(service string) int {
	switch service {
	case "kube":
		return f.Kube
	case "ec2":
		return f.EC2
	case "table":
		return f.Table
	case "sqs":
		return f.SQS
	}
	return 0
}

// Profile is what kind of world it is.
type Profile struct {
	Faults Faults
	// Trouble is how long faults and load go on, Settle how long the world has after that
	// to come to rest, Quiet how long it has to stay so.
	Trouble, Settle, Quiet time.Duration
	// Pools and Loads are what is there at first, and what comes.
	Pools []Pool
	Loads []Load
	// VisibleAfter and RunningAfter are EC2's.
	VisibleAfter, RunningAfter time.Duration
	// Types are what EC2 has, nil = a few. Work is the planner's search budget, 0 = a small one.
	Types []string `json:",omitempty"`
	Work  int64    `json:",omitempty"`
	// Free are the addresses of a subnet.
	Free int32
	// StartupTaint: pools have a startup taint, which somebody takes off later.
	StartupTaint bool
	// Broken adds a class that cannot be resolved, and a pool that needs it.
	Broken bool
	// Daemons are daemonsets on every node.
	Daemons int
	// Budgets: plain pods have a PodDisruptionBudget that lets one go at a time.
	Budgets bool `json:",omitempty"`
	// SpotToSpot is the feature gate SpotToSpotConsolidation.
	SpotToSpot bool `json:",omitempty"`
	// Wide: functions make several calls at a time and run as often at once as in the stack;
	// otherwise it is one after the other, and they meet less.
	Wide bool `json:",omitempty"`
	// Consolidate: the function consolidation is there; Edit: a NodePool is edited twice.
	Consolidate bool `json:",omitempty"`
	Edit        bool `json:",omitempty"`
}

// Pool is a NodePool.
type Pool struct {
	Name         string
	CapacityType []string
	Arch         []string
	CPULimit     int64 // milli; 0 = none
	NodeLimit    int64 // 0 = none
	Replicas     int64 // static; 0 = not
	Weight       int32
	Class        string
	Taint        string
	GracePeriod  string
	// Rebalance: its nodes are replaced when EC2 recommends it.
	Rebalance  bool       `json:",omitempty"`
	Disruption Disruption `json:",omitzero"`
}

// Load is pods that come at a time.
type Load struct {
	After time.Duration
	Kind  string // plain, spread, anti, spot, arm, big, never
	Pods  int
	CPU   int64 // milli
	Mem   int64 // MiB
	// Over is the time over which they come, 0 = at once. Gone is when they are scaled
	// down, 0 = never; Left is what stays.
	Over, Gone time.Duration
	Left       int
	// Misfit: no node can take them, by construction.
	Misfit bool
	// Hold is what the pods say as do-not-disrupt, Grace their grace period in seconds, 0 =
	// they say nothing of it.
	Hold  string `json:",omitempty"`
	Grace int64  `json:",omitempty"`
}

// sometimes is a rate that is often nothing, so that in every seed some faults meet others
// that are not there.
func sometimes(d dice, most int) int {
	if d.IntN(3) == 0 {
		return 0
	}
	return d.IntN(most + 1)
}

// Draw draws the profile of a seed.
func Draw(seed uint64) Profile {
	d := newDice(seed, "profile")
	p := Profile{
		Trouble: 6*time.Minute + d.between(0, 14*time.Minute), Settle: 75 * time.Minute, Quiet: 10 * time.Minute,
		VisibleAfter: d.between(0, 25*time.Second), RunningAfter: d.between(2*time.Second, 40*time.Second),
		Free: pick(d, []int32{30, 250, 250, 250}), StartupTaint: d.IntN(3) == 0, Broken: d.IntN(3) == 0, Daemons: d.IntN(3),
	}
	f := &p.Faults
	f.Kube, f.EC2, f.Table, f.SQS = sometimes(d, 60_000), sometimes(d, 80_000), sometimes(d, 80_000), sometimes(d, 60_000)
	f.Lost, f.Crash, f.Freeze, f.Auth = sometimes(d, 40_000), sometimes(d, 12_000), sometimes(d, 4_000), sometimes(d, 3_000)
	f.Duplicate, f.Late, f.Order, f.Tick = sometimes(d, 150_000), sometimes(d, 60_000), sometimes(d, 200_000), sometimes(d, 200_000)
	f.Short, f.Spot = sometimes(d, 400_000), sometimes(d, 30_000)
	f.NeverJoins, f.Slow, f.Small, f.Flaps, f.Bare = sometimes(d, 80_000), sometimes(d, 200_000), sometimes(d, 100_000), sometimes(d, 100_000), sometimes(d, 50_000)
	f.Webhook, f.People = sometimes(d, 80_000), sometimes(d, 250_000)
	f.Skew = d.between(0, 2*time.Second)
	f.Restore = d.IntN(12) == 0
	p.Budgets = d.IntN(3) == 0
	p.Pools = drawPools(d, p.Broken)
	p.Loads = drawLoads(d, p.Trouble)
	drawNotices(newDice(seed, "notices"), &p)
	drawConsolidation(newDice(seed, "consolidation"), &p)
	return p
}

func drawPools(d dice, broken bool) []Pool {
	pools := []Pool{{Name: "general", CapacityType: []string{"on-demand", "spot"}, Arch: []string{"amd64", "arm64"}, Class: "default"}}
	if d.IntN(2) == 0 {
		pools = append(pools, Pool{Name: "capped", CapacityType: []string{"on-demand"}, Arch: []string{"amd64"}, Class: "default", Weight: 10,
			CPULimit: int64(8+8*d.IntN(6)) * 1000})
	}
	if d.IntN(3) == 0 {
		pools = append(pools, Pool{Name: "few", CapacityType: []string{"spot"}, Arch: []string{"amd64"}, Class: "second", Weight: 5, NodeLimit: int64(d.upTo(4))})
	}
	if d.IntN(4) == 0 {
		pools = append(pools, Pool{Name: "standing", CapacityType: []string{"on-demand"}, Arch: []string{"amd64"}, Class: "second", Replicas: int64(d.upTo(3))})
	}
	if d.IntN(4) == 0 {
		pools = append(pools, Pool{Name: "graceful", CapacityType: []string{"on-demand"}, Arch: []string{"arm64"}, Class: "default", Weight: 1, GracePeriod: "90s"})
	}
	if broken {
		pools = append(pools, Pool{Name: "broken", CapacityType: []string{"on-demand"}, Arch: []string{"amd64"}, Class: "broken", Weight: 50})
	}
	return pools
}

func drawLoads(d dice, within time.Duration) []Load {
	var out []Load
	for range d.upTo(5) {
		l := Load{After: d.between(0, within*2/3), Kind: pick(d, []string{"plain", "plain", "plain", "spread", "anti", "spot", "arm", "big", "never", "ondemand"}),
			CPU: pick(d, []int64{100, 250, 500, 1000, 1900}), Mem: pick(d, []int64{128, 512, 1024, 3500})}
		l.Pods = d.upTo(pick(d, []int{3, 8, 25}))
		switch l.Kind {
		case "anti":
			l.Pods = d.upTo(8)
		case "big":
			l.Pods, l.CPU, l.Mem = d.upTo(3), 14_000, 20_000
		case "never":
			l.Pods, l.CPU, l.Misfit = d.upTo(3), 900_000, true
		}
		if d.IntN(2) == 0 {
			l.Over = d.between(0, 90*time.Second)
		}
		if d.IntN(3) == 0 {
			l.Gone, l.Left = min(l.After+l.Over+d.between(time.Minute, within), within-time.Second), d.IntN(l.Pods+1)
		}
		out = append(out, l)
	}
	return out
}
