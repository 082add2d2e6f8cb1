package schema

import (
	"encoding/json"
	"fmt"
	"math"
	"strings"
	"sync"

	"k8s.io/apiextensions-apiserver/pkg/apis/apiextensions"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	structural "k8s.io/apiextensions-apiserver/pkg/apiserver/schema"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema/cel"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema/defaulting"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"
	celconfig "k8s.io/apiserver/pkg/apis/cel"
)

// Schemas are the kinds that some CustomResourceDefinitions define. They are made once and can
// be used by several goroutines.
type Schemas struct {
	kinds map[versionKind]func() (*kind, error)
}

type versionKind struct{ apiVersion, kind string }

// kind is one version of one kind.
type kind struct {
	versionKind
	namespaced bool
	// status and scale tell which subresources there are.
	status, scale bool
	schema        *structural.Structural
	validator     validation.SchemaValidator
	rules         *cel.Validator
}

// New reads definitions, each a CustomResourceDefinition of apiextensions.k8s.io/v1 as JSON. The
// rules of a kind are compiled when the first object of it is checked, which takes tenths of a
// second.
func New(definitions []json.RawMessage) (*Schemas, error) {
	out := &Schemas{kinds: map[versionKind]func() (*kind, error){}}
	for _, raw := range definitions {
		var crd apiextensionsv1.CustomResourceDefinition
		if err := json.Unmarshal(raw, &crd); err != nil {
			return nil, fmt.Errorf("read a CustomResourceDefinition: %w", err)
		}
		for i := range crd.Spec.Versions {
			v := &crd.Spec.Versions[i]
			if !v.Served {
				continue
			}
			id := versionKind{crd.Spec.Group + "/" + v.Name, crd.Spec.Names.Kind}
			out.kinds[id] = sync.OnceValues(func() (*kind, error) {
				k, err := newKind(&crd, v, id)
				if err != nil {
					return nil, fmt.Errorf("read the definition %s, version %s: %w", crd.Name, v.Name, err)
				}
				return k, nil
			})
		}
	}
	return out, nil
}

// newKind does what the API server does with a definition before it serves it.
func newKind(crd *apiextensionsv1.CustomResourceDefinition, v *apiextensionsv1.CustomResourceDefinitionVersion, id versionKind) (*kind, error) {
	if v.Schema == nil || v.Schema.OpenAPIV3Schema == nil {
		return nil, fmt.Errorf("it has no schema")
	}
	var internal apiextensions.CustomResourceValidation
	if err := apiextensionsv1.Convert_v1_CustomResourceValidation_To_apiextensions_CustomResourceValidation(v.Schema, &internal, nil); err != nil {
		return nil, err
	}
	s, err := structural.NewStructural(internal.OpenAPIV3Schema)
	if err != nil {
		return nil, err
	}
	s = s.DeepCopy()
	if err := defaulting.PruneDefaults(s); err != nil {
		return nil, err
	}
	validator, _, err := validation.NewSchemaValidator(internal.OpenAPIV3Schema)
	if err != nil {
		return nil, err
	}
	k := &kind{
		versionKind: id,
		namespaced:  crd.Spec.Scope == apiextensionsv1.NamespaceScoped,
		schema:      s,
		validator:   validator,
		rules:       cel.NewValidator(s, true, celconfig.PerCallLimit),
	}
	if sub := v.Subresources; sub != nil {
		k.status, k.scale = sub.Status != nil, sub.Scale != nil
		if k.scale && sub.Scale.SpecReplicasPath != replicasPath {
			return nil, fmt.Errorf("its scale is at %s, want %s", sub.Scale.SpecReplicasPath, replicasPath)
		}
	}
	return k, nil
}

// Served are the versions of a kind in a group, unsorted; none when the kind is not defined.
func (s *Schemas) Served(group, name string) []string {
	var out []string
	for k := range s.kinds {
		if g, _, _ := strings.Cut(k.apiVersion, "/"); g == group && k.kind == name {
			out = append(out, k.apiVersion)
		}
	}
	return out
}

// replicasPath is where a kind with a scale has its replicas, as the definition writes it.
const replicasPath = ".spec.replicas"

// replicas refuses what the scale subresource could not show.
func (k *kind) replicas(object map[string]any) field.ErrorList {
	spec, _ := object["spec"].(map[string]any)
	v, ok := spec["replicas"]
	if !k.scale || !ok {
		return nil
	}
	at := field.NewPath(replicasPath)
	switch n, isNumber := v.(int64); {
	case !isNumber:
		return field.ErrorList{field.Invalid(at, int64(0), fmt.Sprintf(
			".spec.replicas accessor error: %v is of the type %T, expected int64", v, v))}
	case n < 0:
		return field.ErrorList{field.Invalid(at, n, "should be a non-negative integer")}
	case n > math.MaxInt32:
		return field.ErrorList{field.Invalid(at, n, fmt.Sprintf("should be less than or equal to %v", math.MaxInt32))}
	}
	return nil
}
