package kubeconfig

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

const config = `
apiVersion: v1
kind: Config
clusters:
- {name: "arn:aws:eks:eu-west-1:111111111111:cluster/prod", cluster: {server: "https://prod.example"}}
- {name: dev.eu-north-1.eksctl.io, cluster: {server: "https://dev.example"}}
- {name: kind, cluster: {server: "https://127.0.0.1:6443"}}
users:
- {name: me, user: {token: secret}}
- name: aws
  user: {exec: {apiVersion: client.authentication.k8s.io/v1beta1, command: aws, args: [eks, get-token], interactiveMode: Never}}
contexts:
- {name: prod, context: {cluster: "arn:aws:eks:eu-west-1:111111111111:cluster/prod", user: aws}}
- {name: dev, context: {cluster: dev.eu-north-1.eksctl.io, user: me}}
- {name: local, context: {cluster: kind, user: me}}
- {name: broken, context: {cluster: none, user: me}}
current-context: local
`

func TestLoad(t *testing.T) {
	path := filepath.Join(t.TempDir(), "config")
	write := func(text string) {
		t.Helper()
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	write(config)
	for _, tt := range []struct{ context, want, host, cluster, region string }{
		{"", "local", "https://127.0.0.1:6443", "kind", ""},
		{"prod", "prod", "https://prod.example", "prod", "eu-west-1"},
		{"dev", "dev", "https://dev.example", "dev", "eu-north-1"},
	} {
		got, err := Load(path, tt.context)
		if err != nil {
			t.Fatal(err)
		}
		if got.Context != tt.want || got.Config.Host != tt.host || got.Cluster != tt.cluster || got.Region != tt.region {
			t.Errorf("%q: %+v, host %s", tt.context, got, got.Config.Host)
		}
		if exec := got.Config.ExecProvider; (exec != nil) != (tt.context == "prod") {
			t.Errorf("%q: exec %v", tt.context, exec)
		}
	}
	t.Setenv("KUBECONFIG", path)
	if got, err := Load("", ""); err != nil || got.Context != "local" {
		t.Errorf("KUBECONFIG: %+v, %v", got, err)
	}
	for _, tt := range []struct{ path, context, want string }{
		{path, "stage", `--context "stage": there is no such context in ` + path + `, only broken, dev, local, prod`},
		{path, "broken", `use context "broken" of the kubeconfig: `},
		{path + "-none", "", "read the kubeconfig: "},
	} {
		if _, err := Load(tt.path, tt.context); err == nil || !strings.Contains(err.Error(), tt.want) {
			t.Errorf("got %v, want %q", err, tt.want)
		}
	}
	write(strings.ReplaceAll(config, "current-context: local", ""))
	if _, err := Load(path, ""); err == nil || !strings.Contains(err.Error(), "choose one with --context: broken, dev, local, prod") {
		t.Errorf("got %v", err)
	}
	write("apiVersion: v1\nkind: Config\n")
	if _, err := Load(path, ""); err == nil || !strings.Contains(err.Error(), "no context in "+path) {
		t.Errorf("got %v", err)
	}
	write("{")
	if _, err := Load(path, ""); err == nil {
		t.Error("no error for a broken file")
	}
}
