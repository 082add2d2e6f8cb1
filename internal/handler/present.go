package handler

import (
	"context"
	"fmt"
	"time"

	"kerf.sh/kerf/internal/catalog"
	"kerf.sh/kerf/internal/plan"
)

// Present asks once what a region sells and what it costs now, for a plan that has no
// catalogue function behind it. A part that cannot be read is that of the embedded table,
// and a warning says which and why; nil: no part could be read. zoneIDs are by zone.
//
// Errors are warnings, because a plan at prices of the table is better than none; but no
// part is half: what a list does not have, it does not have because AWS sells none.
func Present(ctx context.Context, m Market, region string, zoneIDs map[string]string, now time.Time) (*catalog.Catalog, []plan.Warning) {
	var warnings []plan.Warning
	failed := func(what string, err error) bool {
		if err != nil {
			warnings = append(warnings, plan.Warning{Code: plan.FactsNotRead, Detail: fmt.Sprintf("%s of %s could not be read, those of the embedded table are used: %v", what, region, err)})
		}
		return err != nil
	}
	var ages PriceAges
	c := tableFor(region)
	if got, err := m.Offered(ctx, c, zoneIDs); !failed("instance types", err) {
		c, ages.Types = got, now
	}
	spot, err := m.Spot(ctx)
	if !failed("spot prices", err) {
		ages.Spot = now
	}
	list, err := m.OnDemand(ctx)
	if !failed("list prices", err) && list != nil {
		ages.OnDemand = now
	}
	if ages == (PriceAges{}) {
		return nil, warnings
	}
	c = m.Priced(c, list, spot)
	c.Region = region
	c.Date, c.Source = describe(ages)
	return c, warnings
}
