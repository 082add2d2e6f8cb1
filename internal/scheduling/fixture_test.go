package scheduling

import (
	"slices"
	"testing"

	"kerf.sh/kerf/internal/catalog"
	"kerf.sh/kerf/internal/packing"
	"kerf.sh/kerf/internal/plan"
	"kerf.sh/kerf/internal/snapshot"
	"kerf.sh/kerf/internal/worldtest"
)

const mib = int64(1) << 20

// req writes a requirement.
func req(key, op string, values ...string) snapshot.SelectorRequirement {
	return snapshot.SelectorRequirement{Key: key, Operator: op, Values: values}
}

// types is the requirement on instance types.
func types(names ...string) snapshot.SelectorRequirement {
	return req(catalog.LabelInstanceType, "In", names...)
}

func pool(name string, reqs ...snapshot.SelectorRequirement) snapshot.NodePool {
	return snapshot.NodePool{
		Name: name, Requirements: reqs,
		ClassRef: snapshot.ClassRef{Group: classGroup, Kind: "EC2NodeClass", Name: "default"},
	}
}

func pod(name string, cpu, mem int64) snapshot.Pod {
	return snapshot.Pod{
		Namespace: "default", Name: name,
		Spec: snapshot.PodSpec{Requests: snapshot.Resources{CPU: cpu, Memory: mem * mib, Pods: 1}},
	}
}

// small is a snapshot with one ready class.
func small(pools []snapshot.NodePool, pods ...snapshot.Pod) *snapshot.Snapshot {
	return &snapshot.Snapshot{
		Region: "z", Now: clock, Settings: snapshot.DefaultSettings(), NodePools: pools, Pods: pods,
		NodeClasses: []snapshot.NodeClass{{
			Name: "default", AMIFamily: "AL2023", AMIAlias: "al2023@latest", HasStatus: true,
			Zones: []snapshot.SubnetZone{{Zone: "z-a", ZoneID: "zid-a"}, {Zone: "z-b", ZoneID: "zid-b"}, {Zone: "z-c", ZoneID: "zid-c"}},
			Images: []snapshot.Image{
				{ID: "ami-amd", Requirements: []snapshot.SelectorRequirement{req(catalog.LabelArch, "In", "amd64")}},
				{ID: "ami-arm", Requirements: []snapshot.SelectorRequirement{req(catalog.LabelArch, "In", "arm64")}},
			},
		}},
	}
}

func world(s *snapshot.Snapshot) (*World, *packing.Problem) {
	w := New(s, worldtest.Fixture())
	return w, w.Problem()
}

// allowedOffers lists the offers of a class as "template type zone capacity".
func allowedOffers(p *packing.Problem, class int) []string {
	var out []string
	for t, bits := range p.Classes[class].Offers {
		tm := &p.Templates[t]
		bits.Members(func(o int) {
			f := &tm.Offers[o]
			out = append(out, tm.Name+" "+tm.Types[f.Type].Name+" "+f.Zone+" "+f.Capacity)
		})
	}
	return out
}

// allowedTypes lists the distinct types that a class may use.
func allowedTypes(p *packing.Problem, class int) []string {
	var out []string
	for t, bits := range p.Classes[class].Offers {
		tm := &p.Templates[t]
		bits.Members(func(o int) { out = append(out, tm.Types[tm.Offers[o].Type].Name) })
	}
	slices.Sort(out)
	return slices.Compact(out)
}

// allowedNodes lists the nodes that a class may use.
func allowedNodes(p *packing.Problem, class int) []string {
	var out []string
	p.Classes[class].Nodes.Members(func(i int) { out = append(out, p.Nodes[i].Name) })
	return out
}

func poolCode(t *testing.T, w *World, name string) (plan.Code, string) {
	t.Helper()
	for i := range w.Pools {
		if w.Pools[i].Spec.Name == name {
			return w.Pools[i].Code, w.Pools[i].Detail
		}
	}
	t.Fatalf("no pool %s", name)
	return "", ""
}

// fits reports whether some allowed type is large enough for a pod of the class.
func fits(p *packing.Problem, c *packing.Class) bool {
	for t, bits := range c.Offers {
		if bits == nil {
			continue
		}
		tm := &p.Templates[t]
		last, found := -1, false
		bits.Members(func(o int) {
			if typ := tm.Offers[o].Type; typ != last {
				last = typ
				found = found || covers(tm.Types[typ].Alloc, c.Need)
			}
		})
		if found {
			return true
		}
	}
	return false
}
