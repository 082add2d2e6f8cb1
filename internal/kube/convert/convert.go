package convert

import (
	"fmt"
	"reflect"
	"slices"
	"strings"
)

// The API groups and today's version.
const (
	karpenterGroup = "karpenter.sh"
	awsGroup       = "karpenter.k8s.aws"
	current        = "v1"
)

// Object is a Kubernetes object as decoded JSON. It is not changed by this package.
type Object = map[string]any

// Note says what became of one field.
type Note struct {
	// From is the path of the field in the old object; "" where something is new.
	From string
	// To is its path in the new one; "" where there is none.
	To string
	// Text says what else to know; "" = nothing.
	Text string
	// Lost: it could not be carried over, and somebody has to do what Text says.
	Lost bool
}

// Result is what became of one old object.
type Result struct {
	// Objects are those that take its place: one, or one and a class of its own. None when the
	// kind has no successor that people write.
	Objects []Object
	Notes   []Note
}

// Old reports whether a kind is of an older generation of Karpenter's API.
func Old(apiVersion, kind string) bool { return converter(apiVersion, kind) != nil }

// converter is the function for a kind; nil when it is not old.
func converter(apiVersion, kind string) func(*work) {
	group, version, _ := strings.Cut(apiVersion, "/")
	alpha := strings.HasPrefix(version, "v1alpha")
	switch {
	case group == karpenterGroup && kind == "Provisioner":
		return (*work).provisioner
	case kind == "AWSNodeTemplate" && (group == awsGroup || group == karpenterGroup):
		return (*work).template
	case group == karpenterGroup && kind == "Machine":
		return (*work).machine
	case group == karpenterGroup && kind == "NodePool" && version == "v1beta1":
		return (*work).betaPool
	case group == karpenterGroup && kind == "NodeClaim" && version == "v1beta1":
		return (*work).betaClaim
	case group == awsGroup && kind == "EC2NodeClass" && (version == "v1beta1" || alpha):
		return (*work).betaClass
	}
	return nil
}

// All converts the old ones of some objects that belong together. Results are those of the
// objects, one each; that of an object that is not old has no notes, and no objects unless
// something had to be added to it (kubelet settings, which were in the pool and are in the class).
// All does not fail: what cannot be carried over is a note.
func All(objects []Object) []Result {
	works := make([]*work, len(objects))
	for i, o := range objects {
		w := &work{from: o}
		works[i] = w
		apiVersion, _ := o["apiVersion"].(string)
		kind, _ := o["kind"].(string)
		if f := converter(apiVersion, kind); f != nil {
			w.old = true
			f(w)
		}
	}
	placeKubelets(works)
	out := make([]Result, len(objects))
	for i, w := range works {
		out[i] = Result{Objects: w.out, Notes: w.notes}
	}
	return out
}

// work is one object on its way.
type work struct {
	from  Object
	old   bool
	out   []Object
	notes []Note
	// kubelet is what a pool says of the kubelet, which is the class's to say now; class is the
	// name of that class.
	kubelet map[string]any
	class   string
	// kubeletFrom is where it stood.
	kubeletFrom string
}

func (w *work) moved(from, to, format string, args ...any) {
	w.notes = append(w.notes, Note{From: from, To: to, Text: fmt.Sprintf(format, args...)})
}

func (w *work) lost(from, format string, args ...any) {
	w.notes = append(w.notes, Note{From: from, Text: fmt.Sprintf(format, args...), Lost: true})
}

// begin makes the successor with its metadata, and hands out a copy of the old spec, from which
// fields are taken until it is empty.
func (w *work) begin(group, kind string) (into Object, spec map[string]any) {
	into = Object{"apiVersion": group + "/" + current, "kind": kind, "metadata": w.metadata()}
	spec, _ = clone(w.from["spec"]).(map[string]any)
	if spec == nil {
		spec = map[string]any{}
	}
	w.out = append(w.out, into)
	if was, _ := w.from["kind"].(string); was != kind {
		w.moved("kind: "+was, "kind: "+kind, "")
	}
	return into, spec
}

// metadata keeps what people write, and drops what the server and tools do.
func (w *work) metadata() map[string]any {
	old, _ := w.from["metadata"].(map[string]any)
	out := map[string]any{}
	for _, k := range []string{"name", "generateName", "labels", "annotations"} {
		if v, ok := old[k]; ok {
			out[k] = clone(v)
		}
	}
	if a, ok := out["annotations"].(map[string]any); ok {
		for k := range a {
			if k == "kubectl.kubernetes.io/last-applied-configuration" || strings.HasPrefix(k, "compatibility.karpenter.") ||
				strings.HasSuffix(k, "-hash") && strings.HasPrefix(k, "karpenter.") || strings.HasSuffix(k, "-hash-version") && strings.HasPrefix(k, "karpenter.") {
				delete(a, k)
			}
		}
		w.annotations(a, "metadata.annotations")
		if len(a) == 0 {
			delete(out, "annotations")
		}
	}
	return out
}

// annotations renames those that have a new name.
func (w *work) annotations(a map[string]any, at string) {
	for _, old := range []string{"karpenter.sh/do-not-consolidate", "karpenter.sh/do-not-evict"} {
		if v, ok := a[old]; ok {
			delete(a, old)
			a["karpenter.sh/do-not-disrupt"] = v
			w.moved(fmt.Sprintf("%s[%q]", at, old), fmt.Sprintf("%s[%q]", at, "karpenter.sh/do-not-disrupt"), "")
		}
	}
}

// move takes a field to where it is now, if it is there.
func (w *work) move(spec map[string]any, from string, into map[string]any, to string) {
	name := from[strings.LastIndexByte(from, '.')+1:]
	v, ok := spec[name]
	if !ok {
		return
	}
	delete(spec, name)
	set(into, to, v)
	if from != to {
		w.moved(from, to, "")
	}
}

// rest says of the fields that nobody took that they are not known.
func (w *work) rest(spec map[string]any, at string) {
	for _, k := range sorted(spec) {
		w.lost(at+"."+k, "no field of this API is called so; it is left out")
	}
}

// set writes a value at a path of names, making the maps on the way.
func set(into map[string]any, path string, v any) {
	names := strings.Split(path, ".")
	for _, n := range names[:len(names)-1] {
		next, ok := into[n].(map[string]any)
		if !ok {
			next = map[string]any{}
			into[n] = next
		}
		into = next
	}
	into[names[len(names)-1]] = v
}

// get reads the value at a path of names; nil where there is none.
func get(from map[string]any, path string) any {
	var v any = from
	for n := range strings.SplitSeq(path, ".") {
		m, ok := v.(map[string]any)
		if !ok {
			return nil
		}
		v = m[n]
	}
	return v
}

// take removes a value from a map and returns it.
func take[T any](from map[string]any, name string) (T, bool) {
	v, ok := from[name].(T)
	if ok {
		delete(from, name)
	}
	return v, ok
}

func sorted(m map[string]any) []string {
	var out []string
	for k := range m {
		out = append(out, k)
	}
	slices.Sort(out)
	return out
}

// clone copies decoded JSON.
func clone(v any) any {
	switch v := v.(type) {
	case map[string]any:
		out := make(map[string]any, len(v))
		for k, e := range v {
			out[k] = clone(e)
		}
		return out
	case []any:
		out := make([]any, len(v))
		for i, e := range v {
			out[i] = clone(e)
		}
		return out
	}
	return v
}

func equal(a, b any) bool { return reflect.DeepEqual(a, b) }

func nameOf(o Object) string {
	name, _ := get(o, "metadata.name").(string)
	return name
}
