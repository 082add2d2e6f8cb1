package uninstall

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// outside are an aws and a kubectl that write down what they are called with and answer from
// a list of patterns, the first that matches; what nothing matches answers with nothing.
type outside struct {
	t       *testing.T
	dir     string
	answers []answer
}

type answer struct {
	call, says string // a pattern of bash over the arguments
	status     int
}

func (o *outside) add(call, says string) {
	o.answers = append([]answer{{call: call, says: says}}, o.answers...)
}

func (o *outside) fails(call string) {
	o.answers = append([]answer{{call: call, status: 1}}, o.answers...)
}

// newOutside is a cluster with a NodePool of each kind, a node with its NodeClaim, and the
// stack.
func newOutside(t *testing.T) *outside {
	o := &outside{t: t, dir: t.TempDir()}
	o.fails("*crd nodeclasses.eks.amazonaws.com*")
	o.add("*describe-cluster*", "https://ABC.eks")
	o.add("*config view*", "https://abc.EKS")
	o.add("*describe-stacks*StackStatus*", "UPDATE_COMPLETE")
	o.add("*describe-stacks*TableName*", "ledger")
	o.add("*get nodepools.karpenter.sh*", "general")
	o.add("*get nodeclaims.karpenter.sh -o name", "nodeclaim/general-abc\nnodeclaim/auto-xyz")
	o.add("*get nodes -l karpenter.sh/nodepool -o name", "node/ip-1")
	o.add("*get ec2nodeclasses* -o name", "ec2nodeclass/default")
	o.add("*get *general-abc*nodeClassRef*", "karpenter.k8s.aws")
	o.add("*get *auto-xyz*nodeClassRef*", "eks.amazonaws.com")
	o.add("*finalizers*", "other karpenter.sh/termination")
	o.add("*default*finalizers*", "karpenter.k8s.aws/termination")
	o.add("*launch-templates*", "lt-1\tlt-2")
	o.add("*list-instance-profiles*", "prof-1\tnodes\nprof-2\tNone")
	o.add("*get crd *managed-by*", "kerf")
	return o
}

// run runs the script, and gives what was changed, one call a line.
func (o *outside) run(args []string, env ...string) (said string, changed []string, err error) {
	o.t.Helper()
	log := filepath.Join(o.dir, "log")
	os.Remove(log)
	var script strings.Builder
	script.WriteString("#!/bin/bash\ncall=\"$(basename \"$0\") $*\"\necho \"$call\" >>'" + log + "'\ncase $call in\n")
	for _, a := range o.answers {
		fmt.Fprintf(&script, "%s) printf '%%b' '%s'; exit %d ;;\n", strings.ReplaceAll(a.call, " ", `\ `), strings.NewReplacer("\n", `\n`, "\t", `\t`).Replace(a.says), a.status)
	}
	script.WriteString("esac\n")
	for _, p := range []string{"aws", "kubectl"} {
		if err := os.WriteFile(filepath.Join(o.dir, p), []byte(script.String()), 0o755); err != nil {
			o.t.Fatal(err)
		}
	}
	cmd := exec.CommandContext(o.t.Context(), "./uninstall.sh", args...)
	cmd.Env = append([]string{"PATH=" + o.dir + ":/usr/bin:/bin", "AWS_REGION=eu-west-1", "POLL=0"}, env...)
	out, err := cmd.CombinedOutput()
	calls, _ := os.ReadFile(log)
	for line := range strings.Lines(string(calls)) {
		line = strings.TrimSpace(line)
		for _, verb := range []string{"delete", "patch", "update", "remove", "uncordon"} {
			if strings.Contains(line, " "+verb) || strings.Contains(line, " "+verb+"-") {
				changed = append(changed, line)
				break
			}
		}
	}
	return string(out), changed, err
}

func has(list []string, part string) bool {
	for _, l := range list {
		if strings.Contains(l, part) {
			return true
		}
	}
	return false
}

// TestShows: without YES=1 it says what it would do, and does nothing.
func TestShows(t *testing.T) {
	said, changed, err := newOutside(t).run([]string{"prod"}, "NODES=remove", "CRDS=remove", "TABLE=remove")
	if err != nil || len(changed) > 0 {
		t.Fatalf("%v %q\n%s", err, changed, said)
	}
	for _, want := range []string{"would run: kubectl delete nodepool.karpenter.sh general", "would run: aws cloudformation delete-stack --stack-name kerf-prod", "would run: aws dynamodb delete-table --table-name ledger", "YES=1 does it"} {
		if !strings.Contains(said, want) {
			t.Errorf("it does not say %q:\n%s", want, said)
		}
	}
}

// TestKeeps: by default nodes, definitions and the table stay, and nothing waits for anybody.
func TestKeeps(t *testing.T) {
	o := newOutside(t)
	o.add("*get nodes -o*opening*", "ip-2")
	said, changed, err := o.run([]string{"prod"}, "YES=1")
	if err != nil {
		t.Fatalf("%v\n%s", err, said)
	}
	for _, want := range []string{
		"aws cloudformation delete-stack --stack-name kerf-prod", "kubectl uncordon ip-2",
		`kubectl patch nodeclaims.karpenter.sh general-abc --type=json -p [{"op":"test","path":"/metadata/finalizers/1","value":"karpenter.sh/termination"},{"op":"remove","path":"/metadata/finalizers/1"}]`,
		"kubectl patch nodes ip-1", `kubectl patch ec2nodeclasses.karpenter.k8s.aws default --type=json -p [{"op":"test","path":"/metadata/finalizers/0","value":"karpenter.k8s.aws/termination"}`,
		"delete-launch-template --launch-template-id lt-2",
	} {
		if !has(changed, want) {
			t.Errorf("it did not run %s:\n%s", want, strings.Join(changed, "\n"))
		}
	}
	for _, not := range []string{"auto-xyz", "delete nodepool", "delete crd", "dynamodb", "instance-profile", "kubectl delete"} {
		if has(changed, not) {
			t.Errorf("it ran %s:\n%s", not, strings.Join(changed, "\n"))
		}
	}
}

// TestRemoves: nodes go before the stack that drains them, and definitions last; only Kerf's.
func TestRemoves(t *testing.T) {
	o := newOutside(t)
	o.add("*get crd nodeoverlays.karpenter.sh*managed-by*", "Helm karpenter-crd")
	o.add("*get crd capacitybuffers*managed-by*", "")
	said, changed, err := o.run([]string{"a_b"}, "YES=1", "NODES=remove", "CRDS=remove", "TABLE=remove")
	if err != nil {
		t.Fatalf("%v\n%s", err, said)
	}
	order := []string{"delete nodepool.karpenter.sh general --wait=false", "delete-stack --stack-name kerf-a-b-", "patch nodeclaims", "remove-role-from-instance-profile --instance-profile-name prof-1 --role-name nodes",
		"delete-instance-profile --instance-profile-name prof-2", "delete crd nodeclaims.karpenter.sh", "update-table --table-name ledger --no-deletion-protection-enabled", "delete-table --table-name ledger"}
	at := 0
	for _, c := range changed {
		if at < len(order) && strings.Contains(c, order[at]) {
			at++
		}
	}
	if at < len(order) {
		t.Errorf("it did not run %q, or not in this order:\n%s", order[at], strings.Join(changed, "\n"))
	}
	if has(changed, "delete crd nodeoverlays") || has(changed, "delete crd capacitybuffers") || !strings.Contains(said, "nodeoverlays.karpenter.sh stays") {
		t.Errorf("definitions of others:\n%s", said)
	}
}

// TestWaits: nodes that do not go are named, and the stack that could drain them stays.
func TestWaits(t *testing.T) {
	o := newOutside(t)
	o.add("*get nodeclaims.karpenter.sh -o jsonpath*", "general-abc\ngeneral-def\n")
	said, changed, err := o.run([]string{"prod"}, "YES=1", "NODES=remove", "WAIT=0")
	if err == nil || !strings.Contains(said, "still 2 NodeClaims: general-abc general-def") || has(changed, "delete-stack") {
		t.Errorf("%v %q\n%s", err, changed, said)
	}
}

// TestRefuses: what could hurt somebody else is refused before anything is changed.
func TestRefuses(t *testing.T) {
	for name, tt := range map[string]struct {
		change func(*outside)
		args   []string
		env    []string
		want   string
	}{
		"no cluster":        {nil, nil, nil, "which cluster"},
		"a choice":          {nil, []string{"prod"}, []string{"NODES=all"}, "NODES=all: want keep or remove"},
		"a time":            {nil, []string{"prod"}, []string{"WAIT=1h"}, "want seconds"},
		"unknown to EKS":    {func(o *outside) { o.fails("*describe-cluster*") }, []string{"prod"}, nil, "EKS does not describe cluster prod"},
		"another cluster":   {func(o *outside) { o.add("*config view*", "https://other") }, []string{"prod"}, nil, "KUBECTL="},
		"Karpenter runs":    {func(o *outside) { o.add("*get lease*", time.Now().UTC().Format("2006-01-02T15:04:05.000000Z")) }, []string{"prod"}, []string{"NODES=remove"}, "Karpenter runs"},
		"Auto Mode":         {func(o *outside) { o.add("*crd nodeclasses.eks.amazonaws.com*", "crd") }, []string{"prod"}, []string{"CRDS=remove"}, "Auto Mode"},
		"nobody drains":     {func(o *outside) { o.fails("*describe-stacks*") }, []string{"prod"}, []string{"NODES=remove"}, "nobody would drain"},
		"it cannot be seen": {func(o *outside) { o.fails("*get lease*") }, []string{"prod"}, nil, ""},
		"half a list":       {func(o *outside) { o.fails("*get nodes -l*") }, []string{"prod"}, nil, ""},
	} {
		t.Run(name, func(t *testing.T) {
			o := newOutside(t)
			if tt.change != nil {
				tt.change(o)
			}
			said, changed, err := o.run(tt.args, append(tt.env, "YES=1")...)
			if err == nil || !strings.Contains(said, tt.want) {
				t.Errorf("%v\n%s", err, said)
			}
			if name != "half a list" && len(changed) > 0 {
				t.Errorf("it changed %q", changed)
			}
		})
	}
}

// TestKarpenterGoesOn: whoever hands back to Karpenter keeps the finalizers that it needs.
func TestKarpenterGoesOn(t *testing.T) {
	o := newOutside(t)
	o.add("*get lease*", time.Now().UTC().Format("2006-01-02T15:04:05.000000Z"))
	said, changed, err := o.run([]string{"prod"}, "YES=1")
	if err != nil || len(changed) != 1 || !strings.Contains(changed[0], "delete-stack") {
		t.Errorf("%v %q\n%s", err, changed, said)
	}
}
