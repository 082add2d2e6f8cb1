package setup

import (
	"encoding/json"

	"kerf.sh/kerf/internal/kube/live"
)

// Functions are those that ask the API server, each in the Group of its own.
var Functions = []string{"plan", "sweep", "lifecycle", "consolidation", "interruption", "catalog"}

// Group is the Kubernetes group of a function, which its access entry puts it into.
func Group(function string) string { return "kerf:" + function }

// manager is whose the fields are that this package sets.
const manager = "kerf"

// object is an object of ours.
type object struct {
	live.Target
	body map[string]any
}

func (o object) json() (json.RawMessage, error) { return json.Marshal(o.body) }

// kinds of ours.
const (
	rbac = "rbac.authorization.k8s.io"
	flow = "flowcontrol.apiserver.k8s.io"
	ext  = "apiextensions.k8s.io"
)

func newObject(group, kind, resource, name string, fields map[string]any) object {
	body := map[string]any{
		"apiVersion": group + "/v1", "kind": kind,
		"metadata": map[string]any{"name": name, "labels": map[string]any{"app.kubernetes.io/managed-by": manager}},
	}
	for k, v := range fields {
		body[k] = v
	}
	return object{live.Target{Group: group, Version: "v1", Resource: resource, Name: name}, body}
}

// access is a ClusterRole for each function, bound to its group.
func access() []object {
	var out []object
	for _, f := range Functions {
		var rules []any
		for _, r := range live.Access(f) {
			rule := map[string]any{"apiGroups": []string{r.Group}, "resources": r.Resources, "verbs": r.Verbs}
			if r.Names != nil {
				rule["resourceNames"] = r.Names
			}
			rules = append(rules, rule)
		}
		name := manager + "-" + f
		out = append(out,
			newObject(rbac, "ClusterRole", "clusterroles", name, map[string]any{"rules": rules}),
			newObject(rbac, "ClusterRoleBinding", "clusterrolebindings", name, map[string]any{
				"roleRef":  map[string]any{"apiGroup": rbac, "kind": "ClusterRole", "name": name},
				"subjects": []any{map[string]any{"apiGroup": rbac, "kind": "Group", "name": Group(f)}},
			}))
	}
	return out
}

// fairness gives the requests of the functions a share of their own: a list of all pods does
// not keep anybody else waiting, nor one function the others.
func fairness() []object {
	var subjects []any
	for _, f := range Functions {
		subjects = append(subjects, map[string]any{"kind": "Group", "group": map[string]any{"name": Group(f)}})
	}
	return []object{
		newObject(flow, "PriorityLevelConfiguration", "prioritylevelconfigurations", manager, map[string]any{"spec": map[string]any{
			"type": "Limited",
			"limited": map[string]any{
				"nominalConcurrencyShares": 10, "lendablePercent": 50,
				"limitResponse": map[string]any{"type": "Queue", "queuing": map[string]any{"queues": 16, "handSize": 4, "queueLengthLimit": 50}},
			},
		}}),
		// Behind the cluster's own components, before everybody who has no place.
		newObject(flow, "FlowSchema", "flowschemas", manager, map[string]any{"spec": map[string]any{
			"matchingPrecedence":         7000,
			"priorityLevelConfiguration": map[string]any{"name": manager},
			"distinguisherMethod":        map[string]any{"type": "ByUser"},
			"rules": []any{map[string]any{
				"subjects":         subjects,
				"resourceRules":    []any{map[string]any{"verbs": []string{"*"}, "apiGroups": []string{"*"}, "resources": []string{"*"}, "clusterScope": true, "namespaces": []string{"*"}}},
				"nonResourceRules": []any{map[string]any{"verbs": []string{"*"}, "nonResourceURLs": []string{"*"}}},
			}},
		}}),
	}
}
