package scheduling

import (
	"fmt"
	"slices"

	"kerf.sh/kerf/internal/catalog"
	"kerf.sh/kerf/internal/plan"
	"kerf.sh/kerf/internal/requirements"
	"kerf.sh/kerf/internal/snapshot"
)

// Rules is where a pod may run, requests left out: everything that pods of one
// rules-key have in common.
type Rules struct {
	Spec *snapshot.PodSpec
	// Alternatives are the OR terms of the required node affinity, each with the
	// node selector: a node must satisfy every requirement of one of them. A pod
	// without either has one empty alternative; none at all means that nothing
	// can match.
	Alternatives [][]requirements.Requirement
	// Volumes are what the pods' volumes ask of a node, every one of them.
	Volumes []*VolumeDemand
	// slots is how many volumes a pod attaches for itself, by resource; shared are those
	// that other pods use too, by position in attachments.shared.
	slots  map[string]int64
	shared []int32
	// steps are the preferences, in the order in which they are dropped.
	steps []step
	// refused says why no node is launched for pods with these rules; "" = one may be.
	refused plan.Code
	detail  string
}

// compileRules reads the node selector and required node affinity of a pod. The
// terms are a real union. Karpenter tries the first one and drops it when that
// fails, which in the end is the same.
func compileRules(spec *snapshot.PodSpec) Rules {
	r := Rules{Spec: spec}
	var base []requirements.Requirement
	for _, k := range sortedKeys(spec.NodeSelector) {
		q, err := requirements.New(snapshot.SelectorRequirement{Key: k, Operator: requirements.OpIn, Values: []string{spec.NodeSelector[k]}})
		if err != nil {
			return r.refuse(plan.InvalidSelector, "spec.nodeSelector: "+err.Error())
		}
		base = append(base, q)
	}
	if spec.Required == nil {
		r.Alternatives = [][]requirements.Requirement{base}
		return r
	}
	invalid := ""
	named, first := 0, len(spec.Required)
terms:
	for i := range spec.Required {
		t := &spec.Required[i]
		if len(t.Expressions)+len(t.Fields) == 0 {
			continue // an empty term matches no node
		}
		alt := append(make([]requirements.Requirement, 0, len(base)+len(t.Expressions)), base...)
		for _, e := range slices.Concat(t.Expressions, t.Fields) {
			q, err := requirements.New(e)
			if err == nil && (e.Operator == requirements.OpGte || e.Operator == requirements.OpLte) {
				err = fmt.Errorf("%s %s: Kubernetes has no such operator in pods; use Gt or Lt", e.Key, e.Operator)
			}
			if err != nil { // kube-scheduler drops the term: it matches no node
				if invalid == "" {
					invalid = fmt.Sprintf("required node affinity term %d: %s", i, err)
				}
				continue terms
			}
			alt = append(alt, q)
		}
		r.Alternatives = append(r.Alternatives, alt)
		if namesNode(alt) {
			named++
			first = min(first, i)
		}
	}
	if named > 0 && named == len(r.Alternatives) {
		return r.refuse(plan.MatchFieldsUsed, fmt.Sprintf("required node affinity term %d uses matchFields, which name nodes that exist: no node is launched for it, and none that exists takes it", first))
	}
	if invalid != "" && len(r.Alternatives) == 0 {
		return r.refuse(plan.InvalidSelector, invalid)
	}
	return r
}

// fieldName is the one field that node affinity can match. It is kept among the
// labels: no node has a label of this name.
const fieldName = "metadata.name"

// namesNode reports whether a term uses matchFields: it speaks of nodes that exist,
// and no new node satisfies it (Karpenter refuses the whole pod).
func namesNode(alt []requirements.Requirement) bool {
	for i := range alt {
		if alt[i].Key() == fieldName {
			return true
		}
	}
	return false
}

// forNew are the alternatives that a new node can satisfy.
func (r *Rules) forNew() [][]requirements.Requirement {
	for i := range r.Alternatives {
		if namesNode(r.Alternatives[i]) {
			return slices.DeleteFunc(slices.Clone(r.Alternatives), namesNode)
		}
	}
	return r.Alternatives
}

func (r Rules) refuse(code plan.Code, detail string) Rules {
	r.refused, r.detail = code, detail
	return r
}

// restrict refuses new nodes to rules that no new node may be launched for: labels
// that are not the user's to choose, and the wish to avoid all NodePools. Nodes
// that exist may still take such pods.
func (r Rules) restrict() Rules {
	if r.refused != "" {
		return r
	}
	avoid := len(r.Alternatives) > 0
	for _, alt := range r.forNew() {
		avoids := false
		for i := range alt {
			key := alt[i].Key()
			if key == catalog.LabelNodePool && alt[i].Empty() && alt[i].AllowsAbsent() {
				avoids = true
			}
			if err := requirements.Restricted(key); err != nil && key != catalog.LabelNodeClass {
				return r.refuse(plan.InvalidSelector, err.Error()+"; no node is launched for it, and none that exists takes it")
			}
		}
		avoid = avoid && avoids
	}
	if avoid {
		return r.refuse(plan.RefusesNodePools, "requires "+catalog.LabelNodePool+" DoesNotExist: no node is launched for it, and none that exists takes it")
	}
	return r
}

// satisfied evaluates a requirement on what a node has for its label.
func satisfied(r *requirements.Requirement, value string, present bool) bool {
	if !present {
		return r.AllowsAbsent()
	}
	return r.Has(value)
}
