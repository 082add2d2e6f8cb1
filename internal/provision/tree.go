package provision

import (
	"fmt"
	"slices"
	"strings"

	"kerf.sh/kerf/internal/plan"
	"kerf.sh/kerf/internal/scheduling"
	"kerf.sh/kerf/internal/snapshot"
)

// explainPod tells where a pod goes or why it goes nowhere, pool by pool and for
// the nearest nodes.
func (pl *planner) explainPod(ref string) []plan.Line {
	at := slices.IndexFunc(pl.s.Pods, func(p snapshot.Pod) bool { return p.Ref() == ref })
	if at < 0 {
		var all []string
		for i := range pl.s.Pods {
			all = append(all, pl.s.Pods[i].Ref())
		}
		return notFound("pod", ref, all)
	}
	pod := &pl.s.Pods[at]
	class := slices.IndexFunc(pl.w.Classes, func(c scheduling.Class) bool { return slices.Contains(c.Pods, int32(at)) })
	object := "pod/" + ref
	lines := []plan.Line{line("It asks for %s.", requests(pod.Spec.Requests))}
	if pod.NodeName != "" {
		if class < 0 && !slices.ContainsFunc(pl.w.Skipped, func(v plan.Verdict) bool { return v.Object == object }) {
			return []plan.Line{line("It runs on node %s: there is nothing to plan.", pod.NodeName)}
		}
		lines = append(lines, line("It runs on node %s, which is going.", pod.NodeName))
	}
	for _, v := range slices.Concat(pl.w.Skipped, pl.w.Refused) {
		if v.Object == object {
			return append(lines, line("It is not planned (%s): %s.", v.Code, v.Detail))
		}
	}
	for _, p := range pl.out.Placements {
		if p.Pod == ref && p.Nominated {
			return append(lines, line("It was given %s before and fits there: it waits for that node, and nothing is planned for it.", p.Node))
		}
		if p.Pod == ref {
			return append(lines, line("It fits on %s, so no node is launched for it.", p.Node))
		}
	}
	for _, d := range pl.out.Displaced {
		if d.Pod == ref && slices.ContainsFunc(pl.w.Nodes, func(n scheduling.Node) bool { return n.Name == d.To }) {
			return append(lines, line("It fits on %s, so no node is launched for it.", d.To))
		}
	}
	for i := range pl.out.Launches {
		l := &pl.out.Launches[i]
		if _, ok := slices.BinarySearch(l.Pods, ref); ok {
			return append(lines, pl.explainLaunch(class, l), pl.heavierPools(class, l.NodePool))
		}
	}
	lines = append(lines, line("It stays pending."))
	if code, detail := pl.w.Refusal(class); code != "" {
		lines = append(lines, line("No node is launched for it (%s): %s.", code, detail))
		return append(lines, pl.explainTargets(class)...)
	}
	for _, r := range pl.reasons(class) {
		lines = append(lines, line("NodePool %s (%s): %s.", r.NodePool, r.Code, r.Detail))
	}
	return append(lines, pl.explainTargets(class)...)
}

func (pl *planner) explainLaunch(class int, l *plan.Launch) plan.Line {
	out := line("It runs on %s, a new node of NodePool %s with %s.", l.Name, l.NodePool, plan.Count(len(l.Pods), "pod"))
	c := &l.Chosen
	out.Children = append(out.Children,
		line("%s in zone %s as %s for %s per hour, the first of %s.", c.InstanceType, c.Zone, c.CapacityType, plan.Dollars(c.Price), plan.Count(len(l.Options), "option")),
		line("Its pods ask for %s, daemon pods included; the type gives %s.", requests(l.Requests), requests(l.Allocatable)))
	if c.Commitment != "" {
		out.Children = append(out.Children, line("That is its price under commitment %s, which has enough left; without, it costs %s.", c.Commitment, plan.Dollars(c.ListPrice)))
	}
	out.Children = append(out.Children, pl.explainSetbacks(class, l)...)
	if l.Limited != "" {
		out.Children = append(out.Children, line("Few options: %s.", l.Limited))
	}
	return out
}

// explainSetbacks says what is held against the chosen offer, and which cheaper ones were
// passed over for what is held against them, the nearest few.
func (pl *planner) explainSetbacks(class int, l *plan.Launch) []plan.Line {
	const most = 3
	var out []plan.Line
	if share := pl.w.Setback(l.NodePool, l.Chosen); share > 0 {
		out = append(out, line("It counts as %s dearer when offers are compared, and is the best all the same: %s.", plan.Percent(share), pl.out.Memory.Against(l.Chosen)))
	}
	passed := pl.w.PassedOver(pl.p, l.NodePool, class, l.Requests, l.Chosen)
	for i, o := range passed {
		if i == most {
			out = append(out, line("%s passed over in the same way.", plan.Count(len(passed)-most, "other offer")))
			break
		}
		out = append(out, line("%s in zone %s as %s costs %s per hour, but counts as %s dearer: %s.", o.InstanceType, o.Zone, o.CapacityType,
			plan.Dollars(o.Price), plan.Percent(o.Share), pl.out.Memory.Against(o.Offer)))
	}
	return out
}

// heavierPools says why pools of more weight did not take the pod.
func (pl *planner) heavierPools(class int, pool string) plan.Line {
	weight := int32(0)
	for i := range pl.w.Pools {
		if s := pl.w.Pools[i].Spec; s.Name == pool {
			weight = s.Weight
		}
	}
	out := line("NodePool %s has weight %d.", pool, weight)
	reasons := pl.reasons(class)
	for i := range pl.w.Pools {
		s := pl.w.Pools[i].Spec
		if s.Weight <= weight {
			continue
		}
		for _, r := range reasons {
			if r.NodePool == s.Name {
				out.Children = append(out.Children, line("NodePool %s (weight %d) comes first, but: %s: %s.", s.Name, s.Weight, r.Code, r.Detail))
			}
		}
	}
	return out
}

// explainTargets says why nodes that exist do not take the pod, the nearest few.
func (pl *planner) explainTargets(class int) []plan.Line {
	const most = 5
	misses := pl.w.ExplainNodes(class, pl.freeAfter())
	if len(misses) == 0 {
		return []plan.Line{line("There is no node that exists or is in flight.")}
	}
	out := line("None of the %d nodes that exist or are in flight takes it; the nearest:", len(misses))
	if len(misses) == 1 {
		out = line("The one node that exists or is in flight does not take it:")
	}
	for i, m := range misses {
		if i == most {
			break
		}
		out.Children = append(out.Children, line("node %s: %s.", m.Node, m.Detail))
	}
	return []plan.Line{out}
}

// freeAfter is what the plan leaves on every node.
func (pl *planner) freeAfter() []snapshot.Resources {
	free := make([]snapshot.Resources, len(pl.w.Nodes))
	for i := range pl.w.Nodes {
		free[i] = pl.w.Nodes[i].Free
	}
	for _, p := range pl.r.Placed {
		i := pl.w.Targets[p.Node]
		free[i] = free[i].Sub(times(pl.w.Needs(p.Class), int64(p.Count)))
	}
	return free
}

func (pl *planner) explainNode(name string) []plan.Line {
	at := slices.IndexFunc(pl.w.Nodes, func(n scheduling.Node) bool { return n.Name == name })
	if at < 0 {
		var all []string
		for i := range pl.w.Nodes {
			all = append(all, pl.w.Nodes[i].Name)
		}
		return notFound("node", name, all)
	}
	n := &pl.w.Nodes[at]
	use := pl.out.Nodes[slices.IndexFunc(pl.out.Nodes, func(u plan.NodeUse) bool { return u.Name == name })]
	state := "It exists"
	switch {
	case n.InFlight():
		state = "It is in flight: its NodeClaim has no Node yet"
	case !n.Initialized:
		state = "It exists and is not initialised yet, so startup taints do not count"
	}
	if n.Pool != "" {
		state += "; it belongs to NodePool " + n.Pool
	}
	lines := []plan.Line{line("%s.", state)}
	if n.Closed != "" {
		lines = append(lines, line("No pod is put on it: %s.", n.Closed))
	}
	price := "unknown"
	if use.PriceKnown {
		price = plan.Dollars(use.Price) + " per hour"
	}
	on := line("No pod is on it.")
	if n.Pods > 0 {
		on = line("%s on it %s for %s.", plan.Count(n.Pods, "pod"), ask(n.Pods), requests(n.Used))
	}
	lines = append(lines,
		line("Type %s in zone %s as %s; price %s.", orNone(use.InstanceType), orNone(use.Zone), orNone(use.CapacityType), price),
		line("It gives %s.", requests(n.Allocatable)),
		on)
	if !n.Daemons.IsZero() {
		lines = append(lines, line("Daemon pods to come ask for %s.", requests(n.Daemons)))
	}
	lines = append(lines, line("Free before the plan: %s.", requests(n.Free)))
	if use.Placed > 0 {
		add := line("The plan puts %s on it, which %s for %s.", plan.Count(use.Placed, "pod"), ask(use.Placed), requests(use.Added))
		for _, p := range pl.out.Placements {
			if p.Node == name {
				add.Children = append(add.Children, line("pod %s", p.Pod))
			}
		}
		lines = append(lines, add)
	}
	for i := range n.Taints {
		t := &n.Taints[i]
		lines = append(lines, line("Taint %s=%s:%s.", t.Key, t.Value, t.Effect))
	}
	return lines
}

func (pl *planner) explainPool(name string) []plan.Line {
	at := slices.IndexFunc(pl.w.Pools, func(p scheduling.Pool) bool { return p.Spec.Name == name })
	if at < 0 {
		var all []string
		for i := range pl.w.Pools {
			all = append(all, pl.w.Pools[i].Spec.Name)
		}
		return notFound("nodepool", name, all)
	}
	p := &pl.w.Pools[at]
	lines := []plan.Line{line("Weight %d, NodeClass %s.", p.Spec.Weight, p.Spec.ClassRef.Name)}
	if p.Code == plan.NodePoolStatic && pl.s.Settings.StaticCapacity {
		lines = append(lines, line("It is static: it keeps %s, whatever the pods.", plan.Count(int(*p.Spec.Replicas), "node")))
		for _, v := range pl.w.Missing {
			if v.Object == "nodepool/"+name {
				lines = append(lines, line("%s: %s.", v.Code, v.Detail))
			}
		}
	} else if p.Code != "" {
		lines = append(lines, line("It launches nothing (%s): %s.", p.Code, p.Detail))
	} else {
		types, offers := p.Size()
		lines = append(lines, line("It allows %s with %s.", plan.Count(types, "instance type"), plan.Count(offers, "available offer")))
		if n := p.TurnedOut(); n > 0 {
			lines = append(lines, line("%s, and not as computed.", turnedOut(n)))
		}
		if text := p.Short(); text != "" {
			lines = append(lines, line("Besides, %s.", text))
		}
	}
	for _, k := range pl.w.LimitDims {
		if limit, ok := p.Spec.Limits[k]; ok {
			lines = append(lines, line("Limit %s: %s of %s used before the plan.", k, figure(k, p.UsedOf(k)), figure(k, limit)))
		}
	}
	launches, pods := 0, 0
	for i := range pl.out.Launches {
		if l := &pl.out.Launches[i]; l.NodePool == name {
			launches++
			pods += len(l.Pods)
		}
	}
	lines = append(lines, line("%s", launchesIn(launches, pods)))
	for _, w := range pl.out.Warnings {
		if w.Object == "nodepool/"+name || w.Object == "nodeclass/"+p.Spec.ClassRef.Name {
			lines = append(lines, line("%s: %s.", w.Code, w.Detail))
		}
	}
	refusals := plan.Line{}
	count := map[string]int{}
	var texts []string
	for _, u := range pl.r.Unplaced {
		for _, r := range pl.reasons(u.Class) {
			if r.NodePool == name {
				t := fmt.Sprintf("%s: %s", r.Code, r.Detail)
				if count[t] == 0 {
					texts = append(texts, t)
				}
				count[t] += u.Count * pl.w.Classes[u.Class].PodsPerUnit()
			}
		}
	}
	if len(texts) > 0 {
		refusals.Text = "Pods that it cannot host:"
		for _, t := range texts {
			refusals.Children = append(refusals.Children, line("%s: %s.", plan.Count(count[t], "pod"), t))
		}
		lines = append(lines, refusals)
	}
	return lines
}

func launchesIn(nodes, pods int) string {
	if nodes == 0 {
		return "The plan launches no node in it."
	}
	return fmt.Sprintf("The plan launches %s in it, for %s.", plan.Count(nodes, "node"), plan.Count(pods, "pod"))
}

func turnedOut(types int) string {
	if types == 1 {
		return "1 of the types counts as nodes of it turned out to be"
	}
	return fmt.Sprintf("%d of the types count as nodes of them turned out to be", types)
}

func notFound(kind, name string, all []string) []plan.Line {
	l := line("There is no %s %s in the input.", kind, name)
	for _, n := range plan.Nearest(name, all, 3) {
		l.Children = append(l.Children, line("Did you mean %s/%s?", kind, n))
	}
	return []plan.Line{l}
}

// ask is the verb of so many pods.
func ask(pods int) string {
	if pods == 1 {
		return "asks"
	}
	return "ask"
}

// requests lists resources for a sentence.
func requests(r snapshot.Resources) string {
	names := r.Names()
	if len(names) == 0 {
		return "nothing"
	}
	parts := make([]string, len(names))
	for i, n := range names {
		parts[i] = n + " " + figure(n, r.Get(n))
	}
	return strings.Join(parts, ", ")
}

// figure is exact, unless that is a figure which nobody reads.
func figure(resource string, v int64) string {
	q := plan.Quantity(resource, v)
	if len(q) > len("118312Mi") {
		return plan.Rounded(resource, v)
	}
	return q
}

func orNone(s string) string {
	if s == "" {
		return "unknown"
	}
	return s
}
