package scheduling

import (
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"kerf.sh/kerf/internal/plan"
	"kerf.sh/kerf/internal/snapshot"
)

var clock = time.Date(2026, 3, 4, 12, 0, 0, 0, time.UTC)

func TestNotPlanned(t *testing.T) {
	condition := func(status, reason string) *snapshot.Condition {
		return &snapshot.Condition{Type: "PodScheduled", Status: status, Reason: reason}
	}
	cases := []struct {
		name string
		pod  snapshot.Pod
		want plan.Code
	}{
		{"no condition", snapshot.Pod{}, ""},
		{"unschedulable", snapshot.Pod{Scheduled: condition("False", "Unschedulable")}, ""},
		{"unschedulable, whatever the status", snapshot.Pod{Scheduled: condition("True", "Unschedulable")}, ""},
		{"another reason", snapshot.Pod{Scheduled: condition("False", "MATCH_NODE_SELECTOR_FAILED")}, plan.NotUnschedulable},
		{"gated by condition", snapshot.Pod{Scheduled: condition("False", "SchedulingGated")}, plan.SchedulingGated},
		{"gated", snapshot.Pod{Spec: snapshot.PodSpec{Gates: []string{"g"}}}, plan.SchedulingGated},
		{"succeeded", snapshot.Pod{Phase: "Succeeded"}, plan.Finished},
		{"failed", snapshot.Pod{Phase: "Failed"}, plan.Finished},
		{"being deleted", snapshot.Pod{Deleting: clock}, plan.BeingDeleted},
		{"of a DaemonSet", snapshot.Pod{Owner: &snapshot.Owner{Kind: "DaemonSet", Name: "d"}}, plan.DaemonSetPod},
		{"of a ReplicaSet", snapshot.Pod{Owner: &snapshot.Owner{Kind: "ReplicaSet", Name: "r"}}, ""},
		{"static", snapshot.Pod{Owner: &snapshot.Owner{Kind: "Node", Name: "n"}}, plan.MirrorPod},
		{"static, by annotation", snapshot.Pod{Annotations: map[string]string{"kubernetes.io/config.mirror": "x"}}, plan.MirrorPod},
		{"resource claims", snapshot.Pod{Spec: snapshot.PodSpec{ResourceClaims: []string{"gpu"}}}, plan.ResourceClaims},
		{"another scheduler", snapshot.Pod{Spec: snapshot.PodSpec{SchedulerName: "mine"}}, ""},
	}
	for _, c := range cases {
		code, detail := NotPlanned(&c.pod)
		if code != c.want || (code == "") != (detail == "") {
			t.Errorf("%s: %q %q, want %q", c.name, code, detail, c.want)
		}
	}
}

func TestSelects(t *testing.T) {
	expr := func(key, op string, values ...string) *snapshot.LabelSelector {
		return &snapshot.LabelSelector{Expressions: []snapshot.SelectorRequirement{{Key: key, Operator: op, Values: values}}}
	}
	labels := map[string]string{"app": "web", "tier": ""}
	cases := []struct {
		name string
		s    *snapshot.LabelSelector
		want bool
	}{
		{"nil", nil, false},
		{"empty", &snapshot.LabelSelector{}, true},
		{"label", &snapshot.LabelSelector{MatchLabels: map[string]string{"app": "web"}}, true},
		{"empty value is not absence", &snapshot.LabelSelector{MatchLabels: map[string]string{"gone": ""}}, false},
		{"in", expr("app", "In", "api", "web"), true},
		{"not in", expr("app", "NotIn", "web"), false},
		{"not in, absent", expr("gone", "NotIn", "web"), true},
		{"exists", expr("tier", "Exists"), true},
		{"does not exist", expr("gone", "DoesNotExist"), true},
		{"does not exist, but does", expr("tier", "DoesNotExist"), false},
		{"unknown operator", expr("app", "Near", "web"), false},
	}
	for _, c := range cases {
		if got := selects(c.s, labels); got != c.want {
			t.Errorf("%s: %v, want %v", c.name, got, c.want)
		}
	}
}

func TestDisplaced(t *testing.T) {
	budget := func(name, unavailable, available string) snapshot.PodDisruptionBudget {
		return snapshot.PodDisruptionBudget{Namespace: "default", Name: name, Selector: &snapshot.LabelSelector{}, MaxUnavailable: unavailable, MinAvailable: available}
	}
	annotated := func(v string) snapshot.Pod {
		return snapshot.Pod{Annotations: map[string]string{annotationDoNotDisrupt: v}, Started: clock.Add(-time.Hour)}
	}
	cases := []struct {
		name    string
		pod     snapshot.Pod
		budgets []snapshot.PodDisruptionBudget
		planned bool
		code    plan.Code
	}{
		{"ordinary", snapshot.Pod{}, nil, true, ""},
		{"finished", snapshot.Pod{Phase: "Failed"}, nil, false, ""},
		{"daemon", snapshot.Pod{Owner: &snapshot.Owner{Kind: "DaemonSet"}}, nil, false, ""},
		{"terminating", snapshot.Pod{Deleting: clock}, nil, false, ""},
		{"terminating, of a StatefulSet: it comes back", snapshot.Pod{Deleting: clock, Owner: &snapshot.Owner{Kind: "StatefulSet"}}, nil, true, ""},
		{"do-not-disrupt", annotated("true"), nil, false, plan.EvictionBlocked},
		{"do-not-disrupt for two hours", annotated("2h"), nil, false, plan.EvictionBlocked},
		{"do-not-disrupt is over", annotated("45m"), nil, true, ""},
		{"do-not-disrupt is nonsense", annotated("soon"), nil, true, ""},
		{"do-not-disrupt is negative", annotated("-5m"), nil, true, ""},
		{"one budget", snapshot.Pod{}, []snapshot.PodDisruptionBudget{budget("a", "1", "")}, true, ""},
		{"a budget of nothing", snapshot.Pod{}, []snapshot.PodDisruptionBudget{budget("a", "0", "")}, false, plan.EvictionBlocked},
		{"a budget of no percent", snapshot.Pod{}, []snapshot.PodDisruptionBudget{budget("a", "0%", "")}, false, plan.EvictionBlocked},
		{"all must be there", snapshot.Pod{}, []snapshot.PodDisruptionBudget{budget("a", "", "100%")}, false, plan.EvictionBlocked},
		{"two budgets", snapshot.Pod{}, []snapshot.PodDisruptionBudget{budget("a", "1", ""), budget("b", "1", "")}, false, plan.EvictionBlocked},
	}
	for _, c := range cases {
		c.pod.Namespace, c.pod.Name, c.pod.NodeName = "default", "p", "n1"
		w := &World{Snapshot: &snapshot.Snapshot{Now: clock, Budgets: c.budgets}}
		planned, code, why := w.displaced(&c.pod)
		if planned != c.planned || code != c.code || (code == "") != (why == "") {
			t.Errorf("%s: planned %v, %q, %q; want %v, %q", c.name, planned, code, why, c.planned, c.code)
		}
	}
}

func TestGoingNodes(t *testing.T) {
	s := &snapshot.Snapshot{
		Nodes: []snapshot.Node{{Name: "stays", ProviderID: "i-0"}, {Name: "deleted", Deleting: clock}, {Name: "by-provider", ProviderID: "i-1"}, {Name: "by-name"}},
		NodeClaims: []snapshot.NodeClaim{
			{Name: "a", ProviderID: "i-1", Deleting: clock}, {Name: "b", NodeName: "by-name", Deleting: clock}, {Name: "c", ProviderID: "i-0"},
		},
	}
	want := map[string]bool{"deleted": true, "by-provider": true, "by-name": true}
	if diff := cmp.Diff(want, goingNodes(s)); diff != "" {
		t.Errorf("going nodes (-want +got)\n%s", diff)
	}
}

func TestVolumeProblems(t *testing.T) {
	wait, fast, none := "wait", "fast", ""
	missing := "missing"
	s := &snapshot.Snapshot{
		StorageClasses: []snapshot.StorageClass{
			{Name: "fast", Provisioner: "ebs.csi.aws.com"}, {Name: "wait", Provisioner: "ebs.csi.aws.com", BindingMode: "WaitForFirstConsumer", Default: true},
		},
		Volumes: []snapshot.PersistentVolume{{Name: "pv"}, {Name: "pv-going", Deleting: true}},
	}
	claim := func(c snapshot.PersistentVolumeClaim) *snapshot.PersistentVolumeClaim { return &c }
	cases := []struct {
		name  string
		claim *snapshot.PersistentVolumeClaim
		eph   *snapshot.ClaimSpec
		want  string // part of the problem; "" = none
	}{
		{"missing", nil, nil, "does not exist"},
		{"being deleted", claim(snapshot.PersistentVolumeClaim{Deleting: true}), nil, "being deleted"},
		{"lost", claim(snapshot.PersistentVolumeClaim{Phase: "Lost", Spec: snapshot.ClaimSpec{VolumeName: "pv"}}), nil, "Lost"},
		{"bound", claim(snapshot.PersistentVolumeClaim{Phase: "Bound", BindCompleted: true, Spec: snapshot.ClaimSpec{VolumeName: "pv"}}), nil, ""},
		{"binding", claim(snapshot.PersistentVolumeClaim{Phase: "Pending", Spec: snapshot.ClaimSpec{VolumeName: "pv"}}), nil, "not complete"},
		{"volume is gone", claim(snapshot.PersistentVolumeClaim{Phase: "Bound", BindCompleted: true, Spec: snapshot.ClaimSpec{VolumeName: "x"}}), nil, "volume x, which does not exist"},
		{"volume is going", claim(snapshot.PersistentVolumeClaim{Phase: "Bound", BindCompleted: true, Spec: snapshot.ClaimSpec{VolumeName: "pv-going"}}), nil, "being deleted"},
		{"waits for its pod", claim(snapshot.PersistentVolumeClaim{Spec: snapshot.ClaimSpec{StorageClass: &wait}}), nil, ""},
		{"default class", claim(snapshot.PersistentVolumeClaim{}), nil, ""},
		{"binds at once", claim(snapshot.PersistentVolumeClaim{Spec: snapshot.ClaimSpec{StorageClass: &fast}}), nil, "binds immediately"},
		{"no class", claim(snapshot.PersistentVolumeClaim{Spec: snapshot.ClaimSpec{StorageClass: &none}}), nil, "names no storage class"},
		{"class is missing (S-30)", claim(snapshot.PersistentVolumeClaim{Spec: snapshot.ClaimSpec{StorageClass: &missing}}), nil, "storage class missing, which does not exist"},
		{"ephemeral", nil, &snapshot.ClaimSpec{StorageClass: &wait}, ""},
		{"ephemeral, class is missing", nil, &snapshot.ClaimSpec{StorageClass: &missing}, "storage class missing"},
	}
	for _, c := range cases {
		p := snapshot.Pod{Namespace: "default", Name: "p", Spec: snapshot.PodSpec{Volumes: []snapshot.Volume{{Name: "data", Claim: "c"}}}}
		if c.eph != nil {
			p.Spec.Volumes[0] = snapshot.Volume{Name: "data", Ephemeral: c.eph}
		}
		own := *s
		if c.claim != nil {
			c.claim.Namespace, c.claim.Name = "default", "c"
			own.Claims = []snapshot.PersistentVolumeClaim{*c.claim}
		}
		got := newVolumes(&own).problem(&p)
		if (got == "") != (c.want == "") || !strings.Contains(got, c.want) {
			t.Errorf("%s: %q, want %q", c.name, got, c.want)
		}
	}
}
