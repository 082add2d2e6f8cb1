package live

// Rule is one rule of a ClusterRole.
type Rule struct {
	Group     string
	Resources []string
	Verbs     []string
	// Names leaves it to objects of these names; nil = all.
	Names []string
}

// Access is what the functions ask of the API server, as the rules of a ClusterRole for
// each of them: no function may more. A function that is not in it has no access.
func Access(function string) []Rule {
	karpenter, aws := "karpenter.sh", "karpenter.k8s.aws"
	verbs := func(v ...string) []string { return v }
	lists := map[string][]string{}
	var order []string
	for _, k := range kinds {
		if lists[k.group] == nil {
			order = append(order, k.group)
		}
		lists[k.group] = append(lists[k.group], k.resource)
	}
	var everything []Rule
	for _, group := range order {
		everything = append(everything, Rule{Group: group, Resources: lists[group], Verbs: verbs("list")})
	}
	// Nodes and NodeClaims of nodes that come and go, and what tells people of them.
	nodes := []Rule{
		{Resources: []string{"nodes"}, Verbs: verbs("get", "patch", "delete")},
		{Resources: []string{"pods"}, Verbs: verbs("get")},
		{Group: karpenter, Resources: []string{"nodeclaims"}, Verbs: verbs("get", "create", "patch", "delete")},
		{Group: karpenter, Resources: []string{"nodeclaims/status"}, Verbs: verbs("patch")},
		// An owner reference that blocks the owner's deletion needs it, where the API server is
		// told to check that.
		{Group: karpenter, Resources: []string{"nodepools/finalizers", "nodeclaims/finalizers"}, Verbs: verbs("update")},
		{Group: "coordination.k8s.io", Resources: []string{"leases"}, Verbs: verbs("list")},
		{Group: "events.k8s.io", Resources: []string{"events"}, Verbs: verbs("create")},
	}
	switch function {
	case "plan":
		// What is more is what the doctor looks at.
		return append(everything,
			Rule{Group: "coordination.k8s.io", Resources: []string{"leases"}, Verbs: verbs("list")},
			Rule{Group: "apiextensions.k8s.io", Resources: []string{"customresourcedefinitions"}, Verbs: verbs("get")},
			Rule{Resources: []string{"configmaps"}, Verbs: verbs("get"), Names: []string{"aws-auth"}})
	case "sweep":
		return append(append(everything, nodes...),
			Rule{Resources: []string{"pods/status"}, Verbs: verbs("patch")})
	case "lifecycle":
		return append([]Rule{
			{Resources: []string{"nodes", "pods", "persistentvolumeclaims"}, Verbs: verbs("list")},
			{Group: "storage.k8s.io", Resources: []string{"volumeattachments"}, Verbs: verbs("list")},
			{Group: karpenter, Resources: []string{"nodeclaims", "nodepools"}, Verbs: verbs("list")},
			{Group: aws, Resources: []string{"ec2nodeclasses"}, Verbs: verbs("list")},
			{Group: karpenter, Resources: []string{"nodeoverlays"}, Verbs: verbs("list")},
			{Resources: []string{"pods/status"}, Verbs: verbs("patch")},
			{Resources: []string{"pods/eviction"}, Verbs: verbs("create")},
			// By force only, where a node's time is over before its pods' would be.
			{Resources: []string{"pods"}, Verbs: verbs("delete")},
		}, nodes...)
	case "consolidation":
		return append(everything, nodes...)
	case "interruption":
		return []Rule{
			{Resources: []string{"nodes"}, Verbs: verbs("get", "patch")},
			{Group: karpenter, Resources: []string{"nodepools"}, Verbs: verbs("list")},
			{Group: "events.k8s.io", Resources: []string{"events"}, Verbs: verbs("create")},
		}
	case "catalog":
		return []Rule{
			{Resources: []string{"nodes"}, Verbs: verbs("list")},
			{Group: karpenter, Resources: []string{"nodeclaims"}, Verbs: verbs("list")},
			{Group: karpenter, Resources: []string{"nodepools"}, Verbs: verbs("get", "list")},
			{Group: karpenter, Resources: []string{"nodepools/status"}, Verbs: verbs("patch")},
			{Group: aws, Resources: []string{"ec2nodeclasses"}, Verbs: verbs("get", "list", "patch")},
			{Group: aws, Resources: []string{"ec2nodeclasses/status"}, Verbs: verbs("patch")},
			{Group: "coordination.k8s.io", Resources: []string{"leases"}, Verbs: verbs("list")},
			{Group: "events.k8s.io", Resources: []string{"events"}, Verbs: verbs("create")},
		}
	}
	return nil
}
