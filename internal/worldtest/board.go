package worldtest

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"

	"kerf.sh/kerf/internal/snapshot"
)

// site is a node as kube-scheduler sees it once all nodes of the plan have joined.
type site struct {
	name   string
	labels map[string]string
	taints []snapshot.Taint
	// limits are how many volumes can be attached, by driver; attached those that are.
	limits   map[string]int64
	attached map[string]string // volume to driver
	bound    []*snapshot.Pod   // before the plan
	pods     []*snapshot.Pod   // now
}

// board is the cluster while the pods of a plan are placed one after the other, by the
// rules that kube-scheduler has for pods and other pods: PodTopologySpread,
// InterPodAffinity, and those of volumes.
type board struct {
	sites      []*site
	namespaces map[string]map[string]string
	storage    *storage
	// reach gives the domains of a spread constraint that have no node yet; nil = none.
	reach func(*snapshot.Pod, *snapshot.TopologySpread) []string
	skip  map[kindOfRule]bool
}

// seating is a pod and the site where the plan wants it.
type seating struct {
	pod *snapshot.Pod
	at  *site
}

// newBoard has the nodes that exist or are in flight, with the pods that stay there.
func newBoard(s *snapshot.Snapshot, nodes map[string]*nodeView) *board {
	b := &board{namespaces: map[string]map[string]string{}, storage: newStorage(s)}
	for i := range s.Namespaces {
		b.namespaces[s.Namespaces[i].Name] = s.Namespaces[i].Labels
	}
	for _, name := range sortedKeys(nodes) {
		b.sites = append(b.sites, b.siteOf(s, nodes[name]))
	}
	return b
}

func (b *board) siteOf(s *snapshot.Snapshot, v *nodeView) *site {
	at := &site{name: v.name, labels: maps.Clone(v.labels), taints: slices.Clone(v.taints), attached: map[string]string{}}
	if _, ok := at.labels[labelHostname]; !ok {
		at.labels[labelHostname] = v.name
	}
	cordon := snapshot.Taint{Key: "node.kubernetes.io/unschedulable", Effect: "NoSchedule"}
	if v.cordoned && !slices.Contains(at.taints, cordon) {
		at.taints = append(at.taints, cordon)
	}
	for i := range s.Pods {
		if p := &s.Pods[i]; p.NodeName == v.name && !p.Terminal() && !(v.deleting && movable(s, p)) {
			at.bound = append(at.bound, p)
		}
	}
	for i := range s.CSINodes {
		if c := &s.CSINodes[i]; c.Name == v.name {
			at.limits = c.Drivers
		}
	}
	for i := range s.Attachments {
		if a := &s.Attachments[i]; a.Node == v.name {
			if pv := b.storage.volumes[a.Volume]; pv != nil && pv.Handle != "" {
				at.attached[a.Attacher+"/"+pv.Handle] = a.Attacher
			}
		}
	}
	at.limits = limitsWith(at.limits, v.volumes)
	return at
}

// planned adds a node of a launch, or of one that might be.
func (b *board) planned(name string, labels map[string]string, sup *Supply) *site {
	at := &site{
		name: name, labels: maps.Clone(labels), taints: sup.Pool.Taints,
		limits: sup.Volumes, attached: map[string]string{},
	}
	at.labels[labelHostname] = name
	at.labels[labelRegister], at.labels[labelInit] = "true", "true"
	return at
}

// refuses says why kube-scheduler would not put the pod on the site now; "" if it
// would. Resources, ports, taints and selectors are not looked at.
func (b *board) refuses(p *snapshot.Pod, at *site) string {
	why := ""
	if !b.skip[aboutSpread] {
		why = b.spreadRefuses(p, at)
	}
	if !b.skip[aboutAffinity] {
		why = cmp.Or(why, b.affinityRefuses(p, at), b.antiRefuses(p, at), b.guarded(p, at))
	}
	if !b.skip[aboutVolumes] {
		why = cmp.Or(why, b.volumesRefuse(p, at))
	}
	return why
}

// spreadRefuses is PodTopologySpread: with the pod, no domain has more than maxSkew
// matching pods above the least of all domains. Domains are those of nodes that have
// every key of the pod's constraints and pass the constraint's policies.
func (b *board) spreadRefuses(p *snapshot.Pod, at *site) string {
	var hard []snapshot.TopologySpread
	for _, c := range p.Spec.Spread {
		if c.WhenUnsatisfiable != "ScheduleAnyway" {
			hard = append(hard, c)
		}
	}
	for _, c := range hard {
		if why := b.skewed(p, at, &c, hard); why != "" {
			return why
		}
	}
	return ""
}

func (b *board) skewed(p *snapshot.Pod, at *site, c *snapshot.TopologySpread, all []snapshot.TopologySpread) string {
	domain, ok := labelValue(at.labels, c.TopologyKey)
	if !ok {
		return "spread: the node has no label " + c.TopologyKey
	}
	counts := b.counts(p, c, all)
	if why := tooSkewed(p, c, domain, counts); why != "" || b.reach == nil {
		return why
	}
	for _, d := range b.reach(p, c) {
		counts[d] += 0
	}
	return tooSkewed(p, c, domain, counts)
}

func tooSkewed(p *snapshot.Pod, c *snapshot.TopologySpread, domain string, counts map[string]int) string {
	least, where := 0, ""
	if wanted := c.MinDomains; wanted == nil && len(counts) > 0 || wanted != nil && len(counts) >= int(*wanted) {
		for _, d := range sortedKeys(counts) {
			if where == "" || counts[d] < least {
				least, where = counts[d], d
			}
		}
	}
	self := 0
	if spreadSelects(c, p, p) {
		self = 1
	}
	if counts[domain]+self-least > int(c.MaxSkew) {
		return fmt.Sprintf("spread over %s: %s has %d of them, the least is %d (%s), maxSkew is %d", c.TopologyKey, domain, counts[domain], least, where, c.MaxSkew)
	}
	return ""
}

// counts are the matching pods of every eligible domain.
func (b *board) counts(p *snapshot.Pod, c *snapshot.TopologySpread, all []snapshot.TopologySpread) map[string]int {
	counts := map[string]int{}
	for _, s := range b.sites {
		complete := !slices.ContainsFunc(all, func(o snapshot.TopologySpread) bool {
			_, ok := labelValue(s.labels, o.TopologyKey)
			return !ok
		})
		if !complete || c.NodeAffinityPolicy != "Ignore" && !selects(&p.Spec, s.labels, s.name) ||
			c.NodeTaintsPolicy == "Honor" && untolerated(s.taints, p.Spec.Tolerations) != nil {
			continue
		}
		d, _ := labelValue(s.labels, c.TopologyKey)
		counts[d] += 0
		if c.Selector != nil && len(c.Selector.MatchLabels)+len(c.Selector.Expressions) == 0 && len(c.MatchLabelKeys) == 0 {
			continue // kube-scheduler counts nothing for a selector that selects everything
		}
		for _, o := range s.pods {
			if o != p && o.Namespace == p.Namespace && o.Deleting.IsZero() && spreadSelects(c, p, o) {
				counts[d]++
			}
		}
	}
	return counts
}

// spreadSelects reports whether a constraint of pod p counts pod o, its
// matchLabelKeys being part of the selector.
func spreadSelects(c *snapshot.TopologySpread, p, o *snapshot.Pod) bool {
	return selectsLabels(c.Selector, o.Labels) && sameKeys(c.MatchLabelKeys, p, o)
}

// sameKeys reports whether o has the values that p has for the keys; a key that p lacks
// does not count.
func sameKeys(keys []string, p, o *snapshot.Pod) bool {
	return !slices.ContainsFunc(keys, func(k string) bool {
		v, ok := p.Labels[k]
		u, has := o.Labels[k]
		return ok && (!has || u != v)
	})
}

// selectsLabels is a label selector: nil selects nothing, an empty one everything.
func selectsLabels(sel *snapshot.LabelSelector, labels map[string]string) bool {
	if sel == nil {
		return false
	}
	for k, v := range sel.MatchLabels {
		if have, ok := labels[k]; !ok || have != v {
			return false
		}
	}
	for _, e := range sel.Expressions {
		v, ok := labels[e.Key]
		in := ok && slices.Contains(e.Values, v)
		switch e.Operator {
		case "In":
			ok = in
		case "NotIn":
			ok = !in
		case "Exists":
		case "DoesNotExist":
			ok = !ok
		default:
			ok = false
		}
		if !ok {
			return false
		}
	}
	return true
}

// termSelectsPod reports whether an affinity term of pod p selects pod o.
func (b *board) termSelectsPod(t *snapshot.PodAffinityTerm, p, o *snapshot.Pod) bool {
	if !selectsLabels(t.Selector, o.Labels) || !sameKeys(t.MatchLabelKeys, p, o) {
		return false
	}
	for _, k := range t.MismatchLabelKeys {
		if v, ok := p.Labels[k]; ok && o.Labels[k] == v {
			if _, has := o.Labels[k]; has {
				return false
			}
		}
	}
	if len(t.Namespaces) == 0 && t.NamespaceSelector == nil {
		return o.Namespace == p.Namespace
	}
	return slices.Contains(t.Namespaces, o.Namespace) || t.NamespaceSelector != nil && selectsLabels(t.NamespaceSelector, b.labelsOf(o.Namespace))
}

// labelsOf are the labels of a namespace, with the one that every namespace has.
func (b *board) labelsOf(namespace string) map[string]string {
	out := map[string]string{"kubernetes.io/metadata.name": namespace}
	maps.Copy(out, b.namespaces[namespace])
	return out
}

func required(ts []snapshot.PodAffinityTerm) []snapshot.PodAffinityTerm {
	return slices.DeleteFunc(slices.Clone(ts), func(t snapshot.PodAffinityTerm) bool { return t.Weight > 0 })
}

// affinityRefuses is required pod affinity: in the domain of every term is a pod that
// all terms select. The first pod of a series that selects itself may go anywhere, as
// long as no pod is selected in any domain.
func (b *board) affinityRefuses(p *snapshot.Pod, at *site) string {
	terms := required(p.Spec.Affinity)
	selectsAll := func(o *snapshot.Pod) bool {
		return !slices.ContainsFunc(terms, func(t snapshot.PodAffinityTerm) bool { return !b.termSelectsPod(&t, p, o) })
	}
	missing := ""
	anywhere := false
	for i := range terms {
		t := &terms[i]
		domain, ok := labelValue(at.labels, t.TopologyKey)
		if !ok {
			return "affinity: the node has no label " + t.TopologyKey
		}
		here := false
		for _, s := range b.sites {
			d, has := labelValue(s.labels, t.TopologyKey)
			if has && slices.ContainsFunc(s.pods, func(o *snapshot.Pod) bool { return o != p && selectsAll(o) }) {
				anywhere = true
				here = here || d == domain
			}
		}
		if !here {
			missing = fmt.Sprintf("affinity: no pod that it wants in %s %s", t.TopologyKey, domain)
		}
	}
	if missing != "" && (anywhere || !selectsAll(p)) {
		return missing
	}
	return ""
}

// antiRefuses is the pod's own required anti-affinity.
func (b *board) antiRefuses(p *snapshot.Pod, at *site) string {
	for _, t := range required(p.Spec.Anti) {
		if o := b.inDomain(at, t.TopologyKey, func(o *snapshot.Pod) bool { return o != p && b.termSelectsPod(&t, p, o) }); o != nil {
			return fmt.Sprintf("anti-affinity over %s: pod %s is there", t.TopologyKey, o.Ref())
		}
	}
	return ""
}

// guarded is the required anti-affinity of the pods that are there already.
func (b *board) guarded(p *snapshot.Pod, at *site) string {
	for _, s := range b.sites {
		for _, o := range s.pods {
			if o == p {
				continue
			}
			for _, t := range required(o.Spec.Anti) {
				d, ok := labelValue(at.labels, t.TopologyKey)
				e, has := labelValue(s.labels, t.TopologyKey)
				if ok && has && d == e && b.termSelectsPod(&t, o, p) {
					return fmt.Sprintf("anti-affinity over %s of pod %s, which is there", t.TopologyKey, o.Ref())
				}
			}
		}
	}
	return ""
}

// inDomain finds a pod in the domain of a site.
func (b *board) inDomain(at *site, key string, ok func(*snapshot.Pod) bool) *snapshot.Pod {
	domain, has := labelValue(at.labels, key)
	if !has {
		return nil
	}
	for _, s := range b.sites {
		if d, has := labelValue(s.labels, key); has && d == domain {
			if i := slices.IndexFunc(s.pods, ok); i >= 0 {
				return s.pods[i]
			}
		}
	}
	return nil
}

// keysOf are the topology keys, hostname left out, that decide together with other pods
// where a pod may be: those of its own terms, and of others' terms that select it.
func (b *board) keysOf(p *snapshot.Pod, others []*snapshot.Pod) []string {
	set := map[string]bool{}
	for _, c := range p.Spec.Spread {
		set[c.TopologyKey] = true
	}
	for _, t := range slices.Concat(p.Spec.Affinity, p.Spec.Anti) {
		set[t.TopologyKey] = true
	}
	for _, o := range others {
		for _, c := range o.Spec.Spread {
			if o.Namespace == p.Namespace && spreadSelects(&c, o, p) {
				set[c.TopologyKey] = true
			}
		}
		for _, t := range slices.Concat(o.Spec.Affinity, o.Spec.Anti) {
			if b.termSelectsPod(&t, o, p) {
				set[t.TopologyKey] = true
			}
		}
	}
	delete(set, labelHostname)
	return sortedKeys(set)
}

// at names the domain that labels put a node into, by the keys.
func domainOf(labels map[string]string, keys []string) string {
	var out []string
	for _, k := range keys {
		v, ok := labelValue(labels, k)
		out = append(out, fmt.Sprintf("%s=%s/%t", k, v, ok))
	}
	return strings.Join(out, ",")
}
