package kubeconfig

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	"k8s.io/client-go/tools/clientcmd/api"
)

// Target is a cluster of a kubeconfig, and the way to it.
type Target struct {
	Config *rest.Config
	// Context is the one that was taken; Cluster is the name of the EKS cluster where the
	// kubeconfig tells it (an ARN, as aws eks update-kubeconfig writes it), else of the
	// kubeconfig's entry. Region is that of the ARN, "" without one.
	Context, Cluster, Region string
}

// requestTimeout bounds one request; a person can wait longer than a function.
const requestTimeout = 2 * time.Minute

// Load finds the cluster. path and context are the flags' values, "" = not given.
func Load(path, context string) (*Target, error) {
	rules := clientcmd.NewDefaultClientConfigLoadingRules()
	rules.ExplicitPath = path
	rules.WarnIfAllMissing = false
	raw, err := rules.Load()
	if err != nil {
		return nil, fmt.Errorf("read the kubeconfig: %w", err)
	}
	if len(raw.Contexts) == 0 {
		return nil, fmt.Errorf("read the kubeconfig: no context in %s: name another with --kubeconfig", where(rules))
	}
	name := context
	if name == "" {
		name = raw.CurrentContext
	}
	if name == "" {
		return nil, fmt.Errorf("read the kubeconfig: it has no current context: choose one with --context: %s", known(raw))
	}
	chosen := raw.Contexts[name]
	if chosen == nil {
		return nil, fmt.Errorf("--context %q: there is no such context in %s, only %s", name, where(rules), known(raw))
	}
	config, err := clientcmd.NewNonInteractiveClientConfig(*raw, name, &clientcmd.ConfigOverrides{}, rules).ClientConfig()
	if err != nil {
		return nil, fmt.Errorf("use context %q of the kubeconfig: %w", name, reason(err))
	}
	if config.Timeout == 0 {
		config.Timeout = requestTimeout
	}
	t := &Target{Config: config, Context: name, Cluster: chosen.Cluster}
	if p := strings.SplitN(chosen.Cluster, ":", 6); len(p) == 6 && p[0] == "arn" && p[2] == "eks" {
		if cluster, ok := strings.CutPrefix(p[5], "cluster/"); ok {
			t.Cluster, t.Region = cluster, p[3]
		}
	} else if cluster, region, ok := eksctl(chosen.Cluster); ok {
		t.Cluster, t.Region = cluster, region
	}
	return t, nil
}

// eksctl takes apart the names that eksctl gives: NAME.REGION.eksctl.io.
func eksctl(s string) (cluster, region string, ok bool) {
	p := strings.Split(s, ".")
	if len(p) != 4 || p[2] != "eksctl" || p[3] != "io" {
		return "", "", false
	}
	return p[0], p[1], true
}

func where(rules *clientcmd.ClientConfigLoadingRules) string {
	if rules.ExplicitPath != "" {
		return rules.ExplicitPath
	}
	return strings.Join(rules.Precedence, ", ")
}

func known(c *api.Config) string {
	return strings.Join(slices.Sorted(maps.Keys(c.Contexts)), ", ")
}

// reason says what an empty configuration means.
func reason(err error) error {
	if clientcmd.IsEmptyConfig(err) {
		return errors.New("it names no cluster")
	}
	return err
}
