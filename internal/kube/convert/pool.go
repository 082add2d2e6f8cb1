package convert

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
)

// provisioner: karpenter.sh/v1alpha5 Provisioner to NodePool.
func (w *work) provisioner() {
	pool, spec := w.begin(karpenterGroup, "NodePool")
	const template, node = "spec.template.metadata", "spec.template.spec"
	w.move(spec, "spec.labels", pool, template+".labels")
	w.move(spec, "spec.annotations", pool, template+".annotations")
	w.templateMeta(pool)
	set(pool, node+".requirements", []any{})
	w.move(spec, "spec.requirements", pool, node+".requirements")
	w.requirements(pool, "spec.requirements")
	w.assumed(pool)
	w.move(spec, "spec.taints", pool, node+".taints")
	w.move(spec, "spec.startupTaints", pool, node+".startupTaints")
	if limits, ok := take[map[string]any](spec, "limits"); ok {
		if r, ok := limits["resources"]; ok {
			set(pool, "spec.limits", r)
			w.moved("spec.limits.resources", "spec.limits", "")
		}
	}
	w.move(spec, "spec.weight", pool, "spec.weight")
	w.consolidation(pool, spec)
	w.expiry(pool, spec)
	w.providerOf(pool, spec)
	for _, name := range []string{"kubeletConfiguration", "kubelet"} {
		if k, ok := take[map[string]any](spec, name); ok {
			w.kubeletOf(k, "spec."+name)
		}
	}
	w.rest(spec, "spec")
}

// providerOf settles the class: that of the same name as the template, or a new one.
func (w *work) providerOf(pool Object, spec map[string]any) {
	ref, hasRef := take[map[string]any](spec, "providerRef")
	inline, hasInline := take[map[string]any](spec, "provider")
	w.class = nameOf(pool)
	switch {
	case hasRef:
		w.class, _ = ref["name"].(string)
		w.moved("spec.providerRef", "spec.template.spec.nodeClassRef", "the EC2NodeClass of the same name takes the place of the AWSNodeTemplate")
	case hasInline:
		class := Object{"apiVersion": awsGroup + "/" + current, "kind": "EC2NodeClass", "metadata": map[string]any{"name": w.class}}
		w.moved("spec.provider", "EC2NodeClass "+w.class, "it is an object of its own now")
		w.awsFields(class, inline, "spec.provider")
		w.out = append(w.out, class)
	default:
		w.lost("spec.providerRef", "there is none: write an EC2NodeClass, and its name into spec.template.spec.nodeClassRef.name (%q is put there)", w.class)
	}
	set(pool, "spec.template.spec.nodeClassRef", map[string]any{"group": awsGroup, "kind": "EC2NodeClass", "name": w.class})
}

// consolidation: an alpha pool did none, that of empty nodes, or all.
func (w *work) consolidation(pool Object, spec map[string]any) {
	policy, after := "WhenEmpty", "Never"
	c, _ := take[map[string]any](spec, "consolidation")
	enabled, _ := c["enabled"].(bool)
	ttl, hasTTL := spec["ttlSecondsAfterEmpty"]
	delete(spec, "ttlSecondsAfterEmpty")
	switch {
	case enabled:
		policy, after = "WhenEmptyOrUnderutilized", "0s"
		w.moved("spec.consolidation.enabled", "spec.disruption.consolidationPolicy", "%s, with consolidateAfter 0s", policy)
		if hasTTL {
			w.lost("spec.ttlSecondsAfterEmpty", "it excludes spec.consolidation.enabled; consolidation takes empty nodes too")
		}
	case hasTTL:
		after = seconds(ttl)
		w.moved("spec.ttlSecondsAfterEmpty", "spec.disruption.consolidateAfter", "%s, with consolidationPolicy WhenEmpty", after)
	default:
		w.moved("", "spec.disruption.consolidateAfter", "Never: this pool consolidated nothing, and today's default is to do so")
	}
	set(pool, "spec.disruption", map[string]any{"consolidationPolicy": policy, "consolidateAfter": after})
}

func (w *work) expiry(pool Object, spec map[string]any) {
	const to = "spec.template.spec.expireAfter"
	ttl, ok := spec["ttlSecondsUntilExpired"]
	delete(spec, "ttlSecondsUntilExpired")
	if !ok {
		set(pool, to, "Never")
		w.moved("", to, "Never: nodes of this pool did not expire, and today's default is 720h")
		return
	}
	set(pool, to, seconds(ttl))
	w.moved("spec.ttlSecondsUntilExpired", to, "%s; an expired node is drained at once now, without a replacement being up first", seconds(ttl))
}

// seconds is a whole number of seconds as a duration of the API, in the largest unit that fits.
func seconds(v any) string {
	n, ok := whole(v)
	switch {
	case !ok || n < 0:
		return fmt.Sprint(v)
	case n == 0:
		return "0s"
	case n%3600 == 0:
		return fmt.Sprintf("%dh", n/3600)
	case n%60 == 0:
		return fmt.Sprintf("%dm", n/60)
	}
	return fmt.Sprintf("%ds", n)
}

func whole(v any) (int64, bool) {
	switch v := v.(type) {
	case int64:
		return v, true
	case float64:
		return int64(v), v == float64(int64(v))
	case json.Number:
		n, err := v.Int64()
		return n, err == nil
	}
	return 0, false
}

// betaPool: karpenter.sh/v1beta1 NodePool.
func (w *work) betaPool() {
	pool, spec := w.begin(karpenterGroup, "NodePool")
	for _, name := range []string{"limits", "weight"} {
		w.move(spec, "spec."+name, pool, "spec."+name)
	}
	template, _ := take[map[string]any](spec, "template")
	if meta, ok := take[map[string]any](template, "metadata"); ok {
		for _, name := range []string{"labels", "annotations"} {
			w.move(meta, "spec.template.metadata."+name, pool, "spec.template.metadata."+name)
		}
		w.rest(meta, "spec.template.metadata")
		w.templateMeta(pool)
	}
	node, _ := take[map[string]any](template, "spec")
	if node == nil {
		node = map[string]any{}
	}
	w.betaNode(pool, node, "spec.template.spec")
	w.rest(node, "spec.template.spec")
	w.rest(template, "spec.template")
	disruption, _ := take[map[string]any](spec, "disruption")
	w.betaDisruption(pool, disruption)
	w.rest(spec, "spec")
}

// betaDisruption: the policy has another name, and expireAfter is the template's.
func (w *work) betaDisruption(pool Object, d map[string]any) {
	policy, ok := take[string](d, "consolidationPolicy")
	if !ok || policy == "WhenUnderutilized" {
		if ok {
			w.moved("spec.disruption.consolidationPolicy", "spec.disruption.consolidationPolicy", "WhenUnderutilized is called WhenEmptyOrUnderutilized now")
		}
		policy = "WhenEmptyOrUnderutilized"
	}
	set(pool, "spec.disruption.consolidationPolicy", policy)
	after, ok := d["consolidateAfter"]
	delete(d, "consolidateAfter")
	if !ok {
		after = "0s"
		w.moved("", "spec.disruption.consolidateAfter", "0s: it must be given now; this is as it was")
	}
	set(pool, "spec.disruption.consolidateAfter", after)
	w.move(d, "spec.disruption.budgets", pool, "spec.disruption.budgets")
	if v, ok := d["expireAfter"]; ok {
		delete(d, "expireAfter")
		set(pool, "spec.template.spec.expireAfter", v)
		w.moved("spec.disruption.expireAfter", "spec.template.spec.expireAfter", "an expired node is drained at once now, without a replacement being up first; and a change of it is drift")
	}
	w.rest(d, "spec.disruption")
}

// betaNode is what a pool's template and a claim have in common.
func (w *work) betaNode(into Object, node map[string]any, at string) {
	to := at
	set(into, to+".requirements", []any{})
	if _, ok := node["requirements"]; !ok {
		w.moved("", to+".requirements", "an empty list: it must be given")
	}
	for _, name := range []string{"requirements", "taints", "startupTaints", "terminationGracePeriod"} {
		w.move(node, at+"."+name, into, to+"."+name)
	}
	w.requirements(into, at+".requirements")
	ref, ok := take[map[string]any](node, "nodeClassRef")
	if !ok {
		w.lost(at+".nodeClassRef", "there is none: write the name of an EC2NodeClass into %s.nodeClassRef.name", to)
	} else {
		w.class, _ = ref["name"].(string)
		kind, ok := ref["kind"].(string)
		if !ok {
			kind = "EC2NodeClass"
			w.moved("", to+".nodeClassRef.kind", "EC2NodeClass: it must be given now")
		}
		group := awsGroup
		if v, ok := ref["group"].(string); ok {
			group = v
		} else if v, ok := ref["apiVersion"].(string); ok {
			group, _, _ = strings.Cut(v, "/")
			w.moved(at+".nodeClassRef.apiVersion", to+".nodeClassRef.group", "%s, without the version", group)
		} else {
			w.moved("", to+".nodeClassRef.group", "%s: it must be given now", group)
		}
		set(into, to+".nodeClassRef", map[string]any{"group": group, "kind": kind, "name": w.class})
	}
	if k, ok := take[map[string]any](node, "kubelet"); ok {
		w.kubeletOf(k, at+".kubelet")
	}
}

// betaClaim: karpenter.sh/v1beta1 NodeClaim.
func (w *work) betaClaim() {
	claim, spec := w.begin(karpenterGroup, "NodeClaim")
	w.moved("", "", "NodeClaims are made by the autoscaler: apply NodePools, and let it make new ones")
	w.betaNode(claim, spec, "spec")
	if w.kubelet != nil {
		w.lost(w.kubeletFrom, "it is spec.kubelet of the EC2NodeClass now; it is left out")
		w.kubelet = nil
	}
	w.move(spec, "spec.resources", claim, "spec.resources")
	w.rest(spec, "spec")
}

// machine: karpenter.sh/v1alpha5 Machine has no successor that somebody writes.
func (w *work) machine() {
	w.lost("kind: Machine", "its successor is the NodeClaim, which the autoscaler makes: delete this, and keep the NodePool")
}

// renamed are keys of labels that have another name; "" = gone.
var renamed = map[string]string{
	"karpenter.sh/provisioner-name":            "karpenter.sh/nodepool",
	"karpenter.k8s.aws/instance-pods":          "",
	"failure-domain.beta.kubernetes.io/zone":   "topology.kubernetes.io/zone",
	"failure-domain.beta.kubernetes.io/region": "topology.kubernetes.io/region",
	"beta.kubernetes.io/arch":                  "kubernetes.io/arch",
	"beta.kubernetes.io/os":                    "kubernetes.io/os",
	"beta.kubernetes.io/instance-type":         "node.kubernetes.io/instance-type",
}

// requirements renames keys, and drops those that no node has any more.
func (w *work) requirements(into Object, from string) {
	path := "spec.template.spec.requirements"
	list, ok := get(into, path).([]any)
	if !ok {
		path = "spec.requirements"
		list, _ = get(into, path).([]any)
	}
	var keep []any
	for i, e := range list {
		q, _ := e.(map[string]any)
		key, _ := q["key"].(string)
		to, known := renamed[key]
		at := fmt.Sprintf("%s[%d]", from, i)
		switch {
		case key == "karpenter.sh/provisioner-name":
			w.lost(at, "%s: a NodePool cannot ask for pools; it is left out", key)
			continue
		case known && to == "":
			w.lost(at, "%s: nodes have no such label any more; it is left out", key)
			continue
		case known:
			q["key"] = to
			w.moved(at+".key", path, "%s is called %s now", key, to)
		}
		keep = append(keep, e)
	}
	if keep == nil {
		keep = []any{}
	}
	if list != nil {
		set(into, path, keep)
	}
}

// templateMeta renames what nodes get as labels and annotations.
func (w *work) templateMeta(pool Object) {
	const at = "spec.template.metadata"
	if a, ok := get(pool, at+".annotations").(map[string]any); ok {
		w.annotations(a, at+".annotations")
	}
	l, _ := get(pool, at+".labels").(map[string]any)
	for _, k := range sorted(l) {
		to, known := renamed[k]
		if !known {
			continue
		}
		v := l[k]
		delete(l, k)
		if k == "karpenter.sh/provisioner-name" || to == "" {
			w.lost(fmt.Sprintf("%s.labels[%q]", at, k), "nodes cannot be given this label; it is left out")
			continue
		}
		l[to] = v
		w.moved(fmt.Sprintf("%s.labels[%q]", at, k), fmt.Sprintf("%s.labels[%q]", at, to), "")
	}
}

// assumed writes down the requirements that v1alpha5 added to a pool that said nothing of the
// sort: today a pool without them takes everything.
func (w *work) assumed(pool Object) {
	const path = "spec.template.spec.requirements"
	given, _ := get(pool, path).([]any)
	list := given
	labels, _ := get(pool, "spec.template.metadata.labels").(map[string]any)
	says := func(keys ...string) bool {
		return slices.ContainsFunc(keys, func(k string) bool {
			_, ok := labels[k]
			return ok || slices.ContainsFunc(given, func(e any) bool {
				q, _ := e.(map[string]any)
				return q["key"] == k
			})
		})
	}
	for _, d := range []struct {
		unless        []string
		key, operator string
		values        []any
	}{
		{[]string{"kubernetes.io/os"}, "kubernetes.io/os", "In", []any{"linux"}},
		{[]string{"kubernetes.io/arch"}, "kubernetes.io/arch", "In", []any{"amd64"}},
		{[]string{"karpenter.sh/capacity-type"}, "karpenter.sh/capacity-type", "In", []any{"on-demand"}},
		{typeKeys, "karpenter.k8s.aws/instance-category", "In", []any{"c", "m", "r"}},
		{typeKeys, "karpenter.k8s.aws/instance-generation", "Gt", []any{"2"}},
	} {
		if says(d.unless...) {
			continue
		}
		list = append(list, map[string]any{"key": d.key, "operator": d.operator, "values": d.values})
		w.moved("", path, "%s %s %v: v1alpha5 added it to a pool that did not say; today such a pool takes everything", d.key, d.operator, d.values)
	}
	set(pool, path, list)
}

// typeKeys are the keys that narrow instance types down; with one of them v1alpha5 added none.
var typeKeys = []string{
	"node.kubernetes.io/instance-type", "karpenter.k8s.aws/instance-family", "karpenter.k8s.aws/instance-category", "karpenter.k8s.aws/instance-generation",
}
