package worldtest

import (
	"fmt"
	"strconv"
	"strings"
)

const ebsDriver = "ebs.csi.aws.com"

// storageManifest is a pvc, pv, storageclass, csinode, attachment or pdb.
func storageManifest(l *opts, meta obj) (obj, error) {
	switch l.kind {
	case "pvc":
		return claimOfVolume(l, meta), nil
	case "pv":
		return volumeManifest(l, meta), nil
	case "storageclass":
		m := obj{
			"apiVersion": "storage.k8s.io/v1", "kind": "StorageClass", "metadata": meta,
			"provisioner": l.or("provisioner", ebsDriver), "volumeBindingMode": l.or("binding", "WaitForFirstConsumer"),
		}
		if l.has("default") {
			meta["annotations"] = obj{"storageclass.kubernetes.io/is-default-class": "true"}
		}
		var terms []obj
		if l.has("zones") {
			terms = append(terms, topologyTerm("zone="+l.get("zones")))
		}
		if l.has("terms") {
			for _, t := range strings.Split(l.get("terms"), ";") {
				terms = append(terms, topologyTerm(t))
			}
		}
		if terms != nil {
			m["allowedTopologies"] = terms
		}
		return m, nil
	case "csinode":
		var drivers []obj
		for _, item := range l.list("limits") {
			name, limit, ok := strings.Cut(item, ":")
			d := obj{"name": name, "nodeID": l.name}
			if ok {
				n, err := strconv.Atoi(limit)
				if err != nil {
					return nil, err
				}
				d["allocatable"] = obj{"count": n}
			}
			drivers = append(drivers, d)
		}
		return obj{"apiVersion": "storage.k8s.io/v1", "kind": "CSINode", "metadata": meta, "spec": obj{"drivers": drivers}}, nil
	case "attachment":
		return obj{
			"apiVersion": "storage.k8s.io/v1", "kind": "VolumeAttachment", "metadata": meta,
			"spec":   obj{"attacher": l.or("attacher", ebsDriver), "nodeName": l.get("node"), "source": obj{"persistentVolumeName": l.get("volume")}},
			"status": obj{"attached": true},
		}, nil
	case "pdb":
		spec := obj{}
		setSelector(spec, "selector", l.or("selector", "-"))
		for key, field := range map[string]string{"max": "maxUnavailable", "min": "minAvailable"} {
			if !l.has(key) {
				continue
			}
			if n, err := strconv.Atoi(l.get(key)); err == nil {
				spec[field] = n
			} else {
				spec[field] = l.get(key)
			}
		}
		if meta["namespace"] == nil {
			meta["namespace"] = "default"
		}
		return obj{"apiVersion": "policy/v1", "kind": "PodDisruptionBudget", "metadata": meta, "spec": spec}, nil
	}
	return nil, fmt.Errorf("kind %q is not known", l.kind)
}

func topologyTerm(s string) obj {
	var es []obj
	for _, r := range requirementsOf(s) {
		es = append(es, obj{"key": r["key"], "values": r["values"]})
	}
	return obj{"matchLabelExpressions": es}
}

// claimOfVolume is a PersistentVolumeClaim: bound when it names a volume.
func claimOfVolume(l *opts, meta obj) obj {
	modes := l.list("modes")
	if modes == nil {
		modes = []string{"ReadWriteOnce"}
	}
	spec := obj{"accessModes": modes}
	for key, field := range map[string]string{"class": "storageClassName", "volume": "volumeName"} {
		if l.has(key) {
			spec[field] = l.get(key)
		}
	}
	if l.has("size") {
		spec["resources"] = obj{"requests": obj{"storage": l.get("size")}}
	}
	if l.has("selected-node") {
		meta["annotations"] = obj{"volume.kubernetes.io/selected-node": l.get("selected-node")}
	}
	phase := "Pending"
	if l.has("volume") && !l.has("binding") {
		phase = "Bound"
		meta["annotations"] = obj{"pv.kubernetes.io/bind-completed": "yes"}
	}
	if l.has("deleting") {
		meta["deletionTimestamp"] = "2026-03-04T11:59:00Z"
	}
	return obj{
		"apiVersion": "v1", "kind": "PersistentVolumeClaim", "metadata": meta, "spec": spec,
		"status": obj{"phase": l.or("phase", phase)},
	}
}

// volumeManifest is a PersistentVolume: EBS, unless the line says local, in-tree or
// another driver.
func volumeManifest(l *opts, meta obj) obj {
	modes := l.list("modes")
	if modes == nil {
		modes = []string{"ReadWriteOnce"}
	}
	spec := obj{"accessModes": modes, "capacity": obj{"storage": l.or("size", "10Gi")}}
	if ns, claim, ok := strings.Cut(l.get("claim"), "/"); ok {
		spec["claimRef"] = obj{"kind": "PersistentVolumeClaim", "namespace": ns, "name": claim}
	}
	if l.has("class") {
		spec["storageClassName"] = l.get("class")
	}
	switch {
	case l.has("local"):
		spec["local"] = obj{"path": "/disk"}
	case l.has("in-tree"):
		spec["awsElasticBlockStore"] = obj{"volumeID": "aws://" + l.or("zone", "z-a") + "/vol-" + l.name}
	default:
		spec["csi"] = obj{"driver": l.or("driver", ebsDriver), "volumeHandle": l.or("handle", "vol-"+l.name)}
	}
	if l.has("labels") {
		meta["labels"] = l.pairsOf("labels", "=")
	}
	var terms []obj
	if l.has("zone") {
		terms = append(terms, obj{"matchExpressions": requirementsOf("topology.ebs.csi.aws.com/zone=" + l.get("zone"))})
	}
	if l.has("terms") {
		for _, t := range strings.Split(l.get("terms"), ";") {
			terms = append(terms, obj{"matchExpressions": requirementsOf(t)})
		}
	}
	if terms != nil {
		spec["nodeAffinity"] = obj{"required": obj{"nodeSelectorTerms": terms}}
	}
	if l.has("deleting") {
		meta["deletionTimestamp"] = "2026-03-04T11:59:00Z"
	}
	m := obj{"apiVersion": "v1", "kind": "PersistentVolume", "metadata": meta, "spec": spec}
	if l.has("phase") {
		m["status"] = obj{"phase": l.get("phase")}
	}
	return m
}
