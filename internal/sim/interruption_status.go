package sim

import (
	"context"
	"maps"
	"slices"
	"time"

	awssdk "github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/ec2"
	"github.com/aws/aws-sdk-go-v2/service/ec2/types"

	"kerf.sh/kerf/internal/cloud/ec2fake"
)

// ailment is a status check that fails.
type ailment struct {
	system bool
	since  time.Time
}

// plannedEvent is what EC2 wants to do with an instance.
type plannedEvent struct {
	code, description string
	begins            time.Time // zero = it does not say
}

// ails lets a check of an instance fail, or has EC2 plan something with it: it says so to
// those who ask, and to nobody else.
func (b *bus) ails(i *ec2fake.Instance) {
	d := b.dice
	switch kind := d.IntN(3); kind {
	case 0, 1:
		if _, already := b.impaired[i.ID]; !already { // one that fails goes on failing
			b.impaired[i.ID] = ailment{system: kind == 1, since: b.w.now()}
		}
	case 2:
		e := plannedEvent{code: pick(d, []string{"instance-reboot", "system-reboot", "system-maintenance", "instance-retirement", "instance-stop"}), description: "it has to be"}
		if d.IntN(3) > 0 {
			e.begins = b.w.now().Add(d.between(time.Minute, 10*time.Minute))
			b.w.at(e.begins, func() { b.end(i) })
		}
		if was, already := b.planned[i.ID]; !already || was.begins.IsZero() || e.begins.Before(was.begins) && !e.begins.IsZero() {
			b.planned[i.ID] = e // of two that are planned, the first to come
		}
	}
	b.w.tracef("instance %s ails: %+v %+v", i.ID, b.impaired[i.ID], b.planned[i.ID])
}

// statuses are the instances that run and are not well, by what is asked for.
func (b *bus) statuses(filter string, codes []string) (out []types.InstanceStatus) {
	runs := func(id string) bool {
		return b.w.cluster.machines[id].i.State(b.w.now()) == types.InstanceStateNameRunning
	}
	if filter == "event.code" {
		for _, id := range slices.Sorted(maps.Keys(b.planned)) {
			x := b.planned[id]
			if !runs(id) || !slices.Contains(codes, x.code) {
				continue
			}
			event := types.InstanceStatusEvent{Code: types.EventCode(x.code), Description: awssdk.String(x.description)}
			if !x.begins.IsZero() {
				event.NotBefore = &x.begins
			}
			out = append(out, types.InstanceStatus{InstanceId: awssdk.String(id), Events: []types.InstanceStatusEvent{event}})
		}
		return out
	}
	for _, id := range slices.Sorted(maps.Keys(b.impaired)) {
		x := b.impaired[id]
		if !runs(id) || x.system != (filter == "system-status.status") {
			continue
		}
		bad := &types.InstanceStatusSummary{Status: types.SummaryStatusImpaired, Details: []types.InstanceStatusDetails{{ImpairedSince: &x.since}}}
		s := types.InstanceStatus{InstanceId: awssdk.String(id), InstanceStatus: bad}
		if x.system {
			s.InstanceStatus, s.SystemStatus = nil, bad
		}
		out = append(out, s)
	}
	return out
}

// DescribeInstanceStatus implements fleet.StatusClient.
func (e *ec2Client) DescribeInstanceStatus(ctx context.Context, in *ec2.DescribeInstanceStatusInput, _ ...func(*ec2.Options)) (*ec2.DescribeInstanceStatusOutput, error) {
	return ec2call(ctx, e, bound{Op: "DescribeInstanceStatus", Object: awssdk.ToString(in.Filters[0].Name)}, in, e.a.ec2.DescribeInstanceStatus)
}
