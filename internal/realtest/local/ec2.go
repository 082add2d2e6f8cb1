package local

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/ec2/types"
	"github.com/aws/aws-sdk-go-v2/service/eventbridge"
	ebtypes "github.com/aws/aws-sdk-go-v2/service/eventbridge/types"

	"kerf.sh/kerf/internal/cloud/ec2fake"
	"kerf.sh/kerf/internal/realtest/fakeaws"
)

// Notice is how long before EC2 takes a spot instance back it says so.
const Notice = 2 * time.Minute

// bus sends what EC2 says about instances to the emulator's event bus.
type bus struct {
	events *eventbridge.Client
	ec2    *ec2fake.EC2
	// sent is called with each event that the bus has taken.
	sent func(detailType, instance, state string)
}

// run sends a notification for every change of an instance's state, until ctx ends.
func (b *bus) run(ctx context.Context) {
	known := map[string]types.InstanceStateName{}
	for ctx.Err() == nil {
		for _, i := range b.ec2.Machines() {
			state := i.State(time.Now())
			if known[i.ID] == state {
				continue
			}
			if err := b.send(ctx, "EC2 Instance State-change Notification", i.ID, map[string]string{"instance-id": i.ID, "state": string(state)}); err == nil {
				known[i.ID] = state
			}
		}
		select {
		case <-ctx.Done():
		case <-time.After(200 * time.Millisecond):
		}
	}
}

func (b *bus) send(ctx context.Context, detailType, instance string, detail map[string]string) error {
	raw, err := json.Marshal(detail)
	if err != nil {
		return err
	}
	out, err := b.events.PutEvents(ctx, &eventbridge.PutEventsInput{Entries: []ebtypes.PutEventsRequestEntry{{
		Source: aws.String("aws.ec2"), DetailType: &detailType, Detail: aws.String(string(raw)), Resources: []string{"arn:aws:ec2:" + fakeaws.Region + ":" + fakeaws.Account + ":instance/" + instance},
	}}})
	if err != nil {
		return fmt.Errorf("send %q: %w", detailType, err)
	}
	if out.FailedEntryCount > 0 {
		return fmt.Errorf("send %q: %s", detailType, aws.ToString(out.Entries[0].ErrorMessage))
	}
	if b.sent != nil {
		b.sent(detailType, instance, detail["state"])
	}
	return nil
}

// Interrupt has EC2 say that it takes an instance back, and take it when the notice is over.
func (s *Stack) Interrupt(ctx context.Context, instance string) error {
	if !slices.ContainsFunc(s.EC2.Machines(), func(i ec2fake.Instance) bool { return i.ID == instance }) {
		return fmt.Errorf("interrupt %s: there is no such instance", instance)
	}
	if err := s.bus.send(ctx, "EC2 Spot Instance Interruption Warning", instance, map[string]string{"instance-id": instance, "instance-action": "terminate"}); err != nil {
		return err
	}
	time.AfterFunc(Notice, func() { s.EC2.Interrupt(instance) })
	return nil
}

// allowed says whether a caller's role has a permission of EC2, prices or public parameters;
// the emulator itself evaluates those of all other services. What is lacked is noted.
func (s *Stack) allowed(caller, service, action string) bool {
	if caller == owner.AccessKeyID {
		return true
	}
	s.mu.Lock()
	id, ok := s.callers[caller]
	s.mu.Unlock()
	if ok && slices.Contains(s.template.actions[id], service+":"+action) {
		return true
	}
	s.note(fmt.Errorf("%s %s is not permitted %s:%s", caller, id, service, action))
	return false
}
