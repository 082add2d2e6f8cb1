package main

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"kerf.sh/kerf/internal/app"
	"kerf.sh/kerf/internal/app/region"
	"kerf.sh/kerf/internal/catalog"
)

// fromAWS is what a region sells now, asked with the credentials of the environment. Unlike a
// plan, a table is made of the whole answer or not at all.
func fromAWS(ctx context.Context, name string) (*catalog.Catalog, error) {
	conf, err := region.Configuration(ctx, name)
	if err != nil {
		return nil, err
	}
	c, warnings, err := region.Present(ctx, conf, app.Asking{Region: name, Now: time.Now})
	for _, w := range warnings {
		err = errors.Join(err, errors.New(w.Detail))
	}
	return c, err
}

// asTable is a catalogue as the embedded table can hold it: one on-demand price for each
// type, in every zone. A type without a price of AWS is there with nothing available.
func asTable(live *catalog.Catalog, date string) *catalog.Catalog {
	out := &catalog.Catalog{
		Region: live.Region, Date: date, Zones: live.Zones, Types: slices.Clone(live.Types),
		Source: fmt.Sprintf("embedded table of %s, types and on-demand list prices of %s; every type is assumed in %d zones, spot is estimated at 40 %% of on-demand",
			live.Region, date, len(live.Zones)),
	}
	ids := map[string]string{}
	for i := range live.Types {
		for _, o := range live.Types[i].Offerings {
			if o.ZoneID != "" {
				ids[o.Zone] = o.ZoneID
			}
		}
	}
	for i := range out.Types {
		t := &out.Types[i]
		price := int64(0)
		for _, o := range t.Offerings {
			if o.CapacityType == catalog.OnDemand && !o.Estimated && o.Available {
				price = o.Price
			}
		}
		t.Extended, t.Offerings = nil, nil
		for _, zone := range live.Zones {
			t.Offerings = append(t.Offerings, catalog.Offering{Zone: zone, ZoneID: ids[zone], CapacityType: catalog.OnDemand, Price: price, Available: price > 0})
		}
	}
	return out
}

// writeLive makes files of what AWS says.
func writeLive(live *catalog.Catalog, date, table, catalogue string) error {
	if err := write(table, asTable(live, date), catalog.EncodeTable); err != nil {
		return fmt.Errorf("write table: %w", err)
	}
	if err := write(catalogue, live, (*catalog.Catalog).Format); err != nil {
		return fmt.Errorf("write catalogue: %w", err)
	}
	return nil
}
