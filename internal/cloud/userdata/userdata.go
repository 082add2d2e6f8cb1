package userdata

import (
	"encoding/base64"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	"kerf.sh/kerf/internal/catalog"
	"kerf.sh/kerf/internal/cloud/nodeclass"
	"kerf.sh/kerf/internal/snapshot"
)

// Limit is how many bytes EC2 takes, before base64.
const Limit = 16384

// Cluster is what a node has to know of its cluster.
type Cluster struct {
	Name     string
	Endpoint string
	CA       string // base64, as EKS gives it
	// DNS is the address of kube-dns; spec.kubelet.clusterDNS comes first.
	DNS string
	// ServiceCIDR is needed by AL2023 alone.
	ServiceCIDR string
	IPv6        bool
}

// Input is one kind of node.
type Input struct {
	Family  string // catalog.FamilyAL2023 and the others
	Cluster Cluster
	Kubelet nodeclass.Kubelet
	// MaxPods is how many pods the type takes; spec.kubelet.maxPods comes first.
	MaxPods int64
	// KubeReserved is what the planner thinks that the kubelet keeps for itself; keys of
	// spec.kubelet.kubeReserved come first.
	KubeReserved map[string]string
	Labels       map[string]string
	// Taints are all taints the node registers with, karpenter.sh/unregistered included.
	Taints []snapshot.Taint
	RAID0  bool
	User   string // spec.userData
}

// Render writes user data. The error is a *nodeclass.Refusal that names the field of the
// class that is to blame.
func Render(in Input) (string, error) {
	if in.Kubelet.MaxPods != nil {
		in.MaxPods = *in.Kubelet.MaxPods
	}
	if err := in.checkKubelet(); err != nil {
		return "", err
	}
	if len(in.KubeReserved) > 0 {
		reserved := maps.Clone(in.KubeReserved)
		maps.Copy(reserved, in.Kubelet.KubeReserved)
		in.Kubelet.KubeReserved = reserved
	}
	var out string
	var err error
	switch in.Family {
	case catalog.FamilyAL2023:
		out, err = in.al2023()
	case catalog.FamilyAL2:
		out, err = in.al2()
	case catalog.FamilyBottlerocket:
		out, err = in.bottlerocket()
	case catalog.FamilyWindows2019, catalog.FamilyWindows2022, catalog.FamilyWindows2025:
		out = in.windows()
	case catalog.FamilyCustom:
		out = in.User
	default:
		return "", nodeclass.Refuse(nodeclass.InvalidNodeClass, "spec.amiFamily: %q is no family that user data can be written for", in.Family)
	}
	if err != nil {
		return "", err
	}
	if len(out) > Limit {
		return "", nodeclass.Refuse(nodeclass.UserDataSizeLimitExceeded,
			"spec.userData: with what a node needs it comes to %d bytes, and EC2 takes %d; shorten spec.userData by %d bytes (it has %d)",
			len(out), Limit, len(out)-Limit, len(in.User))
	}
	return out, nil
}

// Base64 is user data as EC2 wants it; "" stays "".
func Base64(text string) string { return base64.StdEncoding.EncodeToString([]byte(text)) }

// NearLimit reports whether user data takes 90 % of what EC2 allows.
func NearLimit(text string) bool { return len(text)*10 >= Limit*9 }

// rendered are the kubelet fields that every family can be given.
var rendered = []string{"clusterDNS", "maxPods", "podsPerCore", "systemReserved", "kubeReserved", "evictionHard", "evictionSoft",
	"evictionSoftGracePeriod", "evictionMaxPodGracePeriod", "imageGCHighThresholdPercent", "imageGCLowThresholdPercent", "cpuCFSQuota"}

func (in *Input) checkKubelet() error {
	if _, ok := in.Kubelet.Raw["registerWithTaints"]; ok {
		return nodeclass.Refuse(nodeclass.UnsupportedKubelet, "spec.kubelet.registerWithTaints: taints come from the NodePool; use spec.template.spec.taints there")
	}
	if in.Family == catalog.FamilyAL2023 || in.Family == catalog.FamilyCustom {
		return nil
	}
	for _, key := range slices.Sorted(maps.Keys(in.Kubelet.Raw)) {
		if !slices.Contains(rendered, key) {
			return nodeclass.Refuse(nodeclass.UnsupportedKubelet, "spec.kubelet.%s: %s nodes cannot be given it; use AL2023, or set it in spec.userData", key, in.Family)
		}
	}
	if in.Family == catalog.FamilyBottlerocket && in.Kubelet.PodsPerCore != nil {
		return nodeclass.Refuse(nodeclass.UnsupportedKubelet, "spec.kubelet.podsPerCore: Bottlerocket does not know it; use maxPods")
	}
	if len(in.Kubelet.ClusterDNS) > 1 {
		return nodeclass.Refuse(nodeclass.UnsupportedKubelet, "spec.kubelet.clusterDNS: %s takes one address, not %d", in.Family, len(in.Kubelet.ClusterDNS))
	}
	return nil
}

// dns are the addresses of the cluster's DNS, the class's own first.
func (in *Input) dns() []string {
	if len(in.Kubelet.ClusterDNS) > 0 {
		return in.Kubelet.ClusterDNS
	}
	if in.Cluster.DNS != "" {
		return []string{in.Cluster.DNS}
	}
	return nil
}

// kubeletLabels are the labels that the kubelet may set on itself: none of a domain that
// is Kubernetes' own. The others are put on at registration.
func kubeletLabels(labels map[string]string) map[string]string {
	out := map[string]string{}
	for k, v := range labels {
		domain, _, ok := strings.Cut(k, "/")
		if ok && (inDomain(domain, "kubernetes.io") || inDomain(domain, "k8s.io")) {
			continue
		}
		out[k] = v
	}
	return out
}

func inDomain(domain, of string) bool { return domain == of || strings.HasSuffix(domain, "."+of) }

// pairs is "a=1,b=2", sorted.
func pairs(m map[string]string, between string) string {
	out := make([]string, 0, len(m))
	for _, k := range slices.Sorted(maps.Keys(m)) {
		out = append(out, k+between+m[k])
	}
	return strings.Join(out, ",")
}

// taintTexts are taints as --register-with-taints takes them, sorted.
func taintTexts(taints []snapshot.Taint) []string {
	out := make([]string, len(taints))
	for i, t := range taints {
		out[i] = t.Key + "=" + t.Value + ":" + t.Effect
	}
	slices.Sort(out)
	return slices.Compact(out)
}

// extraArgs are the kubelet flags of families that take flags.
func (in *Input) extraArgs() []string {
	var out []string
	add := func(flag, value string) {
		if value != "" {
			out = append(out, "--"+flag+"="+value)
		}
	}
	quoted := func(flag, value string) {
		if value != "" {
			add(flag, strconv.Quote(value))
		}
	}
	number := func(flag string, v *int32) {
		if v != nil {
			add(flag, strconv.Itoa(int(*v)))
		}
	}
	k := in.Kubelet
	quoted("node-labels", pairs(kubeletLabels(in.Labels), "="))
	quoted("register-with-taints", strings.Join(taintTexts(in.Taints), ","))
	if in.MaxPods > 0 {
		add("max-pods", strconv.FormatInt(in.MaxPods, 10))
	}
	if k.PodsPerCore != nil {
		add("pods-per-core", strconv.FormatInt(*k.PodsPerCore, 10))
	}
	quoted("system-reserved", pairs(k.SystemReserved, "="))
	quoted("kube-reserved", pairs(k.KubeReserved, "="))
	quoted("eviction-hard", pairs(k.EvictionHard, "<"))
	quoted("eviction-soft", pairs(k.EvictionSoft, "<"))
	quoted("eviction-soft-grace-period", pairs(k.EvictionSoftGracePeriod, "="))
	number("eviction-max-pod-grace-period", k.EvictionMaxPodGracePeriod)
	number("image-gc-high-threshold", k.ImageGCHighThresholdPercent)
	number("image-gc-low-threshold", k.ImageGCLowThresholdPercent)
	if k.CPUCFSQuota != nil {
		add("cpu-cfs-quota", strconv.FormatBool(*k.CPUCFSQuota))
	}
	return out
}

// bash quotes a word for a shell.
func bash(s string) string { return "'" + strings.ReplaceAll(s, "'", `'\''`) + "'" }

// al2 is a script that runs /etc/eks/bootstrap.sh, after the user's parts.
func (in *Input) al2() (string, error) {
	parts, err := in.userParts(func(string) string { return typeScript })
	if err != nil {
		return "", err
	}
	var b strings.Builder
	b.WriteString("#!/bin/bash -xe\nexec > >(tee /var/log/user-data.log|logger -t user-data -s 2>/dev/console) 2>&1\n")
	fmt.Fprintf(&b, "/etc/eks/bootstrap.sh %s --apiserver-endpoint %s", bash(in.Cluster.Name), bash(in.Cluster.Endpoint))
	if in.Cluster.CA != "" {
		b.WriteString(" --b64-cluster-ca " + bash(in.Cluster.CA))
	}
	if in.Cluster.IPv6 {
		b.WriteString(" \\\n--ip-family ipv6")
	}
	if dns := in.dns(); len(dns) > 0 {
		b.WriteString(" \\\n--dns-cluster-ip " + bash(dns[0]))
	}
	b.WriteString(" \\\n--use-max-pods false")
	if args := in.extraArgs(); len(args) > 0 {
		b.WriteString(" \\\n--kubelet-extra-args " + bash(strings.Join(args, " ")))
	}
	if in.RAID0 {
		b.WriteString(" \\\n--local-disks raid0")
	}
	b.WriteString("\n")
	return writeMIME(append(parts, part{contentType: typeScript, body: b.String()})), nil
}

// powershell quotes a word for PowerShell.
func powershell(s string) string { return "'" + strings.ReplaceAll(s, "'", "''") + "'" }

// windows is a PowerShell block: the user's lines, then the bootstrap script. The service
// CIDR is never passed: the script finds it.
func (in *Input) windows() string {
	var b strings.Builder
	b.WriteString("<powershell>\n")
	if in.User != "" {
		b.WriteString(in.User + "\n")
	}
	b.WriteString("[string]$EKSBootstrapScriptFile = \"$env:ProgramFiles\\Amazon\\EKS\\Start-EKSBootstrap.ps1\"\n")
	fmt.Fprintf(&b, "& $EKSBootstrapScriptFile -EKSClusterName %s -APIServerEndpoint %s", powershell(in.Cluster.Name), powershell(in.Cluster.Endpoint))
	if in.Cluster.CA != "" {
		b.WriteString(" -Base64ClusterCA " + powershell(in.Cluster.CA))
	}
	if args := in.extraArgs(); len(args) > 0 {
		b.WriteString(" -KubeletExtraArgs " + powershell(strings.Join(args, " ")))
	}
	if dns := in.dns(); len(dns) > 0 {
		b.WriteString(" -DNSClusterIP " + powershell(dns[0]))
	}
	b.WriteString("\n</powershell>")
	return b.String()
}
