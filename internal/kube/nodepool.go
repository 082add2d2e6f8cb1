package kube

import (
	"encoding/json"
	"strings"

	"kerf.sh/kerf/internal/snapshot"
)

// Defaults of the karpenter.sh/v1 API, which live objects carry and manifests
// may leave out.
const (
	defaultExpireAfter      = "720h"
	defaultConsolidateAfter = "0s"
	defaultPolicy           = "WhenEmptyOrUnderutilized"
	defaultBudget           = "10%"
	// unlimitedBudget stands for an explicit empty list of budgets.
	unlimitedBudget = "100%"
)

func (r *reader) addNodePool(p *nodePool, o object) *fieldError {
	if err := p.Spec.Template.Spec.check("spec.template.spec"); err != nil {
		return err
	}
	if err := p.Spec.Disruption.check(); err != nil {
		return err
	}
	if err := p.Spec.check(); err != nil {
		return err
	}
	out := snapshot.NodePool{
		Name:                   p.Metadata.Name,
		UID:                    string(p.Metadata.UID),
		Generation:             p.Metadata.Generation,
		Annotations:            annotations(p.Metadata.Annotations),
		Limits:                 amounts(p.Spec.Limits),
		Replicas:               p.Spec.Replicas,
		TemplateLabels:         labels(p.Spec.Template.Metadata.Labels),
		TemplateAnnotations:    labels(p.Spec.Template.Metadata.Annotations),
		Taints:                 ownTaints(p.Spec.Template.Spec.Taints),
		StartupTaints:          ownTaints(p.Spec.Template.Spec.StartupTaints),
		Requirements:           ownRequirements(p.Spec.Template.Spec.Requirements),
		ClassRef:               snapshot.ClassRef(p.Spec.Template.Spec.NodeClassRef),
		ExpireAfter:            orElse(p.Spec.Template.Spec.ExpireAfter, defaultExpireAfter),
		TerminationGracePeriod: p.Spec.Template.Spec.TerminationGracePeriod,
		Disruption:             disruptionOf(p.Spec.Disruption),
		Deleting:               when(p.Metadata.DeletionTimestamp),
	}
	if p.Spec.Weight != nil {
		out.Weight = *p.Spec.Weight
	}
	var status nodePoolStatus
	present, err := decodeStatus(p.Status, &status)
	if err != nil {
		return err
	}
	out.HasStatus = present && len(status.Conditions) > 0
	out.Conditions = metaConditions(status.Conditions)
	r.snap.NodePools = append(r.snap.NodePools, out)
	return nil
}

// decodeStatus reads a status leniently; present is false when there is none.
func decodeStatus(raw json.RawMessage, into any) (present bool, err *fieldError) {
	if t := strings.TrimSpace(string(raw)); t == "" || t == "null" || t == "{}" {
		return false, nil
	}
	return true, decodeLenient(raw, into, "status")
}

func ownTaints(in []taint) []snapshot.Taint {
	var out []snapshot.Taint
	for _, t := range in {
		out = append(out, snapshot.Taint{Key: t.Key, Value: t.Value, Effect: t.Effect})
	}
	return out
}

func ownRequirements(in []requirement) []snapshot.SelectorRequirement {
	var out []snapshot.SelectorRequirement
	for _, q := range in {
		one := snapshot.SelectorRequirement{Key: q.Key, Operator: q.Operator, Values: q.Values}
		if q.MinValues != nil {
			one.MinValues = *q.MinValues
		}
		out = append(out, one)
	}
	return out
}

// disruptionOf fills in the API's defaults. An explicit empty list of budgets
// limits nothing; it becomes a budget of 100 %.
func disruptionOf(d *disruption) snapshot.Disruption {
	out := snapshot.Disruption{ConsolidationPolicy: defaultPolicy, ConsolidateAfter: defaultConsolidateAfter}
	if d == nil {
		out.Budgets = []snapshot.Budget{{Nodes: defaultBudget}}
		return out
	}
	out.ConsolidationPolicy = orElse(d.ConsolidationPolicy, defaultPolicy)
	if d.ConsolidateAfter != nil {
		out.ConsolidateAfter = *d.ConsolidateAfter
	}
	switch {
	case d.Budgets == nil:
		out.Budgets = []snapshot.Budget{{Nodes: defaultBudget}}
	case len(*d.Budgets) == 0:
		out.Budgets = []snapshot.Budget{{Nodes: unlimitedBudget}}
	default:
		for _, b := range *d.Budgets {
			one := snapshot.Budget{Nodes: defaultBudget, Reasons: b.Reasons, Schedule: b.Schedule, Duration: b.Duration}
			if b.Nodes != nil {
				one.Nodes = *b.Nodes
			}
			out.Budgets = append(out.Budgets, one)
		}
	}
	return out
}

func orElse(s, otherwise string) string {
	if s == "" {
		return otherwise
	}
	return s
}
