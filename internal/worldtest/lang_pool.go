package worldtest

import (
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"

	"kerf.sh/kerf/internal/catalog"
)

// addType adds an instance type to the catalogue, or replaces one.
func (w *World) addType(l *opts) error {
	t := catalog.InstanceType{Name: l.name, Arch: l.or("arch", "amd64"), Hypervisor: "nitro", CPUManufacturer: l.get("cpu-manufacturer")}
	var err error
	number := func(key, dflt string) int64 {
		n, e := strconv.ParseInt(l.or(key, dflt), 10, 64)
		if e != nil && err == nil {
			err = fmt.Errorf("option %s: %w", key, e)
		}
		return n
	}
	t.VCPU, t.MemoryMiB = number("cpu", "2"), number("mem", "8192")
	t.LocalNVMeGB = number("nvme", "0")
	if a, b, ok := strings.Cut(l.get("eni"), "x"); ok {
		t.ENI.Interfaces, _ = strconv.ParseInt(a, 10, 64)
		t.ENI.IPv4PerENI, _ = strconv.ParseInt(b, 10, 64)
	}
	t.ENI.Branch = number("branch", "0")
	t.Volumes = number("volumes", "0")
	if n := number("neuron", "0"); n > 0 {
		t.Accelerators = []catalog.Device{{Name: "inferentia", Manufacturer: "aws", Count: n, Cores: 4}}
	}
	if n := number("gpu", "0"); n > 0 {
		t.GPUs = []catalog.Device{{Name: "t4", Manufacturer: "nvidia", Count: n, MemoryMiB: 16384}}
	}
	for k, v := range l.pairsOf("ext", ":") {
		if t.Extended == nil {
			t.Extended = map[string]int64{}
		}
		t.Extended[k], _ = strconv.ParseInt(v.(string), 10, 64)
	}
	for k, v := range l.pairsOf("labels", ":") {
		if t.Labels == nil {
			t.Labels = map[string]string{}
		}
		t.Labels[k] = v.(string)
	}
	zones := Zones
	if z := l.list("zones"); z != nil {
		zones = z
	}
	price := func(key string) int64 {
		f, e := strconv.ParseFloat(l.or(key, "0"), 64)
		if e != nil && err == nil {
			err = fmt.Errorf("option %s: %w", key, e)
		}
		return int64(math.Round(f * 1e6))
	}
	t.Offerings = Offerings(zones, price("od"), price("spot"))
	w.Catalog.Types = slices.DeleteFunc(w.Catalog.Types, func(o catalog.InstanceType) bool { return o.Name == t.Name })
	w.Catalog.Types = append(w.Catalog.Types, t)
	slices.SortFunc(w.Catalog.Types, func(a, b catalog.InstanceType) int { return strings.Compare(a.Name, b.Name) })
	for _, z := range zones {
		if !slices.Contains(w.Catalog.Zones, z) {
			w.Catalog.Zones = append(slices.Clone(w.Catalog.Zones), z)
			slices.Sort(w.Catalog.Zones)
		}
	}
	return err
}

// zonePercent makes the prices of zones differ: "z-a:90".
func (w *World) zonePercent(items []string) error {
	for _, item := range items {
		zone, text, _ := strings.Cut(item, ":")
		percent, err := strconv.ParseInt(text, 10, 64)
		if err != nil {
			return err
		}
		for i := range w.Catalog.Types {
			for k := range w.Catalog.Types[i].Offerings {
				if o := &w.Catalog.Types[i].Offerings[k]; o.Zone == zone {
					o.Price = o.Price * percent / 100
				}
			}
		}
	}
	return nil
}

// classManifest is an EC2NodeClass: AL2023, resolved in all fixture zones, ready,
// unless the line says otherwise (bare: a manifest from git, without a status).
func classManifest(l *opts) obj {
	terms := []obj{{"tags": obj{"kerf.sh/discovery": "test"}}}
	spec := obj{
		"role": "node", "subnetSelectorTerms": terms, "securityGroupSelectorTerms": terms,
		"amiSelectorTerms": []obj{{"alias": l.or("alias", "al2023@latest")}},
	}
	kubelet := obj{}
	for key, field := range map[string]string{"maxpods": "maxPods", "podspercore": "podsPerCore"} {
		if l.has(key) {
			n, err := strconv.Atoi(l.get(key))
			if err != nil {
				kubelet[field] = l.get(key)
			} else {
				kubelet[field] = n
			}
		}
	}
	for key, field := range map[string]string{
		"kube-reserved": "kubeReserved", "system-reserved": "systemReserved",
		"eviction-hard": "evictionHard", "eviction-soft": "evictionSoft",
	} {
		if l.has(key) {
			kubelet[field] = l.pairsOf(key, ":")
		}
	}
	if len(kubelet) > 0 {
		spec["kubelet"] = kubelet
	}
	if l.has("root") {
		spec["blockDeviceMappings"] = []obj{{"deviceName": "/dev/xvda", "rootVolume": true, "ebs": obj{"volumeSize": l.get("root")}}}
	}
	if l.has("raid0") {
		spec["instanceStorePolicy"] = "RAID0"
	}
	m := obj{"apiVersion": "karpenter.k8s.aws/v1", "kind": "EC2NodeClass", "metadata": obj{"name": l.name}, "spec": spec}
	zones := Zones
	if z := l.list("zones"); z != nil {
		zones = z
	}
	var subnets []obj
	for i, z := range zones {
		subnets = append(subnets, obj{"id": fmt.Sprintf("subnet-%d", i), "zone": z, "zoneID": ZoneID(z)})
	}
	arches := l.list("images")
	if arches == nil {
		arches = []string{"amd64", "arm64"}
	}
	var amis []obj
	for _, a := range arches {
		amis = append(amis, obj{"id": "ami-" + a, "name": a, "requirements": []obj{requirement("arch=" + a)}})
	}
	ready := obj{"type": "Ready", "status": "True", "reason": "Ready", "message": "", "lastTransitionTime": "2026-03-01T00:00:00Z"}
	if l.has("notready") {
		ready["status"], ready["reason"], ready["message"] = "False", l.get("notready"), "a test says so"
	}
	if !l.has("bare") {
		status := obj{"subnets": subnets, "amis": amis, "conditions": []obj{ready}}
		if rs, err := reservationsOf(l); err != nil {
			panic(err)
		} else if rs != nil {
			status["capacityReservations"] = rs
		}
		m["status"] = status
	}
	if l.has("deleting") {
		m["metadata"].(obj)["deletionTimestamp"] = "2026-03-04T11:59:00Z"
	}
	return m
}

// poolManifest is a NodePool: linux on amd64, any type, zone and capacity type, of
// class default, unless the line says otherwise.
func (w *World) poolManifest(l *opts) obj {
	class := l.or("class", "default")
	w.used = w.used || class == "default"
	reqs := requirementsOf(l.all("require")...)
	for _, k := range [][2]string{{"types", labelType}, {"zones", labelZone}, {"captype", labelCapacity}} {
		if vs := l.list(k[0]); vs != nil {
			reqs = append(reqs, obj{"key": k[1], "operator": "In", "values": vs})
		}
	}
	if a := l.or("arch", "amd64"); a != "any" {
		reqs = append(reqs, obj{"key": labelArch, "operator": "In", "values": strings.Split(a, ",")})
	}
	if o := l.or("os", "linux"); o != "any" {
		reqs = append(reqs, obj{"key": labelOS, "operator": "In", "values": []string{o}})
	}
	group, kind := "karpenter.k8s.aws", "EC2NodeClass"
	if l.has("foreign") {
		group, kind = "eks.amazonaws.com", "NodeClass"
	}
	node := obj{
		"nodeClassRef": obj{"group": group, "kind": kind, "name": class},
		"requirements": reqs,
	}
	if t := taintsOf(l.list("taints")); t != nil {
		node["taints"] = t
	}
	if t := taintsOf(l.list("startup-taints")); t != nil {
		node["startupTaints"] = t
	}
	template := obj{"spec": node}
	if l.has("labels") {
		template["metadata"] = obj{"labels": l.pairsOf("labels", "=")}
	}
	spec := obj{"template": template}
	if l.has("weight") {
		n, _ := strconv.Atoi(l.get("weight"))
		spec["weight"] = n
	}
	if l.has("limits") {
		spec["limits"] = l.pairsOf("limits", ":")
	}
	if l.has("replicas") {
		n, _ := strconv.Atoi(l.get("replicas"))
		spec["replicas"] = n
	}
	meta := obj{"name": l.name}
	if l.has("deleting") {
		meta["deletionTimestamp"] = "2026-03-04T11:59:00Z"
	}
	m := obj{"apiVersion": "karpenter.sh/v1", "kind": "NodePool", "metadata": meta, "spec": spec}
	if l.has("notready") {
		m["status"] = obj{"conditions": []obj{{
			"type": "Ready", "status": "False", "reason": l.or("notready", "NodeClassNotReady"), "message": "a test says so",
			"lastTransitionTime": "2026-03-01T00:00:00Z",
		}}}
	}
	return m
}

// otherManifest is a namespace, limitrange, runtimeclass, or what storage consists of.
func otherManifest(l *opts) (obj, error) {
	meta := obj{"name": l.name}
	if ns := l.get("ns"); ns != "" {
		meta["namespace"] = ns
	}
	switch l.kind {
	case "namespace":
		meta["labels"] = l.pairsOf("labels", "=")
		return obj{"apiVersion": "v1", "kind": "Namespace", "metadata": meta}, nil
	case "limitrange":
		item := obj{"type": l.or("type", "Container")}
		for key, field := range map[string]string{"default": "default", "default-request": "defaultRequest", "min": "min", "max": "max"} {
			if l.has(key) {
				item[field] = l.pairsOf(key, ":")
			}
		}
		return obj{"apiVersion": "v1", "kind": "LimitRange", "metadata": meta, "spec": obj{"limits": []obj{item}}}, nil
	case "runtimeclass":
		m := obj{"apiVersion": "node.k8s.io/v1", "kind": "RuntimeClass", "metadata": meta, "handler": "test"}
		if l.has("overhead") {
			m["overhead"] = obj{"podFixed": l.pairsOf("overhead", ":")}
		}
		scheduling := obj{}
		if l.has("selector") {
			scheduling["nodeSelector"] = l.pairsOf("selector", "=")
		}
		if t := tolerations(l.all("tolerate")); t != nil {
			scheduling["tolerations"] = t
		}
		if len(scheduling) > 0 {
			m["scheduling"] = scheduling
		}
		return m, nil
	}
	return storageManifest(l, meta)
}
