package scheduling

import (
	"cmp"
	"slices"
	"strconv"
	"strings"

	"kerf.sh/kerf/internal/plan"
	"kerf.sh/kerf/internal/snapshot"
)

// volumeProfile is what the volumes of a pod come to. Pods with the same profile are
// alike, whatever their claims are called.
type volumeProfile struct {
	demands []int32
	// takes is how many volumes a pod attaches that no other pod uses, by resource of
	// World.Dims; for local volumes how many it takes of those that a node has.
	takes []taken
	// shared are volumes that other pods use too: positions in sharing.volumes, ascending.
	shared []int32
	seen   []attachKey // scratch
}

type taken struct {
	dim string
	n   int64
}

// readVolumes judges the volumes of the planned pods. Pods that their volumes keep from
// any node are refused; the rest get the number of their profile, from 1, and pods
// without volumes 0. It costs pods without volumes one look.
func (w *World) readVolumes() {
	s := w.Snapshot
	first := slices.IndexFunc(w.pending, func(i int32) bool { return len(s.Pods[i].Spec.Volumes) > 0 })
	if first < 0 {
		return
	}
	v := newVolumes(s)
	w.volumes = v
	planned := make(map[int32]bool, len(w.pending)-first)
	for _, i := range w.pending[first:] {
		planned[i] = true
	}
	a := newAttachments(w, v, planned)
	a.firstCome(w.pending[first:])
	kept := w.pending[:first]
	var with []int32
	for _, i := range w.pending[first:] {
		p := &s.Pods[i]
		if len(p.Spec.Volumes) == 0 {
			kept = append(kept, i)
			continue
		}
		code, detail := plan.VolumeProblem, v.problem(p)
		if detail == "" {
			code, detail = a.onlyOnePod(i, p)
		}
		if detail == "" {
			code, detail = a.takeMade(i, p)
		}
		if detail != "" {
			w.Refused = append(w.Refused, plan.Verdict{Object: "pod/" + p.Ref(), Code: code, Detail: detail})
			continue
		}
		a.count(p)
		kept = append(kept, i)
		with = append(with, i)
	}
	w.pending = kept
	a.settleMade()
	a.chooseShared()
	w.profiles = []volumeProfile{{}}
	w.profileOf = make([]int32, len(kept))
	known := map[string]int32{}
	var p volumeProfile
	var buf []byte
	n := 0
	for k, i := range kept {
		if n == len(with) || with[n] != i {
			continue
		}
		n++
		a.profile(i, &s.Pods[i], &p)
		buf = demandKey(demandKey(buf[:0], p.demands), p.shared)
		for _, d := range p.takes {
			buf = strconv.AppendInt(append(append(buf, d.dim...), '='), d.n, 10)
		}
		key, ok := known[string(buf)]
		if !ok {
			key = int32(len(w.profiles))
			w.profiles = append(w.profiles, p.clone())
			known[string(buf)] = key
		}
		w.profileOf[k] = key
	}
	w.attach = a
}

// applyProfiles gives every rules-key what its pods' volumes ask for.
func (w *World) applyProfiles() {
	if w.profileOf == nil {
		return
	}
	of := make(map[int32]int32, len(w.groups.Rep))
	for _, i := range w.groups.Rep {
		of[i] = 0
	}
	for k, i := range w.pending {
		if _, ok := of[i]; ok {
			of[i] = w.profileOf[k]
		}
	}
	for r, i := range w.groups.Rep {
		p := &w.profiles[of[i]]
		rules := &w.Rules[r]
		for _, d := range p.demands {
			rules.Volumes = append(rules.Volumes, w.volumes.demands[d])
		}
		rules.slots, rules.shared = p.slots(), p.shared
		w.Rules[r] = w.volumes.restrictVolumes(*rules)
	}
}

// profile reads the volumes of a pod that is planned into out, which is used again.
func (a *attachments) profile(pod int32, p *snapshot.Pod, out *volumeProfile) {
	out.demands, out.takes, out.shared, out.seen = out.demands[:0], out.takes[:0], out.shared[:0], out.seen[:0]
	for k := range p.Spec.Volumes {
		c, _ := a.v.claim(p, &p.Spec.Volumes[k])
		out.demands = a.v.ofClaim(c, out.demands)
		if claim := a.v.unmade(c); claim != "" && a.unmade[claim] > 1 {
			out.demands = append(out.demands, a.v.together(claim))
		}
		key := a.v.attached(c)
		dim := a.limited[key.driver]
		if dim == "" || slices.Contains(out.seen, key) {
			continue
		}
		out.seen = append(out.seen, key)
		if n := a.sharedAt(key); n >= 0 {
			out.shared = append(out.shared, n)
			continue
		}
		out.take(dim, 1)
	}
	if m := a.made[pod]; m != nil {
		out.demands = append(out.demands, m.demands...)
		for _, d := range sortedKeys(m.slots) {
			out.take(d, m.slots[d])
		}
	}
	slices.Sort(out.demands)
	out.demands = slices.Compact(out.demands)
	slices.Sort(out.shared)
	slices.SortFunc(out.takes, func(x, y taken) int { return strings.Compare(x.dim, y.dim) })
}

func (p *volumeProfile) take(dim string, n int64) {
	for i := range p.takes {
		if p.takes[i].dim == dim {
			p.takes[i].n += n
			return
		}
	}
	p.takes = append(p.takes, taken{dim, n})
}

// clone is a copy to keep.
func (p *volumeProfile) clone() volumeProfile {
	return volumeProfile{demands: slices.Clone(p.demands), takes: slices.Clone(p.takes), shared: slices.Clone(p.shared)}
}

// slots are the volumes that a pod takes, by resource; nil for none.
func (p *volumeProfile) slots() map[string]int64 {
	if len(p.takes) == 0 {
		return nil
	}
	out := make(map[string]int64, len(p.takes))
	for _, t := range p.takes {
		out[t.dim] = t.n
	}
	return out
}

// sharedVolume is a volume that several pods use, of which planned ones are some.
type sharedVolume struct {
	key  attachKey
	pods int // planned
}

// maxShared is how many shared volumes count once on a node, however many pods use them:
// new nodes are of one kind per set of them that pods have together. What is beyond
// counts once per pod.
const maxShared = 3

// chooseShared picks the volumes that count once on a node however many pods use them:
// those with most planned pods.
func (a *attachments) chooseShared() {
	running := a.runningKeys()
	var list []sharedVolume
	for key, pods := range a.pods {
		if pods > 1 || running[key] {
			list = append(list, sharedVolume{key, pods})
		}
	}
	slices.SortFunc(list, func(x, y sharedVolume) int {
		return cmp.Or(cmp.Compare(y.pods, x.pods), strings.Compare(x.key.driver, y.key.driver), strings.Compare(x.key.id, y.key.id))
	})
	a.shared = list[:min(len(list), maxShared)]
	a.sets = a.sharedSets()
}

// sharedSets are the sets of shared volumes that planned pods can have together, the
// empty one first.
func (a *attachments) sharedSets() [][]int32 {
	sets := [][]int32{nil}
	if len(a.shared) == 0 {
		return sets
	}
	s := a.w.Snapshot
	add := func(set []int32) {
		slices.Sort(set)
		set = slices.Compact(set)
		if !slices.ContainsFunc(sets, func(o []int32) bool { return slices.Equal(o, set) }) {
			sets = append(sets, set)
		}
	}
	for _, i := range a.w.pending {
		p := &s.Pods[i]
		var set []int32
		for k := range p.Spec.Volumes {
			c, _ := a.v.claim(p, &p.Spec.Volumes[k])
			if n := a.sharedAt(a.v.attached(c)); n >= 0 {
				set = append(set, n)
			}
		}
		if set != nil {
			add(set)
		}
	}
	for i := 1; i < len(sets); i++ {
		for k := 1; k < i; k++ {
			add(slices.Concat(sets[i], sets[k]))
		}
	}
	slices.SortFunc(sets[1:], slices.Compare[[]int32])
	return sets
}

// sharedAt is the position of a volume in shared; -1 when it counts per pod.
func (a *attachments) sharedAt(key attachKey) int32 {
	return int32(slices.IndexFunc(a.shared, func(v sharedVolume) bool { return v.key == key }))
}
