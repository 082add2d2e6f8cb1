package plan_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"kerf.sh/kerf/internal/plan"
	"kerf.sh/kerf/internal/snapshot"
)

func TestNotesOfLaunches(t *testing.T) {
	const zone, host = "topology.kubernetes.io/zone", "kubernetes.io/hostname"
	in := func(key string) []snapshot.NodeSelectorTerm {
		return []snapshot.NodeSelectorTerm{{Expressions: []snapshot.SelectorRequirement{{Key: key, Operator: "In", Values: []string{"a"}}}}}
	}
	spread := func(key, when string) snapshot.PodSpec {
		return snapshot.PodSpec{Spread: []snapshot.TopologySpread{{TopologyKey: key, WhenUnsatisfiable: when}}}
	}
	for name, tc := range map[string]struct {
		spec  snapshot.PodSpec
		zones string
		want  []string
	}{
		"no rule":               {snapshot.PodSpec{}, "aa", nil},
		"spread":                {spread(zone, "DoNotSchedule"), "aa", []string{"only in a: topology spread of n/web"}},
		"spread, several zones": {spread(zone, "DoNotSchedule"), "ab", nil},
		"no options":            {spread(zone, "DoNotSchedule"), "", nil},
		"spread over hosts":     {spread(host, "DoNotSchedule"), "aa", nil},
		"preferred":             {spread(zone, "ScheduleAnyway"), "aa", []string{"only in a: preferred spread of n/web"}},
		"preferred beside hard": {snapshot.PodSpec{NodeSelector: map[string]string{zone: "a"}, Preferred: []snapshot.PreferredTerm{{Weight: 1, Term: in(zone)[0]}}}, "aa",
			[]string{"only in a: node selector of n/web"}},
		"preferred zone":    {snapshot.PodSpec{Preferred: []snapshot.PreferredTerm{{Weight: 1, Term: in(zone)[0]}}}, "aa", []string{"only in a: preferred zone of n/web"}},
		"node affinity":     {snapshot.PodSpec{Required: in("failure-domain.beta.kubernetes.io/zone")}, "aa", []string{"only in a: node affinity of n/web"}},
		"pod affinity":      {snapshot.PodSpec{Affinity: []snapshot.PodAffinityTerm{{TopologyKey: zone}}}, "aa", []string{"only in a: pod affinity of n/web"}},
		"affinity by host":  {snapshot.PodSpec{Affinity: []snapshot.PodAffinityTerm{{TopologyKey: host}}}, "aa", nil},
		"anti by zone":      {snapshot.PodSpec{Anti: []snapshot.PodAffinityTerm{{TopologyKey: zone}}}, "aa", []string{"only in a: pod anti-affinity of n/web"}},
		"anti by host":      {snapshot.PodSpec{Anti: []snapshot.PodAffinityTerm{{TopologyKey: host}}}, "aa", []string{"apart from others on its node: pod anti-affinity of n/web"}},
		"anti, a wish":      {snapshot.PodSpec{Anti: []snapshot.PodAffinityTerm{{TopologyKey: host, Weight: 1}}}, "aa", nil},
		"volume":            {snapshot.PodSpec{Volumes: []snapshot.Volume{{Name: "v", Claim: "zoned"}}}, "aa", []string{"only in a: volume of n/web"}},
		"volume, old label": {snapshot.PodSpec{Volumes: []snapshot.Volume{{Name: "v", Claim: "labelled"}}}, "aa", []string{"only in a: volume of n/web"}},
		"ephemeral volume":  {snapshot.PodSpec{Volumes: []snapshot.Volume{{Name: "scratch", Ephemeral: &snapshot.ClaimSpec{}}}}, "aa", []string{"only in a: volume of n/web"}},
		"volume anywhere":   {snapshot.PodSpec{Volumes: []snapshot.Volume{{Name: "v", Claim: "free"}}}, "aa", nil},
		"claim not bound":   {snapshot.PodSpec{Volumes: []snapshot.Volume{{Name: "v", Claim: "unbound"}}}, "aa", nil},
	} {
		claim := func(name, volume string) snapshot.PersistentVolumeClaim {
			return snapshot.PersistentVolumeClaim{Namespace: "n", Name: name, Spec: snapshot.ClaimSpec{VolumeName: volume}}
		}
		s := &snapshot.Snapshot{
			Pods:    []snapshot.Pod{{Namespace: "n", Name: "web", Spec: tc.spec}},
			Volumes: []snapshot.PersistentVolume{{Name: "in-a", Required: in(zone)}, {Name: "old", Labels: map[string]string{"failure-domain.beta.kubernetes.io/zone": "a"}}, {Name: "free", Required: in("rack")}},
			Claims:  []snapshot.PersistentVolumeClaim{claim("zoned", "in-a"), claim("labelled", "old"), claim("free", "free"), claim("unbound", ""), claim("web-scratch", "in-a")},
		}
		p := &plan.Plan{Launches: []plan.Launch{{Name: "x", Pods: []string{"n/web"}}}}
		for _, z := range tc.zones {
			p.Launches[0].Options = append(p.Launches[0].Options, plan.Offer{Zone: string(z)})
		}
		plan.Describe(p, s)
		plan.Describe(p, s) // twice is once
		if diff := cmp.Diff(tc.want, p.Launches[0].Notes); diff != "" {
			t.Errorf("%s\n%s", name, diff)
		}
	}
}
