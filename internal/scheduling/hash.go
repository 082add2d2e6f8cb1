package scheduling

import (
	"math/bits"

	"kerf.sh/kerf/internal/snapshot"
)

// The hash below groups pods. It need not be secure: equality is checked on every
// match, and the order of the answer never depends on it. Lists and maps whose
// order has no meaning are summed.

const (
	hashA = 0x9E3779B97F4A7C15
	hashB = 0xD6E8FEB86659FD93
)

func mix(a, b uint64) uint64 {
	hi, lo := bits.Mul64(a^hashA, b^hashB)
	return hi ^ lo ^ b
}

func load8(s string, i int) uint64 {
	_ = s[i+7]
	return uint64(s[i]) | uint64(s[i+1])<<8 | uint64(s[i+2])<<16 | uint64(s[i+3])<<24 |
		uint64(s[i+4])<<32 | uint64(s[i+5])<<40 | uint64(s[i+6])<<48 | uint64(s[i+7])<<56
}

func hashString(s string) uint64 {
	h := uint64(len(s)) * hashB
	i := 0
	for ; i+8 <= len(s); i += 8 {
		h = mix(h, load8(s, i))
	}
	if i < len(s) {
		var t uint64
		if len(s) >= 8 {
			t = load8(s, len(s)-8)
		} else {
			for k := len(s) - 1; k >= i; k-- {
				t = t<<8 | uint64(s[k])
			}
		}
		h = mix(h, t)
	}
	return h
}

func hashMap(m map[string]string) uint64 {
	var h uint64
	for k, v := range m {
		h += mix(hashString(k), hashString(v))
	}
	return h
}

func hashStrings(list []string) uint64 {
	h := uint64(len(list))
	for _, s := range list {
		h += mix(hashString(s), 1)
	}
	return h
}

func hashExpressions(list []snapshot.SelectorRequirement) uint64 {
	h := uint64(len(list))
	for i := range list {
		e := &list[i]
		h += mix(mix(hashString(e.Key), hashString(e.Operator)), hashStrings(e.Values))
	}
	return h
}

func hashTerm(t *snapshot.NodeSelectorTerm) uint64 {
	return mix(hashExpressions(t.Expressions), hashExpressions(t.Fields))
}

func hashSelector(s *snapshot.LabelSelector) uint64 {
	if s == nil {
		return 7
	}
	return mix(hashMap(s.MatchLabels), hashExpressions(s.Expressions))
}

func hashAffinity(list []snapshot.PodAffinityTerm) uint64 {
	h := uint64(len(list))
	for i := range list {
		t := &list[i]
		a := mix(hashString(t.TopologyKey), uint64(t.Weight))
		a = mix(a, hashSelector(t.Selector))
		a = mix(a, hashSelector(t.NamespaceSelector))
		a = mix(a, hashStrings(t.Namespaces))
		h += mix(a, mix(hashStrings(t.MatchLabelKeys), hashStrings(t.MismatchLabelKeys)))
	}
	return h
}

func hashSpread(list []snapshot.TopologySpread) uint64 {
	h := uint64(len(list))
	for i := range list {
		t := &list[i]
		a := mix(hashString(t.TopologyKey), uint64(t.MaxSkew))
		a = mix(a, hashString(t.WhenUnsatisfiable))
		if t.MinDomains != nil {
			a = mix(a, uint64(*t.MinDomains))
		}
		a = mix(a, hashSelector(t.Selector))
		a = mix(a, mix(hashString(t.NodeAffinityPolicy), hashString(t.NodeTaintsPolicy)))
		h += mix(a, hashStrings(t.MatchLabelKeys))
	}
	return h
}

// hashRules hashes what decides where a pod may run, requests left out.
func hashRules(p *snapshot.Pod, by *GroupBy) uint64 {
	s := &p.Spec
	var h uint64
	if len(s.NodeSelector) > 0 {
		h = mix(h, hashMap(s.NodeSelector))
	}
	if s.Required != nil {
		t := uint64(len(s.Required)) + 11
		for i := range s.Required {
			t += hashTerm(&s.Required[i])
		}
		h = mix(h, t)
	}
	if len(s.Preferred) > 0 {
		t := uint64(len(s.Preferred)) + 13
		for i := range s.Preferred {
			t += mix(uint64(s.Preferred[i].Weight), hashTerm(&s.Preferred[i].Term))
		}
		h = mix(h, t)
	}
	if len(s.Tolerations) > 0 {
		t := uint64(len(s.Tolerations)) + 17
		for i := range s.Tolerations {
			o := &s.Tolerations[i]
			t += mix(mix(hashString(o.Key), hashString(o.Value)), mix(hashString(o.Operator), hashString(o.Effect)))
		}
		h = mix(h, t)
	}
	if len(s.HostPorts) > 0 {
		t := uint64(len(s.HostPorts)) + 19
		for i := range s.HostPorts {
			o := &s.HostPorts[i]
			t += mix(mix(hashString(o.IP), hashString(protocol(o.Protocol))), uint64(o.Port))
		}
		h = mix(h, t)
	}
	if len(s.Spread)+len(s.Affinity)+len(s.Anti) > 0 {
		h = mix(h, hashSpread(s.Spread))
		h = mix(h, hashAffinity(s.Affinity)+23)
		h = mix(h, hashAffinity(s.Anti)+29)
	}
	if by.Namespace || len(s.Spread)+len(s.Affinity)+len(s.Anti) > 0 {
		h = mix(h, hashString(p.Namespace))
	}
	for _, k := range by.Labels {
		if v, ok := p.Labels[k]; ok {
			h = mix(h, mix(hashString(k), hashString(v)))
		}
	}
	return h
}

func hashRequests(r *snapshot.Resources) uint64 {
	h := mix(mix(uint64(r.CPU), uint64(r.Memory)), mix(uint64(r.Ephemeral), uint64(r.Pods)))
	for k, v := range r.Extended {
		if v != 0 {
			h += mix(hashString(k), uint64(v))
		}
	}
	return h
}
