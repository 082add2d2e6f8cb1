package worldtest

import (
	"fmt"
	"maps"
	"strconv"
	"strings"
)

// addPods adds count pods, "name" or "name-1" to "name-n".
func (w *World) addPods(l *opts) error {
	return l.each(func(l *opts) error {
		m, err := podManifest(l, l.name)
		if err != nil {
			return err
		}
		return w.add(m)
	})
}

// each calls f with the line, or with count of them: "name" becomes "name-1" to
// "name-n", and "@" in a value the number.
func (l *opts) each(f func(*opts) error) error {
	if !l.has("count") {
		return f(l)
	}
	n, err := strconv.Atoi(l.get("count"))
	if err != nil {
		return err
	}
	for i := range n {
		one := &opts{kind: l.kind, name: fmt.Sprintf("%s-%d", l.name, i+1), line: l.line}
		for _, kv := range l.pairs {
			one.pairs = append(one.pairs, [2]string{kv[0], strings.ReplaceAll(kv[1], "@", strconv.Itoa(i+1))})
		}
		if err := f(one); err != nil {
			return err
		}
		for k := range one.seen {
			l.all(k)
		}
	}
	return nil
}

// podManifest is a Pod with one container named main, its init containers and
// sidecars in the order of the line.
func podManifest(l *opts, name string) (obj, error) {
	spec, err := podSpec(l)
	if err != nil {
		return nil, err
	}
	meta := obj{"name": name, "namespace": l.or("ns", "default")}
	if l.has("uid") {
		meta["uid"] = l.get("uid")
	}
	if l.has("labels") {
		meta["labels"] = l.pairsOf("labels", "=")
	}
	if l.has("annotations") {
		meta["annotations"] = l.pairsOf("annotations", "=")
	}
	if l.has("mirror") {
		meta["annotations"] = obj{"kubernetes.io/config.mirror": "abc"}
		meta["ownerReferences"] = []obj{{"apiVersion": "v1", "kind": "Node", "name": l.get("mirror"), "uid": "u", "controller": true}}
	}
	if kind, owner, ok := strings.Cut(l.get("owner"), "/"); ok {
		meta["ownerReferences"] = []obj{{"apiVersion": "apps/v1", "kind": kind, "name": owner, "uid": "u-" + owner, "controller": true}}
	}
	if l.has("deleting") {
		meta["deletionTimestamp"] = "2026-03-04T11:59:00Z"
	}
	status := obj{}
	if l.has("phase") {
		status["phase"] = l.get("phase")
	}
	if l.has("nominated") {
		status["nominatedNodeName"] = l.get("nominated")
	}
	if l.has("scheduled") {
		status["conditions"] = []obj{{"type": "PodScheduled", "status": "False", "reason": l.get("scheduled"), "lastTransitionTime": "2026-03-04T11:59:00Z"}}
	}
	if l.has("node") {
		spec["nodeName"] = l.get("node")
		if !l.has("phase") {
			status["phase"] = "Running"
		}
	}
	m := obj{"apiVersion": "v1", "kind": "Pod", "metadata": meta, "spec": spec}
	if len(status) > 0 {
		m["status"] = status
	}
	return m, nil
}

// daemonManifest is a DaemonSet, by default in namespace kube-system.
func daemonManifest(l *opts) obj {
	spec, err := podSpec(l)
	if err != nil {
		panic(err)
	}
	labels := obj{"app": l.name}
	return obj{
		"apiVersion": "apps/v1", "kind": "DaemonSet",
		"metadata": obj{"name": l.name, "namespace": l.or("ns", "kube-system"), "uid": "u-" + l.name},
		"spec": obj{
			"selector": obj{"matchLabels": labels},
			"template": obj{"metadata": obj{"labels": labels}, "spec": spec},
		},
	}
}

func podSpec(l *opts) (obj, error) {
	main := obj{"name": "main", "image": "x"}
	requests, limits := obj{}, obj{}
	for key, name := range map[string]string{"cpu": "cpu", "mem": "memory", "eph": "ephemeral-storage"} {
		if l.has(key) {
			requests[name] = l.get(key)
		}
	}
	for k, v := range l.pairsOf("ext", ":") {
		requests[k], limits[k] = v, v
	}
	maps.Copy(limits, l.pairsOf("limits", ":"))
	main["resources"] = resources(requests, limits)
	ports, err := hostPorts(l.all("hostport"))
	if err != nil {
		return nil, err
	}
	if ports != nil {
		main["ports"] = ports
	}
	containers := []obj{main}
	if l.has("containers") {
		n, _ := strconv.Atoi(l.get("containers"))
		for i := 1; i < n; i++ {
			c := maps.Clone(main)
			c["name"] = fmt.Sprintf("main-%d", i)
			delete(c, "ports")
			containers = append(containers, c)
		}
	}
	spec := obj{"containers": containers}
	if inits := initContainers(l); inits != nil {
		spec["initContainers"] = inits
	}
	if pod := l.pairsOf("podlevel", ":"); len(pod) > 0 {
		spec["resources"] = resources(pod, nil)
	}
	nodeAffinity := obj{}
	if terms := nodeTerms(l); terms != nil {
		nodeAffinity["requiredDuringSchedulingIgnoredDuringExecution"] = obj{"nodeSelectorTerms": terms}
	}
	var preferred []obj
	for _, v := range l.all("prefer") {
		weight, term, _ := strings.Cut(v, ":")
		n, _ := strconv.Atoi(weight)
		preferred = append(preferred, obj{"weight": n, "preference": obj{"matchExpressions": requirementsOf(term)}})
	}
	if preferred != nil {
		nodeAffinity["preferredDuringSchedulingIgnoredDuringExecution"] = preferred
	}
	affinity := obj{}
	if len(nodeAffinity) > 0 {
		affinity["nodeAffinity"] = nodeAffinity
	}
	if err := addTopology(l, spec, affinity); err != nil {
		return nil, err
	}
	if len(affinity) > 0 {
		spec["affinity"] = affinity
	}
	if l.has("selector") {
		spec["nodeSelector"] = l.pairsOf("selector", "=")
	}
	if t := tolerations(l.all("tolerate")); t != nil {
		spec["tolerations"] = t
	}
	for key, field := range map[string]string{"runtimeclass": "runtimeClassName", "scheduler": "schedulerName"} {
		if l.has(key) {
			spec[field] = l.get(key)
		}
	}
	if l.has("priority") {
		n, err := strconv.Atoi(l.get("priority"))
		if err != nil {
			return nil, err
		}
		spec["priority"] = n
	}
	if l.has("overhead") {
		spec["overhead"] = l.pairsOf("overhead", ":")
	}
	if l.has("gate") {
		spec["schedulingGates"] = []obj{{"name": l.get("gate")}}
	}
	if l.has("dra") {
		spec["resourceClaims"] = []obj{{"name": "c", "resourceClaimName": l.get("dra")}}
	}
	var volumes []obj
	for i, v := range l.all("volume") {
		volumes = append(volumes, obj{"name": fmt.Sprintf("v%d", i), "persistentVolumeClaim": obj{"claimName": v}})
	}
	if name, n, ok := strings.Cut(l.get("volumes"), ":"); ok { // NAME:28 is NAME-1 to NAME-28
		most, err := strconv.Atoi(n)
		if err != nil {
			return nil, err
		}
		for i := range most {
			claim := fmt.Sprintf("%s-%d", name, i+1)
			volumes = append(volumes, obj{"name": claim, "persistentVolumeClaim": obj{"claimName": claim}})
		}
	}
	for i, class := range l.all("ephemeral") {
		claim := obj{"accessModes": []string{"ReadWriteOnce"}, "storageClassName": class}
		volumes = append(volumes, obj{"name": fmt.Sprintf("e%d", i), "ephemeral": obj{"volumeClaimTemplate": obj{"spec": claim}}})
	}
	if volumes != nil {
		spec["volumes"] = volumes
	}
	return spec, nil
}

func nodeTerms(l *opts) []obj {
	var terms []obj
	if l.has("affinity") {
		for _, term := range strings.Split(l.get("affinity"), ";") {
			terms = append(terms, obj{"matchExpressions": requirementsOf(term)})
		}
	}
	if l.has("matchfields") {
		terms = append(terms, obj{"matchFields": []obj{{"key": "metadata.name", "operator": "In", "values": []string{l.get("matchfields")}}}})
	}
	return terms
}

// initContainers reads init=cpu/mem and sidecar=cpu/mem in the order of the line.
func initContainers(l *opts) []obj {
	l.all("init")
	l.all("sidecar")
	var out []obj
	for _, kv := range l.pairs {
		if kv[0] != "init" && kv[0] != "sidecar" {
			continue
		}
		cpu, mem, _ := strings.Cut(kv[1], "/")
		requests := obj{"cpu": cpu}
		if mem != "" {
			requests["memory"] = mem
		}
		c := obj{"name": fmt.Sprintf("%s-%d", kv[0], len(out)), "image": "x", "resources": obj{"requests": requests}}
		if kv[0] == "sidecar" {
			c["restartPolicy"] = "Always"
		}
		out = append(out, c)
	}
	return out
}

func resources(requests, limits obj) obj {
	out := obj{}
	if len(requests) > 0 {
		out["requests"] = requests
	}
	if len(limits) > 0 {
		out["limits"] = limits
	}
	return out
}

// hostPorts reads "8080", "8080/UDP" or "10.0.0.1:8080/TCP".
func hostPorts(values []string) ([]obj, error) {
	var out []obj
	for _, v := range values {
		p := obj{}
		if i := strings.LastIndex(v, ":"); i >= 0 {
			p["hostIP"], v = v[:i], v[i+1:]
		}
		port, proto, ok := strings.Cut(v, "/")
		if ok {
			p["protocol"] = proto
		}
		n, err := strconv.Atoi(port)
		if err != nil {
			return nil, err
		}
		p["containerPort"], p["hostPort"] = n, n
		out = append(out, p)
	}
	return out, nil
}

// tolerations reads "*", "key", "key:Effect", "key=value" and "key=value:Effect";
// "key>n" and "key<n" compare numbers.
func tolerations(values []string) []obj {
	var out []obj
	for _, v := range values {
		for _, s := range strings.Split(v, ",") {
			t := obj{"operator": "Exists"}
			body, effect, ok := strings.Cut(s, ":")
			if ok {
				t["effect"] = effect
			}
			switch {
			case body == "*":
			case strings.Contains(body, "="):
				k, val, _ := strings.Cut(body, "=")
				t["key"], t["operator"], t["value"] = k, "Equal", val
			case strings.Contains(body, ">"):
				k, val, _ := strings.Cut(body, ">")
				t["key"], t["operator"], t["value"] = k, "Gt", val
			case strings.Contains(body, "<"):
				k, val, _ := strings.Cut(body, "<")
				t["key"], t["operator"], t["value"] = k, "Lt", val
			default:
				t["key"] = body
			}
			out = append(out, t)
		}
	}
	return out
}
