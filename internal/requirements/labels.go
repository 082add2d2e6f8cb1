package requirements

import (
	"fmt"
	"slices"
	"strings"
)

// Labels that the algebra itself must know.
const (
	labelNodePool     = "karpenter.sh/nodepool"
	labelCapacityType = "karpenter.sh/capacity-type"
	labelTenancy      = "karpenter.k8s.aws/instance-tenancy"
	labelHostname     = "kubernetes.io/hostname"
)

// aliases maps old and foreign keys to the key that says the same.
var aliases = map[string]string{
	"failure-domain.beta.kubernetes.io/zone":   "topology.kubernetes.io/zone",
	"failure-domain.beta.kubernetes.io/region": "topology.kubernetes.io/region",
	"beta.kubernetes.io/arch":                  "kubernetes.io/arch",
	"beta.kubernetes.io/os":                    "kubernetes.io/os",
	"beta.kubernetes.io/instance-type":         "node.kubernetes.io/instance-type",
	"topology.ebs.csi.aws.com/zone":            "topology.kubernetes.io/zone",
}

// aliasesOf lists the aliases of a key, sorted.
var aliasesOf = func() map[string][]string {
	out := map[string][]string{}
	for alias, key := range aliases {
		out[key] = append(out[key], alias)
	}
	for _, list := range out {
		slices.Sort(list)
	}
	return out
}()

// wellKnown are the labels whose values every instance type knows, sorted.
var wellKnown = []string{
	"karpenter.k8s.aws/capacity-reservation-id",
	"karpenter.k8s.aws/capacity-reservation-interruptible",
	"karpenter.k8s.aws/capacity-reservation-type",
	"karpenter.k8s.aws/instance-accelerator-count",
	"karpenter.k8s.aws/instance-accelerator-manufacturer",
	"karpenter.k8s.aws/instance-accelerator-name",
	"karpenter.k8s.aws/instance-capability-flex",
	"karpenter.k8s.aws/instance-category",
	"karpenter.k8s.aws/instance-cpu",
	"karpenter.k8s.aws/instance-cpu-manufacturer",
	"karpenter.k8s.aws/instance-cpu-sustained-clock-speed-mhz",
	"karpenter.k8s.aws/instance-ebs-bandwidth",
	"karpenter.k8s.aws/instance-encryption-in-transit-supported",
	"karpenter.k8s.aws/instance-family",
	"karpenter.k8s.aws/instance-generation",
	"karpenter.k8s.aws/instance-gpu-count",
	"karpenter.k8s.aws/instance-gpu-manufacturer",
	"karpenter.k8s.aws/instance-gpu-memory",
	"karpenter.k8s.aws/instance-gpu-name",
	"karpenter.k8s.aws/instance-hypervisor",
	"karpenter.k8s.aws/instance-local-nvme",
	"karpenter.k8s.aws/instance-memory",
	"karpenter.k8s.aws/instance-network-bandwidth",
	"karpenter.k8s.aws/instance-size",
	"karpenter.k8s.aws/instance-tenancy",
	"karpenter.k8s.aws/nitro-sandbox",
	"karpenter.k8s.aws/placement-group-id",
	"karpenter.k8s.aws/placement-group-partition",
	"karpenter.sh/capacity-type",
	"karpenter.sh/nodepool",
	"kubernetes.io/arch",
	"kubernetes.io/os",
	"node.kubernetes.io/instance-type",
	"node.kubernetes.io/windows-build",
	"topology.k8s.aws/zone-id",
	"topology.kubernetes.io/region",
	"topology.kubernetes.io/zone",
}

// knownValues are the values of the well-known labels that have a closed set of
// them, sorted.
var knownValues = map[string][]string{
	labelCapacityType: {"on-demand", "reserved", "spot"},
	labelTenancy:      {"dedicated", "default"},
}

// restrictedDomains are kept for the autoscaler's own labels, with all their
// sub-domains, but for the well-known labels.
var restrictedDomains = []string{"karpenter.sh", "karpenter.k8s.aws"}

// WellKnown reports whether a label, under its normalised name, is one whose
// value follows from the instance type and offering. A NodePool that leaves it
// undefined allows any value of it.
func WellKnown(key string) bool {
	_, ok := slices.BinarySearch(wellKnown, key)
	return ok
}

// Normalize returns the stable name of a label that has an old or foreign alias
// (beta.kubernetes.io/arch, topology.ebs.csi.aws.com/zone), other keys as they
// are.
func Normalize(key string) string {
	if stable, ok := aliases[key]; ok {
		return stable
	}
	return key
}

// Restricted returns an error when a label may not be used in the requirements or
// labels of a NodePool, nor in a pod's selectors: the domains karpenter.sh and
// karpenter.k8s.aws but for well-known labels, and kubernetes.io/hostname.
// karpenter.sh/nodepool is allowed here, in pods and NodeClaims; ValidatePool
// rejects it.
func Restricted(key string) error {
	if WellKnown(key) {
		return nil
	}
	if key == labelHostname {
		return fmt.Errorf("label %s is restricted: every node has its own; use topology spread or pod affinity on it instead", key)
	}
	domain, _, ok := strings.Cut(key, "/")
	if !ok {
		return nil
	}
	for _, d := range restrictedDomains {
		if domain == d || strings.HasSuffix(domain, "."+d) {
			return fmt.Errorf("label %s is restricted: domain %s is reserved%s; use a well-known label or a label of a domain of your own",
				key, d, quoteHint(nearest(key, slices.Values(wellKnown))))
		}
	}
	return nil
}

// checkLabelKey returns what is wrong with a label key, "" when nothing is
// (Kubernetes: qualified name).
func checkLabelKey(key string) string {
	name := key
	if prefix, rest, ok := strings.Cut(key, "/"); ok {
		name = rest
		if msg := checkSubdomain(prefix); msg != "" {
			return "prefix " + msg
		}
	}
	switch {
	case name == "":
		return "name must not be empty"
	case len(name) > 63:
		return fmt.Sprintf("name has %d characters, more than 63", len(name))
	case !labelText(name):
		return "name must be letters, digits, '-', '_' and '.', and start and end with a letter or digit"
	}
	return ""
}

// checkLabelValue returns what is wrong with a label value, "" when nothing is.
func checkLabelValue(v string) string {
	switch {
	case len(v) > 63:
		return fmt.Sprintf("has %d characters, more than the 63 of a label value", len(v))
	case v != "" && !labelText(v):
		return "a label value must be letters, digits, '-', '_' and '.', and start and end with a letter or digit"
	}
	return ""
}

func checkSubdomain(s string) string {
	switch {
	case s == "":
		return "must not be empty"
	case len(s) > 253:
		return fmt.Sprintf("has %d characters, more than 253", len(s))
	}
	for part := range strings.SplitSeq(s, ".") {
		for i := range len(part) {
			c := part[i]
			inner := i > 0 && i < len(part)-1
			if !lowerOrDigit(c) && (c != '-' || !inner) {
				return fmt.Sprintf("%q is not a DNS name: lower-case letters, digits, '-' and '.'", s)
			}
		}
		if part == "" {
			return fmt.Sprintf("%q is not a DNS name: empty part", s)
		}
	}
	return ""
}

func lowerOrDigit(c byte) bool { return c >= 'a' && c <= 'z' || c >= '0' && c <= '9' }

func alphanumeric(c byte) bool { return lowerOrDigit(c) || c >= 'A' && c <= 'Z' }

func labelText(s string) bool {
	for i := range len(s) {
		c := s[i]
		inner := i > 0 && i < len(s)-1
		if !alphanumeric(c) && (!inner || c != '-' && c != '_' && c != '.') {
			return false
		}
	}
	return true
}
