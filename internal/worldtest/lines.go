package worldtest

import (
	"fmt"
	"strings"

	"kerf.sh/kerf/internal/catalog"
	"kerf.sh/kerf/internal/snapshot"
)

// Lines describes a drawn world in the language of World, so that a failure of a
// property can be read, and become a transcript. What the language cannot say is
// left out.
func Lines(s *snapshot.Snapshot, c *catalog.Catalog) string {
	var b strings.Builder
	b.WriteString("catalog only=\n")
	for _, t := range c.Types {
		zones := map[string]bool{}
		price := map[string]int64{}
		for _, o := range t.Offerings {
			zones[o.Zone] = true
			price[o.CapacityType] = o.Price
		}
		fmt.Fprintf(&b, "type %s cpu=%d mem=%d eni=%dx%d zones=%s", t.Name, t.VCPU, t.MemoryMiB, t.ENI.Interfaces, t.ENI.IPv4PerENI,
			strings.Join(sortedKeys(zones), ","))
		if p := price["on-demand"]; p > 0 {
			fmt.Fprintf(&b, " od=%s", Dollars(p)[1:])
		}
		if p := price["spot"]; p > 0 {
			fmt.Fprintf(&b, " spot=%s", Dollars(p)[1:])
		}
		b.WriteByte('\n')
	}
	for i := range s.NodePools {
		poolLine(&b, &s.NodePools[i])
	}
	for i := range s.DaemonSets {
		fmt.Fprintf(&b, "daemonset %s%s\n", s.DaemonSets[i].Name, specOptions(&s.DaemonSets[i].Template.Spec))
	}
	for i := range s.Nodes {
		n := &s.Nodes[i]
		fmt.Fprintf(&b, "node %s cpu=%dm mem=%dMi pods=%d", n.Name, n.Allocatable.CPU, n.Allocatable.Memory>>20, n.Allocatable.Pods)
		option(&b, "zone", n.Labels[labelZone])
		option(&b, "captype", n.Labels[labelCapacity])
		option(&b, "pool", n.Labels[labelPool])
		if v := n.Labels["team"]; v != "" {
			option(&b, "labels", "team="+v)
		}
		option(&b, "taints", taintList(n.Taints))
		b.WriteByte('\n')
	}
	for i := range s.Pods {
		p := &s.Pods[i]
		fmt.Fprintf(&b, "pod %s%s", p.Name, specOptions(&p.Spec))
		option(&b, "node", p.NodeName)
		b.WriteByte('\n')
	}
	return b.String()
}

func option(b *strings.Builder, key, value string) {
	if value != "" {
		fmt.Fprintf(b, " %s=%s", key, value)
	}
}

func poolLine(b *strings.Builder, p *snapshot.NodePool) {
	fmt.Fprintf(b, "pool %s", p.Name)
	if p.Weight > 0 {
		fmt.Fprintf(b, " weight=%d", p.Weight)
	}
	var limits, labels []string
	for _, k := range sortedKeys(p.Limits) {
		limits = append(limits, k+":"+snapshot.FormatQuantity(k, p.Limits[k]))
	}
	for _, k := range sortedKeys(p.TemplateLabels) {
		labels = append(labels, k+"="+p.TemplateLabels[k])
	}
	option(b, "limits", strings.Join(limits, ","))
	option(b, "labels", strings.Join(labels, ","))
	option(b, "taints", taintList(p.Taints))
	option(b, "startup-taints", taintList(p.StartupTaints))
	option(b, "require", requirementList(p.Requirements))
	b.WriteByte('\n')
}

func taintList(ts []snapshot.Taint) string {
	var out []string
	for _, t := range ts {
		k := t.Key
		if t.Value != "" {
			k += "=" + t.Value
		}
		out = append(out, k+":"+t.Effect)
	}
	return strings.Join(out, ",")
}

func requirementList(rs []snapshot.SelectorRequirement) string {
	var out []string
	for _, r := range rs {
		s := shortKey(r.Key) + ":" + r.Operator
		if len(r.Values) > 0 {
			s += ":" + strings.Join(r.Values, "|")
		}
		out = append(out, s)
	}
	return strings.Join(out, "&")
}

func shortKey(key string) string {
	for s, l := range shortKeys {
		if l == key {
			return s
		}
	}
	return strings.TrimPrefix(key, "karpenter.k8s.aws/")
}

func specOptions(p *snapshot.PodSpec) string {
	var b strings.Builder
	if p.Requests.CPU > 0 {
		fmt.Fprintf(&b, " cpu=%dm", p.Requests.CPU)
	}
	if p.Requests.Memory > 0 {
		fmt.Fprintf(&b, " mem=%dMi", p.Requests.Memory>>20)
	}
	var selector, terms, tolerations []string
	for _, k := range sortedKeys(p.NodeSelector) {
		selector = append(selector, shortKey(k)+"="+p.NodeSelector[k])
	}
	for _, t := range p.Required {
		terms = append(terms, requirementList(t.Expressions))
	}
	for _, t := range p.Tolerations {
		switch {
		case t.Key == "":
			tolerations = append(tolerations, "*")
		case t.Operator == "Exists":
			tolerations = append(tolerations, t.Key)
		default:
			tolerations = append(tolerations, t.Key+"="+t.Value)
		}
	}
	option(&b, "selector", strings.Join(selector, ","))
	option(&b, "affinity", strings.Join(terms, ";"))
	option(&b, "tolerate", strings.Join(tolerations, ","))
	for _, h := range p.HostPorts {
		port := fmt.Sprint(h.Port)
		if h.Protocol != "" {
			port += "/" + h.Protocol
		}
		if h.IP != "" {
			port = h.IP + ":" + port
		}
		option(&b, "hostport", port)
	}
	return b.String()
}
