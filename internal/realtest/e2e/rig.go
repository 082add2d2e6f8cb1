package e2e

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
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
- {level: Metadata, userGroups: ["kerf:sweep", "kerf:lifecycle", "kerf:catalog", "kerf:plan"]}
- level: Metadata
  users: ["system:kube-scheduler"]
  resources: [{group: "", resources: [pods/binding, pods/status]}]
- {level: None}
`

// Names of what the stack makes.
const (
	tableName = "kerf-real"
	tickQueue = "kerf-real-ticks"
	workQueue = "kerf-real-work"
	deadQueue = "kerf-real-dead"
)

// programs are the functions that are run, by the folder they are built from.
var programs = []string{"sweep", "lifecycle", "catalog"}

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
	// Twice delivers every message two times.
	Twice bool
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
	// Dir has the logs: NAME.log of every function and of the control plane.
	Dir string

	o       Options
	stack   *stack
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
	ticks, work := r.stack.ticks, r.stack.work
	r.AWS.Queues.Add(fakeaws.Queue{Name: tickQueue, Visibility: ticks.visibility, Retention: ticks.retention, Twice: r.o.Twice},
		fakeaws.Queue{Name: workQueue, Visibility: work.visibility, Retention: work.retention, MaxReceive: work.maxReceive, Dead: deadQueue, Twice: r.o.Twice}, fakeaws.Queue{Name: deadQueue})
	if err := r.AWS.Start(); err != nil {
		return err
	}
	r.onStop(r.AWS.Stop)
	e, err := startEmulator(filepath.Join(r.Dir, "emulator"))
	if err != nil {
		return err
	}
	r.onStop(e.stop)
	r.Dynamo = e.client()
	if err := createTable(ctx, r.Dynamo, tableName); err != nil {
		return err
	}
	r.AWS.Elsewhere = map[string]string{"DYNAMODB": e.url}
	r.Machines = &machines.Machines{Cluster: r.Cluster, Name: clusterName, Endpoint: r.Cluster.Config.Host, CA: ca, EC2: f, Region: fakeaws.Region,
		JoinAfter: 2 * time.Second, ReadyAfter: time.Second, Memory: r.o.Memory}
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
	pump := r.Functions.Pump(ctx, r.AWS.Queues, func(m runtimeapi.Mapping, err error) { r.note(fmt.Errorf("%s: %w", m.Queue, err)) },
		r.mapping(tickQueue, "sweep"), r.mapping(workQueue, "lifecycle"))
	var group sync.WaitGroup
	group.Go(func() { r.schedule(ctx) })
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
	minute, refreshed := time.Time{}, time.Time{}
	for ctx.Err() == nil {
		now := time.Now()
		if now.Sub(refreshed) >= catalogEvery && r.Functions.Has(nameOf("catalog")) {
			refreshed = now
			r.invoke(nameOf("catalog"), []byte("{}"), true) //nolint:errcheck // it is there
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
			if _, err := r.Functions.Invoke(context.Background(), name, payload); err != nil {
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

// Refused are the requests of functions that the API server refused for want of a
// permission.
func (r *Rig) Refused() ([]string, error) {
	raw, err := os.ReadFile(r.auditLog())
	if err != nil {
		return nil, err
	}
	var out []string
	s := bufio.NewScanner(bytes.NewReader(raw))
	s.Buffer(nil, 4<<20)
	for s.Scan() {
		var e struct {
			Verb, RequestURI string
			User             struct{ Username string }
			ResponseStatus   struct{ Code int }
		}
		if err := json.Unmarshal(s.Bytes(), &e); err != nil {
			return nil, fmt.Errorf("read the audit log: %w", err)
		}
		if strings.HasPrefix(e.User.Username, "kerf-") && (e.ResponseStatus.Code == 401 || e.ResponseStatus.Code == 403) {
			out = append(out, fmt.Sprintf("%s may not %s %s", e.User.Username, e.Verb, e.RequestURI))
		}
	}
	return out, s.Err()
}

// LogOf are the last lines that a function wrote.
func (r *Rig) LogOf(function string, lines int) string {
	raw, err := os.ReadFile(filepath.Join(r.Dir, function+".log"))
	if err != nil {
		return err.Error()
	}
	all := strings.Split(strings.TrimSpace(string(raw)), "\n")
	return strings.Join(all[max(0, len(all)-lines):], "\n")
}

// Keep copies all logs to a folder.
func (r *Rig) Keep(dir string) error {
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return err
	}
	logs, err := filepath.Glob(filepath.Join(r.Dir, "*.log"))
	if err != nil {
		return err
	}
	more, err := filepath.Glob(filepath.Join(r.Dir, "cluster", "*.log"))
	if err != nil {
		return err
	}
	for _, from := range append(logs, more...) {
		if err := copyFile(from, filepath.Join(dir, filepath.Base(from))); err != nil {
			return err
		}
	}
	return nil
}

func copyFile(from, to string) error {
	in, err := os.Open(from)
	if err != nil {
		return err
	}
	defer in.Close()
	out, err := os.Create(to)
	if err != nil {
		return err
	}
	_, err = io.Copy(out, in)
	return errors.Join(err, out.Close())
}
