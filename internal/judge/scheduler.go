package judge

import (
	"context"
	"fmt"
	"io"
	"os"
	"os/signal"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	nodev1 "k8s.io/api/node/v1"
	policyv1 "k8s.io/api/policy/v1"
	resourcev1 "k8s.io/api/resource/v1"
	storagev1 "k8s.io/api/storage/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/kubernetes/fake"
	"k8s.io/client-go/tools/cache"
	"k8s.io/client-go/tools/events"
	"k8s.io/klog/v2"
	fwk "k8s.io/kube-scheduler/framework"
	"k8s.io/kubernetes/pkg/scheduler"
	"k8s.io/kubernetes/pkg/scheduler/apis/config"
	"k8s.io/kubernetes/pkg/scheduler/apis/config/latest"
	internalcache "k8s.io/kubernetes/pkg/scheduler/backend/cache"
	"k8s.io/kubernetes/pkg/scheduler/framework"
	frameworkruntime "k8s.io/kubernetes/pkg/scheduler/framework/runtime"
)

func init() {
	// What the scheduler would log is asked for where it matters.
	klog.LogToStderr(false)
	klog.SetOutput(io.Discard)
	// The scheduler listens for a signal. What the runtime starts for the first who does
	// must not be part of a bubble of testing/synctest.
	signal.Notify(make(chan os.Signal, 1), syscall.SIGUSR2)
}

// objects stands in for the API server: it keeps objects by kind, gives each change a
// version, and tells the informers of a scheduler.
type objects struct {
	mu      sync.Mutex
	version uint64
	pods    *source
	nodes   *source
	claims  *source
	others  map[string]*source
	factory informers.SharedInformerFactory
	client  *fake.Clientset
}

// kinds that the default profile and admission look at.
func kinds() []runtime.Object {
	return []runtime.Object{
		&corev1.Pod{}, &corev1.Node{}, &corev1.PersistentVolumeClaim{}, &corev1.PersistentVolume{}, &corev1.Namespace{}, &corev1.Service{},
		&corev1.ReplicationController{}, &appsv1.ReplicaSet{}, &appsv1.StatefulSet{}, &policyv1.PodDisruptionBudget{},
		&storagev1.StorageClass{}, &storagev1.CSINode{}, &storagev1.CSIDriver{}, &storagev1.CSIStorageCapacity{}, &storagev1.VolumeAttachment{},
		&corev1.LimitRange{}, &nodev1.RuntimeClass{},
		&resourcev1.ResourceClaim{}, &resourcev1.ResourceSlice{}, &resourcev1.DeviceClass{},
	}
}

func kindOf(o any) string { return fmt.Sprintf("%T", o) }

func newObjects() *objects {
	out := &objects{client: &fake.Clientset{}, others: map[string]*source{}}
	out.factory = informers.NewSharedInformerFactory(out.client, 0)
	for _, o := range kinds() {
		s := newSource()
		out.others[kindOf(o)] = s
		out.factory.InformerFor(o, func(kubernetes.Interface, time.Duration) cache.SharedIndexInformer { return s })
	}
	out.pods, out.nodes, out.claims = out.others[kindOf(&corev1.Pod{})], out.others[kindOf(&corev1.Node{})], out.others[kindOf(&corev1.PersistentVolumeClaim{})]
	return out
}

// set stores an object, which nobody may change afterwards. Pods that are done are
// taken away: the scheduler's informer leaves them out.
func (o *objects) set(obj runtime.Object) {
	m, err := meta.Accessor(obj)
	if err != nil {
		panic(err)
	}
	o.mu.Lock()
	o.version++
	m.SetResourceVersion(strconv.FormatUint(o.version, 10))
	o.mu.Unlock()
	s := o.others[kindOf(obj)]
	if p, ok := obj.(*corev1.Pod); ok && (p.Status.Phase == corev1.PodSucceeded || p.Status.Phase == corev1.PodFailed) {
		s.remove(obj)
		return
	}
	s.set(obj)
}

func (o *objects) remove(obj runtime.Object) { o.others[kindOf(obj)].remove(obj) }

// profile is the default profile with one plugin more: Pin.
func profile() (config.KubeSchedulerProfile, error) {
	c, err := latest.Default()
	if err != nil {
		return config.KubeSchedulerProfile{}, fmt.Errorf("read the scheduler's defaults: %w", err)
	}
	p := c.Profiles[0]
	p.Plugins = p.Plugins.DeepCopy()
	p.Plugins.PreFilter.Enabled = append(p.Plugins.PreFilter.Enabled, config.Plugin{Name: pinName})
	return p, nil
}

const pinName = "Pin"

// pin is a plugin that lets the scheduler look at some nodes only. It does so in
// PreFilter, so that no rule sees it: a node selector would have changed what counts
// as a domain for topology spread.
type pin struct {
	nodes sets.Set[string]
}

func (p *pin) Name() string { return pinName }

func (p *pin) PreFilter(context.Context, fwk.CycleState, *corev1.Pod, []fwk.NodeInfo) (*fwk.PreFilterResult, *fwk.Status) {
	if p.nodes == nil {
		return nil, fwk.NewStatus(fwk.Skip)
	}
	return &fwk.PreFilterResult{NodeNames: p.nodes}, nil
}

func (p *pin) PreFilterExtensions() fwk.PreFilterExtensions { return nil }

// Scheduler is kube-scheduler, in process, with its default profile. It is asked
// about one pod at a time.
type Scheduler struct {
	*objects
	sched *scheduler.Scheduler
	seen  *internalcache.Snapshot // what it saw last
	fwk   framework.Framework
	pin   *pin
	ctx   context.Context
	stop  context.CancelFunc
}

// quiet is a recorder of events that keeps none.
type quiet struct{}

func (quiet) Eventf(runtime.Object, runtime.Object, string, string, string, string, ...any) {}
func (q quiet) WithLogger(klog.Logger) events.EventRecorderLogger                           { return q }

// NewScheduler starts a scheduler that knows no object. Stop it after use.
func NewScheduler() (*Scheduler, error) {
	p, err := profile()
	if err != nil {
		return nil, err
	}
	s := &Scheduler{objects: newObjects(), pin: &pin{}}
	s.ctx, s.stop = context.WithCancel(context.Background())
	registry := frameworkruntime.Registry{pinName: func(context.Context, runtime.Object, fwk.Handle) (fwk.Plugin, error) { return s.pin, nil }}
	s.sched, err = scheduler.New(s.ctx, s.client, s.factory, nil, func(string) events.EventRecorderLogger { return quiet{} },
		scheduler.WithProfiles(p), scheduler.WithFrameworkOutOfTreeRegistry(registry), scheduler.WithParallelism(1))
	if err != nil {
		s.stop()
		return nil, fmt.Errorf("start kube-scheduler: %w", err)
	}
	s.fwk = s.sched.Profiles[corev1.DefaultSchedulerName]
	s.seen = s.fwk.SnapshotSharedLister().(*internalcache.Snapshot)
	return s, nil
}

// Stop ends the scheduler.
func (s *Scheduler) Stop() { s.stop() }

// Refuses asks whether the pod could run on one of the nodes as things are. It
// returns "" and the node that the scheduler takes, or the scheduler's reason.
func (s *Scheduler) Refuses(p *corev1.Pod, nodes ...string) (node, why string) {
	node, why, _ = s.ask(p, nodes...)
	return node, why
}

func (s *Scheduler) ask(p *corev1.Pod, nodes ...string) (node, why string, state fwk.CycleState) {
	// What keeps a pod out of the queue.
	for _, plugin := range s.fwk.PreEnqueuePlugins() {
		if st := plugin.PreEnqueue(s.ctx, p); !st.IsSuccess() {
			return "", st.Message(), nil
		}
	}
	// As ScheduleOne begins.
	if err := s.sched.Cache.UpdateSnapshot(klog.Background(), s.seen); err != nil {
		return "", err.Error(), nil
	}
	s.pin.nodes = sets.New(nodes...)
	state = framework.NewCycleState()
	info, err := framework.NewPodInfo(p)
	if err != nil {
		return "", err.Error(), nil
	}
	r, err := s.sched.SchedulePod(s.ctx, s.fwk, state, &framework.QueuedPodInfo{PodInfo: info})
	if err != nil {
		return "", reason(err, nodes), nil
	}
	return r.SuggestedHost, "", state
}

// reason shortens what the scheduler says of the nodes that it was shown.
func reason(err error, nodes []string) string {
	fit, ok := err.(*framework.FitError)
	if !ok {
		return err.Error()
	}
	if m := fit.Diagnosis.PreFilterMsg; m != "" {
		return m
	}
	var out []string
	for _, n := range nodes {
		if st := fit.Diagnosis.NodeToStatus.Get(n); st != nil && st.Message() != "" && !slices.Contains(out, st.Message()) {
			out = append(out, st.Message())
		}
	}
	if len(out) == 0 {
		return err.Error()
	}
	return strings.Join(out, "; ")
}

// Bind puts the pod on a node if the scheduler takes it there, with all that follows:
// its claims are bound to volumes in the node's zone. It returns "" or the
// scheduler's reason.
func (s *Scheduler) Bind(p *corev1.Pod, node string) string {
	_, why, state := s.ask(p, node)
	if why != "" {
		return why
	}
	p = p.DeepCopy()
	p.Spec.NodeName = node
	if st := s.fwk.RunReservePluginsReserve(s.ctx, state, p, node); !st.IsSuccess() {
		return st.Message()
	}
	s.provision(p, node)
	s.set(p)
	return ""
}
