package realtest

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"time"

	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
)

// Options are what runs beside etcd and kube-apiserver.
type Options struct {
	// Dir is for state, keys and logs; it is emptied first. "" = a folder that Stop removes.
	Dir string
	// Scheduler runs kube-scheduler; Controllers kube-controller-manager with what
	// workloads, budgets and nodes need.
	Scheduler, Controllers bool
	// NoCRDs leaves Karpenter's CRDs out.
	NoCRDs bool
	// APIServer are further flags of kube-apiserver.
	APIServer []string
}

// Cluster is a control plane that runs.
type Cluster struct {
	// Kubeconfig is the path of one for an administrator; Config the same.
	Kubeconfig string
	Config     *rest.Config
	Clientset  *kubernetes.Clientset
	// Dir holds NAME.log of every process.
	Dir string

	keep  bool
	pki   *pki
	procs []*process
	port  int
	bin   string
}

// readyTimeout is how long a control plane may take to come up, on a busy machine.
const readyTimeout = 3 * time.Minute

// Start starts a control plane and waits until it answers.
func Start(ctx context.Context, o Options) (_ *Cluster, err error) {
	c := &Cluster{Dir: o.Dir, keep: o.Dir != ""}
	defer func() {
		if err != nil {
			err = fmt.Errorf("start a control plane: %w%s", err, c.logs())
			c.Stop()
		}
	}()
	if c.bin, err = Binaries(); err != nil {
		return nil, err
	}
	if c.keep {
		if err := os.RemoveAll(c.Dir); err != nil {
			return nil, err
		}
	} else if c.Dir, err = os.MkdirTemp("", "kerf-realtest-"); err != nil {
		return nil, err
	}
	if c.pki, err = newPKI(filepath.Join(c.Dir, "pki")); err != nil {
		return nil, err
	}
	if err := errors.Join(c.pki.server("apiserver"), c.pki.client("service-accounts", "service-accounts")); err != nil {
		return nil, err
	}
	if err := c.server(o.APIServer); err != nil {
		return nil, err
	}
	if c.Kubeconfig, err = c.User("admin", "admin", "system:masters"); err != nil {
		return nil, err
	}
	if c.Config, err = clientcmd.BuildConfigFromFlags("", c.Kubeconfig); err != nil {
		return nil, err
	}
	c.Config.QPS = -1
	if c.Clientset, err = kubernetes.NewForConfig(c.Config); err != nil {
		return nil, err
	}
	if err := c.ready(ctx); err != nil {
		return nil, err
	}
	if !o.NoCRDs {
		if err := c.InstallCRDs(ctx); err != nil {
			return nil, err
		}
	}
	if o.Scheduler {
		if err := c.scheduler(); err != nil {
			return nil, err
		}
	}
	if o.Controllers {
		if err := c.controllers(); err != nil {
			return nil, err
		}
	}
	return c, nil
}

// server starts etcd and the API server, which gets further flags.
func (c *Cluster) server(flags []string) error {
	ports, err := freePorts(3)
	if err != nil {
		return err
	}
	client, peer := "http://127.0.0.1:"+strconv.Itoa(ports[0]), "http://127.0.0.1:"+strconv.Itoa(ports[1])
	c.port = ports[2]
	err = c.run("etcd", "--data-dir", filepath.Join(c.Dir, "etcd"), "--listen-client-urls", client, "--advertise-client-urls", client,
		"--listen-peer-urls", peer, "--initial-advertise-peer-urls", peer, "--initial-cluster", "default="+peer, "--unsafe-no-fsync",
		"--quota-backend-bytes", "4294967296")
	if err != nil {
		return err
	}
	return c.run("kube-apiserver", append([]string{"--etcd-servers=" + client, "--bind-address=127.0.0.1", "--secure-port=" + strconv.Itoa(c.port), "--advertise-address=127.0.0.1",
		"--tls-cert-file=" + c.pki.path("apiserver.crt"), "--tls-private-key-file=" + c.pki.path("apiserver.key"), "--client-ca-file=" + c.pki.path("ca.crt"),
		"--authorization-mode=Node,RBAC", "--service-cluster-ip-range=10.0.0.0/24", "--service-account-issuer=https://kubernetes.default.svc",
		"--service-account-key-file=" + c.pki.path("service-accounts.crt"), "--service-account-signing-key-file=" + c.pki.path("service-accounts.key"),
		"--allow-privileged=true", "--endpoint-reconciler-type=none", "--profiling=false"}, flags...)...)
}

func (c *Cluster) scheduler() error {
	return c.component("kube-scheduler", "system:kube-scheduler")
}

// controllersRun are what the tests need of kube-controller-manager.
const controllersRun = "serviceaccount-controller,serviceaccount-token-controller,namespace-controller,deployment-controller,replicaset-controller," +
	"daemonset-controller,statefulset-controller,disruption-controller,pod-garbage-collector-controller,node-lifecycle-controller,job-controller," +
	"garbage-collector-controller,taint-eviction-controller"

func (c *Cluster) controllers() error {
	return c.component("kube-controller-manager", "system:kube-controller-manager", "--use-service-account-credentials=true",
		"--service-account-private-key-file="+c.pki.path("service-accounts.key"), "--root-ca-file="+c.pki.path("ca.crt"), "--controllers="+controllersRun)
}

func (c *Cluster) component(name, user string, more ...string) error {
	ports, err := freePorts(1)
	if err != nil {
		return err
	}
	config, err := c.User(name, user)
	if err != nil {
		return err
	}
	return c.run(name, append([]string{"--kubeconfig=" + config, "--authentication-kubeconfig=" + config, "--authorization-kubeconfig=" + config,
		"--leader-elect=false", "--bind-address=127.0.0.1", "--secure-port=" + strconv.Itoa(ports[0]), "--kube-api-qps=1000", "--kube-api-burst=1000"}, more...)...)
}

// User makes a kubeconfig for a user with these groups and returns its path. What the user
// may do is up to RBAC objects.
func (c *Cluster) User(file, user string, groups ...string) (string, error) {
	if err := c.pki.client(file, user, groups...); err != nil {
		return "", err
	}
	path := filepath.Join(c.Dir, file+".kubeconfig")
	text := fmt.Sprintf(`apiVersion: v1
kind: Config
clusters: [{name: real, cluster: {server: "https://127.0.0.1:%d", certificate-authority: %q}}]
users: [{name: user, user: {client-certificate: %q, client-key: %q}}]
contexts: [{name: real, context: {cluster: real, user: user}}]
current-context: real
`, c.port, c.pki.path("ca.crt"), c.pki.path(file+".crt"), c.pki.path(file+".key"))
	return path, os.WriteFile(path, []byte(text), 0o600)
}

func (c *Cluster) ready(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, readyTimeout)
	defer cancel()
	for {
		body, err := c.Clientset.RESTClient().Get().AbsPath("/readyz").DoRaw(ctx)
		if err == nil && string(body) == "ok" {
			return nil
		}
		for _, p := range c.procs {
			if dead := p.dead(); dead != nil {
				return fmt.Errorf("%s ended: %w", p.name, dead)
			}
		}
		select {
		case <-ctx.Done():
			return fmt.Errorf("kube-apiserver is not ready: %w", err)
		case <-time.After(100 * time.Millisecond):
		}
	}
}

// Stop ends what Start has started, and removes its folder if that was its own.
func (c *Cluster) Stop() {
	for i := len(c.procs) - 1; i >= 0; i-- {
		c.procs[i].stop()
	}
	c.procs = nil
	if !c.keep && c.Dir != "" {
		os.RemoveAll(c.Dir)
	}
}

// process is one that was started.
type process struct {
	name string
	cmd  *exec.Cmd
	done chan struct{}
	err  error
}

func (c *Cluster) run(name string, args ...string) error {
	log, err := os.Create(filepath.Join(c.Dir, name+".log"))
	if err != nil {
		return err
	}
	p := &process{name: name, cmd: exec.Command(filepath.Join(c.bin, name), args...), done: make(chan struct{})}
	p.cmd.Stdout, p.cmd.Stderr, p.cmd.Dir = log, log, c.Dir
	// With the test it ends too, even if that is killed.
	p.cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	if err := p.cmd.Start(); err != nil {
		return err
	}
	go func() {
		p.err = p.cmd.Wait()
		log.Close()
		close(p.done)
	}()
	c.procs = append(c.procs, p)
	return nil
}

// dead is why the process has ended, nil while it runs.
func (p *process) dead() error {
	select {
	case <-p.done:
		return errors.Join(errors.New("it is not running"), p.err)
	default:
		return nil
	}
}

// stopTimeout is how long a process may take to end by itself.
const stopTimeout = 5 * time.Second

func (p *process) stop() {
	p.cmd.Process.Signal(syscall.SIGTERM)
	select {
	case <-p.done:
	case <-time.After(stopTimeout):
		p.cmd.Process.Kill()
		<-p.done
	}
}

// logs are the last lines of all logs.
func (c *Cluster) logs() string {
	var b strings.Builder
	for _, p := range c.procs {
		raw, err := os.ReadFile(filepath.Join(c.Dir, p.name+".log"))
		if err != nil {
			continue
		}
		lines := strings.Split(strings.TrimSpace(string(raw)), "\n")
		fmt.Fprintf(&b, "\n-- %s\n%s", p.name, strings.Join(lines[max(0, len(lines)-5):], "\n"))
	}
	return b.String()
}

func freePorts(n int) ([]int, error) {
	var out []int
	for range n {
		l, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			return nil, err
		}
		defer l.Close() // after all are chosen, so that they differ
		out = append(out, l.Addr().(*net.TCPAddr).Port)
	}
	return out, nil
}
