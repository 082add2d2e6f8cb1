package pricing

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"slices"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/ec2"
	"github.com/aws/aws-sdk-go-v2/service/ec2/types"

	"kerf.sh/kerf/internal/cloud/awserr"
	"kerf.sh/kerf/internal/cloud/network"
	"kerf.sh/kerf/internal/cloud/nodeclass"
	"kerf.sh/kerf/internal/cloud/paging"
)

// Reservations are the active capacity reservations that match any of the terms, by id.
// No terms, and terms that match nothing, give none and no error.
func Reservations(ctx context.Context, c EC2, terms []nodeclass.ReservationTerm) ([]nodeclass.Reservation, error) {
	found := map[string]nodeclass.Reservation{}
	filter := func(name string, values ...string) types.Filter {
		return types.Filter{Name: aws.String(name), Values: values}
	}
	for _, t := range terms {
		in := &ec2.DescribeCapacityReservationsInput{Filters: []types.Filter{filter("state", string(types.CapacityReservationStateActive))}}
		if t.ID != "" {
			in.CapacityReservationIds = []string{t.ID}
		} else {
			in.Filters = append(in.Filters, network.TagFilters(t.Tags)...)
			if t.OwnerID != "" {
				in.Filters = append(in.Filters, filter("owner-id", t.OwnerID))
			}
			if t.InstanceMatchCriteria != "" {
				in.Filters = append(in.Filters, filter("instance-match-criteria", t.InstanceMatchCriteria))
			}
		}
		err := paging.All(func() {}, func(token *string) (*string, error) { // by id: what is read twice is the same
			in.NextToken = token
			page, err := c.DescribeCapacityReservations(ctx, in)
			if err != nil {
				return nil, err
			}
			for i := range page.CapacityReservations {
				r := reservation(&page.CapacityReservations[i])
				found[r.ID] = r
			}
			return page.NextToken, nil
		})
		// One that is gone is no error, there is just nothing to use (BC-33).
		if e := awserr.From(err); e != nil && e.Kind != awserr.NotFound {
			return nil, fmt.Errorf("resolve spec.capacityReservationSelectorTerms: %w", e)
		}
	}
	out := slices.Collect(maps.Values(found))
	slices.SortFunc(out, func(a, b nodeclass.Reservation) int { return cmp.Compare(a.ID, b.ID) })
	return out, nil
}

func reservation(r *types.CapacityReservation) nodeclass.Reservation {
	out := nodeclass.Reservation{
		ID: aws.ToString(r.CapacityReservationId), InstanceType: aws.ToString(r.InstanceType), Zone: aws.ToString(r.AvailabilityZone),
		OwnerID: aws.ToString(r.OwnerId), MatchCriteria: string(r.InstanceMatchCriteria), Type: nodeclass.ReservationDefault,
		State: nodeclass.ReservationActive, Interruptible: aws.ToBool(r.Interruptible),
		Remaining: int64(aws.ToInt32(r.AvailableInstanceCount)), Total: int64(aws.ToInt32(r.TotalInstanceCount)),
	}
	if r.ReservationType == types.CapacityReservationTypeCapacityBlock {
		out.Type = nodeclass.ReservationBlock
	}
	if r.EndDate != nil {
		out.Ends = *r.EndDate
	}
	return out
}
