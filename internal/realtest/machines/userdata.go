package machines

import (
	"bytes"
	"encoding/base64"
	"errors"
	"fmt"
	"io"
	"maps"
	"mime"
	"mime/multipart"
	"net/mail"
	"slices"
	"strconv"
	"strings"

	"github.com/pelletier/go-toml/v2"
	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/yaml"
)

// boot is what a machine learns from its user data.
type boot struct {
	Cluster, Endpoint, CA string
	Labels                map[string]string
	Taints                []corev1.Taint
	MaxPods               int64
	KubeReserved          map[string]string
	SystemReserved        map[string]string
	EvictionHard          map[string]string
}

// readUserData reads user data of AL2023 (MIME with NodeConfigs) and Bottlerocket (TOML).
func readUserData(encoded string) (*boot, error) {
	raw, err := base64.StdEncoding.DecodeString(encoded)
	if err != nil {
		return nil, fmt.Errorf("read user data: %w", err)
	}
	b := &boot{Labels: map[string]string{}}
	if bytes.HasPrefix(raw, []byte("MIME-Version:")) || bytes.HasPrefix(raw, []byte("Content-Type:")) {
		err = b.nodeadm(raw)
	} else {
		err = b.bottlerocket(raw)
	}
	if err != nil {
		return nil, fmt.Errorf("read user data: %w", err)
	}
	if err := b.check(); err != nil {
		return nil, err
	}
	return b, nil
}

// nodeConfig is a NodeConfig, as far as it matters to a Node.
type nodeConfig struct {
	APIVersion, Kind string
	Spec             struct {
		Cluster struct{ Name, APIServerEndpoint, CertificateAuthority, CIDR string }
		Kubelet struct {
			Config map[string]any
			Flags  []string
		}
	}
}

// nodeadm merges the NodeConfigs of a multi-part in order: of the kubelet's configuration
// key by key, flags one after the other.
func (b *boot) nodeadm(raw []byte) error {
	m, err := mail.ReadMessage(bytes.NewReader(raw))
	if err != nil {
		return err
	}
	kind, params, err := mime.ParseMediaType(m.Header.Get("Content-Type"))
	if err != nil || kind != "multipart/mixed" {
		return fmt.Errorf("its content type is %q, want multipart/mixed: %v", m.Header.Get("Content-Type"), err)
	}
	config, found := map[string]any{}, false
	for r := multipart.NewReader(m.Body, params["boundary"]); ; {
		part, err := r.NextPart()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			return err
		}
		if kind, _, _ := mime.ParseMediaType(part.Header.Get("Content-Type")); kind != "application/node.eks.aws" {
			continue
		}
		body, err := io.ReadAll(part)
		if err != nil {
			return err
		}
		var c nodeConfig
		if err := yaml.Unmarshal(body, &c); err != nil {
			return err
		}
		if c.APIVersion != "node.eks.aws/v1alpha1" || c.Kind != "NodeConfig" {
			return fmt.Errorf("a document is a %s %s", c.APIVersion, c.Kind)
		}
		found = true
		b.Cluster, b.Endpoint, b.CA = or(c.Spec.Cluster.Name, b.Cluster), or(c.Spec.Cluster.APIServerEndpoint, b.Endpoint), or(c.Spec.Cluster.CertificateAuthority, b.CA)
		merge(config, c.Spec.Kubelet.Config)
		for _, flag := range c.Spec.Kubelet.Flags {
			if err := b.flag(flag); err != nil {
				return err
			}
		}
	}
	if !found {
		return errors.New("there is no NodeConfig in it")
	}
	return b.kubelet(config)
}

func or(a, b string) string {
	if a != "" {
		return a
	}
	return b
}

func merge(into, from map[string]any) {
	for k, v := range from {
		if m, ok := v.(map[string]any); ok {
			if there, ok := into[k].(map[string]any); ok {
				merge(there, m)
				continue
			}
		}
		into[k] = v
	}
}

// flag reads a flag of the kubelet.
func (b *boot) flag(flag string) error {
	value, ok := strings.CutPrefix(flag, "--node-labels=")
	if !ok {
		return nil
	}
	if text, err := strconv.Unquote(value); err == nil {
		value = text
	}
	for pair := range strings.SplitSeq(value, ",") {
		k, v, ok := strings.Cut(pair, "=")
		if !ok {
			return fmt.Errorf("--node-labels: %q is no label", pair)
		}
		b.Labels[k] = v
	}
	return nil
}

func (b *boot) kubelet(config map[string]any) error {
	raw, err := yaml.Marshal(config)
	if err != nil {
		return err
	}
	var c struct {
		MaxPods                                    int64
		RegisterWithTaints                         []corev1.Taint
		KubeReserved, SystemReserved, EvictionHard map[string]string
	}
	if err := yaml.Unmarshal(raw, &c); err != nil {
		return fmt.Errorf("kubelet configuration: %w", err)
	}
	b.MaxPods, b.Taints, b.KubeReserved, b.SystemReserved, b.EvictionHard = c.MaxPods, c.RegisterWithTaints, c.KubeReserved, c.SystemReserved, c.EvictionHard
	return nil
}

// bottlerocket reads settings.kubernetes.
func (b *boot) bottlerocket(raw []byte) error {
	var doc struct {
		Settings struct {
			Kubernetes struct {
				ClusterName        string              `toml:"cluster-name"`
				APIServer          string              `toml:"api-server"`
				ClusterCertificate string              `toml:"cluster-certificate"`
				MaxPods            int64               `toml:"max-pods"`
				NodeLabels         map[string]string   `toml:"node-labels"`
				NodeTaints         map[string][]string `toml:"node-taints"`
				KubeReserved       map[string]string   `toml:"kube-reserved"`
				SystemReserved     map[string]string   `toml:"system-reserved"`
				EvictionHard       map[string]string   `toml:"eviction-hard"`
			} `toml:"kubernetes"`
		} `toml:"settings"`
	}
	if err := toml.Unmarshal(raw, &doc); err != nil {
		return err
	}
	k := doc.Settings.Kubernetes
	if k.ClusterName == "" {
		return errors.New("settings.kubernetes.cluster-name is not set")
	}
	b.Cluster, b.Endpoint, b.CA, b.MaxPods = k.ClusterName, k.APIServer, k.ClusterCertificate, k.MaxPods
	b.KubeReserved, b.SystemReserved, b.EvictionHard = k.KubeReserved, k.SystemReserved, k.EvictionHard
	maps.Copy(b.Labels, k.NodeLabels)
	for _, key := range slices.Sorted(maps.Keys(k.NodeTaints)) {
		for _, text := range k.NodeTaints[key] {
			value, effect, ok := strings.Cut(text, ":")
			if !ok {
				return fmt.Errorf("settings.kubernetes.node-taints.%s: %q is no taint", key, text)
			}
			b.Taints = append(b.Taints, corev1.Taint{Key: key, Value: value, Effect: corev1.TaintEffect(effect)})
		}
	}
	return nil
}

// allowed are the labels of Kubernetes' own domains that a kubelet may give itself.
var allowed = map[string]bool{
	corev1.LabelHostname: true, corev1.LabelArchStable: true, corev1.LabelOSStable: true, corev1.LabelInstanceTypeStable: true,
	corev1.LabelTopologyZone: true, corev1.LabelTopologyRegion: true, "beta.kubernetes.io/arch": true, "beta.kubernetes.io/os": true,
	corev1.LabelInstanceType: true, corev1.LabelFailureDomainBetaZone: true, corev1.LabelFailureDomainBetaRegion: true,
}

// check refuses what a kubelet refuses when it starts.
func (b *boot) check() error {
	for _, key := range slices.Sorted(maps.Keys(b.Labels)) {
		domain, _, ok := strings.Cut(key, "/")
		if !ok || allowed[key] {
			continue
		}
		for _, own := range []string{"kubernetes.io", "k8s.io"} {
			free := domain == "node."+own || domain == "kubelet."+own || strings.HasSuffix(domain, ".node."+own) || strings.HasSuffix(domain, ".kubelet."+own)
			if (domain == own || strings.HasSuffix(domain, "."+own)) && !free {
				return fmt.Errorf("start the kubelet: unknown 'kubernetes.io' or 'k8s.io' label specified with --node-labels: %s", key)
			}
		}
	}
	for _, t := range b.Taints {
		if t.Key == "" || t.Effect != corev1.TaintEffectNoSchedule && t.Effect != corev1.TaintEffectPreferNoSchedule && t.Effect != corev1.TaintEffectNoExecute {
			return fmt.Errorf("start the kubelet: invalid taint %s=%s:%s", t.Key, t.Value, t.Effect)
		}
	}
	return nil
}
