package region

import (
	"context"
	"fmt"
	"time"

	"kerf.sh/kerf/internal/catalog"
	"kerf.sh/kerf/internal/cloud/instancetype"
	"kerf.sh/kerf/internal/cloud/pricing"
	"kerf.sh/kerf/internal/handler"
)

// Market is what a region sells.
type Market struct {
	EC2 interface {
		pricing.EC2
		instancetype.Client
	}
	// Products is the price list; nil: it cannot be reached.
	Products pricing.Products
	Region   string
	Now      func() time.Time
}

var _ handler.Market = (*Market)(nil)

// Offered implements handler.Market.
func (m *Market) Offered(ctx context.Context, table *catalog.Catalog, zoneIDs map[string]string) (*catalog.Catalog, error) {
	found, err := instancetype.Types(ctx, m.EC2)
	if err != nil {
		return nil, err
	}
	zones, err := instancetype.Zones(ctx, m.EC2)
	if err != nil {
		return nil, err
	}
	if len(found) == 0 || len(zones) == 0 {
		return nil, fmt.Errorf("EC2 knows %d instance types in %s, and zones of %d: that cannot be", len(found), m.Region, len(zones))
	}
	return instancetype.Merge(table, found, zones, zoneIDs), nil
}

// OnDemand implements handler.Market.
func (m *Market) OnDemand(ctx context.Context) (map[string]int64, error) {
	if m.Products == nil {
		return nil, nil
	}
	got, err := pricing.OnDemand(ctx, m.Products, m.Region)
	if err == nil && len(got) == 0 {
		err = fmt.Errorf("the price list has nothing for %s", m.Region)
	}
	return got, err
}

// Spot implements handler.Market.
func (m *Market) Spot(ctx context.Context) (map[string]map[string]int64, error) {
	got, err := pricing.Spot(ctx, m.EC2, m.Now())
	if err == nil && len(got) == 0 {
		// Taken as it is, it would say that nothing is sold as spot.
		err = fmt.Errorf("EC2 gave no spot price at all for %s", m.Region)
	}
	return got, err
}

// Priced implements handler.Market.
func (m *Market) Priced(c *catalog.Catalog, onDemand map[string]int64, spot map[string]map[string]int64) *catalog.Catalog {
	return pricing.Apply(c, onDemand, spot)
}
