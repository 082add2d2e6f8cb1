package fleet

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/ec2"
	"github.com/aws/aws-sdk-go-v2/service/ec2/types"
	"github.com/google/go-cmp/cmp"

	"kerf.sh/kerf/internal/interruption"
)

// statuses answers by filter, a page for each entry.
type statuses struct {
	pages map[string][]types.InstanceStatus
	fail  string
	asked []string
}

func (s *statuses) DescribeInstanceStatus(_ context.Context, in *ec2.DescribeInstanceStatusInput, _ ...func(*ec2.Options)) (*ec2.DescribeInstanceStatusOutput, error) {
	if len(in.Filters) != 1 {
		return nil, errors.New("the filters of one call are joined with \"and\"")
	}
	name := *in.Filters[0].Name
	s.asked = append(s.asked, name)
	if name == s.fail {
		return nil, errors.New("UnauthorizedOperation")
	}
	at := len(aws.ToString(in.NextToken))
	out := &ec2.DescribeInstanceStatusOutput{}
	if list := s.pages[name]; at < len(list) {
		out.InstanceStatuses = list[at : at+1]
		if at+1 < len(list) {
			out.NextToken = aws.String("......"[:at+1])
		}
	}
	return out, nil
}

func inTurn(n int, f func(i int)) {
	for i := range n {
		f(i)
	}
}

func TestStatuses(t *testing.T) {
	since := time.Date(2026, 12, 1, 10, 0, 0, 0, time.FixedZone("CET", 3600))
	check := func(times ...time.Time) *types.InstanceStatusSummary {
		out := &types.InstanceStatusSummary{Status: types.SummaryStatusImpaired}
		for _, at := range times {
			out.Details = append(out.Details, types.InstanceStatusDetails{Name: types.StatusNameReachability, Status: types.StatusTypeFailed, ImpairedSince: &at})
		}
		return out
	}
	s := &statuses{pages: map[string][]types.InstanceStatus{
		"instance-status.status": {
			{InstanceId: aws.String("i-1"), InstanceStatus: check(since.Add(time.Minute), since), SystemStatus: check(since)},
			{InstanceId: aws.String("i-2"), InstanceStatus: check()},
		},
		"system-status.status": {{InstanceId: aws.String("i-1"), InstanceStatus: check(since), SystemStatus: check(since)}},
		"event.code": {{InstanceId: aws.String("i-3"), Events: []types.InstanceStatusEvent{
			{Code: types.EventCodeInstanceRetirement, Description: aws.String("the host degrades"), NotBefore: &since}, {Code: types.EventCodeSystemReboot},
		}}},
	}}
	got, err := Statuses(t.Context(), s, inTurn)
	if err != nil {
		t.Fatal(err)
	}
	want := []interruption.Status{
		{Instance: "i-1", Kind: interruption.InstanceStatusFailed, Since: since.UTC()},
		{Instance: "i-2", Kind: interruption.InstanceStatusFailed},
		{Instance: "i-1", Kind: interruption.SystemStatusFailed, Since: since.UTC()},
		{Instance: "i-3", Kind: interruption.MaintenanceScheduled, Code: "instance-retirement", Description: "the host degrades", NotBefore: since.UTC()},
		{Instance: "i-3", Kind: interruption.MaintenanceScheduled, Code: "system-reboot"},
	}
	if d := cmp.Diff(want, got); d != "" {
		t.Error(d)
	}
	if d := cmp.Diff([]string{"instance-status.status", "instance-status.status", "system-status.status", "event.code"}, s.asked); d != "" {
		t.Error(d)
	}
	for _, fail := range []string{"instance-status.status", "system-status.status", "event.code"} {
		s.fail = fail
		if _, err := Statuses(t.Context(), s, inTurn); err == nil {
			t.Errorf("nobody says that %s was refused", fail)
		}
	}
}
