package commitment

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/ec2"
	ec2types "github.com/aws/aws-sdk-go-v2/service/ec2/types"
	"github.com/aws/aws-sdk-go-v2/service/savingsplans"

	"kerf.sh/kerf/internal/catalog"
	"kerf.sh/kerf/internal/cloud/awserr"
	"kerf.sh/kerf/internal/cloud/paging"
)

// EC2 are the calls of EC2 that commitments need.
type EC2 interface {
	DescribeInstances(ctx context.Context, in *ec2.DescribeInstancesInput, opts ...func(*ec2.Options)) (*ec2.DescribeInstancesOutput, error)
	DescribeReservedInstances(ctx context.Context, in *ec2.DescribeReservedInstancesInput, opts ...func(*ec2.Options)) (*ec2.DescribeReservedInstancesOutput, error)
}

// Plans are the calls about Savings Plans.
type Plans interface {
	DescribeSavingsPlans(ctx context.Context, in *savingsplans.DescribeSavingsPlansInput, opts ...func(*savingsplans.Options)) (*savingsplans.DescribeSavingsPlansOutput, error)
	DescribeSavingsPlanRates(ctx context.Context, in *savingsplans.DescribeSavingsPlanRatesInput, opts ...func(*savingsplans.Options)) (*savingsplans.DescribeSavingsPlanRatesOutput, error)
}

// Account is who is asked about what.
type Account struct {
	EC2    EC2
	Plans  Plans
	Region string
	// Types are those of the region.
	Types []catalog.InstanceType
}

// Read is what the account has committed itself to and does not use. problems say what could
// not be read, each with why: the permission that is missing, say. Where the instances that
// run could not be listed, nothing is known to be unused.
func (a *Account) Read(ctx context.Context) (found []catalog.Commitment, problems []string) {
	running, err := a.running(ctx)
	if err != nil {
		return nil, []string{"commitments are not counted, as it is not known what uses them: " + err.Error()}
	}
	reserved, zonal, err := a.reserved(ctx)
	if err != nil {
		problems = append(problems, "reserved instances are not counted: "+err.Error())
	}
	if zonal > 0 {
		problems = append(problems, fmt.Sprintf("%d reserved instances of a single zone are not counted, only those of the region", zonal))
	}
	found = append(found, a.unusedReserved(reserved, running)...)
	plans, err := a.plans(ctx)
	if err != nil {
		problems = append(problems, "Savings Plans are not counted: "+err.Error())
	}
	return append(found, unusedPlans(plans, running)...), problems
}

// running are the on-demand instances with Linux on shared hardware, by type.
func (a *Account) running(ctx context.Context) (map[string]int64, error) {
	var out map[string]int64
	in := &ec2.DescribeInstancesInput{MaxResults: aws.Int32(1000), Filters: []ec2types.Filter{
		{Name: aws.String("instance-state-name"), Values: []string{"pending", "running"}},
	}}
	err := paging.All(func() { out = map[string]int64{} }, func(token *string) (*string, error) {
		in.NextToken = token
		page, err := a.EC2.DescribeInstances(ctx, in)
		if err != nil {
			return nil, err
		}
		for _, r := range page.Reservations {
			for i := range r.Instances {
				m := &r.Instances[i]
				shared := m.Placement == nil || m.Placement.Tenancy == "" || m.Placement.Tenancy == ec2types.TenancyDefault
				if m.InstanceLifecycle == "" && m.Platform == "" && shared {
					out[string(m.InstanceType)]++
				}
			}
		}
		return page.NextToken, nil
	})
	if err != nil {
		return nil, fmt.Errorf("list the instances that run: %w", awserr.From(err))
	}
	return out, nil
}

func (a *Account) vcpu(name string) int64 {
	i, ok := slices.BinarySearchFunc(a.Types, name, func(t catalog.InstanceType, name string) int { return cmp.Compare(t.Name, name) })
	if !ok {
		return 0
	}
	return a.Types[i].VCPU
}

func family(name string) string {
	f, _, _ := strings.Cut(name, ".")
	return f
}

// take uses n of what is there, and says how much of n is left over.
func take(have *int64, n int64) int64 {
	used := min(*have, n)
	*have -= used
	return n - used
}

func sorted[V any](m map[string]V) []string { return slices.Sorted(maps.Keys(m)) }
