package provision_test

import (
	"fmt"
	"regexp"
	"slices"
	"strings"
	"testing"

	"kerf.sh/kerf/internal/plan"
	"kerf.sh/kerf/internal/snapshot"
)

// A verdict that blames something is checked by taking that away: the pod then runs,
// or the pool gives another reason.
func TestPropertyBlame(t *testing.T) {
	check(t, worlds(kind{pods: 5, types: 4, nodes: 1, daemons: 2}), blame)
}

func blame(w world, p planner) []string {
	var bad []string
	for _, v := range p(w.s, w.c).Verdicts {
		ref, ok := strings.CutPrefix(v.Object, "pod/")
		if !ok || plan.Info(v.Code).Kind == plan.KindNotPlanned {
			continue
		}
		if aboutOthers(v.Code) {
			if without := acquitOthers(w.s, ref, v); without == nil {
				bad = append(bad, fmt.Sprintf("pod %s: %s %q names nothing that could be taken away", ref, v.Code, v.Detail))
			} else if now := verdictOf(p(without, w.c), ref); now != nil && now.Code == v.Code && now.Detail == v.Detail {
				bad = append(bad, fmt.Sprintf("pod %s: %s %q is still the reason after it was taken away", ref, v.Code, v.Detail))
			}
		} else if len(v.Pools) == 0 && v.Code != plan.VolumeProblem && v.Code != plan.NoNodePool {
			bad = append(bad, fmt.Sprintf("pod %s is refused (%s) without a word about any pool", ref, v.Code))
		}
		for _, pool := range v.Pools {
			without := acquit(w.s, ref, pool)
			if without == nil {
				bad = append(bad, fmt.Sprintf("pod %s, pool %s: %s %q names nothing that could be taken away", ref, pool.NodePool, pool.Code, pool.Detail))
				continue
			}
			if now := reasonOf(p(without, w.c), ref, pool.NodePool); now != nil && now.Code == pool.Code && now.Detail == pool.Detail {
				bad = append(bad, fmt.Sprintf("pod %s, pool %s: %s %q is still the reason after it was taken away", ref, pool.NodePool, pool.Code, pool.Detail))
			}
		}
	}
	return bad
}

// aboutOthers reports whether a code blames other pods, or volumes, and not a pool.
func aboutOthers(c plan.Code) bool {
	switch c {
	case plan.TopologySpreadUnmet, plan.PodAffinityUnmet, plan.PodAntiAffinityUnmet, plan.VolumeTopology, plan.VolumeLimit, plan.VolumeInUse:
		return true
	}
	return false
}

// acquitOthers is the snapshot without what a verdict about other pods, or volumes,
// blames; nil when it blames nothing that is there.
func acquitOthers(s *snapshot.Snapshot, ref string, v plan.Verdict) *snapshot.Snapshot {
	c := *s
	c.Pods = slices.Clone(s.Pods)
	blamed := false
	for i := range c.Pods {
		p := &c.Pods[i]
		named := p.Ref() == ref
		switch {
		case v.Code == plan.TopologySpreadUnmet && named:
			blamed = len(p.Spec.Spread) > 0
			p.Spec.Spread = nil
		case v.Code == plan.PodAffinityUnmet && named:
			blamed = len(p.Spec.Affinity) > 0
			p.Spec.Affinity = nil
		case v.Code == plan.PodAntiAffinityUnmet: // the others' terms count as well
			blamed = blamed || len(p.Spec.Anti) > 0
			p.Spec.Anti = nil
		case (v.Code == plan.VolumeTopology || v.Code == plan.VolumeLimit || v.Code == plan.VolumeInUse) && named:
			blamed = len(p.Spec.Volumes) > 0
			p.Spec.Volumes = nil
		}
	}
	if !blamed {
		return nil
	}
	return &c
}

func verdictOf(p *plan.Plan, ref string) *plan.Verdict {
	for i := range p.Verdicts {
		if p.Verdicts[i].Object == "pod/"+ref {
			return &p.Verdicts[i]
		}
	}
	return nil
}

// reasonOf is the pool's reason in the pod's verdict; nil when the pod has a place.
func reasonOf(p *plan.Plan, ref, pool string) *plan.PoolVerdict {
	for _, v := range p.Verdicts {
		if v.Object != "pod/"+ref {
			continue
		}
		for i := range v.Pools {
			if v.Pools[i].NodePool == pool {
				return &v.Pools[i]
			}
		}
	}
	return nil
}

// acquit is the snapshot without what the verdict blames; nil when it blames nothing.
func acquit(s *snapshot.Snapshot, ref string, v plan.PoolVerdict) *snapshot.Snapshot {
	c := *s
	c.Pods, c.NodePools, c.DaemonSets = slices.Clone(s.Pods), slices.Clone(s.NodePools), slices.Clone(s.DaemonSets)
	var pod *snapshot.Pod
	for i := range c.Pods {
		if c.Pods[i].Ref() == ref {
			pod = &c.Pods[i]
		}
	}
	var pool *snapshot.NodePool
	for i := range c.NodePools {
		if c.NodePools[i].Name == v.NodePool {
			pool = &c.NodePools[i]
		}
	}
	if pod == nil || pool == nil {
		return nil
	}
	blamed := false
	switch v.Code {
	case plan.TaintNotTolerated:
		pool.Taints = slices.DeleteFunc(slices.Clone(pool.Taints), func(t snapshot.Taint) bool {
			hit := strings.Contains(v.Detail, t.Key)
			blamed = blamed || hit
			return hit
		})
	case plan.LimitReached:
		limits := map[string]int64{}
		for name, n := range pool.Limits {
			if strings.Contains(v.Detail, name) {
				blamed = true
			} else {
				limits[name] = n
			}
		}
		pool.Limits = limits
	case plan.NodePoolStatic:
		blamed = pool.Replicas != nil
		pool.Replicas = nil
	case plan.HostPortTaken:
		for i := range c.DaemonSets {
			if strings.Contains(v.Detail, c.DaemonSets[i].Name) {
				blamed = true
				c.DaemonSets[i].Template.Spec.HostPorts = nil
			}
		}
	case plan.RequirementConflict:
		named := func(key string) bool { return strings.Contains(v.Detail, key[strings.LastIndex(key, "/")+1:]) }
		blamed = dropKeys(&pod.Spec, named)
	case plan.MinValuesUnmet:
		pool.Requirements = slices.Clone(pool.Requirements)
		for i := range pool.Requirements {
			if r := &pool.Requirements[i]; r.MinValues > 0 && strings.Contains(v.Detail, r.Key) {
				blamed = true
				r.MinValues = 0
			}
		}
	case plan.NoInstanceTypeFits, plan.NoOffering:
		return roomy(&c, pod, pool, v)
	default:
		if aboutOthers(v.Code) {
			return acquitOthers(s, ref, plan.Verdict{Code: v.Code})
		}
		return nil
	}
	if !blamed {
		return nil
	}
	return &c
}

// roomy takes away what makes types too small or keeps offers away: the resources
// that the verdict names, or else the requirements that it names.
func roomy(c *snapshot.Snapshot, pod *snapshot.Pod, pool *snapshot.NodePool, v plan.PoolVerdict) *snapshot.Snapshot {
	blamed := false
	for name, zero := range map[string]func(*snapshot.Resources){
		"cpu":    func(r *snapshot.Resources) { r.CPU = 0 },
		"memory": func(r *snapshot.Resources) { r.Memory = 0 },
		"pods":   func(r *snapshot.Resources) { r.Pods = 0 },

		"ephemeral-storage":  func(r *snapshot.Resources) { r.Ephemeral = 0 },
		"example.com/device": func(r *snapshot.Resources) { r.Extended = nil },
	} {
		if regexp.MustCompile(`(^|[^-\w])`+name+`\b`).MatchString(v.Detail) && pod.Spec.Requests.Get(name) > 0 {
			blamed = true
			zero(&pod.Spec.Requests)
			for i := range c.DaemonSets {
				zero(&c.DaemonSets[i].Template.Spec.Requests)
			}
		}
	}
	if blamed {
		return c
	}
	named := func(key string) bool { return strings.Contains(v.Detail, key[strings.LastIndex(key, "/")+1:]) }
	blamed = dropKeys(&pod.Spec, named)
	pool.Requirements = slices.DeleteFunc(slices.Clone(pool.Requirements), func(r snapshot.SelectorRequirement) bool {
		hit := named(r.Key)
		blamed = blamed || hit
		return hit
	})
	if !blamed {
		return nil
	}
	return c
}

// dropKeys removes selectors and affinity terms on keys that are named.
func dropKeys(spec *snapshot.PodSpec, named func(string) bool) bool {
	hit := false
	selector := map[string]string{}
	for k, v := range spec.NodeSelector {
		if named(k) {
			hit = true
		} else {
			selector[k] = v
		}
	}
	spec.NodeSelector = selector
	for _, t := range spec.Required {
		for _, e := range t.Expressions {
			hit = hit || named(e.Key)
		}
	}
	if hit {
		spec.Required = nil
	}
	return hit
}
