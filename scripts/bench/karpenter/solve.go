package karpenter

import (
	"context"
	"errors"
	"fmt"
	"math"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/client-go/tools/record"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/log"
	v1 "sigs.k8s.io/karpenter/pkg/apis/v1"
	"sigs.k8s.io/karpenter/pkg/cloudprovider"
	"sigs.k8s.io/karpenter/pkg/controllers/provisioning/scheduling"
	"sigs.k8s.io/karpenter/pkg/controllers/state"
	"sigs.k8s.io/karpenter/pkg/events"
	"sigs.k8s.io/karpenter/pkg/operator/injection"
	"sigs.k8s.io/karpenter/pkg/operator/logging"
	"sigs.k8s.io/karpenter/pkg/operator/options"
	reqs "sigs.k8s.io/karpenter/pkg/scheduling"

	"kerf.sh/kerf/internal/snapshot"
	"kerf.sh/kerf/scripts/bench/market"
)

func init() { log.SetLogger(logging.NopLogger) }

// Result is what Karpenter would launch.
type Result struct {
	Nodes     int
	Scheduled int
	Failed    int // pods with an error
	TimedOut  bool
	// Price assumes that every node is launched at the cheapest offer of its list,
	// in micro-dollars per hour. For spot that is kind to Karpenter, which launches
	// by price and capacity.
	Price snapshot.Price
	// Options is the mean number of instance types of a node.
	Options float64
}

// Problem is one scheduling loop, ready to run.
type Problem struct {
	pods  []*corev1.Pod
	pool  *v1.NodePool
	types map[string][]*cloudprovider.InstanceType
}

// NewProblem prepares pods that are all pending against an empty cluster.
func NewProblem(pods []*corev1.Pod, types []*cloudprovider.InstanceType, v market.Variant) *Problem {
	p := &Problem{pods: pods, pool: nodePool(v)}
	p.types = map[string][]*cloudprovider.InstanceType{p.pool.Name: types}
	return p
}

// Run makes a topology and a scheduler and solves, as every loop of Karpenter's
// provisioner does, with one worker. After timeout the pods that are left stay
// unscheduled.
func (p *Problem) Run(timeout time.Duration) (scheduling.Results, bool, error) {
	ctx := options.ToContext(injection.WithControllerName(context.Background(), "provisioner"), &options.Options{
		CPURequests:      1000,
		PreferencePolicy: options.PreferencePolicyRespect, MinValuesPolicy: options.MinValuesPolicyStrict, IgnoreDRARequests: true,
		BatchMaxDuration: 10 * time.Second, BatchIdleDuration: time.Second,
		FeatureGates: options.FeatureGates{ReservedCapacity: true},
	})
	opts := []scheduling.Options{
		scheduling.DisableReservedCapacityFallback, scheduling.NumConcurrentReconciles(1),
		scheduling.MinValuesPolicy(options.MinValuesPolicyStrict),
	}
	client := fake.NewFakeClient()
	clk := clock.RealClock{}
	cluster := state.NewCluster(clk, client, nil)
	pools := []*v1.NodePool{p.pool}
	topology, err := scheduling.NewTopology(ctx, client, cluster, nil, pools, p.types, p.pods, opts...)
	if err != nil {
		return scheduling.Results{}, false, fmt.Errorf("make Karpenter's topology: %w", err)
	}
	s := scheduling.NewScheduler(ctx, client, pools, cluster, nil, topology, p.types, daemonPods(),
		events.NewRecorder(&record.FakeRecorder{}), clk, nil, nil, opts...)
	limited, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()
	results, err := s.Solve(limited, p.pods)
	if errors.Is(err, context.DeadlineExceeded) {
		return results, true, nil
	}
	return results, limited.Err() != nil, err
}

// Read prices what Run returned. It fails when a node has no offer left.
func Read(results scheduling.Results, timedOut bool) (Result, error) {
	r := Result{Nodes: len(results.NewNodeClaims), Failed: len(results.PodErrors), TimedOut: timedOut}
	options := 0
	for _, n := range results.NewNodeClaims {
		r.Scheduled += len(n.Pods)
		options += len(n.InstanceTypeOptions)
		best := math.Inf(1)
		for _, t := range n.InstanceTypeOptions {
			for _, o := range t.Offerings {
				if o.Price < best && n.Requirements.IsCompatible(o.Requirements, reqs.AllowUndefinedWellKnownLabels) {
					best = o.Price
				}
			}
		}
		if math.IsInf(best, 1) {
			return r, fmt.Errorf("a node of %d pods has no offer", len(n.Pods))
		}
		r.Price += snapshot.Price(math.Round(best * 1e6))
	}
	if r.Nodes > 0 {
		r.Options = float64(options) / float64(r.Nodes)
	}
	return r, nil
}
