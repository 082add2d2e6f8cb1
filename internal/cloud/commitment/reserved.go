package commitment

import (
	"cmp"
	"context"
	"fmt"
	"math"
	"slices"
	"strings"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/ec2"
	"github.com/aws/aws-sdk-go-v2/service/ec2/types"

	"kerf.sh/kerf/internal/catalog"
	"kerf.sh/kerf/internal/cloud/awserr"
)

// reservedInstance is a reserved instance of the region, with Linux on shared hardware.
type reservedInstance struct {
	id, typ string
	count   int64
	rate    int64 // micro-dollars per instance and hour, upfront payment spread over the term
}

// reserved are the active ones. zonal is how many belong to a single zone.
func (a *Account) reserved(ctx context.Context) (out []reservedInstance, zonal int64, err error) {
	// All come in one answer: the call has no pages.
	got, err := a.EC2.DescribeReservedInstances(ctx, &ec2.DescribeReservedInstancesInput{
		Filters: []types.Filter{{Name: aws.String("state"), Values: []string{string(types.ReservedInstanceStateActive)}}},
	})
	if err != nil {
		return nil, 0, fmt.Errorf("describe reserved instances: %w", awserr.From(err))
	}
	for i := range got.ReservedInstances {
		r := &got.ReservedInstances[i]
		n := int64(aws.ToInt32(r.InstanceCount))
		if r.State != types.ReservedInstanceStateActive || n <= 0 || !strings.HasPrefix(string(r.ProductDescription), "Linux/UNIX") || r.InstanceTenancy == types.TenancyDedicated {
			continue
		}
		if r.Scope == types.ScopeAvailabilityZone || aws.ToString(r.AvailabilityZone) != "" {
			zonal += n
			continue
		}
		out = append(out, reservedInstance{aws.ToString(r.ReservedInstancesId), string(r.InstanceType), n, hourly(r)})
	}
	slices.SortFunc(out, func(a, b reservedInstance) int { return cmp.Or(cmp.Compare(a.rate, b.rate), cmp.Compare(a.id, b.id)) })
	return out, zonal, nil
}

// hourly is what an hour costs, in micro-dollars, rounded up.
func hourly(r *types.ReservedInstances) int64 {
	dollars := 0.0
	if hours := float64(aws.ToInt64(r.Duration)) / 3600; hours > 0 {
		dollars = float64(aws.ToFloat32(r.FixedPrice)) / hours
	}
	for _, c := range r.RecurringCharges {
		if c.Frequency == types.RecurringChargeFrequencyHourly {
			dollars += aws.ToFloat64(c.Amount)
		}
	}
	// The SDK has these as floats: what is a millionth of a micro-dollar above is not more.
	return int64(math.Ceil(dollars*1e6 - 1e-6))
}

// rigid are the families whose reserved instances hold for their own size alone.
var rigid = []string{"g4ad", "g4dn", "g5", "g5g", "g6", "g6e", "g6f", "gr6", "gr6f", "hpc7a", "inf1", "inf2", "p5", "p5e", "p5en", "p6-b200"}

// unusedReserved are the reserved instances that nothing runs on; of running, what runs on them
// is taken away. All sizes of a family share them, by their vCPUs, but where AWS says that they
// do not.
func (a *Account) unusedReserved(reserved []reservedInstance, running map[string]int64) []catalog.Commitment {
	var out []catalog.Commitment
	left := make([]int64, len(reserved)) // instances, or vCPUs of a family
	shares := func(r *reservedInstance) bool {
		return a.vcpu(r.typ) > 0 && !slices.Contains(rigid, family(r.typ)) && !strings.HasPrefix(r.typ, "u")
	}
	for i := range reserved {
		r := &reserved[i]
		if left[i] = r.count; shares(r) {
			left[i] *= a.vcpu(r.typ)
		}
	}
	for _, typ := range sorted(running) {
		for i := range reserved {
			r := &reserved[i]
			if r.typ == typ && !shares(r) {
				running[typ] = take(&left[i], running[typ])
			}
		}
	}
	for _, typ := range sorted(running) {
		need := running[typ] * a.vcpu(typ)
		for i := range reserved {
			if r := &reserved[i]; family(r.typ) == family(typ) && shares(r) {
				need = take(&left[i], need)
			}
		}
		if n := a.vcpu(typ); n > 0 {
			running[typ] = (need + n - 1) / n
		}
	}
	for i := range reserved {
		r := &reserved[i]
		if left[i] == 0 || r.rate <= 0 {
			continue
		}
		c := catalog.Commitment{ID: r.id, Scope: r.typ, Price: r.rate, Remaining: left[i] * r.rate}
		if shares(r) {
			n := a.vcpu(r.typ)
			c.Scope, c.Price = family(r.typ), (r.rate+n-1)/n
			c.Remaining = left[i] * c.Price
		}
		out = append(out, c)
	}
	return out
}
