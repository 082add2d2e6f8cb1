package lifecycle

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"kerf.sh/kerf/internal/snapshot"
)

// TestJoinedSizes: a node that has joined with less than was thought is known to be so
// before it is initialized.
func TestJoinedSizes(t *testing.T) {
	thought := snapshot.Resources{CPU: 1930, Memory: 14 << 30, Pods: 29, Ephemeral: 17 << 30}
	record := func(change func(*Record)) Record {
		r := Record{Claim: "a", Phase: Launched, Shape: "s", Capacity: thought, Allocatable: thought,
			Instance: Instance{ID: "i-1", Type: "r6g.large", Zone: "us-east-1a", ImageID: "ami-1"}}
		if change != nil {
			change(&r)
		}
		return r
	}
	node := func(change func(*snapshot.Node)) []snapshot.Node {
		n := snapshot.Node{Name: "n", ProviderID: "aws:///us-east-1a/i-1", Capacity: thought, Allocatable: thought.With(snapshot.Memory, 12<<30)}
		if change != nil {
			change(&n)
		}
		return []snapshot.Node{n}
	}
	small := []snapshot.LearnedSize{{InstanceType: "r6g.large", ImageID: "ami-1", Shape: "s", Capacity: thought, Allocatable: thought.With(snapshot.Memory, 12<<30)}}
	for _, tt := range []struct {
		name   string
		record func(*Record)
		node   func(*snapshot.Node)
		want   []snapshot.LearnedSize
	}{
		{"less memory", nil, nil, small},
		{"registered", func(r *Record) { r.Phase = Registered }, nil, small},
		{"initialized: it is learned by then", func(r *Record) { r.Phase = Initialized }, nil, nil},
		{"going", func(r *Record) { r.Phase = Draining }, nil, nil},
		{"as was thought", nil, func(n *snapshot.Node) { n.Allocatable = thought }, nil},
		{"more is not believed yet", nil, func(n *snapshot.Node) { n.Allocatable = thought.With(snapshot.Memory, 15<<30) }, nil},
		{"nothing reported yet", nil, func(n *snapshot.Node) { n.Capacity, n.Allocatable = snapshot.Resources{}, snapshot.Resources{} }, nil},
		{"a device may still come", func(r *Record) { r.Allocatable = thought.With("nvidia.com/gpu", 1) }, func(n *snapshot.Node) { n.Allocatable = thought }, nil},
		{"another instance", nil, func(n *snapshot.Node) { n.ProviderID = "aws:///us-east-1a/i-2" }, nil},
		{"a shape that is not known", func(r *Record) { r.Shape = "" }, nil, nil},
	} {
		if d := cmp.Diff(tt.want, joinedSizes([]Record{record(tt.record)}, node(tt.node))); d != "" {
			t.Errorf("%s: %s", tt.name, d)
		}
	}
	s := &snapshot.Snapshot{Nodes: node(nil)}
	Remembered{Records: []Record{record(nil)}}.Into(s)
	if d := cmp.Diff(small, s.Learned); d != "" {
		t.Errorf("in the snapshot: %s", d)
	}
}
