package machines

import (
	"encoding/base64"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"

	"kerf.sh/kerf/internal/catalog"
	"kerf.sh/kerf/internal/cloud/userdata"
	"kerf.sh/kerf/internal/snapshot"
)

func input(family, user string) userdata.Input {
	return userdata.Input{
		Family: family, User: user, MaxPods: 58, KubeReserved: map[string]string{"cpu": "80m", "memory": "893Mi", "ephemeral-storage": "1Gi"},
		Cluster: userdata.Cluster{Name: "prod", Endpoint: "https://127.0.0.1:1", CA: "Y2E=", DNS: "10.0.0.10", ServiceCIDR: "10.0.0.0/24"},
		Labels:  map[string]string{"karpenter.sh/nodepool": "general", "team": "blue", "kubernetes.io/arch": "arm64"},
		Taints:  []snapshot.Taint{{Key: "karpenter.sh/unregistered", Effect: "NoExecute"}, {Key: "dedicated", Value: "gpu", Effect: "NoSchedule"}},
	}
}

// TestReadUserData: what the adapter writes is what a machine reads, also when the user has
// a document of their own.
func TestReadUserData(t *testing.T) {
	for name, in := range map[string]userdata.Input{
		"AL2023": input(catalog.FamilyAL2023, ""), "Bottlerocket": input(catalog.FamilyBottlerocket, "[settings.kubernetes.node-labels]\nmine = \"1\"\n"),
		"AL2023, merged": input(catalog.FamilyAL2023, "apiVersion: node.eks.aws/v1alpha1\nkind: NodeConfig\nspec: {kubelet: {config: {evictionHard: {memory.available: 200Mi}}, flags: ['--node-labels=mine=1']}}\n"),
	} {
		text, err := userdata.Render(in)
		if err != nil {
			t.Fatal(err)
		}
		got, err := readUserData(userdata.Base64(text))
		if err != nil {
			t.Errorf("%s: %v\n%s", name, err, text)
			continue
		}
		want := &boot{Cluster: "prod", Endpoint: "https://127.0.0.1:1", CA: "Y2E=", MaxPods: 58, KubeReserved: in.KubeReserved,
			Labels: map[string]string{"karpenter.sh/nodepool": "general", "team": "blue"},
			Taints: []corev1.Taint{{Key: "dedicated", Value: "gpu", Effect: "NoSchedule"}, {Key: "karpenter.sh/unregistered", Effect: "NoExecute"}}}
		if in.User != "" {
			want.Labels["mine"] = "1"
		}
		if strings.Contains(in.User, "evictionHard") {
			want.EvictionHard = map[string]string{"memory.available": "200Mi"}
		}
		if d := cmp.Diff(want, got); d != "" {
			t.Errorf("%s: %s", name, d)
		}
	}
}

func TestRefused(t *testing.T) {
	const config = "MIME-Version: 1.0\nContent-Type: multipart/mixed; boundary=\"//\"\n\n--//\nContent-Type: application/node.eks.aws\n\napiVersion: node.eks.aws/v1alpha1\nkind: NodeConfig\nspec:\n  kubelet:\n    flags: ['--node-labels=%']\n--//--\n"
	for text, want := range map[string]string{
		"#!/bin/sh\n": "cluster-name is not set",
		"MIME-Version: 1.0\nContent-Type: multipart/mixed; boundary=\"//\"\n\n--//\nContent-Type: text/x-shellscript\n\nx\n--//--\n": "there is no NodeConfig",
		strings.Replace(config, "%", "topology.kubernetes.io/x=1", 1):                                                                "unknown 'kubernetes.io' or 'k8s.io' label",
		strings.Replace(config, "%", "team", 1):                                                                                      `"team" is no label`,
		"[settings.kubernetes]\ncluster-name = \"c\"\n[settings.kubernetes.node-taints]\na = [\"x:Never\"]\n":                        "invalid taint a=x:Never",
	} {
		if _, err := readUserData(base64.StdEncoding.EncodeToString([]byte(text))); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: %v, want %q", text, err, want)
		}
	}
	for _, label := range []string{"topology.kubernetes.io/zone=a", "node.kubernetes.io/x=1", "a.node-restriction.kubernetes.io/x=1"} {
		_, err := readUserData(base64.StdEncoding.EncodeToString([]byte(strings.Replace(config, "%", label, 1))))
		if ok := !strings.Contains(label, "restriction"); (err == nil) != ok {
			t.Errorf("%s: %v", label, err)
		}
	}
}
