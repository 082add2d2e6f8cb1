package scheduling

import (
	"slices"
	"strings"

	"kerf.sh/kerf/internal/catalog"
	"kerf.sh/kerf/internal/snapshot"
)

// attachPrefix names the resource that counts the volumes of a CSI driver on a node, as
// kubelets once did.
const attachPrefix = "attachable-volumes-csi-"

// ebsDriver is the driver whose limits follow from the instance type.
const ebsDriver = "ebs.csi.aws.com"

// unlimited stands for no attach limit. It is more than any node attaches, and small
// enough to be multiplied.
const unlimited = int64(1) << 30

// attachments are the volumes that nodes attach: a countable resource per CSI driver.
// It is there only if a planned pod has volumes.
type attachments struct {
	w       *World
	v       *volumes
	planned map[int32]bool
	// limited drivers are those of which some node gives a limit, and EBS.
	limited map[string]string     // to their dimension
	users   map[string]*claimUser // of claims that are for one pod, namespace/name
	pods    map[attachKey]int     // planned pods that use a volume
	unmade  map[string]int        // and claims whose volume is not made yet
	running map[string]map[attachKey]bool

	shared []sharedVolume
	sets   [][]int32 // of shared volumes, the empty one first

	made  map[int32]*madeVolumes // by pod
	stock *stock

	drivers []string // that some class counts, of itself or shared; sorted
	learned map[typeDriver]int64
	booked  []nodeSlots
}

type typeDriver struct{ typ, driver string }

func newAttachments(w *World, v *volumes, planned map[int32]bool) *attachments {
	a := &attachments{w: w, v: v, planned: planned, limited: map[string]string{ebsDriver: attachPrefix + ebsDriver}, pods: map[attachKey]int{}, unmade: map[string]int{}}
	for i := range w.Snapshot.CSINodes {
		for d, n := range w.Snapshot.CSINodes[i].Drivers {
			if n >= 0 {
				a.limited[d] = attachPrefix + d
			}
		}
	}
	return a
}

// count notes the volumes of a planned pod, each once.
func (a *attachments) count(p *snapshot.Pod) {
	for k := range p.Spec.Volumes {
		c, name := a.v.claim(p, &p.Spec.Volumes[k])
		twice := false
		for o := range k {
			_, other := a.v.claim(p, &p.Spec.Volumes[o])
			twice = twice || other == name
		}
		if twice {
			continue
		}
		if key := a.v.attached(c); a.limited[key.driver] != "" {
			a.pods[key]++
		}
		if claim := a.v.unmade(c); claim != "" {
			a.unmade[claim]++
		}
	}
}

// runningOn are the volumes that the pods of every node attach. Pods that are nominated
// to a node hold their place there.
func (a *attachments) runningOn() map[string]map[attachKey]bool {
	if a.running != nil {
		return a.running
	}
	a.running = map[string]map[attachKey]bool{}
	s := a.w.Snapshot
	for _, i := range a.w.order {
		p := &s.Pods[i]
		node := p.NodeName
		if to, ok := a.w.promised[i]; ok {
			node = to
		}
		if node == "" || len(p.Spec.Volumes) == 0 || p.Terminal() {
			continue
		}
		for k := range p.Spec.Volumes {
			c, _ := a.v.claim(p, &p.Spec.Volumes[k])
			if c == nil {
				continue
			}
			key := a.v.attached(c)
			if a.limited[key.driver] == "" {
				continue
			}
			if a.running[node] == nil {
				a.running[node] = map[attachKey]bool{}
			}
			a.running[node][key] = true
		}
	}
	return a.running
}

// runningKeys are the volumes that pods use on nodes that stay.
func (a *attachments) runningKeys() map[attachKey]bool {
	out := map[attachKey]bool{}
	for node, keys := range a.runningOn() {
		if a.v.going[node] {
			continue
		}
		for key := range keys {
			out[key] = true
		}
	}
	return out
}

// setAttachDims finds the drivers that some class uses, and what is known of their
// limits: those of nodes of the same type that run come before any table.
func (a *attachments) setAttachDims() {
	for _, d := range a.w.Dims {
		if driver, ok := strings.CutPrefix(d, attachPrefix); ok {
			a.drivers = append(a.drivers, driver)
		}
	}
	for i := range a.shared {
		if d := a.shared[i].key.driver; !slices.Contains(a.drivers, d) {
			a.drivers = append(a.drivers, d)
		}
	}
	slices.Sort(a.drivers)
	a.learned = map[typeDriver]int64{}
	types := map[string]string{}
	for i := range a.w.Snapshot.Nodes {
		n := &a.w.Snapshot.Nodes[i]
		types[n.Name] = instanceType(n.Labels)
	}
	for i := range a.w.Snapshot.CSINodes {
		c := &a.w.Snapshot.CSINodes[i]
		typ := types[c.Name]
		if typ == "" {
			continue
		}
		for _, d := range a.drivers {
			n, ok := c.Drivers[d]
			if !ok || n < 0 {
				continue
			}
			if old, ok := a.learned[typeDriver{typ, d}]; !ok || n < old {
				a.learned[typeDriver{typ, d}] = n
			}
		}
	}
}

func instanceType(labels map[string]string) string {
	if t := labels[catalog.LabelInstanceType]; t != "" {
		return t
	}
	return labels["beta.kubernetes.io/instance-type"]
}

// limit is how many volumes of a driver a new node of a type can attach: what a live node
// of the type says, the least of them; else the figure of the catalogue for EBS, and no
// limit for others.
func (a *attachments) limit(t *catalog.InstanceType, class *snapshot.NodeClass, driver string) int64 {
	if n, ok := a.learned[typeDriver{t.Name, driver}]; ok {
		return n
	}
	if driver != ebsDriver {
		return unlimited
	}
	return t.EBSVolumes(bootDevices(class))
}

// bootDevices is how many volumes a node of a class boots with: those that it maps, else
// those of the AMI family (Bottlerocket has one for data).
func bootDevices(class *snapshot.NodeClass) int64 {
	switch {
	case class == nil:
		return 1
	case len(class.BlockDevices) > 0:
		return int64(len(class.BlockDevices))
	case class.AMIFamily == catalog.FamilyBottlerocket:
		return 2
	}
	return 1
}

// taken is how many slots of a driver a set of shared volumes takes.
func (a *attachments) taken(kind int, driver string) int64 {
	n := int64(0)
	for _, s := range a.sets[kind] {
		if a.shared[s].key.driver == driver {
			n++
		}
	}
	return n
}
