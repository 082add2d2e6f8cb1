package scheduling

import (
	"cmp"
	"slices"

	"kerf.sh/kerf/internal/catalog"
	"kerf.sh/kerf/internal/requirements"
	"kerf.sh/kerf/internal/snapshot"
)

// everywhere are drivers whose volumes are reached from every zone.
var everywhere = map[string]bool{
	"efs.csi.aws.com": true, "fsx.csi.aws.com": true, "fsx.openzfs.csi.aws.com": true, "s3.csi.aws.com": true, "file.csi.aws.com": true,
	"nfs.csi.k8s.io": true, "smb.csi.k8s.io": true,
}

// unmade is the claim of a volume that will be made in the zone of its first pod, and
// that other pods must follow there; "" for another claim.
func (v *volumes) unmade(c *snapshot.PersistentVolumeClaim) string {
	if c.Spec.VolumeName != "" {
		return ""
	}
	sc := v.classes[v.storage(c)]
	if sc == nil || sc.Provisioner == noProvisioner || everywhere[sc.Provisioner] {
		return ""
	}
	return c.Namespace + "/" + c.Name
}

// together is the demand of a volume that is not made yet, for the zone that all of its
// pods go to: the first one to run decides where the volume is, and the others could not
// use it elsewhere. Which zone that is follows once it is known what can be launched.
func (v *volumes) together(claim string) int32 {
	if n, ok := v.byText["claim "+claim]; ok {
		return n
	}
	_, name := cutRef("/" + claim)
	d := &VolumeDemand{
		Object: "claim " + name + ", which several pods share,",
		Terms:  [][]requirements.Requirement{{requirements.NotIn(catalog.LabelZone)}},
		id:     len(v.demands),
	}
	v.demands = append(v.demands, d)
	v.choices = append(v.choices, d)
	v.byText["claim "+claim] = int32(d.id)
	return int32(d.id)
}

// chooseZones gives every volume that several pods will share the zone where most of them
// find nodes that exist or can be launched: those of the heaviest NodePools, the cheapest.
func (w *World) chooseZones() {
	if w.volumes == nil || len(w.volumes.choices) == 0 {
		return
	}
	zones := w.zones()
	for _, d := range w.volumes.choices {
		type found struct {
			zone         string
			pods         int
			weight, cost int64
		}
		var best *found
		for _, z := range zones {
			d.Terms = [][]requirements.Requirement{{requirements.In(catalog.LabelZone, z)}}
			f := found{zone: z}
			for i := range w.base {
				c := &w.base[i]
				if !slices.Contains(w.Rules[c.Rules].Volumes, d) {
					continue
				}
				if at, ok := w.anywhere(c); ok {
					f.pods += len(c.Pods)
					f.weight += int64(at.weight) * int64(len(c.Pods))
					f.cost = snapshot.Clamp(f.cost + at.price)
				}
			}
			if best == nil || cmp.Or(cmp.Compare(best.pods, f.pods), cmp.Compare(best.weight, f.weight), cmp.Compare(f.cost, best.cost)) < 0 {
				best = &f
			}
		}
		if best != nil {
			d.Terms = [][]requirements.Requirement{{requirements.In(catalog.LabelZone, best.zone)}}
		}
	}
}

// zones are the zones of offers and nodes, sorted.
func (w *World) zones() []string {
	set := map[string]bool{}
	for i := range w.Templates {
		t := &w.Templates[i]
		for _, o := range t.offers {
			set[t.u.offers[o].zone] = true
		}
	}
	for i := range w.Nodes {
		if z := w.Nodes[i].Labels[catalog.LabelZone]; z != "" {
			set[z] = true
		}
	}
	return sortedKeys(set)
}

// somewhere is a node or offer that a pod can have.
type somewhere struct {
	weight int32
	price  int64
}

// existingWeight puts nodes that exist before every NodePool.
const existingWeight = 1000

// anywhere reports whether a pod of a class may run on some node or offer that is large
// enough for it, and the best of them: a node that exists, else the heaviest NodePool,
// the least price.
func (w *World) anywhere(c *Class) (somewhere, bool) {
	r := &w.Rules[c.Rules]
	needs := w.needs(c, nil)
	bits := w.nodes.match(r, func(t *snapshot.Taint) bool { return Tolerates(r.Spec.Tolerations, t) })
	for _, i := range w.Targets {
		if bits.Has(i) && !meets(r.shared, w.Nodes[i].noRoom) && covers(w.vector(&w.Nodes[i].Free, nil), needs) {
			return somewhere{weight: existingWeight}, true
		}
	}
	var best somewhere
	ok := false
	if r.refused != "" {
		return best, false
	}
	asks := w.asks(c, nil)
	for i := range w.Templates {
		t := &w.Templates[i]
		if t.kind > 0 || !t.toleratedBy(r.Spec.Tolerations, true) {
			continue
		}
		weight := w.Pools[t.Pool].Spec.Weight
		t.match(r).Members(func(o int) {
			p := t.u.compared(t.offers[o])
			better := !ok || weight > best.weight || weight == best.weight && p < best.price
			if better && covers(w.left(t, int(t.offerType[o])), asks) {
				best, ok = somewhere{weight, p}, true
			}
		})
	}
	return best, ok
}
