package userdata

import (
	"encoding/json"
	"fmt"
	"strconv"
	"strings"

	"sigs.k8s.io/yaml"

	"kerf.sh/kerf/internal/cloud/nodeclass"
)

// NodeConfig is node.eks.aws/v1alpha1, as far as we write it.
type nodeConfig struct {
	APIVersion string         `json:"apiVersion"`
	Kind       string         `json:"kind"`
	Metadata   map[string]any `json:"metadata,omitempty"`
	Spec       nodeConfigSpec `json:"spec"`
}

type nodeConfigSpec struct {
	Cluster  nodeCluster   `json:"cluster"`
	Kubelet  nodeKubelet   `json:"kubelet"`
	Instance *nodeInstance `json:"instance,omitempty"`
}

type nodeCluster struct {
	Name     string `json:"name"`
	Endpoint string `json:"apiServerEndpoint"`
	CA       string `json:"certificateAuthority"`
	CIDR     string `json:"cidr"`
}

type nodeKubelet struct {
	Config map[string]any `json:"config,omitempty"`
	Flags  []string       `json:"flags,omitempty"`
}

type nodeInstance struct {
	LocalStorage nodeLocalStorage `json:"localStorage"`
}

type nodeLocalStorage struct {
	Strategy string `json:"strategy"`
}

// al2023 is a multi-part whose last document is our NodeConfig: nodeadm merges documents
// in order, so ours wins.
func (in *Input) al2023() (string, error) {
	if in.Cluster.ServiceCIDR == "" {
		return "", nodeclass.Refuse(nodeclass.ClusterCIDRResolutionFailed, "the service CIDR of cluster %s is not known, and AL2023 nodes need it; allow eks:DescribeCluster", in.Cluster.Name)
	}
	parts, err := in.userParts(typeOfAL2023)
	if err != nil {
		return "", err
	}
	config := map[string]any{}
	for k, v := range in.Kubelet.Raw {
		config[k] = v
	}
	if dns := in.dns(); len(dns) > 0 {
		config["clusterDNS"] = dns
	}
	if len(in.Kubelet.KubeReserved) > 0 {
		config["kubeReserved"] = in.Kubelet.KubeReserved
	}
	if in.MaxPods > 0 {
		config["maxPods"] = in.MaxPods
	}
	if taints := in.taintObjects(); len(taints) > 0 {
		config["registerWithTaints"] = taints
	}
	doc := nodeConfig{APIVersion: "node.eks.aws/v1alpha1", Kind: "NodeConfig"}
	doc.Spec.Cluster = nodeCluster{in.Cluster.Name, in.Cluster.Endpoint, in.Cluster.CA, in.Cluster.ServiceCIDR}
	doc.Spec.Kubelet.Config = config
	if labels := pairs(kubeletLabels(in.Labels), "="); labels != "" {
		doc.Spec.Kubelet.Flags = []string{"--node-labels=" + strconv.Quote(labels)}
	}
	if in.RAID0 {
		doc.Spec.Instance = &nodeInstance{nodeLocalStorage{"RAID0"}}
	}
	text, err := yaml.Marshal(doc)
	if err != nil {
		return "", fmt.Errorf("write NodeConfig: %w", err)
	}
	return writeMIME(append(parts, part{contentType: typeNodeConfig, body: "# Kerf\n" + string(text)})), nil
}

// typeOfAL2023 tells a NodeConfig from a script: whatever is a YAML map is a NodeConfig
// (Karpenter: user data of AL2023), but for what says itself that it is a script.
func typeOfAL2023(text string) string {
	if strings.HasPrefix(text, "#!") {
		return typeScript
	}
	var m map[string]json.RawMessage
	if err := yaml.Unmarshal([]byte(text), &m); err != nil || len(m) == 0 {
		return typeScript
	}
	return typeNodeConfig
}

type taintObject struct {
	Key    string `json:"key"`
	Value  string `json:"value,omitempty"`
	Effect string `json:"effect"`
}

// taintObjects are the taints in the order of taintTexts.
func (in *Input) taintObjects() []taintObject {
	by := map[string]taintObject{}
	for _, t := range in.Taints {
		by[t.Key+"="+t.Value+":"+t.Effect] = taintObject{t.Key, t.Value, t.Effect}
	}
	out := make([]taintObject, 0, len(by))
	for _, text := range taintTexts(in.Taints) {
		out = append(out, by[text])
	}
	return out
}
