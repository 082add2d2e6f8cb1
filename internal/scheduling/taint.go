package scheduling

import (
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

func tolerates(tol *snapshot.Toleration, t *snapshot.Taint) bool { return tol.Tolerates(t) }

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
