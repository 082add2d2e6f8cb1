package worldtest

import (
	"fmt"
	"slices"
	"strings"

	"kerf.sh/kerf/internal/snapshot"
)

// storage finds claims, volumes and classes by name.
type storage struct {
	claims  map[string]*snapshot.PersistentVolumeClaim
	volumes map[string]*snapshot.PersistentVolume
	classes map[string]*snapshot.StorageClass
	dflt    string
	stays   map[string]bool   // nodes that are not going
	zone    map[string]string // where a claim's volume will be
}

func newStorage(s *snapshot.Snapshot) *storage {
	out := &storage{claims: map[string]*snapshot.PersistentVolumeClaim{}, volumes: map[string]*snapshot.PersistentVolume{}, classes: map[string]*snapshot.StorageClass{}, stays: map[string]bool{}}
	for i := range s.Nodes {
		n := &s.Nodes[i]
		if claim := claimFor(s, n); n.Deleting.IsZero() && (claim == nil || claim.Deleting.IsZero()) {
			out.stays[n.Name] = true
		}
	}
	for i := range s.Claims {
		out.claims[s.Claims[i].Namespace+"/"+s.Claims[i].Name] = &s.Claims[i]
	}
	for i := range s.Volumes {
		out.volumes[s.Volumes[i].Name] = &s.Volumes[i]
	}
	for i := range s.StorageClasses {
		c := &s.StorageClasses[i]
		out.classes[c.Name] = c
		if c.Default && (out.dflt == "" || c.Name < out.dflt) {
			out.dflt = c.Name
		}
	}
	return out
}

// use is a volume of a pod: its claim, the volume that the claim is bound to (or nil),
// and else the class that will make one.
type use struct {
	claim string
	modes []string
	node  string // for which its volume is being made
	bytes int64
	pv    *snapshot.PersistentVolume
	class *snapshot.StorageClass
}

// id names what is attached, and driver who attaches it.
func (u *use) id() (id, driver string) {
	switch {
	case u.pv != nil:
		return u.pv.Driver + "/" + u.pv.Handle, u.pv.Driver
	case u.class != nil:
		return u.claim, u.class.Provisioner
	}
	return u.claim, ""
}

func (st *storage) uses(p *snapshot.Pod) []use {
	var out []use
	for _, v := range p.Spec.Volumes {
		name := v.Claim
		if v.Ephemeral != nil {
			name = p.Name + "-" + v.Name
		}
		u := use{claim: p.Namespace + "/" + name}
		spec := v.Ephemeral
		if c := st.claims[u.claim]; c != nil {
			spec = &c.Spec
			if c.Spec.VolumeName == "" && st.stays[c.SelectedNode] {
				u.node = c.SelectedNode
			}
		}
		if spec == nil {
			continue
		}
		u.modes, u.bytes = spec.AccessModes, spec.Bytes
		switch {
		case spec.VolumeName != "":
			u.pv = st.volumes[spec.VolumeName]
		case spec.StorageClass != nil:
			u.class = st.classes[*spec.StorageClass]
		default:
			u.class = st.classes[st.dflt]
		}
		out = append(out, u)
	}
	return out
}

// zoneRefuses says why the volumes of a pod keep it from a node with these labels
// (VolumeBinding, VolumeZone): the terms of bound volumes, their old zone labels, the
// topologies of the class of those that are still to be made.
func (st *storage) zoneRefuses(p *snapshot.Pod, labels map[string]string, nodeName string) string {
	for _, u := range st.uses(p) {
		if u.node != "" && u.node != nodeName {
			return fmt.Sprintf("the volume of claim %s is being made for node %s", u.claim, u.node)
		}
		if z := st.zone[u.claim]; z != "" && labels[labelZone] != z {
			return fmt.Sprintf("the volume of claim %s will be in zone %s", u.claim, z)
		}
		if u.pv != nil {
			terms := u.pv.Required
			if terms != nil && !slices.ContainsFunc(terms, func(t snapshot.NodeSelectorTerm) bool { return termSelects(t, labels, nodeName) }) {
				return fmt.Sprintf("volume %s of claim %s cannot be reached from there", u.pv.Name, u.claim)
			}
			for _, key := range []string{labelZone, labelRegion, "failure-domain.beta.kubernetes.io/zone", "failure-domain.beta.kubernetes.io/region"} {
				values, ok := u.pv.Labels[key]
				have, has := labelValue(labels, key)
				if ok && has && !slices.Contains(strings.Split(values, "__"), have) {
					return fmt.Sprintf("volume %s of claim %s is in %s", u.pv.Name, u.claim, values)
				}
			}
		}
		if u.class != nil && u.class.Provisioner == "kubernetes.io/no-provisioner" {
			if !st.made(&u, labels, nodeName) {
				return fmt.Sprintf("storage class %s of claim %s has no volume there and makes none", u.class.Name, u.claim)
			}
			continue
		}
		if u.class != nil && len(u.class.AllowedTopologies) > 0 &&
			!slices.ContainsFunc(u.class.AllowedTopologies, func(t snapshot.NodeSelectorTerm) bool { return termSelects(t, labels, nodeName) }) {
			return fmt.Sprintf("storage class %s of claim %s makes no volume there", u.class.Name, u.claim)
		}
	}
	return ""
}

// volumesRefuse is zoneRefuses, and what depends on the pods that are there: claims that
// one pod at a time may use (VolumeRestrictions), and attach limits (NodeVolumeLimits).
func (b *board) volumesRefuse(p *snapshot.Pod, at *site) string {
	if len(p.Spec.Volumes) == 0 {
		return ""
	}
	if why := b.storage.zoneRefuses(p, at.labels, at.name); why != "" {
		return why
	}
	mine := b.storage.uses(p)
	for _, u := range mine {
		if !slices.Contains(u.modes, "ReadWriteOncePod") {
			continue
		}
		for _, s := range b.sites {
			for _, o := range s.pods {
				if o != p && slices.ContainsFunc(b.storage.uses(o), func(v use) bool { return v.claim == u.claim }) {
					return fmt.Sprintf("claim %s is ReadWriteOncePod and pod %s uses it", u.claim, o.Ref())
				}
			}
		}
	}
	// What is attached for no pod that is there counts beside the pod's own volumes, be
	// they the same ones.
	count := map[string]int64{}
	all := map[string]string{}
	for _, o := range at.pods {
		for _, u := range b.storage.uses(o) {
			id, driver := u.id()
			all[id] = driver
		}
	}
	for id, driver := range at.attached {
		if _, there := all[id]; !there {
			count[driver]++
		}
	}
	more := map[string]bool{}
	for _, u := range mine {
		id, driver := u.id()
		if _, there := all[id]; !there {
			more[driver] = true
		}
		all[id] = driver
	}
	for _, driver := range sortedKeys(more) {
		n := count[driver]
		for _, d := range all {
			if d == driver {
				n++
			}
		}
		if limit, ok := at.limits[driver]; ok && limit >= 0 && n > limit {
			return fmt.Sprintf("%d volumes of %s, the node can attach %d", n, driver, limit)
		}
	}
	return ""
}
