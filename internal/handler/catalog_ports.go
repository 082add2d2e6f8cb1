package handler

import (
	"context"

	"kerf.sh/kerf/internal/catalog"
)

// Market is what a region sells, asked of AWS. Errors are *awserr.Error; nothing comes with
// an error.
type Market interface {
	// Offered is a catalogue of the types that the region has and of the zones that sell
	// them; what EC2 does not tell of a type, prices among it, is that of the table. zoneIDs
	// are by zone.
	Offered(ctx context.Context, table *catalog.Catalog, zoneIDs map[string]string) (*catalog.Catalog, error)
	// OnDemand are list prices by type, in micro-dollars per hour. nil without an error: there
	// is no price list here.
	OnDemand(ctx context.Context) (map[string]int64, error)
	// Spot are spot prices by type and zone. A pair that is missing is not sold as spot.
	Spot(ctx context.Context) (map[string]map[string]int64, error)
	// Priced is a catalogue with other prices; nil leaves those that it has.
	Priced(c *catalog.Catalog, onDemand map[string]int64, spot map[string]map[string]int64) *catalog.Catalog
}

// Leftovers are things in AWS that were made for classes and go with them.
type Leftovers interface {
	// RemoveOf removes what was made for a class: launch templates and instance profiles.
	RemoveOf(ctx context.Context, class, uid string) error
	// Profiles are the instance profiles that were made for classes of the cluster, by name.
	Profiles(ctx context.Context) ([]string, error)
	// InUse are the instance profiles of the cluster's instances.
	InUse(ctx context.Context) (map[string]bool, error)
	RemoveProfiles(ctx context.Context, names []string) error
}
