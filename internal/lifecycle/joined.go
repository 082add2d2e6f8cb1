package lifecycle

import "kerf.sh/kerf/internal/snapshot"

// basics are the resources that a kubelet reports as soon as it registers its Node.
var basics = [...]string{snapshot.CPU, snapshot.Memory, snapshot.EphemeralStorage, snapshot.Pods}

// joinedSizes are the sizes of nodes that have joined with less than was thought and are not
// initialized yet, when their size is learned: whoever plans in between would buy the same
// again for the pods that do not fit. Only less is believed, and only of what is there from
// the beginning: the rest may still come.
func joinedSizes(records []Record, nodes []snapshot.Node) []snapshot.LearnedSize {
	by := map[string]*snapshot.Node{}
	for i := range nodes {
		by[nodes[i].ProviderID] = &nodes[i]
	}
	delete(by, "")
	var out []snapshot.LearnedSize
	for i := range records {
		r := &records[i]
		if !r.Phase.Live() || !r.Phase.Before(Initialized) || r.Instance.ID == "" || r.Instance.Type == "" || r.Instance.ImageID == "" || r.Shape == "" {
			continue
		}
		n := by[r.Instance.ProviderID()]
		if n == nil {
			continue
		}
		capacity, _ := less(r.Capacity, n.Capacity)
		allocatable, some := less(r.Allocatable, n.Allocatable)
		if some {
			out = append(out, snapshot.LearnedSize{InstanceType: r.Instance.Type, ImageID: r.Instance.ImageID, Shape: r.Shape, Capacity: capacity, Allocatable: allocatable})
		}
	}
	return out
}

// less is what was thought, with what is less in its place, and whether something is.
func less(thought, is snapshot.Resources) (out snapshot.Resources, some bool) {
	out = thought
	for _, name := range basics {
		if v := is.Get(name); v > 0 && v < thought.Get(name) {
			out, some = out.With(name, v), true
		}
	}
	return out, some
}
