package schema

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"

	structural "k8s.io/apiextensions-apiserver/pkg/apiserver/schema"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema/cel"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema/cel/model"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema/defaulting"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema/listtype"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema/objectmeta"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema/pruning"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/validation"
	apivalidation "k8s.io/apimachinery/pkg/api/validation"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/validation/field"
	celconfig "k8s.io/apiserver/pkg/apis/cel"
	"k8s.io/apiserver/pkg/cel/common"
	"k8s.io/apiserver/pkg/warning"
	"sigs.k8s.io/json"
)

// Cause is one reason why an object is refused, as in the details of the API server's answer.
type Cause struct {
	// Field is the path of the field; "" and "<nil>" where the API server names none.
	Field string
	// Reason is the API's word: FieldValueRequired, FieldValueInvalid, ...
	Reason string
	// Message is what it says about the field, without the path.
	Message string
}

// Verdict is what the API server would say of an object.
type Verdict struct {
	// Undecodable is the message when the object is no object of its kind at all; there is
	// nothing else then.
	Undecodable string
	// Unknown are messages about unknown fields. kubectl asks the server to refuse them; a
	// client that does not gets a warning, and the fields are dropped.
	Unknown []string
	// Causes are why it is refused, by field: the API server's order changes from call to call.
	// The last one tells that rules were not looked at, when it is so.
	Causes []Cause
	// Warnings are what it says beside taking the object: what was wrong before the change
	// already, and is left as it is.
	Warnings []string
	// Object is what would be stored: pruned, with defaults. nil when Undecodable is set.
	Object map[string]any
}

// Fine reports whether the API server would take the object from kubectl.
func (v *Verdict) Fine() bool {
	return v.Undecodable == "" && len(v.Unknown) == 0 && len(v.Causes) == 0
}

// ErrKind is the error about an object of a kind or version that is not defined.
var ErrKind = errors.New("the kind is not defined in this version")

// Check holds an object, as JSON, against its definition. old is the object that it would take
// the place of, nil when it is new: rules about changes are for those that have one.
func (s *Schemas) Check(raw, old []byte) (*Verdict, error) {
	var id metav1.TypeMeta
	if err := json.UnmarshalCaseSensitivePreserveInts(raw, &id); err != nil {
		return nil, fmt.Errorf("read an object: %w", err)
	}
	of := s.kinds[versionKind{id.APIVersion, id.Kind}]
	if of == nil {
		return nil, fmt.Errorf("%s %s: %w", id.APIVersion, id.Kind, ErrKind)
	}
	k, err := of()
	if err != nil {
		return nil, err
	}
	out := &Verdict{}
	u, unknown, err := k.decode(raw)
	if err != nil {
		out.Undecodable = err.Error()
		return out, nil
	}
	out.Unknown, out.Object = unknown, u.Object
	var before *unstructured.Unstructured
	if old != nil {
		if before, _, err = k.decode(old); err != nil {
			return nil, fmt.Errorf("read the object that it replaces: %w", err)
		}
	}
	var errs field.ErrorList
	if before == nil {
		k.prepareNew(u)
		errs = k.created(u)
	} else {
		k.prepareChanged(u, before)
		errs = k.changed(warning.WithWarningRecorder(context.Background(), out), u, before)
	}
	slices.Sort(out.Warnings)
	for _, e := range errs {
		out.Causes = append(out.Causes, Cause{Field: e.Field, Reason: string(e.Type), Message: e.ErrorBody()})
	}
	slices.SortStableFunc(out.Causes, func(a, b Cause) int {
		return cmp.Or(later(a)-later(b), cmp.Compare(a.Field, b.Field), cmp.Compare(a.Message, b.Message))
	})
	return out, nil
}

// AddWarning takes a warning of the API server's code; agent is always "".
func (v *Verdict) AddWarning(_, text string) { v.Warnings = append(v.Warnings, text) }

// later puts a cause about no field behind the others.
func later(c Cause) int {
	if c.Field == "" || c.Field == "<nil>" {
		return 1
	}
	return 0
}

// decode makes of bytes what the API server makes of them: metadata in their own form, unknown
// fields gone, defaults in. The strings are the strict errors, in its words.
func (k *kind) decode(raw []byte) (*unstructured.Unstructured, []string, error) {
	u := &unstructured.Unstructured{}
	strict, err := json.UnmarshalStrict(raw, &u.Object, json.DisallowDuplicateFields)
	if err != nil {
		return nil, nil, err
	}
	var unknown []string
	for _, e := range strict {
		unknown = append(unknown, e.Error())
	}
	meta, found, paths, err := objectmeta.GetObjectMetaWithOptions(u.Object, objectmeta.ObjectMetaOptions{ReturnUnknownFieldPaths: true})
	if err != nil {
		return nil, nil, err
	}
	paths = append(paths, pruning.PruneWithOptions(u.Object, k.schema, true, structural.UnknownFieldPathOptions{TrackUnknownFieldPaths: true})...)
	defaulting.PruneNonNullableNullsWithoutDefaults(u.Object, k.schema)
	coerce, more := objectmeta.CoerceWithOptions(nil, u.Object, k.schema, false, objectmeta.CoerceOptions{ReturnUnknownFieldPaths: true})
	if coerce != nil {
		return nil, nil, coerce
	}
	for _, p := range append(paths, more...) {
		unknown = append(unknown, fmt.Sprintf("unknown field %q", p))
	}
	u.SetKind(k.kind)
	u.SetAPIVersion(k.apiVersion)
	if found {
		if err := objectmeta.SetObjectMeta(u.Object, meta); err != nil {
			return nil, nil, err
		}
	}
	defaulting.Default(u.Object, k.schema)
	return u, unknown, nil
}

// prepareNew fills in what the server gives a new object before it looks at it.
func (k *kind) prepareNew(u *unstructured.Unstructured) {
	if k.status {
		delete(u.Object, "status")
	}
	u.SetGeneration(1)
	u.SetCreationTimestamp(metav1.Unix(1, 0)) // any: nothing looks at it
	k.home(u)
	if base := u.GetGenerateName(); u.GetName() == "" && base != "" {
		u.SetName(base[:min(len(base), 58)] + "00000")
	}
}

// home puts an object of a namespace into one.
func (k *kind) home(u *unstructured.Unstructured) {
	if k.namespaced && u.GetNamespace() == "" {
		u.SetNamespace(metav1.NamespaceDefault)
	}
}

// prepareChanged fills in what a patch leaves as it is: kubectl apply sends one.
func (k *kind) prepareChanged(u, old *unstructured.Unstructured) {
	k.home(u)
	k.home(old)
	if old.GetResourceVersion() == "" {
		old.SetResourceVersion("1")
	}
	if old.GetUID() == "" {
		old.SetUID(types.UID("0"))
	}
	if old.GetCreationTimestamp() == (metav1.Time{}) {
		old.SetCreationTimestamp(metav1.Unix(1, 0))
	}
	u.SetResourceVersion(old.GetResourceVersion())
	u.SetUID(old.GetUID())
	u.SetCreationTimestamp(old.GetCreationTimestamp())
	u.SetDeletionTimestamp(old.GetDeletionTimestamp())
	u.SetGeneration(max(1, old.GetGeneration()))
	if !k.status {
		return
	}
	if status, ok := old.Object["status"]; ok {
		u.Object["status"] = status
	} else {
		delete(u.Object, "status")
	}
}

// created are the errors about a new object.
func (k *kind) created(u *unstructured.Unstructured) field.ErrorList {
	errs := apivalidation.ValidateObjectMetaAccessor(u, k.namespaced, apivalidation.NameIsDNSSubdomain, field.NewPath("metadata"))
	errs = append(errs, validation.ValidateCustomResource(nil, u.Object, k.validator)...)
	errs = append(errs, k.replicas(u.Object)...)
	errs = append(errs, objectmeta.Validate(nil, u.Object, k.schema, false)...)
	errs = append(errs, listtype.ValidateListSetsAndMaps(nil, k.schema, u.Object)...)
	return k.ruled(context.Background(), errs, u.Object, nil)
}

// changed are the errors about an object that takes the place of old. What was wrong already and
// is left as it is stays unsaid, as the API server ratchets.
func (k *kind) changed(ctx context.Context, u, old *unstructured.Unstructured) field.ErrorList {
	same := common.NewCorrelatedObject(u.Object, old.Object, &model.Structural{Structural: k.schema})
	errs := apivalidation.ValidateObjectMetaAccessorUpdate(u, old, field.NewPath("metadata"))
	errs = append(errs, validation.ValidateCustomResourceUpdate(nil, u.Object, old.Object, k.validator, validation.WithRatcheting(same))...)
	errs = append(errs, k.replicas(u.Object)...)
	errs = append(errs, objectmeta.Validate(nil, u.Object, k.schema, false)...)
	if was := listtype.ValidateListSetsAndMaps(nil, k.schema, old.Object); len(was) == 0 {
		errs = append(errs, listtype.ValidateListSetsAndMaps(nil, k.schema, u.Object)...)
	}
	return k.ruled(ctx, errs, u.Object, old.Object, cel.WithRatcheting(same))
}

// ruled adds what the CEL rules say, unless the object has not even the shape that they are about.
func (k *kind) ruled(ctx context.Context, errs field.ErrorList, object, old map[string]any, options ...cel.Option) field.ErrorList {
	if k.rules == nil {
		return errs
	}
	for _, e := range errs {
		switch e.Type {
		case field.ErrorTypeNotSupported, field.ErrorTypeRequired, field.ErrorTypeTooLong, field.ErrorTypeTooMany, field.ErrorTypeTypeInvalid:
			return append(errs, field.Invalid(nil, nil, "some validation rules were not checked because the object was invalid; correct the existing errors to complete validation"))
		}
	}
	var before any
	if old != nil {
		before = old
	}
	found, _ := k.rules.Validate(ctx, nil, k.schema, object, before, celconfig.RuntimeCELCostBudget, options...)
	return append(errs, found...)
}
