package kube

import (
	"bufio"
	"encoding/json"
	"fmt"
	"io"
	"reflect"
	"strings"
	"time"

	"kerf.sh/kerf/internal/snapshot"
)

// savedVersion and savedKind mark a saved snapshot. Its format is the JSON of
// snapshot.Snapshot with apiVersion and kind in front, one object a line.
const (
	savedVersion = kerfGroup + "/v1"
	savedKind    = "Snapshot"
)

// Save writes a snapshot so that Read gives it back: the bytes of a snapshot that
// was saved, read and saved again are the same. Objects are sorted, one a line, so
// that two of them can be compared with diff. Read wants the snapshot normalized.
func Save(w io.Writer, s *snapshot.Snapshot) error {
	b := bufio.NewWriter(w)
	fmt.Fprintf(b, "{\"apiVersion\":%q,\"kind\":%q", savedVersion, savedKind)
	v := reflect.ValueOf(s).Elem()
	for i := range v.NumField() {
		name, opts, _ := strings.Cut(v.Type().Field(i).Tag.Get("json"), ",")
		field := v.Field(i)
		if opts == "omitempty" && (field.IsZero() || field.Kind() == reflect.Slice && field.Len() == 0) {
			continue
		}
		fmt.Fprintf(b, ",\n%q:", name)
		if !savedLists[name] {
			if err := saveValue(b, field); err != nil {
				return fmt.Errorf("save snapshot: %s: %w", name, err)
			}
			continue
		}
		for i := range field.Len() {
			b.WriteString([]string{",\n", "[\n"}[btoi(i == 0)])
			if err := saveValue(b, field.Index(i)); err != nil {
				return fmt.Errorf("save snapshot: %s[%d]: %w", name, i, err)
			}
		}
		b.WriteString("]")
	}
	b.WriteString("}\n")
	if err := b.Flush(); err != nil {
		return fmt.Errorf("save snapshot: %w", err)
	}
	return nil
}

func btoi(b bool) int {
	if b {
		return 1
	}
	return 0
}

func saveValue(w io.Writer, v reflect.Value) error {
	raw, err := json.Marshal(v.Interface())
	if err != nil {
		return err
	}
	_, err = w.Write(raw)
	return err
}

// savedHead is a saved snapshot without its lists.
type savedHead struct {
	APIVersion string            `json:"apiVersion"`
	Kind       string            `json:"kind"`
	Cluster    string            `json:"cluster"`
	Region     string            `json:"region"`
	Now        time.Time         `json:"now"`
	Seed       uint64            `json:"seed"`
	Incomplete []string          `json:"incomplete"`
	Remarks    []snapshot.Remark `json:"remarks"`
	Settings   snapshot.Settings `json:"settings"`
}

// savedLists are the lists of objects of a saved snapshot, by JSON name.
var savedLists = func() map[string]bool {
	out := map[string]bool{}
	for name := range savedReaders {
		out[name] = true
	}
	return out
}()

type savedReader func(r *reader, raw []byte, at place) error

var savedReaders = map[string]savedReader{
	"unadmitted": savedUnadmitted,
	"pods": saved("Pod", func(s *snapshot.Snapshot) *[]snapshot.Pod { return &s.Pods },
		func(p *snapshot.Pod) [2]string { return [2]string{p.Namespace, p.Name} }),
	"nodes": saved("Node", func(s *snapshot.Snapshot) *[]snapshot.Node { return &s.Nodes },
		func(n *snapshot.Node) [2]string { return [2]string{"", n.Name} }),
	"nodePools": saved("NodePool", func(s *snapshot.Snapshot) *[]snapshot.NodePool { return &s.NodePools },
		func(p *snapshot.NodePool) [2]string { return [2]string{"", p.Name} }),
	"nodeClaims": saved("NodeClaim", func(s *snapshot.Snapshot) *[]snapshot.NodeClaim { return &s.NodeClaims },
		func(c *snapshot.NodeClaim) [2]string { return [2]string{"", c.Name} }),
	"nodeClasses": saved("EC2NodeClass", func(s *snapshot.Snapshot) *[]snapshot.NodeClass { return &s.NodeClasses },
		func(c *snapshot.NodeClass) [2]string { return [2]string{"", c.Name} }),
	"daemonSets": saved("DaemonSet", func(s *snapshot.Snapshot) *[]snapshot.DaemonSet { return &s.DaemonSets },
		func(d *snapshot.DaemonSet) [2]string { return [2]string{d.Namespace, d.Name} }),
	"workloads": saved("", func(s *snapshot.Snapshot) *[]snapshot.Workload { return &s.Workloads },
		func(w *snapshot.Workload) [2]string { return [2]string{w.Namespace, w.Name} }),
	"namespaces": saved("Namespace", func(s *snapshot.Snapshot) *[]snapshot.Namespace { return &s.Namespaces },
		func(n *snapshot.Namespace) [2]string { return [2]string{"", n.Name} }),
	"limitRanges": saved("LimitRange", func(s *snapshot.Snapshot) *[]snapshot.LimitRange { return &s.LimitRanges },
		func(l *snapshot.LimitRange) [2]string { return [2]string{l.Namespace, l.Name} }),
	"runtimeClasses": saved("RuntimeClass", func(s *snapshot.Snapshot) *[]snapshot.RuntimeClass { return &s.RuntimeClasses },
		func(c *snapshot.RuntimeClass) [2]string { return [2]string{"", c.Name} }),
	"priorityClasses": saved("PriorityClass", func(s *snapshot.Snapshot) *[]snapshot.PriorityClass { return &s.Priorities },
		func(c *snapshot.PriorityClass) [2]string { return [2]string{"", c.Name} }),
	"persistentVolumeClaims": saved("PersistentVolumeClaim", func(s *snapshot.Snapshot) *[]snapshot.PersistentVolumeClaim { return &s.Claims },
		func(c *snapshot.PersistentVolumeClaim) [2]string { return [2]string{c.Namespace, c.Name} }),
	"persistentVolumes": saved("PersistentVolume", func(s *snapshot.Snapshot) *[]snapshot.PersistentVolume { return &s.Volumes },
		func(v *snapshot.PersistentVolume) [2]string { return [2]string{"", v.Name} }),
	"storageClasses": saved("StorageClass", func(s *snapshot.Snapshot) *[]snapshot.StorageClass { return &s.StorageClasses },
		func(c *snapshot.StorageClass) [2]string { return [2]string{"", c.Name} }),
	"csiNodes": saved("CSINode", func(s *snapshot.Snapshot) *[]snapshot.CSINode { return &s.CSINodes },
		func(n *snapshot.CSINode) [2]string { return [2]string{"", n.Name} }),
	"volumeAttachments": saved("VolumeAttachment", func(s *snapshot.Snapshot) *[]snapshot.VolumeAttachment { return &s.Attachments },
		func(a *snapshot.VolumeAttachment) [2]string { return [2]string{"", a.Name} }),
	"nodeOverlays": saved("NodeOverlay", func(s *snapshot.Snapshot) *[]snapshot.NodeOverlay { return &s.Overlays },
		func(o *snapshot.NodeOverlay) [2]string { return [2]string{"", o.Name} }),
	"capacityBuffers": saved("CapacityBuffer", func(s *snapshot.Snapshot) *[]snapshot.CapacityBuffer { return &s.Buffers },
		func(b *snapshot.CapacityBuffer) [2]string { return [2]string{b.Namespace, b.Name} }),
	"podTemplates": saved("PodTemplate", func(s *snapshot.Snapshot) *[]snapshot.PodTemplateObject { return &s.PodTemplates },
		func(t *snapshot.PodTemplateObject) [2]string { return [2]string{t.Namespace, t.Name} }),
	"nominations": saved("Nomination", func(s *snapshot.Snapshot) *[]snapshot.Nomination { return &s.Nominations },
		func(n *snapshot.Nomination) [2]string { return [2]string{n.Namespace, nominated(n)} }),
	"shortages": saved("Shortage", func(s *snapshot.Snapshot) *[]snapshot.Shortage { return &s.Shortages },
		func(v *snapshot.Shortage) [2]string { return [2]string{"", v.Key()} }),
	"setbacks": saved("Setback", func(s *snapshot.Snapshot) *[]snapshot.Setback { return &s.Setbacks },
		func(v *snapshot.Setback) [2]string { return [2]string{"", v.Key()} }),
	"rests": saved("Rest", func(s *snapshot.Snapshot) *[]snapshot.Rest { return &s.Rests },
		func(v *snapshot.Rest) [2]string { return [2]string{"", v.Node} }),
	"learnedSizes": saved("LearnedSize", func(s *snapshot.Snapshot) *[]snapshot.LearnedSize { return &s.Learned },
		func(v *snapshot.LearnedSize) [2]string { return [2]string{"", v.Key()} }),
	"podDisruptionBudgets": saved("PodDisruptionBudget", func(s *snapshot.Snapshot) *[]snapshot.PodDisruptionBudget { return &s.Budgets },
		func(b *snapshot.PodDisruptionBudget) [2]string { return [2]string{b.Namespace, b.Name} }),
}

// nominated names a nomination: a pod that was made anew under its name may have another.
func nominated(n *snapshot.Nomination) string {
	if n.Pod == "" {
		return ""
	}
	return n.Pod + " for " + n.Node + n.UID
}

// saved reads one object of a saved snapshot: it was converted and admitted when
// it was saved, and is taken as it is.
func saved[T any](kind string, list func(*snapshot.Snapshot) *[]T, id func(*T) [2]string) savedReader {
	return func(r *reader, raw []byte, at place) error {
		var v T
		o := object{at: at, kind: kind}
		if err := decodeStrict(raw, &v, ""); err != nil {
			return r.problem(at.problem(orElse(kind, "Workload"), err.field, err.message))
		}
		names := id(&v)
		o.namespace, o.name = names[0], names[1]
		if w, ok := any(&v).(*snapshot.Workload); ok {
			o.kind = w.Kind
		}
		if o.name == "" {
			return r.problem(at.problem(o.kind, "name", "missing"))
		}
		if !r.first(o) {
			return nil
		}
		l := list(r.snap)
		*l = append(*l, v)
		r.count(o)
		return nil
	}
}

// saved reads a part of a saved snapshot. It implements sink.
func (r *reader) saved(list string, raw []byte, at place) error {
	if r.over != nil {
		return at.problem(savedKind, "", "a saved snapshot cannot be laid over a cluster: give it with -f, and what is to change as manifests")
	}
	if list != "" {
		return savedReaders[list](r, raw, at)
	}
	var head savedHead
	if err := decodeStrict(raw, &head, ""); err != nil {
		return r.problem(at.problem(savedKind, err.field, err.message))
	}
	if head.Kind != savedKind {
		return r.problem(at.problem(head.Kind, "kind", fmt.Sprintf("%s has no kind %q, only %s", savedVersion, head.Kind, savedKind)))
	}
	if r.head != nil {
		return r.problem(at.problem(savedKind, "", "a second saved snapshot: give one, the objects beside it may be in any file"))
	}
	r.head = &head
	return nil
}
