package commitment

import (
	"cmp"
	"context"
	"fmt"
	"slices"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/savingsplans"
	"github.com/aws/aws-sdk-go-v2/service/savingsplans/types"

	"kerf.sh/kerf/internal/catalog"
	"kerf.sh/kerf/internal/cloud/awserr"
	"kerf.sh/kerf/internal/cloud/paging"
	"kerf.sh/kerf/internal/cloud/pricing"
)

// savingsPlan is an active Savings Plan that covers instances of the region.
type savingsPlan struct {
	id    string
	rank  int   // AWS applies those of one family (0) before those for all compute (1)
	money int64 // micro-dollars per hour
	rates map[string]int64
}

// plans are the active Savings Plans, in the order in which AWS applies them. Nothing comes
// with an error: instances that a missing one covers would seem to use another.
func (a *Account) plans(ctx context.Context) ([]savingsPlan, error) {
	var out []savingsPlan
	in := &savingsplans.DescribeSavingsPlansInput{States: []types.SavingsPlanState{types.SavingsPlanStateActive}, MaxResults: aws.Int32(100)}
	err := paging.All(func() { out = nil }, func(token *string) (*string, error) {
		in.NextToken = token
		page, err := a.Plans.DescribeSavingsPlans(ctx, in)
		if err != nil {
			return nil, err
		}
		for i := range page.SavingsPlans {
			p := &page.SavingsPlans[i]
			s := savingsPlan{id: aws.ToString(p.SavingsPlanId), rank: 1}
			switch {
			case p.State != types.SavingsPlanStateActive:
				continue
			case p.SavingsPlanType == types.SavingsPlanTypeEc2Instance && aws.ToString(p.Region) == a.Region:
				s.rank = 0
			case p.SavingsPlanType != types.SavingsPlanTypeCompute:
				continue
			}
			if s.money, err = pricing.Micro(aws.ToString(p.Commitment)); err != nil {
				return nil, fmt.Errorf("the commitment of %s: %w", s.id, err)
			}
			out = append(out, s)
		}
		return page.NextToken, nil
	})
	if err != nil {
		return nil, fmt.Errorf("describe Savings Plans: %w", awserr.From(err))
	}
	for i := range out {
		if out[i].rates, err = a.rates(ctx, out[i].id); err != nil {
			return nil, fmt.Errorf("describe the rates of Savings Plan %s: %w", out[i].id, awserr.From(err))
		}
	}
	slices.SortFunc(out, func(a, b savingsPlan) int { return cmp.Or(cmp.Compare(a.rank, b.rank), cmp.Compare(a.id, b.id)) })
	return out, nil
}

// rates are what an hour of each type costs under a plan, in micro-dollars.
func (a *Account) rates(ctx context.Context, id string) (map[string]int64, error) {
	filter := func(name types.SavingsPlanRateFilterName, value string) types.SavingsPlanRateFilter {
		return types.SavingsPlanRateFilter{Name: name, Values: []string{value}}
	}
	in := &savingsplans.DescribeSavingsPlanRatesInput{SavingsPlanId: aws.String(id), MaxResults: aws.Int32(1000), Filters: []types.SavingsPlanRateFilter{
		filter(types.SavingsPlanRateFilterNameRegion, a.Region), filter(types.SavingsPlanRateFilterNameProductDescription, "Linux/UNIX"),
		filter(types.SavingsPlanRateFilterNameTenancy, "shared"), filter(types.SavingsPlanRateFilterNameProductType, string(types.SavingsPlanProductTypeEc2)),
	}}
	var out map[string]int64
	err := paging.All(func() { out = map[string]int64{} }, func(token *string) (*string, error) {
		in.NextToken = token
		page, err := a.Plans.DescribeSavingsPlanRates(ctx, in)
		if err != nil {
			return nil, err
		}
		for i := range page.SearchResults {
			r := &page.SearchResults[i]
			typ := ""
			for _, p := range r.Properties {
				if p.Name == types.SavingsPlanRatePropertyKeyInstanceType {
					typ = aws.ToString(p.Value)
				}
			}
			rate, err := pricing.Micro(aws.ToString(r.Rate))
			if err != nil {
				return nil, fmt.Errorf("the rate of %s: %w", typ, err)
			}
			if typ != "" && rate > 0 && (out[typ] == 0 || rate < out[typ]) {
				out[typ] = rate
			}
		}
		return page.NextToken, nil
	})
	return out, err
}

// unusedPlans are what Savings Plans have left beside what runs, one entry for each type that
// they cover. running is what no reserved instance covers.
func unusedPlans(plans []savingsPlan, running map[string]int64) []catalog.Commitment {
	var out []catalog.Commitment
	for i := range plans {
		p := &plans[i]
		for _, typ := range sorted(running) {
			if rate := p.rates[typ]; rate > 0 {
				n := min(running[typ], (p.money+rate-1)/rate) // the last one may be covered in part
				p.money = max(0, p.money-n*rate)
				running[typ] -= n
			}
		}
		if p.money == 0 {
			continue
		}
		for _, typ := range sorted(p.rates) {
			out = append(out, catalog.Commitment{ID: p.id, Scope: typ, Price: p.rates[typ], Remaining: p.money})
		}
	}
	return out
}
