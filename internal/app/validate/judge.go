package validate

import (
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"

	"kerf.sh/kerf/internal/kube"
	"kerf.sh/kerf/internal/kube/convert"
	"kerf.sh/kerf/internal/kube/schema"
	"kerf.sh/kerf/internal/kube/setup"
)

// What can be said of an object.
const (
	valid   = "valid"
	refused = "refused"
	old     = "old"
)

// report is the answer.
type report struct {
	Objects []judged `json:"objects"`
	// Converted are what takes the place of old objects, as manifests, with --convert.
	Converted []convert.Object `json:"converted,omitempty"`
	// Ignored counts objects of other kinds.
	Ignored int `json:"ignored"`

	summary
}

type summary struct {
	Valid   int `json:"valid"`
	Refused int `json:"refused"`
	Old     int `json:"old"`
}

// judged is what is said of one object.
type judged struct {
	File     string `json:"file,omitempty"`
	Document int    `json:"document,omitempty"`
	Item     int    `json:"item,omitempty"`
	Line     int    `json:"line,omitempty"`
	// Object is "NodePool general".
	Object     string `json:"object"`
	APIVersion string `json:"apiVersion"`
	// Verdict is valid, refused, or old: of a generation that is not served any more.
	Verdict string `json:"verdict"`
	// Causes are the reasons of a refusal, first the API server's, then Kerf's.
	Causes []cause `json:"causes,omitempty"`
	// Warnings are what the API server says and takes the object.
	Warnings []string `json:"warnings,omitempty"`
	// Fields are what became of the fields of an old object.
	Fields []moved `json:"fields,omitempty"`
	// Converted are what is said of the objects that take its place.
	Converted []judged `json:"converted,omitempty"`
}

type cause struct {
	// By is who says so: api, or kerf.
	By      string `json:"by"`
	Field   string `json:"field,omitempty"`
	Reason  string `json:"reason"`
	Message string `json:"message"`
	// Hint is what to do about it, where Kerf knows.
	Hint string `json:"hint,omitempty"`
}

type moved struct {
	From string `json:"from,omitempty"`
	To   string `json:"to,omitempty"`
	Text string `json:"text,omitempty"`
	// Lost: it was not carried over; Text says what to do.
	Lost bool `json:"lost,omitempty"`
}

// groups are those whose kinds are looked at.
var groups = []string{"karpenter.sh", "karpenter.k8s.aws", "autoscaling.x-k8s.io"}

// judge holds objects against the definitions that Kerf installs.
type judge struct {
	schemas *schema.Schemas
	// before are the objects that stand in the cluster, by kind and name.
	before map[string][]byte
}

// definitions are those that Kerf installs, read once.
var definitions = sync.OnceValues(func() (*schema.Schemas, error) {
	crds, err := setup.CRDs()
	if err != nil {
		return nil, err
	}
	var raw []json.RawMessage
	for i := range crds {
		raw = append(raw, crds[i].Object)
	}
	return schema.New(raw)
})

func newJudge(before []kube.Found) (*judge, error) {
	schemas, err := definitions()
	if err != nil {
		return nil, err
	}
	j := &judge{schemas: schemas, before: map[string][]byte{}}
	for i := range before {
		j.before[key(&before[i])] = before[i].Raw
	}
	return j, nil
}

// key tells objects apart, whatever their version.
func key(f *kube.Found) string { return f.Group() + " " + f.Ref() }

// all judges what was found.
func (j *judge) all(found []kube.Found) (*report, error) {
	out := &report{Objects: []judged{}}
	var mine []*kube.Found
	var objects []convert.Object
	for i := range found {
		f := &found[i]
		if !slices.Contains(groups, f.Group()) {
			out.Ignored++
			continue
		}
		var o convert.Object
		if err := json.Unmarshal(f.Raw, &o); err != nil {
			return nil, f.Problem("", err.Error())
		}
		mine, objects = append(mine, f), append(objects, o)
	}
	for i, r := range convert.All(objects) {
		f := mine[i]
		one, err := j.one(f, convert.Old(f.APIVersion, f.Kind))
		if err != nil {
			return nil, err
		}
		for _, n := range r.Notes {
			one.Fields = append(one.Fields, moved(n))
		}
		for _, o := range r.Objects {
			more, err := j.made(f, o)
			if err != nil {
				return nil, err
			}
			one.Converted = append(one.Converted, *more)
			out.Converted = append(out.Converted, o)
		}
		out.Objects = append(out.Objects, *one)
		out.count(one.Verdict)
	}
	return out, nil
}

func (s *summary) count(verdict string) {
	switch verdict {
	case valid:
		s.Valid++
	case refused:
		s.Refused++
	case old:
		s.Old++
	}
}

// made judges an object that a conversion made of f.
func (j *judge) made(f *kube.Found, o convert.Object) (*judged, error) {
	raw, err := json.Marshal(o)
	if err != nil {
		return nil, fmt.Errorf("write a converted object: %w", err)
	}
	next, err := f.Successor(raw)
	if err != nil {
		return nil, err
	}
	out, err := j.one(next, false)
	if err != nil {
		return nil, err
	}
	out.File, out.Document, out.Item, out.Line = "", 0, 0, 0 // where it comes from is said already
	return out, nil
}

// one judges one object.
func (j *judge) one(f *kube.Found, isOld bool) (*judged, error) {
	p := f.Problem("", "")
	out := &judged{File: p.File, Document: p.Document, Item: p.Item, Line: p.Line, Object: f.Ref(), APIVersion: f.APIVersion, Verdict: valid}
	if isOld {
		out.Verdict = old
		return out, nil
	}
	v, err := j.schemas.Check(f.Raw, j.before[key(f)])
	if errors.Is(err, schema.ErrKind) {
		return j.unknown(f, out), nil
	}
	if err != nil {
		return nil, f.Problem("", err.Error())
	}
	if v.Undecodable != "" {
		out.refuse(cause{By: "api", Reason: "BadRequest", Message: v.Undecodable})
	}
	for _, u := range v.Unknown {
		c := cause{By: "api", Reason: "BadRequest", Message: u}
		if name, ok := strings.CutPrefix(u, `unknown field "`); ok {
			c.Field = strings.TrimSuffix(name, `"`)
			c.Hint = kube.Moved(c.Field)
		}
		out.refuse(c)
	}
	for _, c := range v.Causes {
		out.refuse(cause{By: "api", Field: strings.TrimPrefix(c.Field, "<nil>"), Reason: c.Reason, Message: c.Message})
	}
	out.Warnings = v.Warnings
	for _, p := range f.Objections() {
		if out.names(p.Field) {
			continue // the API server says it already
		}
		out.refuse(cause{By: "kerf", Field: p.Field, Reason: "NotRead", Message: p.Message})
	}
	return out, nil
}

func (j *judged) refuse(c cause) {
	j.Verdict = refused
	j.Causes = append(j.Causes, c)
}

// names reports whether a cause is about a field, about what it is in, or about a part of it.
func (j *judged) names(field string) bool {
	return slices.ContainsFunc(j.Causes, func(c cause) bool {
		return c.Field != "" && (within(field, c.Field) || within(c.Field, field))
	})
}

// within reports whether a path is another one or below it.
func within(path, other string) bool {
	rest, ok := strings.CutPrefix(path, other)
	return ok && (rest == "" || rest[0] == '.' || rest[0] == '[')
}

// unknown is the verdict on a kind or version of these groups that is not defined.
func (j *judge) unknown(f *kube.Found, out *judged) *judged {
	msg := fmt.Sprintf("no matches for kind %q in version %q", f.Kind, f.APIVersion)
	if v := j.schemas.Served(f.Group(), f.Kind); len(v) > 0 {
		slices.Sort(v)
		msg += "; want " + strings.Join(v, " or ")
	}
	out.refuse(cause{By: "api", Field: "apiVersion", Reason: "NotFound", Message: msg})
	return out
}
