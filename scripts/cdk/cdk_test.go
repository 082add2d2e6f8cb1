package cdk

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// run runs a script with an aws that answers describe-cluster with facts, and the number of
// unreserved functions; the folder it runs in has a cdk.json.
func run(t *testing.T, script string, facts, free, cdkJSON string, args ...string) (string, int) {
	t.Helper()
	dir := t.TempDir()
	aws := `#!/bin/bash
case "$*" in
*describe-cluster*) [ -n "$FACTS" ] || { echo "no such cluster" >&2; exit 254; }; echo "$FACTS" ;;
*get-account-settings*) echo "$FREE" ;;
*describe-stacks*FunctionName*) echo kerf-sweep ;;
*describe-stacks*LogGroup*) echo sweep-logs ;;
*describe-stacks*) exit 255 ;;
*"lambda invoke"*) printf '%s' '{"text":"a plan\\nof two lines"}' >"${!#}" ;;
*) echo "$*" ;;
esac
`
	for name, text := range map[string]string{"aws": aws, "cdk.json": cdkJSON} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	path, err := filepath.Abs(script)
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.CommandContext(t.Context(), path, args...)
	cmd.Dir = dir
	cmd.Env = []string{"PATH=" + dir + ":/usr/bin:/bin", "FACTS=" + facts, "FREE=" + free}
	out, _ := cmd.CombinedOutput()
	return string(out), cmd.ProcessState.ExitCode()
}

// TestCheck: what EKS says of a cluster is held against what is to be deployed, before it is.
func TestCheck(t *testing.T) {
	const good = "ACTIVE 1.33 API True 0.0.0.0/0 vpc-1 sg-1"
	for name, tt := range map[string]struct {
		facts, free, context, json string
		want                       string // "" = it may be deployed
	}{
		"all is well":            {good, "1000", "", "{}", ""},
		"no cluster":             {"", "1000", "", "{}", "EKS does not describe cluster prod"},
		"being made":             {strings.Replace(good, "ACTIVE", "CREATING", 1), "1000", "", "{}", "prod is CREATING"},
		"too old":                {strings.Replace(good, "1.33", "1.28", 1), "1000", "", "{}", "1.29 or newer"},
		"no entries":             {strings.Replace(good, "API", "CONFIG_MAP", 1), "1000", "", "{}", "update-cluster-config --name prod"},
		"by aws-auth":            {strings.Replace(good, "API", "CONFIG_MAP", 1), "1000", "-c access=configMap", "{}", ""},
		"by aws-auth, in a file": {strings.Replace(good, "API", "CONFIG_MAP", 1), "1000", "", `{"context": {"access": "configMap"}}`, ""},
		"no aws-auth":            {good, "1000", "-c access=configMap", "{}", "does not look into aws-auth"},
		"private":                {strings.Replace(good, "True", "False", 1), "1000", "", "{}", "-c vpcId=vpc-1 -c clusterSecurityGroupId=sg-1"},
		"open to some":           {strings.Replace(good, "0.0.0.0/0", "192.0.2.0/24", 1), "1000", "", "{}", "not open to the world"},
		"private, in its VPC":    {strings.Replace(good, "True", "False", 1), "1000", "-c vpcId=vpc-1", "{}", ""},
		"a new account":          {good, "10", "", "{}", "sharedConcurrency=true"},
		"a new account, shared":  {good, "10", "-c sharedConcurrency=true", "{}", ""},
		"the planner alone":      {good, "10", "-c planOnly=true", "{}", ""},
	} {
		t.Run(name, func(t *testing.T) {
			out, status := run(t, "check.sh", tt.facts, tt.free, tt.json, "prod", tt.context)
			if (status == 0) != (tt.want == "") || !strings.Contains(out, tt.want) {
				t.Errorf("%d\n%s", status, out)
			}
		})
	}
}

// TestInvokeAndLogs: the functions of a stack are found by its outputs.
func TestInvokeAndLogs(t *testing.T) {
	event, err := filepath.Abs("../../events/sweep/dry-run.json")
	if err != nil {
		t.Fatal(err)
	}
	for _, tt := range []struct {
		script string
		args   []string
		status int
		want   string
	}{
		{"invoke.sh", []string{"prod", "sweep", event}, 0, "two lines"},
		{"invoke.sh", []string{"prod", "nobody", event}, 2, "there is no function nobody"},
		{"invoke.sh", []string{"prod", "sweep", "/no/such"}, 2, "cannot be read"},
		{"invoke.sh", []string{"", "sweep", event}, 2, "make invoke CLUSTER=name"},
		{"logs.sh", []string{"prod", "sweep", "15m"}, 0, "logs tail sweep-logs --since 15m"},
		{"logs.sh", []string{"prod", "nobody", "15m"}, 2, "there is no function nobody"},
	} {
		if out, status := run(t, tt.script, "", "", "{}", tt.args...); status != tt.status || !strings.Contains(out, tt.want) {
			t.Errorf("%s %v: %d\n%s", tt.script, tt.args, status, out)
		}
	}
}
