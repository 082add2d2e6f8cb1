package fleet

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/ec2"
	"github.com/aws/aws-sdk-go-v2/service/ec2/types"

	"kerf.sh/kerf/internal/interruption"
)

// StatusClient is the one method of EC2 that Statuses calls.
type StatusClient interface {
	DescribeInstanceStatus(context.Context, *ec2.DescribeInstanceStatusInput, ...func(*ec2.Options)) (*ec2.DescribeInstanceStatusOutput, error)
}

// Statuses are the instances of the region that are not well, whoever's they are: those
// whose checks fail, and those that EC2 wants to do something with. EC2 joins the filters of
// one call with "and", so that each takes a call of its own (Karpenter: same). each runs f
// for 0 to n-1, in any order.
func Statuses(ctx context.Context, client StatusClient, each func(n int, f func(i int))) ([]interruption.Status, error) {
	queries := []struct {
		filter string
		values []string
		read   func(*types.InstanceStatus) []interruption.Status
	}{
		{"instance-status.status", []string{string(types.SummaryStatusImpaired)}, func(s *types.InstanceStatus) []interruption.Status {
			return failing(s, interruption.InstanceStatusFailed, s.InstanceStatus)
		}},
		{"system-status.status", []string{string(types.SummaryStatusImpaired)}, func(s *types.InstanceStatus) []interruption.Status {
			return failing(s, interruption.SystemStatusFailed, s.SystemStatus)
		}},
		{"event.code", interruption.Maintenance, events},
	}
	lists, errs := make([][]interruption.Status, len(queries)), make([]error, len(queries))
	each(len(queries), func(i int) {
		q := &queries[i]
		in := &ec2.DescribeInstanceStatusInput{Filters: []types.Filter{{Name: aws.String(q.filter), Values: q.values}}}
		pages := ec2.NewDescribeInstanceStatusPaginator(client, in)
		for pages.HasMorePages() {
			page, err := pages.NextPage(ctx)
			if err != nil {
				errs[i] = fmt.Errorf("describe the status of instances by %s: %w", q.filter, err)
				return
			}
			for k := range page.InstanceStatuses {
				lists[i] = append(lists[i], q.read(&page.InstanceStatuses[k])...)
			}
		}
	})
	if err := errors.Join(errs...); err != nil {
		return nil, err
	}
	return slices.Concat(lists...), nil
}

// failing are the checks of a summary that fail: as one, since the first of them does.
func failing(s *types.InstanceStatus, kind interruption.Kind, of *types.InstanceStatusSummary) []interruption.Status {
	if of == nil {
		return nil
	}
	out := interruption.Status{Instance: aws.ToString(s.InstanceId), Kind: kind}
	for _, d := range of.Details {
		if since := aws.ToTime(d.ImpairedSince).UTC(); d.ImpairedSince != nil && (out.Since.IsZero() || since.Before(out.Since)) {
			out.Since = since
		}
	}
	return []interruption.Status{out}
}

func events(s *types.InstanceStatus) []interruption.Status {
	var out []interruption.Status
	for _, e := range s.Events {
		x := interruption.Status{Instance: aws.ToString(s.InstanceId), Kind: interruption.MaintenanceScheduled, Code: string(e.Code), Description: aws.ToString(e.Description)}
		if e.NotBefore != nil {
			x.NotBefore = e.NotBefore.UTC()
		}
		out = append(out, x)
	}
	return out
}
