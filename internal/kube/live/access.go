package live

// Rule is one rule of a ClusterRole.
type Rule struct {
	Group     string
	Resources []string
	Verbs     []string
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
		everything = append(everything, Rule{group, lists[group], verbs("list")})
	}
	// Nodes and NodeClaims of nodes that come and go, and what tells people of them.
	nodes := []Rule{
		{"", []string{"nodes"}, verbs("get", "patch", "delete")},
		{"", []string{"pods"}, verbs("get")},
		{karpenter, []string{"nodeclaims"}, verbs("get", "create", "patch", "delete")},
		{karpenter, []string{"nodeclaims/status"}, verbs("patch")},
		// An owner reference that blocks the owner's deletion needs it, where the API server is
		// told to check that.
		{karpenter, []string{"nodepools/finalizers", "nodeclaims/finalizers"}, verbs("update")},
		{"coordination.k8s.io", []string{"leases"}, verbs("list")},
		{"events.k8s.io", []string{"events"}, verbs("create")},
	}
	switch function {
	case "plan":
		return everything
	case "sweep":
		return append(append(everything, nodes...),
			Rule{"", []string{"pods/status"}, verbs("patch")})
	case "lifecycle":
		return append([]Rule{
			{"", []string{"nodes", "pods", "persistentvolumeclaims"}, verbs("list")},
			{"storage.k8s.io", []string{"volumeattachments"}, verbs("list")},
			{karpenter, []string{"nodeclaims", "nodepools"}, verbs("list")},
			{aws, []string{"ec2nodeclasses"}, verbs("list")},
			{karpenter, []string{"nodeoverlays"}, verbs("list")},
			{"", []string{"pods/status"}, verbs("patch")},
			{"", []string{"pods/eviction"}, verbs("create")},
			// By force only, where a node's time is over before its pods' would be.
			{"", []string{"pods"}, verbs("delete")},
		}, nodes...)
	case "consolidation":
		return append(everything, nodes...)
	case "interruption":
		return []Rule{
			{"", []string{"nodes"}, verbs("get", "patch")},
			{karpenter, []string{"nodepools"}, verbs("list")},
			{"events.k8s.io", []string{"events"}, verbs("create")},
		}
	case "catalog":
		return []Rule{
			{"", []string{"nodes"}, verbs("list")},
			{karpenter, []string{"nodeclaims"}, verbs("list")},
			{karpenter, []string{"nodepools"}, verbs("get", "list")},
			{karpenter, []string{"nodepools/status"}, verbs("patch")},
			{aws, []string{"ec2nodeclasses"}, verbs("get", "list", "patch")},
			{aws, []string{"ec2nodeclasses/status"}, verbs("patch")},
			{"coordination.k8s.io", []string{"leases"}, verbs("list")},
			{"events.k8s.io", []string{"events"}, verbs("create")},
		}
	}
	return nil
}
