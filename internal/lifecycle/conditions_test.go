package lifecycle

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"kerf.sh/kerf/internal/snapshot"
)

// TestEnding: the conditions of a NodeClaim whose node is on its way out, stage by stage.
func TestEnding(t *testing.T) {
	began := at(time.Hour)
	base := func(change func(r *Record)) Record {
		r := Record{Phase: Draining, RegisteredAt: t0, InitializedAt: t0, LaunchedAt: t0, DeletingSince: began, Since: began, Reason: ReasonDeleted, Message: "waits for 1 pods to leave: shop/web", Instance: Instance{ID: "i-1"}}
		change(&r)
		return r
	}
	gone := began.Add(time.Minute)
	tests := []struct {
		name string
		r    Record
		want []snapshot.Condition
	}{
		{"in use", base(func(r *Record) { r.Phase = Initialized }), nil},
		{"drains", base(func(*Record) {}), []snapshot.Condition{{Type: "Drained", Status: "Unknown", Reason: "Draining", Message: "waits for 1 pods to leave: shop/web", Since: began}}},
		{"is blocked", base(func(r *Record) { r.Blocked = "waits since 10:00: budget one" }),
			[]snapshot.Condition{{Type: "Drained", Status: "Unknown", Reason: "Draining", Message: "waits since 10:00: budget one", Since: began}}},
		{"waits for volumes", base(func(r *Record) { r.DrainedAt, r.Reason, r.Message = gone, "AwaitingVolumeDetachment", "two" }), []snapshot.Condition{
			{Type: "Drained", Status: "True", Reason: "Drained", Since: gone}, {Type: "VolumesDetached", Status: "Unknown", Reason: "AwaitingVolumeDetachment", Message: "two", Since: gone}}},
		{"ends", base(func(r *Record) { r.Phase, r.DrainedAt, r.DetachedAt = Terminating, gone, gone }), []snapshot.Condition{
			{Type: "Drained", Status: "True", Reason: "Drained", Since: gone}, {Type: "VolumesDetached", Status: "True", Reason: "VolumesDetached", Since: gone},
			{Type: "InstanceTerminating", Status: "True", Reason: "InstanceTerminating", Since: began}}},
		{"its time is over", base(func(r *Record) {
			r.Phase, r.Reason, r.Message, r.Since = Terminating, "TerminationGracePeriodElapsed", "over", gone
		}), []snapshot.Condition{
			{Type: "Drained", Status: "Unknown", Reason: "Draining", Message: "over", Since: began}, {Type: "VolumesDetached", Status: "False", Reason: "TerminationGracePeriodElapsed", Message: "over", Since: gone},
			{Type: "InstanceTerminating", Status: "True", Reason: "InstanceTerminating", Since: began}}},
		{"never joined", base(func(r *Record) { r.Phase, r.RegisteredAt = Terminating, time.Time{} }), []snapshot.Condition{
			{Type: "InstanceTerminating", Status: "True", Reason: "InstanceTerminating", Since: began}}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			var got []snapshot.Condition
			for _, c := range tt.r.Conditions() {
				if c.Type == "Drained" || c.Type == "VolumesDetached" || c.Type == "InstanceTerminating" {
					got = append(got, c)
				}
			}
			if d := cmp.Diff(tt.want, got); d != "" {
				t.Error(d)
			}
		})
	}
}

// TestEmptied: how far a drain has come is noted once, and taken back when a pod comes after
// all.
func TestEmptied(t *testing.T) {
	r := launched()
	r.Phase, r.Node, r.RegisteredAt, r.DeletingSince, r.Blocked = Draining, "n", t0, at(time.Hour), "budget one"
	seen := func(pods, volumes int) Observation {
		return whole(Observation{Object: object(), Instance: running(), Nodes: []Node{joined()}, Pods: pods, Volumes: volumes})
	}
	s := r.Advance(seen(1, 0), at(time.Hour+10*time.Second))
	if !s.Record.DrainedAt.IsZero() || s.Record.Blocked == "" {
		t.Errorf("a pod is there: %+v", s.Record)
	}
	s = s.Record.Advance(seen(0, 1), at(time.Hour+20*time.Second))
	if !s.Record.DrainedAt.Equal(at(time.Hour+20*time.Second)) || !s.Record.DetachedAt.IsZero() || s.Record.Blocked != "" || s.Record.Phase != Draining {
		t.Errorf("a volume is there: %+v", s.Record)
	}
	back := s.Record.Advance(seen(1, 1), at(time.Hour+30*time.Second))
	if !back.Record.DrainedAt.IsZero() {
		t.Errorf("a pod came back: %+v", back.Record)
	}
	s = s.Record.Advance(seen(0, 0), at(time.Hour+40*time.Second))
	if !s.Record.DrainedAt.Equal(at(time.Hour+20*time.Second)) || !s.Record.DetachedAt.Equal(at(time.Hour+40*time.Second)) || s.Record.Phase != Terminating {
		t.Errorf("empty: %+v", s.Record)
	}
}
