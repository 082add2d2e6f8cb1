package local

import (
	_ "embed"
	"encoding/json"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"syscall"
	"time"

	"kerf.sh/kerf/internal/realtest/fakeaws"
)

// program is what is run in place of the emulator's own.
//
//go:embed emulator.py
var program []byte

// secret is what the API server shows when it asks who made a token.
const secret = "local-stack-token-reviews"

// emulator is the AWS that is not fake.
type emulator struct {
	cmd *exec.Cmd
	url string
	dir string
}

// newEmulator reserves an address, of port or of any free one.
func newEmulator(dir string, port int) (*emulator, error) {
	l, err := net.Listen("tcp", fmt.Sprintf("127.0.0.1:%d", port))
	if err != nil {
		return nil, err
	}
	defer l.Close()
	return &emulator{dir: dir, url: "http://" + l.Addr().String()}, os.MkdirAll(dir, 0o700)
}

// cluster tells the emulator of the control plane that is its EKS cluster.
func (e *emulator) cluster(endpoint string, ca []byte, version string) error {
	raw, err := json.Marshal(map[string]any{
		"secret": secret, "endpoint": endpoint, "version": version, "status": "ACTIVE", "certificateAuthority": map[string]any{"data": ca},
		"kubernetesNetworkConfig": map[string]string{"serviceIpv4Cidr": "10.0.0.0/24", "ipFamily": "ipv4"}, "accessConfig": map[string]string{"authenticationMode": "API"},
		"resourcesVpcConfig": map[string]any{"clusterSecurityGroupId": "sg-00000000000000001", "vpcId": "vpc-1"},
	})
	if err != nil {
		return err
	}
	return os.WriteFile(filepath.Join(e.dir, "cluster.json"), raw, 0o600)
}

// webhook is the configuration by which kube-apiserver has the emulator decide on tokens.
func (e *emulator) webhook(cluster string) string {
	return fmt.Sprintf(`apiVersion: v1
kind: Config
clusters: [{name: eks, cluster: {server: "%s/_ministack/eks-auth/%s/%s/%s/%s"}}]
users: [{name: api-server}]
contexts: [{name: eks, context: {cluster: eks, user: api-server}}]
current-context: eks
`, e.url, fakeaws.Account, fakeaws.Region, cluster, secret)
}

// start starts the emulator of the virtual environment that command is in. The environment
// is what functions get besides their own variables: nothing of the caller's.
func (e *emulator) start(command string, environment []string) error {
	script := filepath.Join(e.dir, "emulator.py")
	if err := os.WriteFile(script, program, 0o600); err != nil {
		return err
	}
	address := e.url[len("http://"):]
	_, port, err := net.SplitHostPort(address)
	if err != nil {
		return err
	}
	log, err := os.Create(filepath.Join(e.dir, "emulator.log"))
	if err != nil {
		return err
	}
	defer log.Close()
	e.cmd = exec.Command(filepath.Join(filepath.Dir(command), "python3"), script)
	e.cmd.Dir = e.dir
	e.cmd.Env = slices.Concat([]string{
		"PATH=/usr/bin:/bin", "HOME=" + e.dir, "TMPDIR=" + e.dir, "STATE_DIR=" + e.dir, "TZ=UTC", "GATEWAY_PORT=" + port, "BIND_HOST=127.0.0.1", "MINISTACK_HOST=127.0.0.1",
		"MINISTACK_ACCOUNT_ID=" + fakeaws.Account, "LOG_LEVEL=info", "AUTH=true", "EMULATOR_CLUSTER=" + filepath.Join(e.dir, "cluster.json"),
		// What Lambda has, and the emulator does not set.
		"AWS_EXECUTION_ENV=AWS_Lambda_provided.al2023", "AWS_EC2_METADATA_DISABLED=true", "AWS_ENDPOINT_URL=" + e.url,
	}, environment)
	e.cmd.Stdout, e.cmd.Stderr = log, log
	e.cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGKILL}
	if err := e.cmd.Start(); err != nil {
		return fmt.Errorf("start the emulator: %w", err)
	}
	for range 600 {
		if c, err := net.Dial("tcp", address); err == nil {
			c.Close()
			return nil
		}
		time.Sleep(100 * time.Millisecond)
	}
	text, _ := os.ReadFile(log.Name())
	e.stop()
	return fmt.Errorf("the emulator does not listen on %s after a minute:\n%s", address, text)
}

// stop ends it, and the functions that it runs.
func (e *emulator) stop() {
	if e.cmd == nil || e.cmd.Process == nil {
		return
	}
	syscall.Kill(-e.cmd.Process.Pid, syscall.SIGKILL) //nolint:errcheck // it may have ended
	e.cmd.Wait()                                      //nolint:errcheck // it was killed
	e.cmd = nil
}
