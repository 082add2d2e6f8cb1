package e2e

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb"

	"kerf.sh/kerf/internal/catalog"
	"kerf.sh/kerf/internal/cloud/ec2fake"
	"kerf.sh/kerf/internal/kube/live"
	"kerf.sh/kerf/internal/realtest"
	"kerf.sh/kerf/internal/realtest/eksauth"
	"kerf.sh/kerf/internal/realtest/fakeaws"
	"kerf.sh/kerf/internal/realtest/machines"
	"kerf.sh/kerf/internal/realtest/runtimeapi"
)

// auditPolicy logs what the functions do and where kube-scheduler puts pods: who did what with
// which outcome, and no bodies.
const auditPolicy = `apiVersion: audit.k8s.io/v1
kind: Policy
omitStages: [RequestReceived]
rules:
- {level: Metadata, userGroups: ["kerf:sweep", "kerf:lifecycle", "kerf:catalog", "kerf:interruption", "kerf:consolidation", "kerf:plan"]}
- level: Metadata
  users: ["system:kube-scheduler"]
  resources: [{group: "", resources: [pods/binding, pods/status]}]
- {level: None}
`

// Names of what the stack makes.
const (
	tableName   = "kerf-real"
	tickQueue   = "kerf-real-ticks"
	workQueue   = "kerf-real-work"
	noticeQueue = "kerf-real-notices"
	deadQueue   = "kerf-real-dead"
	// deadNotices is where notices go that cannot be read.
	deadNotices = "kerf-real-dead-notices"
)

// programs are the functions that are run, by the folder they are built from.
var programs = []string{"sweep", "lifecycle", "catalog", "interruption", "consolidation"}

// catalogEvery is how often the stack's schedule asks for the catalogue, beginning at once.
const catalogEvery = 5 * time.Minute

// Options are what a rig differs in.
type Options struct {
	// Binaries gives the program of each function; nil: those that KERF_E2E_BUILD holds.
	Binaries map[string]string
	// Env are further variables of the functions.
	Env []string
	// Ticks is how often the sweep is asked to look; 0: by the minute tick alone.
	Ticks time.Duration
	// Consolidate is how often a pass of consolidation is asked for; 0: never. The stack's
	// schedule does once a minute.
	Consolidate time.Duration
	// Twice delivers every message two times.
	Twice bool
	// Starts and Ends are how long containers take to become ready and to stop; 0: no time.
	Starts, Ends time.Duration
	// Memory is what machines have of what the table says; nil: that.
	Memory func(instanceType string, table int64) int64
	Log    func(format string, args ...any)
}

// Rig is everything, running.
type Rig struct {
	Cluster   *realtest.Cluster
	AWS       *fakeaws.AWS
	EC2       *ec2fake.EC2
	Functions *runtimeapi.Functions
	Machines  *machines.Machines
	Dynamo    *dynamodb.Client
	Webhook   *eksauth.Webhook
	Bus       *Bus
	// Dir has the logs: NAME.log of every function and of the control plane.
	Dir string

	o       Options
	stack   *stack
	table   *tally
	stops   []func()
	mu      sync.Mutex
	failed  []error
	stopped bool
}

// keyOf is the access key of a function's role.
func keyOf(function string) string { return "AKIAKERF" + strings.ToUpper(function) }

// Start starts a rig. What could not be started is stopped again.
func Start(ctx context.Context, o Options) (_ *Rig, err error) {
	r := &Rig{o: o}
	if o.Log == nil {
		r.o.Log = func(string, ...any) {}
	}
	defer func() {
		if err != nil {
			r.Stop()
			err = fmt.Errorf("start the rig: %w", err)
		}
	}()
	if os.Getenv(emulatorVariable) == "" {
		return nil, errors.New(emulatorVariable + " does not name the program that serves DynamoDB: use make e2e")
	}
	if r.stack, err = readStack(templateFile); err != nil {
		return nil, err
	}
	if r.Dir, err = os.MkdirTemp("", "kerf-e2e-"); err != nil {
		return nil, err
	}
	r.onStop(func() { os.RemoveAll(r.Dir) })
	if err := r.startCluster(ctx); err != nil {
		return nil, err
	}
	if err := r.startAWS(ctx); err != nil {
		return nil, err
	}
	if err := r.deploy(); err != nil {
		return nil, err
	}
	return r, r.run(ctx)
}

func (r *Rig) onStop(f func()) { r.stops = append(r.stops, f) }

// Stop ends everything, what was started last first.
func (r *Rig) Stop() {
	if r.stopped {
		return
	}
	r.stopped = true
	for _, f := range slices.Backward(r.stops) {
		f()
	}
}

// startCluster starts the control plane, with a token webhook and an audit log.
func (r *Rig) startCluster(ctx context.Context) error {
	r.Webhook = &eksauth.Webhook{Cluster: clusterName, Region: fakeaws.Region, Now: time.Now}
	for _, p := range programs {
		r.Webhook.Identities = append(r.Webhook.Identities, eksauth.Identity{Key: keyOf(p), Secret: "secret-" + p, User: "kerf-" + p, Groups: []string{"kerf:" + p}})
	}
	hook, policy := filepath.Join(r.Dir, "webhook.kubeconfig"), filepath.Join(r.Dir, "audit-policy.yaml")
	if err := r.Webhook.Start(hook); err != nil {
		return err
	}
	r.onStop(r.Webhook.Stop)
	if err := os.WriteFile(policy, []byte(auditPolicy), 0o600); err != nil {
		return err
	}
	var err error
	r.Cluster, err = realtest.Start(ctx, realtest.Options{Dir: filepath.Join(r.Dir, "cluster"), Scheduler: true, Controllers: true, APIServer: []string{
		"--authentication-token-webhook-config-file=" + hook, "--authentication-token-webhook-version=v1", "--authentication-token-webhook-cache-ttl=10s",
		"--audit-policy-file=" + policy, "--audit-log-path=" + r.auditLog(), "--audit-log-mode=blocking",
		// EKS: a webhook's service is resolved to its endpoints, and one without any fails at once.
		"--enable-aggregator-routing=true",
	}})
	if err != nil {
		return err
	}
	r.onStop(r.Cluster.Stop)
	for _, p := range programs {
		if err := r.Cluster.Create(ctx, rbac(p)); err != nil {
			return err
		}
	}
	return nil
}

// rbac is what a function may do in the cluster, and its access entry's group that may it.
func rbac(function string) string {
	type m = map[string]any
	var rules []any
	for _, rule := range live.Access(function) {
		rules = append(rules, m{"apiGroups": []string{rule.Group}, "resources": rule.Resources, "verbs": rule.Verbs})
	}
	name, api := "kerf-"+function, "rbac.authorization.k8s.io"
	role, _ := json.Marshal(m{"apiVersion": api + "/v1", "kind": "ClusterRole", "metadata": m{"name": name}, "rules": rules})
	binding, _ := json.Marshal(m{"apiVersion": api + "/v1", "kind": "ClusterRoleBinding", "metadata": m{"name": name},
		"roleRef": m{"apiGroup": api, "kind": "ClusterRole", "name": name}, "subjects": []any{m{"apiGroup": api, "kind": "Group", "name": "kerf:" + function}}})
	return string(role) + "\n---\n" + string(binding)
}

func (r *Rig) auditLog() string { return filepath.Join(r.Dir, "audit.log") }

// startAWS starts AWS, with the table, the queues and the role that the stack needs.
func (r *Rig) startAWS(ctx context.Context) error {
	ca, err := os.ReadFile(r.Cluster.Config.CAFile)
	if err != nil {
		return err
	}
	f, params := newEC2(catalog.Default())
	r.EC2 = f
	r.AWS = &fakeaws.AWS{
		EC2: f, SSM: params, IAM: &ec2fake.IAM{Now: time.Now, Roles: map[string]bool{nodeRole: true}, VisibleAfter: 1}, Queues: &fakeaws.Queues{},
		EKS: eksOf(r.Cluster.Config.Host, ca), Invoke: r.invoke, Allowed: r.allowed,
	}
	ticks, work, notices := r.stack.ticks, r.stack.work, r.stack.notices
	r.AWS.Queues.Add(fakeaws.Queue{Name: tickQueue, Visibility: ticks.visibility, Retention: ticks.retention, Twice: r.o.Twice},
		fakeaws.Queue{Name: workQueue, Visibility: work.visibility, Retention: work.retention, MaxReceive: work.maxReceive, Dead: deadQueue, Twice: r.o.Twice}, fakeaws.Queue{Name: deadQueue},
		fakeaws.Queue{Name: noticeQueue, Visibility: notices.visibility, Retention: notices.retention, MaxReceive: notices.maxReceive, Dead: deadNotices, Twice: r.o.Twice}, fakeaws.Queue{Name: deadNotices})
	if err := r.AWS.Start(); err != nil {
		return err
	}
	r.onStop(r.AWS.Stop)
	e, err := startEmulator(filepath.Join(r.Dir, "emulator"))
	if err != nil {
		return err
	}
	r.onStop(e.stop)
	r.Dynamo = dynamodb.NewFromConfig(e.config())
	if err := createTable(ctx, r.Dynamo, tableName); err != nil {
		return err
	}
	if r.table, err = startTally(e.url); err != nil {
		return err
	}
	r.onStop(r.table.stop)
	r.AWS.Elsewhere = map[string]string{"DYNAMODB": r.table.url}
	if r.Bus, err = startBus(ctx, e, r.stack.rules); err != nil {
		return err
	}
	r.Machines = &machines.Machines{Cluster: r.Cluster, Name: clusterName, Endpoint: r.Cluster.Config.Host, CA: ca, EC2: f, Region: fakeaws.Region,
		JoinAfter: 2 * time.Second, ReadyAfter: time.Second, Memory: r.o.Memory, Starts: r.o.Starts, Ends: r.o.Ends}
	return nil
}

// deploy makes the functions known, each with its role's credentials.
func (r *Rig) deploy() error {
	r.Functions = runtimeapi.New(filepath.Join(r.Dir, "functions"))
	r.onStop(r.Functions.Close)
	for _, p := range programs {
		binary := r.o.Binaries[p]
		if r.o.Binaries == nil {
			dir := os.Getenv("KERF_E2E_BUILD")
			if dir == "" {
				return errors.New("KERF_E2E_BUILD does not name the folder of built functions: use make e2e")
			}
			binary = filepath.Join(dir, p, "bootstrap")
		}
		if binary == "" {
			continue
		}
		log, err := os.Create(filepath.Join(r.Dir, p+".log"))
		if err != nil {
			return err
		}
		r.onStop(func() { log.Close() })
		env := slices.Concat(r.AWS.Environment(), []string{
			"AWS_REGION=" + fakeaws.Region, "AWS_DEFAULT_REGION=" + fakeaws.Region, "AWS_EC2_METADATA_DISABLED=true",
			"AWS_ACCESS_KEY_ID=" + keyOf(p), "AWS_SECRET_ACCESS_KEY=secret-" + p, "AWS_SESSION_TOKEN=session-" + p,
			"CLUSTER_NAME=" + clusterName, "KERF_TABLE=" + tableName, "KERF_TICK_QUEUE=" + r.AWS.URL(tickQueue), "KERF_WORK_QUEUE=" + r.AWS.URL(workQueue),
			"KERF_CATALOG_FUNCTION=" + nameOf("catalog"),
		}, r.o.Env)
		if p == "interruption" {
			env = append(env, "KERF_INTERRUPTION_QUEUE="+r.AWS.URL(noticeQueue), "KERF_INTERRUPTION_DEAD_LETTERS="+r.AWS.URL(deadNotices))
		}
		d := r.stack.functions[p]
		err = r.Functions.Deploy(runtimeapi.Function{Name: nameOf(p), Binary: binary, Env: env, Timeout: d.timeout, MemoryMB: d.memoryMB, Concurrency: max(d.reserved, d.concurrency, 2), Log: log})
		if err != nil {
			return err
		}
	}
	return nil
}

// nameOf is the deployed name of a function.
func nameOf(function string) string { return "kerf-real-" + function }

// run starts what moves: machines, event sources, ticks.
func (r *Rig) run(ctx context.Context) error {
	ctx, cancel := context.WithCancel(ctx)
	wait, err := r.Machines.Run(ctx)
	if err != nil {
		cancel()
		return err
	}
	sources := []runtimeapi.Mapping{r.mapping(tickQueue, "sweep"), r.mapping(workQueue, "lifecycle")}
	if r.Functions.Has(nameOf("interruption")) {
		sources = append(sources, r.mapping(noticeQueue, "interruption"))
	}
	pump := r.Functions.Pump(ctx, r.AWS.Queues, func(m runtimeapi.Mapping, err error) { r.note(fmt.Errorf("%s: %w", m.Queue, err)) }, sources...)
	var group sync.WaitGroup
	group.Go(func() { r.schedule(ctx) })
	group.Go(func() { r.Bus.bridge(ctx, r.AWS.Queues, r.note) })
	group.Go(func() { r.Bus.watch(ctx, r.EC2, r.note) })
	r.onStop(func() { cancel(); group.Wait(); pump(); wait() })
	return nil
}

func (r *Rig) mapping(queue, function string) runtimeapi.Mapping {
	d := r.stack.functions[function]
	return runtimeapi.Mapping{Queue: queue, Function: nameOf(function), Batch: d.batch, Concurrency: d.concurrency}
}

// allowed says whether a caller's role has a permission; what it lacks is noted.
func (r *Rig) allowed(caller, service, action string) bool {
	for _, p := range programs {
		if keyOf(p) == caller && r.stack.may(p, service, action) {
			return true
		}
	}
	r.note(fmt.Errorf("%s is not permitted %s:%s", caller, service, action))
	return false
}

// schedule sends what EventBridge Scheduler sends, a tick at the start of every minute (and
// one now) and the catalogue's refresh, and, so that a test does not wait, ticks between.
func (r *Rig) schedule(ctx context.Context) {
	send := func(kind string, at time.Time) {
		body := map[string]any{"kind": kind, "sent": at.UTC().Format(time.RFC3339Nano)}
		if kind == "slot" {
			body["slot"] = at.Unix()
		}
		raw, err := json.Marshal(body)
		if err == nil {
			_, err = r.AWS.Queues.Send(tickQueue, string(raw), 0, nil)
		}
		if err != nil {
			r.note(err)
		}
	}
	minute, refreshed, passed := time.Time{}, time.Time{}, time.Now()
	for ctx.Err() == nil {
		now := time.Now()
		if now.Sub(refreshed) >= catalogEvery && r.Functions.Has(nameOf("catalog")) {
			refreshed = now
			r.invoke(nameOf("catalog"), []byte("{}"), true) //nolint:errcheck // it is there
		}
		if r.o.Consolidate > 0 && now.Sub(passed) >= r.o.Consolidate {
			passed = now
			r.invoke(nameOf("consolidation"), []byte("{}"), true) //nolint:errcheck // it is there
		}
		if start := now.Truncate(time.Minute); start.After(minute) {
			minute = start
			send("minute", now)
		} else if r.o.Ticks > 0 {
			send("slot", now)
		}
		pause := r.o.Ticks
		if pause == 0 {
			pause = time.Second
		}
		select {
		case <-ctx.Done():
		case <-time.After(pause):
		}
	}
}

// invoke is a function that calls a function.
func (r *Rig) invoke(name string, payload []byte, event bool) (out []byte, failed bool, err error) {
	if !r.Functions.Has(name) {
		return nil, false, fmt.Errorf("Function not found: %s", name)
	}
	if event {
		go func() {
			// Another pass is at work: Lambda tries again, or lets it be.
			if _, err := r.Functions.Invoke(context.Background(), name, payload); err != nil && !errors.Is(err, runtimeapi.ErrThrottled) {
				r.note(err)
			}
		}()
		return nil, false, nil
	}
	out, err = r.Functions.Invoke(context.Background(), name, payload)
	var answered *runtimeapi.FunctionError
	if errors.As(err, &answered) {
		return answered.Payload, true, nil
	}
	return out, false, err
}

func (r *Rig) note(err error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	text := err.Error()
	said := slices.ContainsFunc(r.failed, func(old error) bool { return old.Error() == text })
	r.failed = append(r.failed, err)
	if !said {
		r.o.Log("rig: %.1000s", text)
	}
}

// Failed are the invocations that failed, as event sources saw them.
func (r *Rig) Failed() []error {
	r.mu.Lock()
	defer r.mu.Unlock()
	return slices.Clone(r.failed)
}
