package machines

import (
	"context"
	"encoding/base64"
	"errors"
	"fmt"
	"sync"
	"time"

	ec2types "github.com/aws/aws-sdk-go-v2/service/ec2/types"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/util/retry"

	"kerf.sh/kerf/internal/catalog"
	"kerf.sh/kerf/internal/cloud/ec2fake"
	"kerf.sh/kerf/internal/realtest"
	"kerf.sh/kerf/internal/snapshot"
)

// Machines are the machines of one EC2, all of one cluster.
type Machines struct {
	Cluster *realtest.Cluster
	// Name, Endpoint and CA (PEM) are what the user data of a machine has to say.
	Name, Endpoint string
	CA             []byte
	EC2            *ec2fake.EC2
	Region         string
	// JoinAfter is how long a running machine takes to register its Node, ReadyAfter how
	// long the Node then takes to become ready.
	JoinAfter, ReadyAfter time.Duration
	// Starts is how long containers take to become ready, once their pod has a node, and Ends
	// how long to stop, at most their pod's grace period. Both to the second.
	Starts, Ends time.Duration
	// Never says which machines do not join; nil: all do.
	Never func(i ec2fake.Instance) bool
	// Memory is what a machine has, of what the table says of its type, in bytes; nil: that.
	Memory func(instanceType string, table int64) int64

	types map[string]catalog.Resolved

	mu      sync.Mutex
	running map[string]*machine // by instance id
	nodeOf  map[string]*machine // by the name of the Node
	failed  map[string]error
}

// machine is one that has joined, or tries to.
type machine struct {
	node      string
	uid       string
	joined    time.Time
	ready     bool
	beaten    time.Time
	capacity  corev1.ResourceList
	available corev1.ResourceList
	gone      bool
}

// Run plays until ctx ends; the returned function waits for that.
func (m *Machines) Run(ctx context.Context) (wait func(), err error) {
	list, err := catalog.Default().Resolve(&snapshot.NodeClass{Name: "machines", AMIFamily: catalog.FamilyAL2023}, snapshot.DefaultSettings())
	if err != nil {
		return nil, fmt.Errorf("run machines: %w", err)
	}
	m.types, m.running, m.nodeOf, m.failed = map[string]catalog.Resolved{}, map[string]*machine{}, map[string]*machine{}, map[string]error{}
	for _, r := range list {
		m.types[r.Type.Name] = r
	}
	var group sync.WaitGroup
	for _, step := range []func(context.Context){m.nodes, m.pods} {
		group.Go(func() {
			for ctx.Err() == nil {
				step(ctx)
				select {
				case <-ctx.Done():
				case <-time.After(100 * time.Millisecond):
				}
			}
		})
	}
	return group.Wait, nil
}

// Failed says why machines did not join, by instance id.
func (m *Machines) Failed() map[string]error {
	m.mu.Lock()
	defer m.mu.Unlock()
	out := map[string]error{}
	for id, err := range m.failed {
		out[id] = err
	}
	return out
}

func (m *Machines) fail(id string, err error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.failed[id] = err
}

// alive tells whether the kubelet of a node runs.
func (m *Machines) alive(node string) bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	one := m.nodeOf[node]
	return one != nil && !one.gone
}

// nodes brings every machine one step on.
func (m *Machines) nodes(ctx context.Context) {
	now := m.EC2.Now()
	for _, i := range m.EC2.Machines() {
		m.mu.Lock()
		one, failed := m.running[i.ID], m.failed[i.ID]
		m.mu.Unlock()
		state := i.State(now)
		var err error
		switch {
		case one == nil && failed == nil && state == ec2types.InstanceStateNameRunning:
			if now.Sub(i.RunningFrom) < m.JoinAfter || m.Never != nil && m.Never(i) {
				continue
			}
			err = m.join(ctx, i)
		case one == nil:
		case state == ec2types.InstanceStateNameShuttingDown:
			m.end(one)
		case state == ec2types.InstanceStateNameTerminated:
			m.end(one)
			err = m.remove(ctx, one)
		case state == ec2types.InstanceStateNameRunning:
			err = m.live(ctx, i, one)
		}
		if err != nil && ctx.Err() == nil {
			m.fail(i.ID, fmt.Errorf("node %s of %s: %w", i.PrivateDNS, i.ID, err))
		}
	}
}

func (m *Machines) end(one *machine) {
	m.mu.Lock()
	defer m.mu.Unlock()
	one.gone = true
}

// Taints of a Node on its way.
var (
	uninitialized = corev1.Taint{Key: "node.cloudprovider.kubernetes.io/uninitialized", Value: "true", Effect: corev1.TaintEffectNoSchedule}
	labelZoneID   = catalog.LabelZoneID
)

// join registers the Node, as the kubelet does with an external cloud provider.
func (m *Machines) join(ctx context.Context, i ec2fake.Instance) error {
	b, err := readUserData(i.UserData)
	if err != nil {
		return err
	}
	if b.Cluster != m.Name || b.Endpoint != m.Endpoint || b.CA != base64.StdEncoding.EncodeToString(m.CA) {
		return fmt.Errorf("its user data names cluster %q at %q, and this one is %q at %q; or the certificate authority is another", b.Cluster, b.Endpoint, m.Name, m.Endpoint)
	}
	t, ok := m.types[i.Type]
	if !ok {
		return fmt.Errorf("type %s is not in the table", i.Type)
	}
	one := &machine{node: i.PrivateDNS, joined: m.EC2.Now()}
	if err := m.size(one, &t, b); err != nil {
		return err
	}
	n := &corev1.Node{
		ObjectMeta: metav1.ObjectMeta{Name: i.PrivateDNS, Annotations: map[string]string{"volumes.kubernetes.io/controller-managed-attach-detach": "true"},
			Labels: map[string]string{corev1.LabelHostname: i.PrivateDNS, corev1.LabelOSStable: "linux", corev1.LabelArchStable: t.Type.Arch, "beta.kubernetes.io/os": "linux", "beta.kubernetes.io/arch": t.Type.Arch}},
		Spec: corev1.NodeSpec{ProviderID: "aws:///" + i.Zone + "/" + i.ID, Taints: append(b.Taints, uninitialized)},
	}
	for k, v := range b.Labels {
		n.Labels[k] = v
	}
	made, err := m.Cluster.Clientset.CoreV1().Nodes().Create(ctx, n, metav1.CreateOptions{})
	if err != nil {
		return err
	}
	one.uid = string(made.UID)
	err = m.status(ctx, one.node, func(n *corev1.Node) {
		n.Status.Capacity, n.Status.Allocatable = one.capacity, one.available
		n.Status.NodeInfo.Architecture, n.Status.NodeInfo.OperatingSystem, n.Status.NodeInfo.KubeletVersion = t.Type.Arch, "linux", realtest.Version
		setReady(n, corev1.ConditionFalse, "KubeletNotReady", "container runtime network not ready: cni plugin not initialized")
	})
	if err != nil {
		return err
	}
	if err := m.Cluster.Beat(ctx, one.node); err != nil {
		return err
	}
	one.beaten = time.Now()
	m.mu.Lock()
	defer m.mu.Unlock()
	m.running[i.ID], m.nodeOf[one.node] = one, one
	return nil
}

// status changes the status of a Node, as often as others change the Node meanwhile. One that
// is gone is none of the kubelet's business.
func (m *Machines) status(ctx context.Context, node string, change func(*corev1.Node)) error {
	nodes := m.Cluster.Clientset.CoreV1().Nodes()
	return retry.RetryOnConflict(retry.DefaultRetry, func() error {
		n, err := nodes.Get(ctx, node, metav1.GetOptions{})
		if err == nil {
			change(n)
			_, err = nodes.UpdateStatus(ctx, n, metav1.UpdateOptions{})
		}
		if apierrors.IsNotFound(err) {
			return nil
		}
		return err
	})
}

func setReady(n *corev1.Node, status corev1.ConditionStatus, reason, message string) {
	now := metav1.Now()
	n.Status.Conditions = []corev1.NodeCondition{
		{Type: corev1.NodeMemoryPressure, Status: corev1.ConditionFalse, Reason: "KubeletHasSufficientMemory", LastHeartbeatTime: now, LastTransitionTime: now},
		{Type: corev1.NodeDiskPressure, Status: corev1.ConditionFalse, Reason: "KubeletHasNoDiskPressure", LastHeartbeatTime: now, LastTransitionTime: now},
		{Type: corev1.NodePIDPressure, Status: corev1.ConditionFalse, Reason: "KubeletHasSufficientPID", LastHeartbeatTime: now, LastTransitionTime: now},
		{Type: corev1.NodeReady, Status: status, Reason: reason, Message: message, LastHeartbeatTime: now, LastTransitionTime: now},
	}
}

// size is what the machine has, and what it leaves to pods.
func (m *Machines) size(one *machine, t *catalog.Resolved, b *boot) error {
	has := t.Capacity
	if m.Memory != nil {
		has.Memory = m.Memory(t.Type.Name, has.Memory)
	}
	if b.MaxPods > 0 {
		has.Pods = b.MaxPods
	}
	defaults, left := t.KubeReserved(), has
	for name, value := range map[string]*int64{"cpu": &left.CPU, "memory": &left.Memory, "ephemeral-storage": &left.Ephemeral} {
		kube, err := amount(b.KubeReserved, name, defaults.Get(name))
		if err != nil {
			return err
		}
		system, err := amount(b.SystemReserved, name, 0)
		if err != nil {
			return err
		}
		*value -= kube + system
	}
	evict := int64(100 << 20)
	if text, ok := b.EvictionHard["memory.available"]; ok {
		q, err := resource.ParseQuantity(text)
		if err != nil {
			return fmt.Errorf("start the kubelet: evictionHard memory.available: this machine reads amounts, not %q", text)
		}
		evict = q.Value()
	}
	left.Memory -= evict
	left.Ephemeral -= has.Ephemeral / 10
	one.capacity, one.available = quantities(has), quantities(left)
	return nil
}

// amount is a reserved resource: what is given, else the default.
func amount(given map[string]string, name string, def int64) (int64, error) {
	text, ok := given[name]
	if !ok {
		return def, nil
	}
	q, err := resource.ParseQuantity(text)
	if err != nil {
		return 0, fmt.Errorf("start the kubelet: reserved %s %q: %w", name, text, err)
	}
	if name == "cpu" {
		return q.MilliValue(), nil
	}
	return q.Value(), nil
}

func quantities(r snapshot.Resources) corev1.ResourceList {
	return corev1.ResourceList{
		corev1.ResourceCPU: *resource.NewMilliQuantity(r.CPU, resource.DecimalSI), corev1.ResourceMemory: *resource.NewQuantity(r.Memory, resource.BinarySI),
		corev1.ResourceEphemeralStorage: *resource.NewQuantity(r.Ephemeral, resource.BinarySI), corev1.ResourcePods: *resource.NewQuantity(r.Pods, resource.DecimalSI),
	}
}

// live does what happens to the Node of a machine that runs: the cloud-controller-manager
// initialises it, it becomes ready, it beats.
func (m *Machines) live(ctx context.Context, i ec2fake.Instance, one *machine) error {
	if time.Since(one.beaten) > 10*time.Second {
		one.beaten = time.Now()
		if err := m.Cluster.Beat(ctx, one.node); err != nil && !apierrors.IsNotFound(err) {
			return err
		}
	}
	if one.ready {
		return nil
	}
	n, err := m.Cluster.Clientset.CoreV1().Nodes().Get(ctx, one.node, metav1.GetOptions{})
	if apierrors.IsNotFound(err) {
		return nil // deleted under a kubelet that runs: it does not register again by itself
	}
	if err != nil {
		return err
	}
	if taints := without(n.Spec.Taints, uninitialized.Key); len(taints) < len(n.Spec.Taints) {
		n.Spec.Taints = taints
		for k, v := range map[string]string{corev1.LabelInstanceTypeStable: i.Type, corev1.LabelInstanceType: i.Type, corev1.LabelTopologyZone: i.Zone, corev1.LabelFailureDomainBetaZone: i.Zone,
			corev1.LabelTopologyRegion: m.Region, corev1.LabelFailureDomainBetaRegion: m.Region, labelZoneID: i.ZoneID} {
			n.Labels[k] = v
		}
		if _, err = m.Cluster.Clientset.CoreV1().Nodes().Update(ctx, n, metav1.UpdateOptions{}); apierrors.IsConflict(err) {
			return nil // next time
		}
		return err
	}
	if m.EC2.Now().Sub(one.joined) < m.ReadyAfter {
		return nil
	}
	err = m.status(ctx, one.node, func(n *corev1.Node) {
		setReady(n, corev1.ConditionTrue, "KubeletReady", "kubelet is posting ready status")
		n.Status.Addresses = []corev1.NodeAddress{{Type: corev1.NodeHostName, Address: one.node}, {Type: corev1.NodeInternalDNS, Address: one.node}}
	})
	if err != nil {
		return err
	}
	one.ready = true
	return nil
}

func without(taints []corev1.Taint, key string) (out []corev1.Taint) {
	for _, t := range taints {
		if t.Key != key {
			out = append(out, t)
		}
	}
	return out
}

// remove deletes the Node of a terminated instance, as the cloud-controller-manager does.
func (m *Machines) remove(ctx context.Context, one *machine) error {
	if one.uid == "" {
		return nil
	}
	n, err := m.Cluster.Clientset.CoreV1().Nodes().Get(ctx, one.node, metav1.GetOptions{})
	if apierrors.IsNotFound(err) || err == nil && string(n.UID) != one.uid {
		one.uid = ""
		return nil
	}
	if err != nil {
		return err
	}
	if n.DeletionTimestamp != nil {
		return nil // a finalizer holds it
	}
	uid := n.UID
	err = m.Cluster.Clientset.CoreV1().Nodes().Delete(ctx, one.node, metav1.DeleteOptions{Preconditions: &metav1.Preconditions{UID: &uid}})
	if apierrors.IsNotFound(err) || apierrors.IsConflict(err) {
		return nil
	}
	return err
}

// pods plays the kubelets: a pod with a node runs and is ready, one that is being deleted
// goes. Pods of machines that do not run stay as they are.
func (m *Machines) pods(ctx context.Context) {
	list, err := m.Cluster.Clientset.CoreV1().Pods("").List(ctx, metav1.ListOptions{FieldSelector: "spec.nodeName!="})
	if err != nil {
		return // the next time
	}
	for k := range list.Items {
		p := &list.Items[k]
		if !m.alive(p.Spec.NodeName) || time.Now().Before(m.due(p)) {
			continue
		}
		if err := m.Cluster.PlayPod(ctx, p); err != nil && !apierrors.IsNotFound(err) && !apierrors.IsConflict(err) && !errors.Is(err, context.Canceled) {
			m.fail(p.Namespace+"/"+p.Name, err)
		}
	}
}

// due is when the containers of a pod have started, or have stopped.
func (m *Machines) due(p *corev1.Pod) time.Time {
	if p.DeletionTimestamp != nil {
		grace := time.Duration(0)
		if p.DeletionGracePeriodSeconds != nil {
			grace = time.Duration(*p.DeletionGracePeriodSeconds) * time.Second
		}
		return p.DeletionTimestamp.Add(min(m.Ends, grace) - grace)
	}
	for _, c := range p.Status.Conditions {
		if c.Type == corev1.PodScheduled && c.Status == corev1.ConditionTrue {
			return c.LastTransitionTime.Add(m.Starts)
		}
	}
	return time.Time{}
}
