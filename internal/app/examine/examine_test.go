package examine

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/ec2/types"
	ekstypes "github.com/aws/aws-sdk-go-v2/service/eks/types"
	"github.com/aws/smithy-go"

	"kerf.sh/kerf/internal/cloud/checkup"
	"kerf.sh/kerf/internal/cloud/nodeclass"
	"kerf.sh/kerf/internal/doctor"
	"kerf.sh/kerf/internal/kube/live"
	"kerf.sh/kerf/internal/lifecycle"
)

// codes are the findings that are no note: step and code.
func codes(r *doctor.Report) []string {
	var out []string
	for _, s := range r.Steps {
		for _, f := range s.Findings {
			if f.Status != doctor.Note {
				out = append(out, s.Name+" "+string(f.Code))
			}
		}
	}
	return out
}

func machine(id string, started time.Time) types.Instance {
	return types.Instance{InstanceId: &id, InstanceType: "m7g.large", LaunchTime: &started, CpuOptions: &types.CpuOptions{CoreCount: aws.Int32(2), ThreadsPerCore: aws.Int32(1)}}
}

// TestHealthy: of a cluster in which all is well, with the stack as it is synthesised, nothing
// is found, and everything is seen.
func TestHealthy(t *testing.T) {
	w := newWorld(t)
	w.aws.instances = []types.Instance{machine("i-1", now.Add(-2*time.Hour))}
	r := w.examine(t)
	if got := codes(r); len(got) > 0 || !r.Complete {
		t.Fatalf("%v\n%s", got, r.Text())
	}
	if f := w.x.Facts(t.Context()); len(f.Stack.Rules) != 5 || len(f.Stack.Functions) != 5 || len(f.Quotas) != 1 || f.Quotas[0].Used != 2 || f.Subnets[0].ID != "subnet-a" ||
		f.Instances[0].Node != "n-1" || f.Instances[0].Role != "nodes" || len(f.Stack.Alarms) < 8 || f.Roles[0].Pass != "allowed" || !f.Nodes[0].Initialized {
		t.Errorf("%+v", f)
	}
}

// TestBroken: what is broken outside is found where it is.
func TestBroken(t *testing.T) {
	for name, tt := range map[string]struct {
		change func(*world)
		want   string
	}{
		"no cluster":    {func(w *world) { w.aws.gone["prod"] = true }, "cluster ClusterMissing"},
		"no stack":      {func(w *world) { w.aws.gone["kerf-prod"] = true }, "stack StackMissing"},
		"no definition": {func(w *world) { w.kube.missing = "nodeclaims.karpenter.sh" }, "definitions DefinitionMissing"},
		"no sweep":      {func(w *world) { w.aws.gone["ticks"] = true }, "sweep NoSweep"},
		"Karpenter":     {func(w *world) { w.kube.leases = []live.LeaseState{{Namespace: "k", Holder: "h", Renewed: now}} }, "karpenter KarpenterRuns"},
		"no trigger":    {func(w *world) { w.aws.gone["p-"+w.logical(t, "KerfSweepFunctionTrigger")] = true }, "stack TriggerMissing"},
		"no schedule":   {func(w *world) { delete(w.aws.template, w.logical(t, "KerfMinuteSchedule")) }, "stack ScheduleMissing"},
		"no rule":       {func(w *world) { w.aws.gone["p-"+w.logical(t, "KerfSpotInterruptionRule")] = true }, "interruption RuleMissing"},
		"no role":       {func(w *world) { w.aws.gone["nodes"] = true }, "roles RoleMissing"},
		"PassRole":      {func(w *world) { w.aws.pass = "implicitDeny" }, "roles PassRoleDenied"},
		"no entry":      {func(w *world) { w.aws.gone["arn:aws:iam::"+account+":role/nodes"] = true }, "access NoAccessEntry"},
		"a selector":    {func(w *world) { w.kube.objects = strings.ReplaceAll(manifests, "discovery: prod", "discovery: other") }, "classes NoSubnets"},
		"no image": {func(w *world) {
			w.x.Images = func(context.Context, *nodeclass.Class, string) ([]nodeclass.Image, error) { return nil, nil }
		}, "classes NoImages"},
		"refused": {func(w *world) {
			w.x.Images = func(context.Context, *nodeclass.Class, string) ([]nodeclass.Image, error) {
				return nil, nodeclass.Refuse("x", "no such alias")
			}
		}, "classes NoImages"},
		"no profile": {func(w *world) {
			w.kube.objects, w.aws.gone["p"] = strings.ReplaceAll(manifests, "role: nodes", "instanceProfile: p"), true
		}, "roles ProfileMissing"},
		"an instance": {func(w *world) { w.aws.instances = []types.Instance{machine("i-9", now.Add(-time.Hour))} }, "join NotJoined"},
		"a taint that stays": {func(w *world) {
			w.kube.objects = strings.NewReplacer(`, karpenter.sh/initialized: "true"`, "", "spec: {providerID", "spec: {taints: [{key: agent, effect: NoSchedule}], providerID").Replace(manifests)
		}, "ready StartupTaintStays"},
		"a pod too large": {func(w *world) {
			w.kube.objects += "---\napiVersion: v1\nkind: Pod\nmetadata: {name: big, namespace: default, creationTimestamp: '2026-11-30T11:00:00Z'}\nspec: {containers: [{name: a, resources: {requests: {cpu: 5k}}}]}\nstatus: {conditions: [{type: PodScheduled, status: 'False', reason: Unschedulable}]}\n"
		}, "plan NoPlace"},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			w.aws.instances = []types.Instance{machine("i-1", now.Add(-2*time.Hour))}
			tt.change(w)
			if r := w.examine(t); !slices.Contains(codes(r), tt.want) || r.Broken == "" {
				t.Errorf("want %s, got %v\n%s", tt.want, codes(r), r.Text())
			}
		})
	}
}

// TestDoubtful: a role that may little is no reason to stop, and is told.
func TestDoubtful(t *testing.T) {
	w := newWorld(t)
	w.aws.nodeMay = "implicitDeny"
	r := w.examine(t)
	if got := codes(r); !slices.Equal(got, []string{"roles NodeMayTooLittle"}) || r.Broken != "" {
		t.Errorf("%v", got)
	}
}

// logical is the id of a resource of the stack.
func (w *world) logical(t *testing.T, prefix string) string {
	t.Helper()
	for id := range w.aws.template {
		if strings.HasPrefix(id, prefix) {
			return id
		}
	}
	t.Fatalf("no resource begins with %s", prefix)
	return ""
}

// TestPermissions: the doctor makes the calls that it says it needs and no others; of each
// one that is denied it names the permission, and goes on.
func TestPermissions(t *testing.T) {
	full := func() *world {
		w := newWorld(t)
		w.aws.console = "Unable to register node: Unauthorized\n"
		w.aws.instances = []types.Instance{machine("i-1", now.Add(-2*time.Hour)), machine("i-9", now.Add(-time.Hour))}
		second := strings.NewReplacer("role: nodes", "instanceProfile: p", "{name: default, uid: u-class", "{name: second, uid: u-2")
		w.kube.objects += "---" + second.Replace(strings.Split(manifests, "---")[1])
		return w
	}
	w := full()
	r := w.examine(t)
	if f := w.x.Facts(t.Context()); f.Instances[1].Status != "impaired" || f.Instances[1].Route != "none" || f.Instances[0].Route != "" || len(f.Instances[1].Console) != 1 || f.Roles[1].Name != "teams/gpu" {
		t.Errorf("%+v %+v", f.Instances, f.Roles)
	}
	want := map[string]bool{}
	elsewhere := []string{"dynamodb:DescribeTable", "dynamodb:GetItem", "dynamodb:Query", "ssm:GetParameter", "ec2:DescribeImages"}
	for _, list := range doctor.Permissions {
		for _, p := range list {
			if strings.Contains(p, ":") && !slices.Contains(elsewhere, p) {
				want[p] = true
			}
		}
	}
	if got := slices.Sorted(maps.Keys(w.aws.calls)); !slices.Equal(got, slices.Sorted(maps.Keys(want))) {
		t.Errorf("calls\n%v\nsaid\n%v\n%s", got, slices.Sorted(maps.Keys(want)), r.Text())
	}
	for _, p := range slices.Sorted(maps.Keys(want)) {
		w := full()
		w.aws.deny = p
		r := w.examine(t)
		if text := r.Text(); r.Complete || !strings.Contains(text, "permission "+p+" is missing") {
			t.Errorf("without %s:\n%s", p, text)
		}
	}
	for _, p := range []string{"get customresourcedefinitions", "list leases", "get configmaps", "list pods"} {
		w := full()
		w.kube.deny = p
		if text := w.examine(t).Text(); !strings.Contains(text, "permission "+p) {
			t.Errorf("without %s:\n%s", p, text)
		}
	}
}

// TestAwsAuth: where there are no access entries, the ConfigMap says who is let in; its ARNs
// have no paths.
func TestAwsAuth(t *testing.T) {
	w := newWorld(t)
	w.aws.authMode = ekstypes.AuthenticationModeConfigMap
	rows := "- {rolearn: 'arn:aws:iam::" + account + ":role/nodes', groups: ['system:nodes']}\n"
	w.kube.auth = map[string]string{"mapRoles": rows}
	r := w.examine(t)
	if got := codes(r); !slices.Contains(got, "stack FunctionNotLetIn") || slices.Contains(got, "access NoAccessEntry") {
		t.Errorf("%v", got)
	}
	for _, fn := range []string{"Sweep", "Lifecycle", "Catalog", "Interruption", "Consolidation", "Plan"} {
		rows += fmt.Sprintf("- {rolearn: 'arn:aws:iam::%s:role/p-%s', groups: ['kerf:%s']}\n", account, w.logical(t, "Kerf"+fn+"Function"), strings.ToLower(fn))
	}
	for id, typ := range w.aws.template { // a function's id begins as that of its entry does
		if typ == "AWS::EKS::AccessEntry" || typ == "AWS::Lambda::EventSourceMapping" || typ == "AWS::Lambda::EventInvokeConfig" {
			rows = strings.ReplaceAll(rows, "p-"+id+"'", "p-"+w.functionOf(id)+"'")
		}
	}
	w.kube.auth["mapRoles"] = rows
	if got := codes(w.examine(t)); slices.ContainsFunc(got, func(c string) bool { return strings.HasPrefix(c, "stack ") || strings.HasPrefix(c, "access ") }) {
		t.Errorf("%v\n%s", got, rows)
	}
	if w.aws.calls["eks:DescribeAccessEntry"] {
		t.Error("a cluster without access entries was asked for some")
	}
}

func (w *world) functionOf(id string) string {
	prefix := id[:strings.Index(id, "Function")+len("Function")]
	for other, typ := range w.aws.template {
		if typ == "AWS::Lambda::Function" && strings.HasPrefix(other, prefix) {
			return other
		}
	}
	return id
}

// TestUnreachable: what cannot be reached is not waited for again and again, and what depends
// on it is not judged.
func TestUnreachable(t *testing.T) {
	w := newWorld(t)
	w.kube.down = &live.Error{Is: live.ErrUnavailable, Detail: "i/o timeout"}
	r := w.examine(t)
	if got := codes(r); !slices.Contains(got, "api APIUnreachable") || slices.Contains(got, "pools NoNodePool") || slices.Contains(got, "definitions DefinitionMissing") || r.Complete {
		t.Errorf("%v", got)
	}
	w = newWorld(t)
	w.kube.down = &live.Error{Is: live.ErrUnauthorized, Detail: "no"}
	if got := codes(w.examine(t)); !slices.Contains(got, "api APINotLetIn") {
		t.Errorf("%v", got)
	}
	w = newWorld(t)
	w.x.Kube = func(context.Context) (Cluster, error) { return nil, errors.New("no way") }
	if got := codes(w.examine(t)); !slices.Contains(got, "api APIUnreachable") {
		t.Errorf("%v", got)
	}
}

// TestLedger: what EC2 refused lately is in the facts, commonest first.
func TestLedger(t *testing.T) {
	f := &doctor.Facts{Now: now, Ledger: &doctor.Ledger{}}
	health := lifecycle.Health{Offer: lifecycle.Offer{CapacityType: "spot"}}
	remembered(f, &lifecycle.Remembered{
		Attempts: []lifecycle.Attempt{
			{NodePool: "old", Outcome: &lifecycle.Outcome{At: now.Add(-time.Hour), Errors: []lifecycle.OfferError{{Code: "A"}}}},
			{NodePool: "new", Outcome: &lifecycle.Outcome{At: now, Instances: make([]lifecycle.Instance, 1), Errors: []lifecycle.OfferError{{Code: "A"}, {Code: "B"}, {Code: "B"}}}},
			{NodePool: "fine", Outcome: &lifecycle.Outcome{At: now}}, {NodePool: "open"},
		},
		Records: []lifecycle.Record{{Claim: "c", Failure: &lifecycle.Failure{Reason: "R", At: now}}, {Claim: "d"}},
		Health:  []lifecycle.Health{health.Shortage("MaxSpotInstanceCountExceeded", now.Add(-time.Second))},
	})
	l := f.Ledger
	if len(l.Attempts) != 2 || l.Attempts[0].Pool != "new" || l.Attempts[0].Errors[0].Code != "B" || l.Attempts[0].Got != 1 || len(l.Failures) != 1 || l.Short != 1 || !slices.Equal(l.ShortAll, []string{"spot"}) {
		t.Errorf("%+v", l)
	}
}

// TestCommand: arguments that cannot be used say what to write.
func TestCommand(t *testing.T) {
	for _, tt := range []struct {
		args []string
		want int
		says string
	}{
		{[]string{"--doctor", "-h"}, 0, "Exit status"},
		{[]string{"--doctor"}, 2, "--cluster NAME"},
		{[]string{"--doctor", "--cluster", "a", "b"}, 2, `argument "b"`},
		{[]string{"--doctor", "--cluster", "a", "-o", "html"}, 2, "want text or json"},
		{[]string{"--doctor", "--context", "a", "--kubeconfig", "/no/such"}, 2, "read the kubeconfig"},
		{[]string{"--doctor", "--cluster", "a", "--set", "KERF_WROK=1"}, 2, "did you mean"},
	} {
		var out, err bytes.Buffer
		if got := Main(tt.args, &out, &err); got != tt.want || !strings.Contains(out.String()+err.String(), tt.says) {
			t.Errorf("%v: %d: %s%s", tt.args, got, out.String(), err.String())
		}
	}
	if Wanted([]string{"-f", "x"}) || !Wanted([]string{"-o", "json", "--doctor"}) {
		t.Error("who wants the doctor")
	}
	if f, err := Function([]string{"CLUSTER_NAME=prod"}); f != nil || err != nil {
		t.Errorf("no region: %v", err)
	}
	if f, err := Function([]string{"CLUSTER_NAME=prod", "AWS_REGION=us-east-1"}); f == nil || err != nil {
		t.Errorf("%v", err)
	}
	if !strings.HasPrefix(StackName("a_b"), "kerf-a-b-") || StackName("a_b") == StackName("a-b") || StackName("prod") != "kerf-prod" {
		t.Error(StackName("a_b"))
	}
}

// TestUnseenWords: an error becomes the reason that a person can act on.
func TestUnseenWords(t *testing.T) {
	for err, want := range map[error]string{
		&smithy.GenericAPIError{Code: "UnauthorizedOperation", Message: "You are not authorized to perform this operation. User: x is not authorized to perform: ec2:DescribeSubnets because no identity-based policy allows it"}: "ec2:DescribeSubnets",
		context.DeadlineExceeded: "",
	} {
		if got := checkup.Unseen(err); got.Permission != want || got.Why == "" {
			t.Errorf("%v: %+v", err, got)
		}
	}
}
