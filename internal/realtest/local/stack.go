package local

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"

	"kerf.sh/kerf/internal/cloud/ec2fake"
	"kerf.sh/kerf/internal/realtest"
	"kerf.sh/kerf/internal/realtest/e2e"
	"kerf.sh/kerf/internal/realtest/fakeaws"
	"kerf.sh/kerf/internal/realtest/machines"

	"github.com/aws/aws-sdk-go-v2/service/eventbridge"
)

// Options are what a stack is made of.
type Options struct {
	// Dir is for state and logs; it is emptied first.
	Dir string
	// Template is the template; Build holds the programs (NAME/bootstrap), for one without
	// assets.
	Template, Build string
	// Emulator is the emulator's command; a python3 is beside it.
	Emulator string
	// Port is where the emulator listens; 0 = anywhere.
	Port int
	// Out is told what is done.
	Out io.Writer
}

// Stack is everything, running.
type Stack struct {
	Cluster  *realtest.Cluster
	EC2      *ec2fake.EC2
	Machines *machines.Machines
	// Name is that of the EKS cluster, URL the address of AWS.
	Name, URL string

	o        Options
	template *template
	emulator *emulator
	aws      *fakeaws.AWS
	bus      *bus
	began    time.Time
	stops    []func()

	mu      sync.Mutex
	callers map[string]string // logical ids of functions, by access key
	names   map[string]string // names of functions, by logical id
	failed  []error
}

// Start brings up the control plane and AWS; Deploy deploys to them. What could not be started
// is stopped again.
func Start(ctx context.Context, o Options) (_ *Stack, err error) {
	s := &Stack{o: o, began: time.Now(), callers: map[string]string{}, names: map[string]string{}}
	defer func() {
		if err != nil {
			s.Stop()
			err = fmt.Errorf("start the local stack: %w", err)
		}
	}()
	if o.Emulator == "" || o.Template == "" {
		return nil, errors.New("no emulator or no template is named: use make local")
	}
	if s.template, err = readTemplate(o.Template, o.Build); err != nil {
		return nil, err
	}
	s.Name = s.template.cluster
	if err := os.RemoveAll(o.Dir); err != nil {
		return nil, err
	}
	if s.emulator, err = newEmulator(filepath.Join(o.Dir, "aws"), o.Port); err != nil {
		return nil, err
	}
	s.URL = s.emulator.url
	if err := s.startCluster(ctx); err != nil {
		return nil, err
	}
	return s, s.startAWS(ctx)
}

// Stop ends everything, what was started last first.
func (s *Stack) Stop() {
	for _, f := range slices.Backward(s.stops) {
		f()
	}
	s.stops = nil
}

func (s *Stack) startCluster(ctx context.Context) error {
	hook := filepath.Join(s.o.Dir, "webhook.kubeconfig")
	if err := os.WriteFile(hook, []byte(s.emulator.webhook(s.Name)), 0o600); err != nil {
		return err
	}
	var err error
	s.Cluster, err = realtest.Start(ctx, realtest.Options{Dir: filepath.Join(s.o.Dir, "cluster"), Scheduler: true, Controllers: true, NoCRDs: true, APIServer: []string{
		"--authentication-token-webhook-config-file=" + hook, "--authentication-token-webhook-version=v1", "--authentication-token-webhook-cache-ttl=10s", "--enable-aggregator-routing=true",
	}})
	if err != nil {
		return err
	}
	s.stops = append(s.stops, s.Cluster.Stop)
	// EKS has an authorizer of its own for access policies.
	return s.Cluster.Create(ctx, `apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRoleBinding
metadata: {name: eks-cluster-admin-policy}
roleRef: {apiGroup: rbac.authorization.k8s.io, kind: ClusterRole, name: cluster-admin}
subjects: [{apiGroup: rbac.authorization.k8s.io, kind: Group, name: "eks:AmazonEKSClusterAdminPolicy"}]
`)
}

// outside are the services that functions do not find at the emulator.
var outside = []string{"EC2", "PRICING", "SSM"}

func (s *Stack) startAWS(ctx context.Context) error {
	ca, err := os.ReadFile(s.Cluster.Config.CAFile)
	if err != nil {
		return err
	}
	f, params := e2e.World()
	s.EC2 = f
	s.aws = &fakeaws.AWS{EC2: f, SSM: params, IAM: &ec2fake.IAM{Now: time.Now}, Queues: &fakeaws.Queues{}, Allowed: s.allowed}
	if err := s.aws.Start(); err != nil {
		return err
	}
	s.stops = append(s.stops, s.aws.Stop)
	if err := s.emulator.cluster(s.Cluster.Config.Host, ca, "1.36"); err != nil {
		return err
	}
	var environment []string
	for _, service := range outside {
		environment = append(environment, "AWS_ENDPOINT_URL_"+service+"="+s.aws.Endpoint(service))
	}
	s.stops = append(s.stops, s.emulator.stop)
	if err := s.emulator.start(s.o.Emulator, environment); err != nil {
		return err
	}
	s.Machines = &machines.Machines{Cluster: s.Cluster, Name: s.Name, Endpoint: s.Cluster.Config.Host, CA: ca, EC2: f, Region: fakeaws.Region, JoinAfter: 2 * time.Second, ReadyAfter: time.Second}
	ctx, cancel := context.WithCancel(ctx)
	wait, err := s.Machines.Run(ctx)
	if err != nil {
		cancel()
		return err
	}
	s.bus = &bus{events: eventbridge.NewFromConfig(s.emulator.config()), ec2: f}
	var group sync.WaitGroup
	group.Go(func() { s.bus.run(ctx) })
	s.stops = append(s.stops, func() { cancel(); group.Wait(); wait() })
	return nil
}

// let notes whose access key is whose: the emulator makes the credentials of a function's role
// from the names of both.
func (s *Stack) let(id, name, function, role string) {
	sum := sha256.Sum256([]byte(function + ":" + role))
	s.mu.Lock()
	defer s.mu.Unlock()
	s.callers["ASIA"+strings.ToUpper(hex.EncodeToString(sum[:])[:16])] = id
	s.names[id] = name
}

// function is the deployed name of a function ("sweep").
func (s *Stack) function(folder string) string {
	s.mu.Lock()
	defer s.mu.Unlock()
	for id, name := range s.names {
		if strings.HasPrefix(strings.ToLower(id), "kerf"+folder) {
			return name
		}
	}
	return ""
}

func (s *Stack) note(err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if !slices.ContainsFunc(s.failed, func(old error) bool { return old.Error() == err.Error() }) {
		s.failed = append(s.failed, err)
	}
}

// Failed is what should not have happened.
func (s *Stack) Failed() []error {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Clone(s.failed)
}

// say tells a line of what happens, with the time since the start.
func (s *Stack) say(format string, args ...any) {
	at := time.Since(s.began)
	text := fmt.Sprintf(format, args...)
	fmt.Fprintf(s.o.Out, "%3d:%02d  %s\n", int(at.Minutes()), int(at.Seconds())%60, strings.ReplaceAll(text, "\n", "\n        "))
}
