package userdata

import (
	"fmt"
	"maps"
	"strconv"

	"github.com/pelletier/go-toml/v2"

	"kerf.sh/kerf/internal/cloud/nodeclass"
)

// storageCommand is the bootstrap command that makes one file system of the instance
// store (Bottlerocket 1.22 and newer).
const storageCommand = "000-mount-instance-storage"

// bottlerocket merges the user's TOML with ours. Ours wins key by key in
// settings.kubernetes; labels are merged, taints replaced. Keys that we do not know stay:
// Bottlerocket knows best which settings it has.
func (in *Input) bottlerocket() (string, error) {
	doc := map[string]any{}
	if err := toml.Unmarshal([]byte(in.User), &doc); err != nil {
		where := ""
		if d, ok := err.(*toml.DecodeError); ok {
			line, column := d.Position()
			where = fmt.Sprintf(" (line %d, column %d)", line, column)
		}
		return "", nodeclass.Refuse(nodeclass.InvalidNodeClass, "spec.userData: is not TOML%s: %v", where, err)
	}
	settings, err := table(doc, "settings", "settings")
	if err != nil {
		return "", err
	}
	k, err := table(settings, "kubernetes", "settings.kubernetes")
	if err != nil {
		return "", err
	}
	labels, err := table(k, "node-labels", "settings.kubernetes.node-labels")
	if err != nil {
		return "", err
	}
	k["cluster-name"] = in.Cluster.Name
	k["api-server"] = in.Cluster.Endpoint
	if in.Cluster.CA != "" {
		k["cluster-certificate"] = in.Cluster.CA
	}
	if dns := in.dns(); len(dns) > 0 {
		k["cluster-dns-ip"] = dns[0]
	}
	if in.MaxPods > 0 {
		k["max-pods"] = in.MaxPods
	}
	for name, value := range kubeletLabels(in.Labels) {
		labels[name] = value
	}
	if len(labels) == 0 {
		delete(k, "node-labels")
	}
	taints := map[string]any{}
	for _, t := range in.taintObjects() {
		list, _ := taints[t.Key].([]string)
		taints[t.Key] = append(list, t.Value+":"+t.Effect)
	}
	delete(k, "node-taints")
	if len(taints) > 0 {
		k["node-taints"] = taints
	}
	in.bottlerocketKubelet(k)
	if in.RAID0 {
		commands, err := table(settings, "bootstrap-commands", "settings.bootstrap-commands")
		if err != nil {
			return "", err
		}
		commands[storageCommand] = map[string]any{
			"commands": [][]string{
				{"apiclient", "ephemeral-storage", "init"},
				{"apiclient", "ephemeral-storage", "bind", "--dirs", "/var/lib/containerd", "/var/lib/kubelet", "/var/log/pods"},
			},
			"mode": "always", "essential": true,
		}
	}
	out, err := toml.Marshal(doc)
	if err != nil {
		return "", fmt.Errorf("write Bottlerocket settings: %w", err)
	}
	return string(out), nil
}

func (in *Input) bottlerocketKubelet(k map[string]any) {
	c := in.Kubelet
	set := func(key string, m map[string]string) {
		if len(m) > 0 {
			k[key] = maps.Clone(m)
		}
	}
	set("system-reserved", c.SystemReserved)
	set("kube-reserved", c.KubeReserved)
	set("eviction-hard", c.EvictionHard)
	set("eviction-soft", c.EvictionSoft)
	set("eviction-soft-grace-period", c.EvictionSoftGracePeriod)
	if c.EvictionMaxPodGracePeriod != nil {
		k["eviction-max-pod-grace-period"] = *c.EvictionMaxPodGracePeriod
	}
	if c.ImageGCHighThresholdPercent != nil {
		k["image-gc-high-threshold-percent"] = strconv.Itoa(int(*c.ImageGCHighThresholdPercent))
	}
	if c.ImageGCLowThresholdPercent != nil {
		k["image-gc-low-threshold-percent"] = strconv.Itoa(int(*c.ImageGCLowThresholdPercent))
	}
	if c.CPUCFSQuota != nil {
		k["cpu-cfs-quota-enforced"] = *c.CPUCFSQuota
	}
}

// table returns the table at a key, made when it is not there.
func table(in map[string]any, key, path string) (map[string]any, error) {
	v, ok := in[key]
	if !ok {
		t := map[string]any{}
		in[key] = t
		return t, nil
	}
	t, ok := v.(map[string]any)
	if !ok {
		return nil, nodeclass.Refuse(nodeclass.InvalidNodeClass, "spec.userData: %s is not a table; write [%s]", path, path)
	}
	return t, nil
}
