package kube

import (
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"

	"kerf.sh/kerf/internal/snapshot"
)

// Patterns of the karpenter.sh/v1 API. Days are not a unit of it.
var (
	durationPattern = regexp.MustCompile(`^([0-9]+(s|m|h))+$`)
	budgetPattern   = regexp.MustCompile(`^((100|[0-9]{1,2})%|[0-9]+)$`)
	schedulePattern = regexp.MustCompile(`^(@(annually|yearly|monthly|weekly|daily|midnight|hourly)|\S+(\s+\S+){4})$`)
	windowPattern   = regexp.MustCompile(`^([0-9]+[hm])+(0s)?$`)
)

// check refuses what the API server would refuse and no verdict of the planner
// names: references, taints and durations. Requirements and labels are the
// planner's to judge.
func (s *claimTemplateSpec) check(field string) *fieldError {
	for _, f := range []struct{ name, value string }{
		{"group", s.NodeClassRef.Group}, {"kind", s.NodeClassRef.Kind}, {"name", s.NodeClassRef.Name},
	} {
		if f.value == "" {
			return refusedf(field+".nodeClassRef."+f.name, "missing (want group karpenter.k8s.aws, kind EC2NodeClass and the name of one)")
		}
	}
	for _, list := range []struct {
		name   string
		taints []taint
	}{{"taints", s.Taints}, {"startupTaints", s.StartupTaints}} {
		for i, t := range list.taints {
			at := fmt.Sprintf("%s.%s[%d]", field, list.name, i)
			if t.Key == "" {
				return refusedf(at+".key", "missing")
			}
			switch t.Effect {
			case "NoSchedule", "PreferNoSchedule", "NoExecute":
			default:
				return refusedf(at+".effect", "%q is not NoSchedule, PreferNoSchedule or NoExecute", t.Effect)
			}
		}
	}
	if err := duration(field+".expireAfter", s.ExpireAfter, true); err != nil {
		return err
	}
	return duration(field+".terminationGracePeriod", s.TerminationGracePeriod, false)
}

// check refuses what the API server would refuse of the fields beside the template
// and the disruption.
func (s *nodePoolSpec) check() *fieldError {
	if s.Weight != nil && (*s.Weight < 1 || *s.Weight > 100) {
		return refusedf("spec.weight", "%d is out of bounds: want 1 to 100, or leave it out (then it counts as 0)", *s.Weight)
	}
	if s.Replicas == nil {
		return nil
	}
	if *s.Replicas < 0 {
		return refusedf("spec.replicas", "%d is negative", *s.Replicas)
	}
	if s.Weight != nil {
		return refusedf("spec.weight", "a NodePool with spec.replicas has no weight: leave it out")
	}
	for _, name := range slices.Sorted(maps.Keys(s.Limits)) {
		if name != snapshot.Nodes {
			return refusedf("spec.limits", "%s: a NodePool with spec.replicas can limit %s alone", name, snapshot.Nodes)
		}
	}
	return nil
}

func (d *disruption) check() *fieldError {
	if d == nil {
		return nil
	}
	switch d.ConsolidationPolicy {
	case "", "WhenEmpty", "WhenEmptyOrUnderutilized", "Balanced":
	default:
		return refusedf("spec.disruption.consolidationPolicy", "%q is not WhenEmpty, WhenEmptyOrUnderutilized or Balanced", shorten(d.ConsolidationPolicy))
	}
	if d.ConsolidateAfter != nil {
		if err := duration("spec.disruption.consolidateAfter", orElse(*d.ConsolidateAfter, "?"), true); err != nil {
			return err
		}
	}
	if d.Budgets == nil {
		return nil
	}
	for i, b := range *d.Budgets {
		at := fmt.Sprintf("spec.disruption.budgets[%d]", i)
		if b.Nodes != nil && !budgetPattern.MatchString(*b.Nodes) {
			return refusedf(at+".nodes", "%q is no number of nodes and no share from 0%% to 100%%", shorten(*b.Nodes))
		}
		for k, reason := range b.Reasons {
			switch reason {
			case "Underutilized", "Empty", "Drifted":
			default:
				return refusedf(fmt.Sprintf("%s.reasons[%d]", at, k), "%q is not Underutilized, Empty or Drifted", shorten(reason))
			}
		}
		if (b.Schedule == "") != (b.Duration == "") {
			return refusedf(at, "schedule and duration go together: give both or neither")
		}
		if b.Schedule != "" && !schedulePattern.MatchString(b.Schedule) {
			return refusedf(at+".schedule", "%q is no cron schedule of five fields and no @daily or the like", shorten(b.Schedule))
		}
		if b.Duration != "" && !windowPattern.MatchString(b.Duration) {
			return refusedf(at+".duration", "%q is no window of hours and minutes (write it like 8h or 90m)", shorten(b.Duration))
		}
	}
	return nil
}

func duration(field, value string, never bool) *fieldError {
	if value == "" || durationPattern.MatchString(value) || never && value == "Never" {
		return nil
	}
	want := "write it like 720h or 1h30m"
	if never {
		want += ", or Never"
	}
	return refusedf(field, "%q is no duration of hours, minutes and seconds (%s)", shorten(value), want)
}

// moved says where fields of older versions of the API are now.
var moved = map[string]string{
	"spec.template.spec.kubelet":                 "it is spec.kubelet of the EC2NodeClass",
	"spec.template.spec.nodeClassRef.apiVersion": "write group: karpenter.k8s.aws in its place",
	"spec.disruption.expireAfter":                "it is spec.template.spec.expireAfter",
	"spec.nodeClassRef.apiVersion":               "write group: karpenter.k8s.aws in its place",
	"spec.ttlSecondsAfterEmpty":                  "it is spec.disruption.consolidateAfter",
	"spec.ttlSecondsUntilExpired":                "it is spec.template.spec.expireAfter",
	"spec.providerRef":                           "it is spec.template.spec.nodeClassRef",
	"spec.requirements":                          "it is spec.template.spec.requirements",
	"spec.taints":                                "it is spec.template.spec.taints",
	"spec.labels":                                "it is spec.template.metadata.labels",
}

// explainUnknown adds where an unknown field of a Karpenter kind has gone.
func explainUnknown(e *fieldError) *fieldError {
	where, ok := moved[e.field]
	if e.refused || !ok || !strings.HasPrefix(e.message, "unknown field") {
		return e
	}
	return malformed(e.field, "unknown field: "+where)
}
