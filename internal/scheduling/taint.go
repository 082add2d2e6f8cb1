package scheduling

import (
	"strconv"
	"strings"

	"kerf.sh/kerf/internal/snapshot"
)

// Effects of a taint.
const (
	noSchedule       = "NoSchedule"
	preferNoSchedule = "PreferNoSchedule"
	noExecute        = "NoExecute"
)

// Taints that a node carries for a while, or while it goes.
const (
	taintDisrupted     = "karpenter.sh/disrupted"
	taintUnregistered  = "karpenter.sh/unregistered"
	taintNotReady      = "node.kubernetes.io/not-ready"
	taintUnreachable   = "node.kubernetes.io/unreachable"
	taintUnschedulable = "node.kubernetes.io/unschedulable"
	taintCloudInit     = "node.cloudprovider.kubernetes.io/uninitialized"
	readinessPrefix    = "readiness.k8s.io/"
)

// Tolerates reports whether one of the tolerations covers the taint (Kubernetes:
// key, value and effect; the operators Exists, Equal and the numeric Gt and Lt).
func Tolerates(tolerations []snapshot.Toleration, t *snapshot.Taint) bool {
	for i := range tolerations {
		if tolerates(&tolerations[i], t) {
			return true
		}
	}
	return false
}

func tolerates(tol *snapshot.Toleration, t *snapshot.Taint) bool {
	if tol.Effect != "" && tol.Effect != t.Effect {
		return false
	}
	if tol.Key != "" && tol.Key != t.Key {
		return false
	}
	switch tol.Operator {
	case "", "Equal":
		return tol.Key != "" && tol.Value == t.Value
	case "Exists":
		return true
	case "Gt", "Lt":
		// The taint's value is compared with the toleration's: Gt tolerates taints
		// above it.
		want, ok1 := taintNumber(tol.Value)
		have, ok2 := taintNumber(t.Value)
		if !ok1 || !ok2 || tol.Key == "" {
			return false
		}
		if tol.Operator == "Gt" {
			return have > want
		}
		return have < want
	}
	return false
}

// taintNumber reads a number as kube-scheduler compares it: decimal, 64 bits, without
// a plus sign or leading zeros.
func taintNumber(s string) (int64, bool) {
	n, err := strconv.ParseInt(s, 10, 64)
	return n, err == nil && strconv.FormatInt(n, 10) == s
}

// ephemeral reports whether a taint is one that goes away while a node starts
// (Karpenter: known ephemeral taints).
func ephemeral(t *snapshot.Taint) bool {
	switch t.Key {
	case taintNotReady:
		return t.Effect == noSchedule || t.Effect == noExecute
	case taintUnreachable:
		return t.Effect == noSchedule
	case taintCloudInit:
		return t.Effect == noSchedule && t.Value == "true"
	case taintUnregistered:
		return t.Effect == noExecute
	}
	return strings.HasPrefix(t.Key, readinessPrefix)
}

// daemonTolerates adds to a daemon pod's tolerations what the DaemonSet controller
// adds to every pod of its own, and leaves preferences out.
func daemonTolerates(tolerations []snapshot.Toleration, t *snapshot.Taint) bool {
	if t.Effect == preferNoSchedule {
		return true
	}
	switch t.Key {
	case taintNotReady, taintUnreachable:
		if t.Effect == noExecute {
			return true
		}
	case "node.kubernetes.io/disk-pressure", "node.kubernetes.io/memory-pressure",
		"node.kubernetes.io/pid-pressure", taintUnschedulable:
		if t.Effect == noSchedule {
			return true
		}
	}
	return Tolerates(tolerations, t)
}

// taintString is the taint as kubectl writes it.
func taintString(t *snapshot.Taint) string {
	if t.Value == "" {
		return t.Key + ":" + t.Effect
	}
	return t.Key + "=" + t.Value + ":" + t.Effect
}
