package scheduling

import (
	"kerf.sh/kerf/internal/catalog"
	"kerf.sh/kerf/internal/snapshot"
)

// volumes finds claims, volumes and storage classes by name, and keeps what they ask of
// a node, each demand once.
type volumes struct {
	claims         map[[2]string]*snapshot.PersistentVolumeClaim
	volumes        map[string]*snapshot.PersistentVolume
	classes        map[string]*snapshot.StorageClass
	defaultStorage string
	fixed          bool            // some class provisions nothing
	going          map[string]bool // nodes that are being deleted
	nodes          map[string]bool // nodes that exist, by name and by hostname

	demands  []*VolumeDemand
	choices  []*VolumeDemand // whose zone is to be chosen
	byText   map[string]int32
	ofVolume map[*snapshot.PersistentVolume][]int32
	byTerms  map[string][]int32 // demands of volumes, by their terms and labels as written
	buf      []byte
	ofClass  map[*snapshot.StorageClass][]int32
}

func newVolumes(s *snapshot.Snapshot) *volumes {
	v := &volumes{
		claims:   make(map[[2]string]*snapshot.PersistentVolumeClaim, len(s.Claims)),
		volumes:  make(map[string]*snapshot.PersistentVolume, len(s.Volumes)),
		classes:  make(map[string]*snapshot.StorageClass, len(s.StorageClasses)),
		going:    goingNodes(s),
		nodes:    make(map[string]bool, len(s.Nodes)),
		byText:   map[string]int32{},
		ofVolume: make(map[*snapshot.PersistentVolume][]int32, len(s.Volumes)),
		byTerms:  map[string][]int32{},
		ofClass:  map[*snapshot.StorageClass][]int32{},
	}
	for i := range s.Claims {
		v.claims[[2]string{s.Claims[i].Namespace, s.Claims[i].Name}] = &s.Claims[i]
	}
	for i := range s.Volumes {
		v.volumes[s.Volumes[i].Name] = &s.Volumes[i]
	}
	for i := range s.StorageClasses {
		c := &s.StorageClasses[i]
		v.classes[c.Name] = c
		v.fixed = v.fixed || c.Provisioner == noProvisioner
		if c.Default && (v.defaultStorage == "" || c.Name < v.defaultStorage) {
			v.defaultStorage = c.Name
		}
	}
	for i := range s.Nodes {
		v.nodes[s.Nodes[i].Name] = true
		if h := s.Nodes[i].Labels[catalog.LabelHostname]; h != "" {
			v.nodes[h] = true
		}
	}
	return v
}

// claim returns the claim of a volume: an existing one, or the one that a generic
// ephemeral volume will create. The name is for messages.
func (v *volumes) claim(p *snapshot.Pod, vol *snapshot.Volume) (c *snapshot.PersistentVolumeClaim, name string) {
	name = vol.Claim
	if vol.Ephemeral != nil {
		name = p.Name + "-" + vol.Name
	}
	c = v.claims[[2]string{p.Namespace, name}]
	if c == nil && vol.Ephemeral != nil {
		c = &snapshot.PersistentVolumeClaim{Namespace: p.Namespace, Name: name, Spec: *vol.Ephemeral}
	}
	return c, name
}

// storage returns the storage class name of an unbound claim; a claim that names
// none gets the default one, as at admission.
func (v *volumes) storage(c *snapshot.PersistentVolumeClaim) string {
	if c.Spec.StorageClass == nil {
		return v.defaultStorage
	}
	return *c.Spec.StorageClass
}

// bound is the volume of a bound claim; nil for one that waits for its first consumer.
func (v *volumes) bound(c *snapshot.PersistentVolumeClaim) *snapshot.PersistentVolume {
	if c.Spec.VolumeName == "" {
		return nil
	}
	return v.volumes[c.Spec.VolumeName]
}

// problem says what about its volumes keeps a pod from being planned, "" when
// nothing does (Karpenter: pods with such claims are left out of the round).
func (v *volumes) problem(p *snapshot.Pod) string {
	for i := range p.Spec.Volumes {
		c, name := v.claim(p, &p.Spec.Volumes[i])
		if c == nil {
			return "persistentVolumeClaim " + name + " does not exist"
		}
		switch what := "persistentVolumeClaim "; {
		case c.Deleting:
			return what + name + " is being deleted"
		case c.Phase == "Lost":
			return what + name + " is Lost: its volume is gone"
		}
		if c.Spec.VolumeName != "" {
			pv := v.volumes[c.Spec.VolumeName]
			switch what := "persistentVolumeClaim "; {
			case !c.BindCompleted && c.Phase != "Bound":
				return what + name + " names volume " + c.Spec.VolumeName + " but its binding is not complete"
			case pv == nil:
				return what + name + " is bound to volume " + c.Spec.VolumeName + ", which does not exist"
			case pv.Deleting:
				return what + name + " is bound to volume " + c.Spec.VolumeName + ", which is being deleted"
			}
			continue
		}
		class := v.storage(c)
		switch sc, what := v.classes[class], "persistentVolumeClaim "; {
		case class == "":
			return what + name + " is unbound and names no storage class, and there is no default one"
		case sc == nil:
			return what + name + " names storage class " + class + ", which does not exist"
		case sc.BindingMode != "WaitForFirstConsumer":
			return what + name + " is unbound, and storage class " + class + " binds immediately: it waits for its volume, not for a node"
		}
	}
	return ""
}

// attachKey names a volume that a node attaches, once for all pods there.
type attachKey struct {
	driver string
	id     string // handle, or the claim of a volume that does not exist yet
}

// attached is what a claim makes a node attach; no driver when it attaches nothing that
// is counted: a local volume, a plugin that is not CSI. A volume to be provisioned counts
// for the provisioner (kube-scheduler: NodeVolumeLimits).
func (v *volumes) attached(c *snapshot.PersistentVolumeClaim) attachKey {
	if c.Spec.VolumeName != "" {
		if pv := v.volumes[c.Spec.VolumeName]; pv != nil && pv.Driver != "" && pv.Handle != "" {
			return attachKey{pv.Driver, pv.Handle}
		}
		return attachKey{}
	}
	sc := v.classes[v.storage(c)]
	if sc == nil || sc.Provisioner == noProvisioner || sc.Provisioner == "" {
		return attachKey{}
	}
	return attachKey{sc.Provisioner, "claim " + c.Namespace + "/" + c.Name}
}

// noProvisioner is the provisioner of classes whose volumes people make beforehand.
const noProvisioner = "kubernetes.io/no-provisioner"
