package kube

import (
	"bytes"
	"errors"
	"fmt"
	"strings"
)

// Found is one object of a source as it stands there, read by nobody yet.
type Found struct {
	// Raw is the object as JSON, whatever it was written in.
	Raw                               []byte
	APIVersion, Kind, Namespace, Name string
	at                                place
}

// Group is the part of APIVersion before the version, "" for core kinds.
func (f *Found) Group() string {
	group, _, ok := strings.Cut(f.APIVersion, "/")
	if !ok {
		return ""
	}
	return group
}

// Problem is a remark about the object, with its place.
func (f *Found) Problem(field, message string) *Problem {
	return f.at.problem(f.Ref(), field, message)
}

// Ref is "Pod team-a/web", "NodePool general".
func (f *Found) Ref() string {
	return object{kind: f.Kind, namespace: f.Namespace, name: f.Name}.ref()
}

// Successor is an object that takes the place of f: raw, as JSON, stands where f stands.
func (f *Found) Successor(raw []byte) (*Found, error) {
	id, err := identify(raw)
	if err != nil {
		return nil, f.Problem(err.field, err.message)
	}
	return &Found{Raw: raw, APIVersion: id.APIVersion, Kind: id.Kind, Namespace: id.Metadata.Namespace, Name: id.Metadata.Name, at: f.at}, nil
}

// Each finds the objects of sources, in the order of sources and documents. The error joins up
// to 20 *Problem: what is no YAML, no JSON, or no object.
func Each(sources []Source) ([]Found, error) {
	f := &finder{reader: newReader(Options{})}
	for _, src := range sources {
		if src.Feed != nil {
			return nil, fmt.Errorf("read %s: no text", src.Name)
		}
		if err := readSource(src, f); err != nil {
			return nil, f.error()
		}
	}
	if len(f.problems) > 0 {
		return nil, f.error()
	}
	return f.found, nil
}

// Moved says where a field of an older generation of Karpenter's API is now, "" when it is not
// known to be one.
func Moved(field string) string { return moved[field] }

// finder is a sink that keeps objects.
type finder struct {
	*reader
	found []Found
}

func (f *finder) object(raw []byte, id identity, at place) error {
	if id.Kind == "List" && at.item == 0 {
		return nil // without items
	}
	if id.Kind == "" || id.APIVersion == "" {
		missing := "apiVersion"
		if id.Kind == "" {
			missing = "kind"
		}
		return f.problem(at.problem(strings.TrimSpace(id.Kind+" "+id.Metadata.Name), missing, "missing: every object needs apiVersion and kind"))
	}
	f.found = append(f.found, Found{
		Raw: bytes.Clone(raw), APIVersion: id.APIVersion, Kind: id.Kind, Namespace: id.Metadata.Namespace, Name: id.Metadata.Name, at: at,
	})
	return nil
}

func (f *finder) saved(_ string, _ []byte, at place) error {
	return f.problem(at.problem("", "", "a saved snapshot has no manifests in it"))
}

// Objections are what Read says against the object alone: it cannot be read, or is left out of
// the plan. nil: nothing, or its kind decides nothing. That it has no name yet, as the server
// would give it one, is none.
func (f *Found) Objections() []*Problem {
	r := newReader(Options{})
	id, _ := identify(f.Raw) // that there is one, Each has seen
	if id.Metadata.Name == "" {
		id.Metadata.Name = id.Metadata.GenerateName
	}
	if err := r.object(f.Raw, id, f.at); err != nil && !errors.Is(err, errTooManyProblems) {
		r.problems = append(r.problems, f.Problem("", err.Error()))
	}
	out := r.problems
	for i := range r.report.Left {
		out = append(out, &r.report.Left[i])
	}
	return out
}
