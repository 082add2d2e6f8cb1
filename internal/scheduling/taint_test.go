package scheduling

import (
	"testing"

	"kerf.sh/kerf/internal/snapshot"
)

func TestTolerates(t *testing.T) {
	taint := snapshot.Taint{Key: "dedicated", Value: "build", Effect: "NoSchedule"}
	cases := []struct {
		name  string
		tol   snapshot.Toleration
		taint snapshot.Taint
		want  bool
	}{
		{"equal", snapshot.Toleration{Key: "dedicated", Operator: "Equal", Value: "build", Effect: "NoSchedule"}, taint, true},
		{"no operator is Equal", snapshot.Toleration{Key: "dedicated", Value: "build"}, taint, true},
		{"another value", snapshot.Toleration{Key: "dedicated", Value: "test"}, taint, false},
		{"another key", snapshot.Toleration{Key: "other", Value: "build"}, taint, false},
		{"another effect", snapshot.Toleration{Key: "dedicated", Value: "build", Effect: "NoExecute"}, taint, false},
		{"exists", snapshot.Toleration{Key: "dedicated", Operator: "Exists"}, taint, true},
		{"exists, every key", snapshot.Toleration{Operator: "Exists"}, taint, true},
		{"exists, every key, one effect", snapshot.Toleration{Operator: "Exists", Effect: "NoExecute"}, taint, false},
		{"empty key needs Exists", snapshot.Toleration{Value: "build"}, taint, false},
		{"unknown operator", snapshot.Toleration{Key: "dedicated", Operator: "In", Value: "build"}, taint, false},
		{"greater", snapshot.Toleration{Key: "n", Operator: "Gt", Value: "5"}, snapshot.Taint{Key: "n", Value: "6", Effect: "NoSchedule"}, true},
		{"not greater", snapshot.Toleration{Key: "n", Operator: "Gt", Value: "6"}, snapshot.Taint{Key: "n", Value: "6", Effect: "NoSchedule"}, false},
		{"less", snapshot.Toleration{Key: "n", Operator: "Lt", Value: "5"}, snapshot.Taint{Key: "n", Value: "4", Effect: "NoSchedule"}, true},
		{"leading zero in the taint", snapshot.Toleration{Key: "n", Operator: "Gt", Value: "5"}, snapshot.Taint{Key: "n", Value: "06", Effect: "NoSchedule"}, false},
		{"leading zero in the toleration", snapshot.Toleration{Key: "n", Operator: "Gt", Value: "05"}, snapshot.Taint{Key: "n", Value: "6", Effect: "NoSchedule"}, false},
		{"plus sign", snapshot.Toleration{Key: "n", Operator: "Gt", Value: "+5"}, snapshot.Taint{Key: "n", Value: "6", Effect: "NoSchedule"}, false},
		{"negative", snapshot.Toleration{Key: "n", Operator: "Gt", Value: "-5"}, snapshot.Taint{Key: "n", Value: "0", Effect: "NoSchedule"}, true},
		{"no number", snapshot.Toleration{Key: "n", Operator: "Lt", Value: "5"}, snapshot.Taint{Key: "n", Value: "x", Effect: "NoSchedule"}, false},
	}
	for _, c := range cases {
		if got := Tolerates([]snapshot.Toleration{{Key: "noise"}, c.tol}, &c.taint); got != c.want {
			t.Errorf("%s: tolerated = %v, want %v", c.name, got, c.want)
		}
	}
	if Tolerates(nil, &taint) {
		t.Error("no toleration tolerates nothing")
	}
}

func TestEphemeralTaints(t *testing.T) {
	cases := map[snapshot.Taint]bool{
		{Key: "node.kubernetes.io/not-ready", Effect: "NoSchedule"}:                                  true,
		{Key: "node.kubernetes.io/not-ready", Effect: "NoExecute"}:                                   true,
		{Key: "node.kubernetes.io/not-ready", Effect: "PreferNoSchedule"}:                            false,
		{Key: "node.kubernetes.io/unreachable", Effect: "NoSchedule"}:                                true,
		{Key: "node.kubernetes.io/unreachable", Effect: "NoExecute"}:                                 false,
		{Key: "node.cloudprovider.kubernetes.io/uninitialized", Value: "true", Effect: "NoSchedule"}: true,
		{Key: "node.cloudprovider.kubernetes.io/uninitialized", Effect: "NoSchedule"}:                false,
		{Key: "karpenter.sh/unregistered", Effect: "NoExecute"}:                                      true,
		{Key: "readiness.k8s.io/storage", Effect: "NoSchedule"}:                                      true,
		{Key: "karpenter.sh/disrupted", Effect: "NoSchedule"}:                                        false,
		{Key: "cni.example/agent-not-ready", Effect: "NoSchedule"}:                                   false,
	}
	for taint, want := range cases {
		if got := ephemeral(&taint); got != want {
			t.Errorf("%s: ephemeral = %v, want %v", taintString(&taint), got, want)
		}
	}
}

func TestDaemonTolerates(t *testing.T) {
	cases := map[snapshot.Taint]bool{
		{Key: "x", Effect: "PreferNoSchedule"}:                          true,
		{Key: "x", Effect: "NoSchedule"}:                                false,
		{Key: "node.kubernetes.io/not-ready", Effect: "NoExecute"}:      true,
		{Key: "node.kubernetes.io/not-ready", Effect: "NoSchedule"}:     false,
		{Key: "node.kubernetes.io/disk-pressure", Effect: "NoSchedule"}: true,
		{Key: "node.kubernetes.io/unschedulable", Effect: "NoSchedule"}: true,
	}
	for taint, want := range cases {
		if got := daemonTolerates(nil, &taint); got != want {
			t.Errorf("%s: tolerated = %v, want %v", taintString(&taint), got, want)
		}
	}
}

func TestPortsConflict(t *testing.T) {
	tcp := func(ip string, port int32) snapshot.HostPort { return snapshot.HostPort{IP: ip, Port: port} }
	cases := []struct {
		name string
		a, b snapshot.HostPort
		want bool
	}{
		{"same", tcp("", 80), tcp("", 80), true},
		{"another port", tcp("", 80), tcp("", 81), false},
		{"protocol default", tcp("", 80), snapshot.HostPort{Protocol: "TCP", Port: 80}, true},
		{"another protocol", tcp("", 80), snapshot.HostPort{Protocol: "UDP", Port: 80}, false},
		{"two addresses", tcp("10.0.0.1", 80), tcp("10.0.0.2", 80), false},
		{"one wildcard", tcp("10.0.0.1", 80), tcp("0.0.0.0", 80), true},
		{"one IPv6 wildcard", tcp("::", 80), tcp("10.0.0.1", 80), true},
		{"same address", tcp("10.0.0.1", 80), tcp("10.0.0.1", 80), true},
	}
	for _, c := range cases {
		if portsConflict(&c.a, &c.b) != c.want || portsConflict(&c.b, &c.a) != c.want {
			t.Errorf("%s: conflict != %v", c.name, c.want)
		}
	}
}
