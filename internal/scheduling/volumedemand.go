package scheduling

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"kerf.sh/kerf/internal/catalog"
	"kerf.sh/kerf/internal/plan"
	"kerf.sh/kerf/internal/requirements"
	"kerf.sh/kerf/internal/snapshot"
)

// VolumeDemand is what a volume asks of a node: every requirement of one of its terms.
// It restricts where a pod may run, and nothing else: the domains that topology rules
// count are those of the pod's own selectors.
type VolumeDemand struct {
	// Object is the first object that asks for it ("volume pv-1"), More how many others
	// ask for the same.
	Object string
	More   int
	Terms  [][]requirements.Requirement
	// Pinned demands can be met by nodes that exist alone: every term names one.
	Pinned bool

	id int // in volumes.demands
}

// who names the objects of a demand in a sentence.
func (d *VolumeDemand) who() string {
	if d.More == 0 {
		return d.Object
	}
	return fmt.Sprintf("%s or one of %d like it", d.Object, d.More)
}

// String is the terms, "or" between them.
func (d *VolumeDemand) String() string {
	terms := make([]string, 0, len(d.Terms))
	for _, t := range d.Terms {
		parts := make([]string, len(t))
		for i := range t {
			parts[i] = t[i].String()
		}
		if text := strings.Join(parts, ", "); !t[0].AllowsAbsent() {
			terms = append(terms, text)
		}
	}
	switch len(terms) {
	case 0:
		return "what no node has"
	case 1, 2, 3:
		return strings.Join(terms, " or ")
	}
	return fmt.Sprintf("%s or one of %d other terms", strings.Join(terms[:2], " or "), len(terms)-2)
}

// demand keeps a demand and gives its number. A demand without terms matches no node;
// terms that hold everywhere make none at all (-1).
func (v *volumes) demand(object string, terms [][]requirements.Requirement) int32 {
	texts := make([]string, len(terms))
	for i, t := range terms {
		if len(t) == 0 {
			return -1
		}
		texts[i] = termText(t)
	}
	slices.Sort(texts)
	text := strings.Join(slices.Compact(texts), "|")
	if n, ok := v.byText[text]; ok {
		if d := v.demands[n]; d.Object != object {
			d.More++
		}
		return n
	}
	d := &VolumeDemand{Object: object, Terms: terms, Pinned: len(terms) > 0}
	for _, t := range terms {
		d.Pinned = d.Pinned && slices.ContainsFunc(t, func(q requirements.Requirement) bool {
			return (q.Key() == catalog.LabelHostname || q.Key() == fieldName) && !q.AllowsAbsent()
		})
	}
	n := int32(len(v.demands))
	d.id = int(n)
	v.demands = append(v.demands, d)
	v.byText[text] = n
	return n
}

// termText tells terms apart.
func termText(t []requirements.Requirement) string {
	parts := make([]string, len(t))
	for i := range t {
		q := &t[i]
		values, complement := q.Values()
		lo, hi, bounded := q.Bounds()
		parts[i] = fmt.Sprintf("%s %t %t %t %d %d %q", q.Key(), complement, q.AllowsAbsent(), bounded, lo, hi, values)
	}
	slices.Sort(parts)
	return strings.Join(slices.Compact(parts), "&")
}

// terms reads node selector terms as kube-scheduler does: one that is empty or invalid
// matches nothing.
func terms(list []snapshot.NodeSelectorTerm) [][]requirements.Requirement {
	var out [][]requirements.Requirement
next:
	for i := range list {
		var one []requirements.Requirement
		for _, e := range slices.Concat(list[i].Expressions, list[i].Fields) {
			q, err := requirements.New(e)
			if err != nil {
				continue next
			}
			one = append(one, q)
		}
		if len(one) > 0 {
			out = append(out, one)
		}
	}
	return out
}

// ofPV are the demands of a volume that exists: its node affinity (kube-scheduler:
// VolumeBinding), and the zone and region in its labels (VolumeZone).
func (v *volumes) ofPV(pv *snapshot.PersistentVolume) []int32 {
	if list, ok := v.ofVolume[pv]; ok {
		return list
	}
	// Most volumes say what others have said in the same words.
	v.buf = writtenTerms(v.buf[:0], pv)
	if list, ok := v.byTerms[string(v.buf)]; ok {
		for _, n := range list {
			v.demands[n].More++
		}
		v.ofVolume[pv] = list
		return list
	}
	written := string(v.buf)
	var list []int32
	add := func(terms [][]requirements.Requirement) {
		if n := v.demand("volume "+pv.Name, terms); n >= 0 && !slices.Contains(list, n) {
			list = append(list, n)
		}
	}
	if len(pv.Required) > 0 {
		add(terms(pv.Required))
	}
	if labelled := zoneLabels(pv); labelled != nil {
		// A node without any of these labels is taken to be everywhere. Those of pools have
		// them, once they are launched.
		add([][]requirements.Requirement{labelled, {
			requirements.DoesNotExist(catalog.LabelZone), requirements.DoesNotExist(catalog.LabelRegion),
			requirements.DoesNotExist(catalog.LabelNodePool),
		}})
	}
	v.ofVolume[pv], v.byTerms[written] = list, list
	return list
}

// writtenTerms is what a volume says of nodes, as it is written.
func writtenTerms(buf []byte, pv *snapshot.PersistentVolume) []byte {
	word := func(s string) {
		buf = append(strconv.AppendInt(buf, int64(len(s)), 10), ' ')
		buf = append(buf, s...)
	}
	for i := range pv.Required {
		for _, list := range [...][]snapshot.SelectorRequirement{pv.Required[i].Expressions, pv.Required[i].Fields} {
			for k := range list {
				word(list[k].Key)
				word(list[k].Operator)
				for _, val := range list[k].Values {
					word(val)
				}
				buf = append(buf, '&')
			}
			buf = append(buf, '/')
		}
		buf = append(buf, '|')
	}
	for _, key := range zoneLabelKeys {
		if value, ok := pv.Labels[key]; ok {
			word(key)
			word(value)
		}
	}
	return buf
}

// zoneLabelKeys are the labels of a volume that say where it is, new ones and old.
var zoneLabelKeys = [...]string{
	"failure-domain.beta.kubernetes.io/region", "failure-domain.beta.kubernetes.io/zone", catalog.LabelRegion, catalog.LabelZone,
}

// zoneLabels reads the labels of a volume that say where it is. One value may name several zones: "z-a__z-b".
func zoneLabels(pv *snapshot.PersistentVolume) []requirements.Requirement {
	var out []requirements.Requirement
	for _, key := range zoneLabelKeys {
		if value, ok := pv.Labels[key]; ok {
			out = append(out, requirements.In(key, strings.Split(value, "__")...))
		}
	}
	return out
}

// ofStorage are the demands of a class that provisions volumes where its first consumer
// runs: its allowedTopologies.
func (v *volumes) ofStorage(sc *snapshot.StorageClass) []int32 {
	if list, ok := v.ofClass[sc]; ok {
		return list
	}
	var list []int32
	if len(sc.AllowedTopologies) > 0 {
		if n := v.demand("storage class "+sc.Name, terms(sc.AllowedTopologies)); n >= 0 {
			list = append(list, n)
		}
	}
	v.ofClass[sc] = list
	return list
}

// ofClaim are the demands of one claim. A claim whose volume was ordered for a node that
// still exists goes there; should the node be gone, or going, the order lapses.
func (v *volumes) ofClaim(c *snapshot.PersistentVolumeClaim, into []int32) []int32 {
	if pv := v.bound(c); pv != nil {
		return append(into, v.ofPV(pv)...)
	}
	if n := c.SelectedNode; n != "" && v.nodes[n] && !v.going[n] {
		object := "the volume that is being made for claim " + c.Name
		into = append(into, v.demand(object, [][]requirements.Requirement{{requirements.In(fieldName, n)}}))
	}
	sc := v.classes[v.storage(c)]
	if sc == nil || sc.Provisioner == noProvisioner {
		return into
	}
	return append(into, v.ofStorage(sc)...)
}

// restrictVolumes refuses new nodes to pods whose volumes are on one node.
func (v *volumes) restrictVolumes(r Rules) Rules {
	for _, d := range r.Volumes {
		if d.Pinned && r.refused == "" {
			return r.refuse(plan.VolumeTopology, d.who()+" "+v.onNodes(d))
		}
	}
	return r
}

// onNodes names the nodes of a pinned demand, and says why they are no help.
func (v *volumes) onNodes(d *VolumeDemand) string {
	var names []string
	exists := false
	for _, t := range d.Terms {
		for i := range t {
			if k := t[i].Key(); k != catalog.LabelHostname && k != fieldName {
				continue
			}
			values, _ := t[i].Values()
			for _, n := range values {
				exists = exists || v.nodes[n]
				if !slices.Contains(names, n) {
					names = append(names, n)
				}
			}
		}
	}
	where := "can be used on node " + strings.Join(names, " or ") + " alone"
	if len(names) > 3 {
		where = fmt.Sprintf("can be used on nodes %s and %d more alone", strings.Join(names[:3], ", "), len(names)-3)
	}
	switch {
	case !exists && len(names) == 1:
		return where + ", which does not exist: a new node is another one"
	case !exists:
		return where + ", which do not exist: a new node is another one"
	}
	return where + ": no node is launched for it, and none that exists takes it"
}

// demandKey writes numbers so that equal lists are equal text.
func demandKey(buf []byte, list []int32) []byte {
	for _, n := range list {
		buf = append(strconv.AppendInt(buf, int64(n), 10), ',')
	}
	return append(buf, ';')
}
