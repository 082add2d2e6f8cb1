package live

import (
	"fmt"
	"slices"
	"testing"
)

// TestAccess: what only reads may only list, and it may list what a snapshot is made of;
// nobody may everything, and nobody unknown anything.
func TestAccess(t *testing.T) {
	may := func(function, group, resource, verb string) bool {
		return slices.ContainsFunc(Access(function), func(r Rule) bool {
			return r.Group == group && slices.Contains(r.Resources, resource) && slices.Contains(r.Verbs, verb)
		})
	}
	for _, k := range Kinds() {
		for _, f := range []string{"plan", "sweep"} {
			if !may(f, k.Group, k.Resource, "list") {
				t.Errorf("%s may not list %s", f, k.Resource)
			}
		}
	}
	for _, f := range []string{"plan", "sweep", "lifecycle", "catalog"} {
		rules := Access(f)
		if len(rules) == 0 {
			t.Errorf("%s may nothing", f)
		}
		seen := map[string]bool{}
		for _, r := range rules {
			for _, resource := range r.Resources {
				for _, verb := range r.Verbs {
					one := fmt.Sprint(r.Group, "/", resource, " ", verb)
					if seen[one] || resource == "*" || verb == "*" || resource == "secrets" || f == "plan" && verb != "list" && verb != "get" || resource == "configmaps" && len(r.Names) == 0 {
						t.Errorf("%s: %s", f, one)
					}
					seen[one] = true
				}
			}
		}
	}
	for _, tc := range []struct {
		function, group, resource, verb string
		want                            bool
	}{
		{"catalog", "karpenter.k8s.aws", "ec2nodeclasses", "patch", true},
		{"catalog", "karpenter.k8s.aws", "ec2nodeclasses/status", "patch", true},
		{"catalog", "", "nodes", "patch", false},
		{"catalog", "karpenter.sh", "nodeclaims", "delete", false},
		{"sweep", "", "pods/status", "patch", true},
		{"sweep", "", "pods", "delete", false},
		{"sweep", "karpenter.k8s.aws", "ec2nodeclasses", "patch", false},
		{"lifecycle", "", "nodes", "delete", true},
		{"lifecycle", "apps", "deployments", "list", false},
	} {
		if got := may(tc.function, tc.group, tc.resource, tc.verb); got != tc.want {
			t.Errorf("%+v: %v", tc, got)
		}
	}
	if Access("nobody") != nil {
		t.Error("a function that is not there may something")
	}
}
