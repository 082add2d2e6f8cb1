//go:build local && keep

package local

import (
	"context"
	"fmt"
	"os"
	"os/signal"
	"path/filepath"
	"strconv"
	"syscall"
	"testing"

	"kerf.sh/kerf/internal/realtest/fakeaws"
)

// TestKeep is the stack for a person to try things on.
func TestKeep(t *testing.T) {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	port, err := strconv.Atoi(os.Getenv("KERF_LOCAL_PORT"))
	if err != nil {
		t.Fatalf("KERF_LOCAL_PORT: %v", err)
	}
	s := up(ctx, t, port)
	s.deploy()
	s.must(s.Cluster.Create(ctx, s.read("pools.yaml")))
	env := filepath.Join(s.o.Dir, "env")
	s.must(os.WriteFile(env, []byte(s.variables()), 0o600))
	fmt.Fprintf(s.o.Out, `
The stack is up, with a NodePool and an EC2NodeClass. In another shell:

  source %s     # KUBECONFIG, and where AWS is

  kubectl apply -f internal/realtest/local/testdata/shop.yaml
  kubectl get pods,nodes,nodeclaims -A -o wide
  make invoke CLUSTER=%s EVENT=events/plan/live.json
  make logs CLUSTER=%[2]s FN=sweep
  aws ec2 describe-instances --query 'Reservations[].Instances[].[InstanceId,InstanceType,InstanceLifecycle]' --output text
  aws events put-events --entries '[{"Source": "aws.ec2", "DetailType": "EC2 Spot Instance Interruption Warning",
    "Detail": "{\"instance-id\": \"i-...\", \"instance-action\": \"terminate\"}"}]'

Control-C ends it.
`, env, s.Name)
	<-ctx.Done()
}

// variables lead a shell to the stack.
func (s *story) variables() string {
	out := fmt.Sprintf("export KUBECONFIG=%s AWS_ENDPOINT_URL=%s AWS_REGION=%s AWS_DEFAULT_REGION=%[3]s AWS_ACCESS_KEY_ID=%s AWS_SECRET_ACCESS_KEY=%s AWS_PAGER=\nunset AWS_PROFILE AWS_SESSION_TOKEN\n",
		s.Cluster.Kubeconfig, s.URL, fakeaws.Region, owner.AccessKeyID, owner.SecretAccessKey)
	for _, service := range outside {
		out += "export AWS_ENDPOINT_URL_" + service + "=" + s.aws.Endpoint(service) + "\n"
	}
	return out
}
