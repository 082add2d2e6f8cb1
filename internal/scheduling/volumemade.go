package scheduling

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"kerf.sh/kerf/internal/packing"
	"kerf.sh/kerf/internal/plan"
	"kerf.sh/kerf/internal/requirements"
	"kerf.sh/kerf/internal/snapshot"
)

// madePrefix names the resource that counts volumes made beforehand on a node, by storage
// class.
const madePrefix = "unclaimed-volumes/"

// stock is what there is of volumes that people or a static provisioner made beforehand:
// classes without a provisioner. A claim of such a class needs one that is there
// (kube-scheduler: VolumeBinding, findMatchingVolumes).
type stock struct {
	free  map[string][]*snapshot.PersistentVolume // by class, the smallest first
	taken map[*snapshot.PersistentVolume]bool
	claim []madeClaim
	// onNodes are the classes whose volumes are counted per node.
	onNodes map[string][]*snapshot.PersistentVolume
}

// madeClaim is a claim that takes a volume of the stock.
type madeClaim struct {
	pod   int32
	class string
	pv    *snapshot.PersistentVolume
	fits  []*snapshot.PersistentVolume
}

// madeVolumes is what a pod's claims on the stock come to.
type madeVolumes struct {
	demands []int32
	slots   map[string]int64
}

// takeMade gives the claims of a pod that no provisioner serves a volume each, the
// smallest that fits; it says why there is none.
func (a *attachments) takeMade(pod int32, p *snapshot.Pod) (plan.Code, string) {
	if !a.v.fixed {
		return "", ""
	}
	var mine []madeClaim
	for k := range p.Spec.Volumes {
		c, name := a.v.claim(p, &p.Spec.Volumes[k])
		class := a.v.storage(c)
		sc := a.v.classes[class]
		if c.Spec.VolumeName != "" || sc == nil || sc.Provisioner != noProvisioner {
			continue
		}
		if a.stock == nil {
			a.stock = newStock(a.w.Snapshot)
		}
		m := madeClaim{pod: pod, class: class, fits: a.stock.fitting(c, name, class)}
		for _, pv := range m.fits {
			if !a.stock.taken[pv] {
				m.pv = pv
				break
			}
		}
		if m.pv == nil {
			for _, o := range mine {
				delete(a.stock.taken, o.pv)
			}
			what := fmt.Sprintf("persistentVolumeClaim %s is unbound, storage class %s provisions nothing, and ", name, class)
			if len(m.fits) > 0 {
				return plan.VolumeProblem, what + plan.Count(len(m.fits), "volume") + " that would do " + areOrIs(len(m.fits)) + " taken by other pods of this plan"
			}
			return plan.VolumeProblem, what + a.stock.nearest(c, class)
		}
		a.stock.taken[m.pv] = true
		mine = append(mine, m)
	}
	if mine != nil {
		a.stock.claim = append(a.stock.claim, mine...)
	}
	return "", ""
}

func areOrIs(n int) string {
	if n == 1 {
		return "is"
	}
	return "are all"
}

func newStock(s *snapshot.Snapshot) *stock {
	k := &stock{
		free: map[string][]*snapshot.PersistentVolume{}, taken: map[*snapshot.PersistentVolume]bool{},
		onNodes: map[string][]*snapshot.PersistentVolume{},
	}
	for i := range s.Volumes {
		v := &s.Volumes[i]
		if !v.Deleting && (v.Phase == "" || v.Phase == "Available" || v.Phase == "Pending") {
			k.free[v.StorageClass] = append(k.free[v.StorageClass], v)
		}
	}
	for _, list := range k.free {
		slices.SortFunc(list, func(a, b *snapshot.PersistentVolume) int {
			return cmp.Or(cmp.Compare(a.Bytes, b.Bytes), strings.Compare(a.Name, b.Name))
		})
	}
	return k
}

// fitting are the volumes of a class that a claim may bind to, the smallest first; the
// one that is kept for it alone, if there is one.
func (k *stock) fitting(c *snapshot.PersistentVolumeClaim, name, class string) []*snapshot.PersistentVolume {
	ref := c.Namespace + "/" + name
	var out []*snapshot.PersistentVolume
	for _, v := range k.free[class] {
		switch {
		case v.Claim == ref:
			return []*snapshot.PersistentVolume{v}
		case v.Claim == "" && misfit(v, c) == "":
			out = append(out, v)
		}
	}
	return out
}

// misfit says why a volume is none for a claim (Kubernetes: FindMatchingVolume).
func misfit(v *snapshot.PersistentVolume, c *snapshot.PersistentVolumeClaim) string {
	switch {
	case v.Bytes < c.Spec.Bytes:
		return fmt.Sprintf("has %s, and %s is asked for", amount(snapshot.EphemeralStorage, v.Bytes), amount(snapshot.EphemeralStorage, c.Spec.Bytes))
	case v.Block != c.Spec.Block:
		return "has another volumeMode"
	case c.Spec.Selector != nil && !selects(c.Spec.Selector, v.Labels):
		return "has other labels than the claim selects"
	}
	for _, m := range c.Spec.AccessModes {
		if !slices.Contains(v.AccessModes, m) {
			return "cannot be used " + m
		}
	}
	return ""
}

// nearest says why no volume of a class fits.
func (k *stock) nearest(c *snapshot.PersistentVolumeClaim, class string) string {
	list := k.free[class]
	for i := len(list) - 1; i >= 0; i-- {
		v := list[i]
		if v.Claim != "" {
			continue
		}
		return fmt.Sprintf("none of its unclaimed volumes fits: the largest, %s, %s", v.Name, misfit(v, c))
	}
	return "no unclaimed volume of it is left"
}

// settleMade decides what the claims on the stock ask of a node. Claims of one class that
// the same volumes fit, each on a node of its own, may use any of them: nodes have so
// many to give. Else each claim goes where its volume is.
func (a *attachments) settleMade() {
	if a.stock == nil {
		return
	}
	a.made = map[int32]*madeVolumes{}
	byClass := map[string][]*madeClaim{}
	for i := range a.stock.claim {
		m := &a.stock.claim[i]
		byClass[m.class] = append(byClass[m.class], m)
	}
	for _, class := range sortedKeys(byClass) {
		claims := byClass[class]
		any := a.anyOf(claims)
		for _, m := range claims {
			of := a.made[m.pod]
			if of == nil {
				of = &madeVolumes{slots: map[string]int64{}}
				a.made[m.pod] = of
			}
			if any < 0 {
				of.demands = append(of.demands, a.v.ofPV(m.pv)...)
				continue
			}
			of.demands = append(of.demands, any)
			of.slots[madePrefix+class]++
			a.stock.onNodes[class] = m.fits
		}
	}
}

// anyOf is the demand for the node of any volume that fits the claims; -1 when they must
// be told apart.
func (a *attachments) anyOf(claims []*madeClaim) int32 {
	fits := claims[0].fits
	for _, m := range claims[1:] {
		if !slices.Equal(m.fits, fits) {
			return -1
		}
	}
	var terms [][]requirements.Requirement
	for _, pv := range fits {
		list := a.v.ofPV(pv)
		if len(list) != 1 || !a.v.demands[list[0]].Pinned {
			return -1
		}
		terms = append(terms, a.v.demands[list[0]].Terms...)
	}
	return a.v.demand("storage class "+claims[0].class+", which provisions nothing,", terms)
}

// stockOn counts the volumes of a class that every node has to give.
func (a *attachments) stockOn(class string) []int64 {
	out := make([]int64, len(a.w.Nodes))
	for _, pv := range a.stock.onNodes[class] {
		bits := packing.Bitset(a.w.nodes.open)
		var demands []*VolumeDemand
		for _, d := range a.v.ofPV(pv) {
			demands = append(demands, a.v.demands[d])
		}
		a.w.nodes.matchVolumes(bits, demands).Members(func(i int) { out[i]++ })
	}
	return out
}
