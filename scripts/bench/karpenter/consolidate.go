package karpenter

import (
	"context"
	"fmt"
	"math"
	"time"

	"github.com/awslabs/operatorpkg/object"
	"github.com/awslabs/operatorpkg/status"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/record"
	"k8s.io/utils/clock"
	v1 "sigs.k8s.io/karpenter/pkg/apis/v1"
	"sigs.k8s.io/karpenter/pkg/cloudprovider"
	"sigs.k8s.io/karpenter/pkg/controllers/disruption"
	"sigs.k8s.io/karpenter/pkg/controllers/dynamicresources/deviceallocation"
	"sigs.k8s.io/karpenter/pkg/controllers/provisioning"
	"sigs.k8s.io/karpenter/pkg/controllers/state"
	"sigs.k8s.io/karpenter/pkg/events"
	"sigs.k8s.io/karpenter/pkg/operator/injection"
	"sigs.k8s.io/karpenter/pkg/operator/options"
	"sigs.k8s.io/karpenter/pkg/state/virtualpods"
	testv1alpha1 "sigs.k8s.io/karpenter/pkg/test/v1alpha1"

	"kerf.sh/kerf/internal/catalog"
	"kerf.sh/kerf/internal/snapshot"
	"kerf.sh/kerf/scripts/bench/market"
)

// MostCandidates is how many nodes Karpenter's search over several nodes looks at.
const MostCandidates = 100

// Command is what Karpenter's disruption loop comes to first.
type Command struct {
	// Method is Emptiness, Multi or Single; "" when none finds anything.
	Method         string
	Removed, Added int
	// Saving is Karpenter's own estimate, in micro-dollars per hour.
	Saving snapshot.Price
	// Candidates may be disrupted; Considered are those that the method looked at.
	Candidates, Considered int
}

// Cluster is a running cluster as Karpenter's disruption controller sees it. Whatever takes
// 15 seconds of waiting is left out: the validation of a command, which plans it again.
type Cluster struct {
	ctx     context.Context
	store   *store
	state   *state.Cluster
	cloud   *cloud
	events  events.Recorder
	clock   clock.Clock
	queue   *disruption.Queue
	methods []method
}

type method struct {
	name string
	disruption.Method
}

// cloud is a cloud provider that only knows instance types.
type cloud struct {
	cloudprovider.CloudProvider
	types []*cloudprovider.InstanceType
}

func (c *cloud) GetInstanceTypes(context.Context, *v1.NodePool) ([]*cloudprovider.InstanceType, error) {
	return c.types, nil
}

func (c *cloud) GetSupportedNodeClasses() []status.Object {
	return []status.Object{&testv1alpha1.TestNodeClass{}}
}

func (c *cloud) Name() string { return "bench" }

// valid finds every command valid, at once.
type valid struct{}

func (valid) Validate(_ context.Context, c disruption.Command, _ time.Duration) (disruption.Command, error) {
	return c, nil
}

// NewCluster makes one of a snapshot whose nodes are all of the pool of a variant.
func NewCluster(s *snapshot.Snapshot, instanceTypes []*cloudprovider.InstanceType, v market.Variant) (*Cluster, error) {
	pool := nodePool(v)
	kind := object.GVK(&testv1alpha1.TestNodeClass{})
	pool.Spec.Template.Spec.NodeClassRef = &v1.NodeClassReference{Group: kind.Group, Kind: kind.Kind, Name: "default"}
	pool.Spec.Disruption.ConsolidationPolicy = v1.ConsolidationPolicyWhenEmptyOrUnderutilized
	pool.Spec.Disruption.ConsolidateAfter = v1.MustParseNillableDuration("0s")
	for _, c := range []string{v1.ConditionTypeValidationSucceeded, v1.ConditionTypeNodeClassReady, status.ConditionReady} {
		pool.StatusConditions().SetTrue(c)
	}
	c := &Cluster{
		ctx: options.ToContext(injection.WithControllerName(context.Background(), "disruption"), &options.Options{
			CPURequests: 1000, PreferencePolicy: options.PreferencePolicyRespect, MinValuesPolicy: options.MinValuesPolicyStrict, IgnoreDRARequests: true,
			FeatureGates: options.FeatureGates{ReservedCapacity: true},
		}),
		store: newStore(pool), cloud: &cloud{types: instanceTypes}, events: events.NewRecorder(&record.FakeRecorder{}), clock: clock.RealClock{},
	}
	c.state = state.NewCluster(c.clock, c.store, c.cloud)
	provisioner := provisioning.NewProvisioner(c.store, c.events, c.cloud, c.state, c.clock, deviceallocation.NewController(c.store), virtualpods.NewVirtualPodCache(c.store))
	c.queue = disruption.NewQueue(c.store, c.events, c.state, c.clock, provisioner)
	if err := c.load(s, pool); err != nil {
		return nil, err
	}
	shared := disruption.MakeConsolidation(c.clock, c.state, c.store, provisioner, c.cloud, c.events, c.queue)
	c.methods = []method{
		{"Emptiness", disruption.NewEmptiness(shared, disruption.WithValidator(valid{}))},
		{"Multi", disruption.NewMultiNodeConsolidation(shared, disruption.WithValidator(valid{}))},
		{"Single", disruption.NewSingleNodeConsolidation(shared, disruption.WithValidator(valid{}))},
	}
	return c, nil
}

// load puts the nodes and pods of a snapshot into the state.
func (c *Cluster) load(s *snapshot.Snapshot, pool *v1.NodePool) error {
	for i := range s.Pods {
		p := &s.Pods[i]
		pod := Pods(s.Pods[i : i+1])[0]
		pod.Spec.NodeName = p.NodeName
		pod.Status = corev1.PodStatus{Phase: corev1.PodRunning, Conditions: []corev1.PodCondition{{Type: corev1.PodScheduled, Status: corev1.ConditionTrue}}}
		c.store.pods[p.NodeName] = append(c.store.pods[p.NodeName], pod)
	}
	launched := metav1.NewTime(time.Now().Add(-24 * time.Hour))
	for i := range s.Nodes {
		n := &s.Nodes[i]
		node := &corev1.Node{
			ObjectMeta: metav1.ObjectMeta{Name: n.Name, UID: types.UID(n.UID), Labels: n.Labels, CreationTimestamp: launched},
			Spec:       corev1.NodeSpec{ProviderID: n.ProviderID},
			Status: corev1.NodeStatus{
				Capacity: resourceList(n.Capacity), Allocatable: resourceList(n.Allocatable),
				Conditions: []corev1.NodeCondition{{Type: corev1.NodeReady, Status: corev1.ConditionTrue}},
			},
		}
		claim := &v1.NodeClaim{ObjectMeta: metav1.ObjectMeta{Name: "claim-" + n.Name, UID: types.UID("claim-" + n.Name), Labels: n.Labels, CreationTimestamp: launched}}
		claim.Spec.NodeClassRef = pool.Spec.Template.Spec.NodeClassRef
		claim.Status = v1.NodeClaimStatus{ProviderID: n.ProviderID, NodeName: n.Name, Capacity: node.Status.Capacity, Allocatable: node.Status.Allocatable}
		for _, t := range []string{v1.ConditionTypeLaunched, v1.ConditionTypeRegistered, v1.ConditionTypeInitialized, v1.ConditionTypeConsolidatable} {
			claim.StatusConditions().SetTrue(t)
		}
		c.store.nodes[n.Name] = node
		c.state.UpdateNodeClaim(claim)
		if err := c.state.UpdateNode(c.ctx, node); err != nil {
			return fmt.Errorf("tell Karpenter's state of node %s: %w", n.Name, err)
		}
	}
	return nil
}

// First does what one loop of the disruption controller does up to its first command: the
// methods in their order, budgets open. Karpenter's own time limits hold: a minute for the
// search over several nodes, three for that over single ones.
func (c *Cluster) First() (Command, error) {
	for _, m := range c.methods {
		candidates, err := disruption.GetCandidates(c.ctx, c.state, c.store, c.events, c.clock, c.cloud, m.ShouldDisrupt, m.Class(), c.queue)
		if err != nil {
			return Command{}, fmt.Errorf("ask Karpenter for candidates (%s): %w", m.name, err)
		}
		if len(candidates) == 0 {
			continue
		}
		commands, err := m.ComputeCommands(c.ctx, map[string]int{candidates[0].NodePool.Name: len(candidates)}, candidates...)
		if err != nil {
			return Command{}, fmt.Errorf("ask Karpenter for commands (%s): %w", m.name, err)
		}
		for i := range commands {
			cmd := &commands[i]
			if cmd.Decision() == disruption.NoOpDecision {
				continue
			}
			out := Command{
				Method: m.name, Removed: len(cmd.Candidates), Added: len(cmd.Replacements), Candidates: len(candidates), Considered: len(candidates),
				Saving: snapshot.Price(math.Round(cmd.EstimatedSavings() * 1e6)),
			}
			if m.name == "Multi" {
				// It looks at one more than it says.
				out.Considered = min(len(candidates), MostCandidates+1)
			}
			return out, nil
		}
	}
	return Command{}, nil
}

// Price is what the nodes of a snapshot cost, by the instance types that Karpenter knows.
func (c *Cluster) Price() snapshot.Price {
	byName := map[string]*cloudprovider.InstanceType{}
	for _, t := range c.cloud.types {
		byName[t.Name] = t
	}
	var sum snapshot.Price
	for _, n := range c.store.nodes {
		if t := byName[n.Labels[corev1.LabelInstanceTypeStable]]; t != nil {
			if p, ok := t.OfferingPrice(n.Labels[corev1.LabelTopologyZone], catalog.OnDemand); ok {
				sum += snapshot.Price(math.Round(p * 1e6))
			}
		}
	}
	return sum
}
