package worldtest

import (
	"fmt"
	"strconv"
	"strings"
)

// addTopology adds the spread constraints and the pod (anti-)affinity of a line to a
// pod's spec:
//
//	spread=KEY:SKEW:hard|soft:SELECTOR[,minDomains=2][,affinityPolicy=ignore]
//	       [,taintsPolicy=honor][,keys=a|b]
//	near=KEY:SELECTOR    away=KEY:SELECTOR        required; prefer-near=WEIGHT:KEY:SELECTOR
//	       [,ns=a|b][,nsselector=SELECTOR][,keys=a|b][,mismatch=a|b]
func addTopology(l *opts, spec, affinity obj) error {
	var spread []obj
	for _, v := range l.all("spread") {
		c, err := spreadConstraint(v)
		if err != nil {
			return fmt.Errorf("spread=%s: %w", v, err)
		}
		spread = append(spread, c)
	}
	if spread != nil {
		spec["topologySpreadConstraints"] = spread
	}
	for _, k := range [][2]string{{"near", "podAffinity"}, {"away", "podAntiAffinity"}} {
		part := obj{}
		var required, preferred []obj
		for _, v := range l.all(k[0]) {
			t, err := affinityTerm(v)
			if err != nil {
				return fmt.Errorf("%s=%s: %w", k[0], v, err)
			}
			required = append(required, t)
		}
		for _, v := range l.all("prefer-" + k[0]) {
			weight, rest, _ := strings.Cut(v, ":")
			n, err := strconv.Atoi(weight)
			if err != nil {
				return fmt.Errorf("prefer-%s=%s: the weight comes first: %w", k[0], v, err)
			}
			t, err := affinityTerm(rest)
			if err != nil {
				return fmt.Errorf("prefer-%s=%s: %w", k[0], v, err)
			}
			preferred = append(preferred, obj{"weight": n, "podAffinityTerm": t})
		}
		if required != nil {
			part["requiredDuringSchedulingIgnoredDuringExecution"] = required
		}
		if preferred != nil {
			part["preferredDuringSchedulingIgnoredDuringExecution"] = preferred
		}
		if len(part) > 0 {
			affinity[k[1]] = part
		}
	}
	return nil
}

func spreadConstraint(v string) (obj, error) {
	parts := strings.SplitN(v, ":", 4)
	if len(parts) != 4 {
		return nil, fmt.Errorf("wants KEY:SKEW:hard|soft:SELECTOR")
	}
	skew, err := strconv.Atoi(parts[1])
	if err != nil {
		return nil, err
	}
	c := obj{"topologyKey": longKey(parts[0]), "maxSkew": skew}
	switch parts[2] {
	case "hard":
		c["whenUnsatisfiable"] = "DoNotSchedule"
	case "soft":
		c["whenUnsatisfiable"] = "ScheduleAnyway"
	default:
		return nil, fmt.Errorf("%q is neither hard nor soft", parts[2])
	}
	selector, extra := cutExtra(parts[3])
	setSelector(c, "labelSelector", selector)
	for _, kv := range extra {
		k, val, _ := strings.Cut(kv, "=")
		switch k {
		case "minDomains":
			n, err := strconv.Atoi(val)
			if err != nil {
				return nil, err
			}
			c["minDomains"] = n
		case "affinityPolicy", "taintsPolicy":
			field := map[string]string{"affinityPolicy": "nodeAffinityPolicy", "taintsPolicy": "nodeTaintsPolicy"}[k]
			c[field] = strings.ToUpper(val[:1]) + val[1:]
		case "keys":
			c["matchLabelKeys"] = strings.Split(val, "|")
		default:
			return nil, fmt.Errorf("%s is not known", k)
		}
	}
	return c, nil
}

func affinityTerm(v string) (obj, error) {
	key, rest, ok := strings.Cut(v, ":")
	if !ok {
		return nil, fmt.Errorf("wants KEY:SELECTOR")
	}
	t := obj{"topologyKey": longKey(key)}
	selector, extra := cutExtra(rest)
	setSelector(t, "labelSelector", selector)
	for _, kv := range extra {
		k, val, _ := strings.Cut(kv, "=")
		switch k {
		case "ns":
			t["namespaces"] = strings.Split(val, "|")
		case "nsselector":
			setSelector(t, "namespaceSelector", val)
		case "keys":
			t["matchLabelKeys"] = strings.Split(val, "|")
		case "mismatch":
			t["mismatchLabelKeys"] = strings.Split(val, "|")
		default:
			return nil, fmt.Errorf("%s is not known", k)
		}
	}
	return t, nil
}

func cutExtra(s string) (selector string, extra []string) {
	parts := strings.Split(s, ",")
	return parts[0], parts[1:]
}

// setSelector sets a label selector: "app=web" joined with "&" are matchLabels, any
// other form of requirement an expression; "*" selects everything, "-" leaves the
// selector out (nil, which selects nothing).
func setSelector(m obj, field, s string) {
	if s == "-" {
		return
	}
	labels, expressions := obj{}, []obj{}
	for _, one := range strings.Split(s, "&") {
		switch k, v, ok := strings.Cut(one, "="); {
		case one == "*" || one == "":
		case ok && !strings.ContainsAny(one, "|!<>:"):
			labels[k] = v
		default:
			expressions = append(expressions, requirementOn(one, func(k string) string { return k }))
		}
	}
	out := obj{}
	if len(labels) > 0 {
		out["matchLabels"] = labels
	}
	if len(expressions) > 0 {
		out["matchExpressions"] = expressions
	}
	m[field] = out
}
