package snapshot

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"strings"
)

// Ref names an object of a snapshot. Kind is as Kubernetes writes it (NodePool),
// Namespace is "" for objects that have none.
type Ref struct{ Kind, Namespace, Name string }

// String names the object as plans do: "nodepool/general", "pod/shop/web-1".
func (r Ref) String() string {
	kind := strings.ToLower(r.Kind)
	if r.Kind == "EC2NodeClass" {
		kind = "nodeclass"
	}
	if r.Namespace != "" {
		return kind + "/" + r.Namespace + "/" + r.Name
	}
	return kind + "/" + r.Name
}

// Compare orders by kind, namespace, name.
func (r Ref) Compare(o Ref) int {
	return cmp.Or(strings.Compare(r.Kind, o.Kind), strings.Compare(r.Namespace, o.Namespace), strings.Compare(r.Name, o.Name))
}

type kindName struct {
	kind       string
	namespaced bool
	also       string
}

// kindNames are the kinds that a snapshot holds, with what kubectl calls them
// besides the kind itself and its plural.
var kindNames = []kindName{
	{"Pod", true, "po"}, {"Node", false, "no"}, {"NodePool", false, ""}, {"NodeClaim", false, ""},
	{"EC2NodeClass", false, "nodeclass nodeclasses ec2nc"}, {"DaemonSet", true, "ds"},
	{"Deployment", true, "deploy"}, {"ReplicaSet", true, "rs"}, {"StatefulSet", true, "sts"}, {"Job", true, ""},
	{"Namespace", false, "ns"}, {"LimitRange", true, "limits"}, {"RuntimeClass", false, ""}, {"PriorityClass", false, "pc"},
	{"PersistentVolumeClaim", true, "pvc"}, {"PersistentVolume", false, "pv"}, {"StorageClass", false, "sc"},
	{"CSINode", false, ""}, {"VolumeAttachment", false, ""}, {"PodDisruptionBudget", true, "pdb"},
	{"NodeOverlay", false, "overlay overlays"}, {"CapacityBuffer", true, "cb"}, {"PodTemplate", true, ""},
}

// ParseRef reads KIND/NAME or KIND/NAMESPACE/NAME. The kind is as kubectl takes it:
// in any case, in the plural, by its short name, with or without its group.
func ParseRef(text string) (Ref, error) {
	parts := strings.Split(text, "/")
	if len(parts) < 2 || slices.Contains(parts, "") {
		return Ref{}, errors.New("want KIND/NAME, or KIND/NAMESPACE/NAME for what lives in a namespace")
	}
	word, _, _ := strings.Cut(strings.ToLower(parts[0]), ".")
	for _, k := range kindNames {
		lower := strings.ToLower(k.kind)
		plural := lower + "s"
		if strings.HasSuffix(lower, "ss") {
			plural = lower + "es"
		}
		if word != lower && word != plural && !slices.Contains(strings.Fields(k.also), word) {
			continue
		}
		switch {
		case k.namespaced && len(parts) == 3:
			return Ref{k.kind, parts[1], parts[2]}, nil
		case !k.namespaced && len(parts) == 2:
			return Ref{k.kind, "", parts[1]}, nil
		case k.namespaced:
			return Ref{}, fmt.Errorf("a %s lives in a namespace: want %s/NAMESPACE/NAME", lower, lower)
		}
		return Ref{}, fmt.Errorf("a %s lives in no namespace: want %s/NAME", lower, lower)
	}
	kinds := make([]string, len(kindNames))
	for i, k := range kindNames {
		kinds[i] = strings.ToLower(k.kind)
	}
	slices.Sort(kinds)
	return Ref{}, fmt.Errorf("kind %q is not one that a plan looks at; those are %s", parts[0], strings.Join(kinds, ", "))
}

// list is one list of objects, whatever their type.
type list interface {
	len(s *Snapshot) int
	ref(s *Snapshot, i int) Ref
	drop(s *Snapshot, gone func(Ref) bool)
	fold(s *Snapshot, i int)
	content(s *Snapshot, i int) []byte
	clone(s *Snapshot)
	join(s, more *Snapshot)
}

type listOf[T any] struct {
	at  func(*Snapshot) *[]T
	key func(*T) Ref
}

func (l listOf[T]) len(s *Snapshot) int        { return len(*l.at(s)) }
func (l listOf[T]) ref(s *Snapshot, i int) Ref { return l.key(&(*l.at(s))[i]) }

// drop replaces the list: what it was made of may belong to another snapshot.
func (l listOf[T]) drop(s *Snapshot, gone func(Ref) bool) {
	in := l.at(s)
	if !slices.ContainsFunc(*in, func(v T) bool { return gone(l.key(&v)) }) {
		return
	}
	out := make([]T, 0, len(*in))
	for i := range *in {
		if !gone(l.key(&(*in)[i])) {
			out = append(out, (*in)[i])
		}
	}
	*in = out
}

// fold puts the last object in the place of another and shortens the list.
func (l listOf[T]) fold(s *Snapshot, i int) {
	in := l.at(s)
	last := len(*in) - 1
	(*in)[i] = (*in)[last]
	*in = (*in)[:last]
}

func (l listOf[T]) content(s *Snapshot, i int) []byte { return content(&(*l.at(s))[i]) }

func (l listOf[T]) join(s, more *Snapshot) {
	if in := l.at(s); len(*in) == 0 {
		*in = *l.at(more)
	} else {
		*in = append(*in, *l.at(more)...)
	}
}

func (l listOf[T]) clone(s *Snapshot) {
	in := l.at(s)
	*in = slices.Clone(*in)
}

// lists are all lists of objects. A test holds them against the fields.
var lists = []list{
	listOf[Pod]{func(s *Snapshot) *[]Pod { return &s.Pods }, func(v *Pod) Ref { return Ref{"Pod", v.Namespace, v.Name} }},
	listOf[Node]{func(s *Snapshot) *[]Node { return &s.Nodes }, func(v *Node) Ref { return Ref{"Node", "", v.Name} }},
	listOf[NodePool]{func(s *Snapshot) *[]NodePool { return &s.NodePools }, func(v *NodePool) Ref { return Ref{"NodePool", "", v.Name} }},
	listOf[NodeClaim]{func(s *Snapshot) *[]NodeClaim { return &s.NodeClaims }, func(v *NodeClaim) Ref { return Ref{"NodeClaim", "", v.Name} }},
	listOf[NodeClass]{func(s *Snapshot) *[]NodeClass { return &s.NodeClasses }, func(v *NodeClass) Ref { return Ref{"EC2NodeClass", "", v.Name} }},
	listOf[DaemonSet]{func(s *Snapshot) *[]DaemonSet { return &s.DaemonSets }, func(v *DaemonSet) Ref { return Ref{"DaemonSet", v.Namespace, v.Name} }},
	listOf[Workload]{func(s *Snapshot) *[]Workload { return &s.Workloads }, func(v *Workload) Ref { return Ref{v.Kind, v.Namespace, v.Name} }},
	listOf[Namespace]{func(s *Snapshot) *[]Namespace { return &s.Namespaces }, func(v *Namespace) Ref { return Ref{"Namespace", "", v.Name} }},
	listOf[LimitRange]{func(s *Snapshot) *[]LimitRange { return &s.LimitRanges }, func(v *LimitRange) Ref { return Ref{"LimitRange", v.Namespace, v.Name} }},
	listOf[RuntimeClass]{func(s *Snapshot) *[]RuntimeClass { return &s.RuntimeClasses }, func(v *RuntimeClass) Ref { return Ref{"RuntimeClass", "", v.Name} }},
	listOf[PriorityClass]{func(s *Snapshot) *[]PriorityClass { return &s.Priorities }, func(v *PriorityClass) Ref { return Ref{"PriorityClass", "", v.Name} }},
	listOf[PersistentVolumeClaim]{func(s *Snapshot) *[]PersistentVolumeClaim { return &s.Claims }, func(v *PersistentVolumeClaim) Ref { return Ref{"PersistentVolumeClaim", v.Namespace, v.Name} }},
	listOf[PersistentVolume]{func(s *Snapshot) *[]PersistentVolume { return &s.Volumes }, func(v *PersistentVolume) Ref { return Ref{"PersistentVolume", "", v.Name} }},
	listOf[StorageClass]{func(s *Snapshot) *[]StorageClass { return &s.StorageClasses }, func(v *StorageClass) Ref { return Ref{"StorageClass", "", v.Name} }},
	listOf[CSINode]{func(s *Snapshot) *[]CSINode { return &s.CSINodes }, func(v *CSINode) Ref { return Ref{"CSINode", "", v.Name} }},
	listOf[VolumeAttachment]{func(s *Snapshot) *[]VolumeAttachment { return &s.Attachments }, func(v *VolumeAttachment) Ref { return Ref{"VolumeAttachment", "", v.Name} }},
	listOf[NodeOverlay]{func(s *Snapshot) *[]NodeOverlay { return &s.Overlays }, func(v *NodeOverlay) Ref { return Ref{"NodeOverlay", "", v.Name} }},
	listOf[CapacityBuffer]{func(s *Snapshot) *[]CapacityBuffer { return &s.Buffers }, func(v *CapacityBuffer) Ref { return Ref{"CapacityBuffer", v.Namespace, v.Name} }},
	listOf[PodTemplateObject]{func(s *Snapshot) *[]PodTemplateObject { return &s.PodTemplates }, func(v *PodTemplateObject) Ref { return Ref{"PodTemplate", v.Namespace, v.Name} }},
	listOf[PodDisruptionBudget]{func(s *Snapshot) *[]PodDisruptionBudget { return &s.Budgets }, func(v *PodDisruptionBudget) Ref { return Ref{"PodDisruptionBudget", v.Namespace, v.Name} }},
}

// Index finds the objects of a snapshot by name: the list that each is in and its
// place there.
type Index map[Ref]slot

type slot struct{ list, at int }

// NewIndex indexes a snapshot.
func NewIndex(s *Snapshot) Index {
	out := Index{}
	for i, l := range lists {
		for k := range l.len(s) {
			out[l.ref(s, k)] = slot{i, k}
		}
	}
	return out
}

// Settle is called when an object was appended to its list in a snapshot whose lists
// are its own. If there was one of that name it is replaced: the newcomer takes its
// place. at is where the newcomer is now, -1 if it is in no list.
func (x Index) Settle(s *Snapshot, r Ref) (at int, replaced bool) {
	for i, l := range lists {
		last := l.len(s) - 1
		if last < 0 || l.ref(s, last) != r {
			continue
		}
		old, ok := x[r]
		if !ok || old.list != i || old.at == last {
			x[r] = slot{i, last}
			return last, false
		}
		l.fold(s, old.at)
		return old.at, true
	}
	return -1, false
}

// At is the place of an object in its list, -1 if there is none of that name.
func (x Index) At(r Ref) int {
	if e, ok := x[r]; ok {
		return e.at
	}
	return -1
}

// Same reports whether two snapshots, given with their indexes, hold an object and
// say the same of it.
func (x Index) Same(s *Snapshot, y Index, other *Snapshot, r Ref) bool {
	a, ok := x[r]
	b, also := y[r]
	return ok && also && slices.Equal(lists[a.list].content(s, a.at), lists[b.list].content(other, b.at))
}

// Objects names everything that a snapshot holds, sorted.
func (s *Snapshot) Objects() []Ref {
	var out []Ref
	for _, l := range lists {
		for i := range l.len(s) {
			out = append(out, l.ref(s, i))
		}
	}
	slices.SortFunc(out, Ref.Compare)
	return out
}

// Fork returns a snapshot whose lists can be changed without changing s; the
// objects in them are shared.
func (s *Snapshot) Fork() *Snapshot {
	out := *s
	out.Incomplete, out.Remarks = slices.Clone(s.Incomplete), slices.Clone(s.Remarks)
	out.Nominations, out.Unadmitted = slices.Clone(s.Nominations), slices.Clone(s.Unadmitted)
	out.Shortages, out.Setbacks, out.Learned = slices.Clone(s.Shortages), slices.Clone(s.Setbacks), slices.Clone(s.Learned)
	out.Rests = slices.Clone(s.Rests)
	for _, l := range lists {
		l.clone(&out)
	}
	return &out
}

// Append adds the objects of another snapshot, which may not be used after that. What
// else that says is not taken. The lists are not sorted again (Normalize).
func (s *Snapshot) Append(more *Snapshot) {
	for _, l := range lists {
		l.join(s, more)
	}
}
