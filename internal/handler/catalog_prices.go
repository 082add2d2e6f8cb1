package handler

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"kerf.sh/kerf/internal/catalog"
	"kerf.sh/kerf/internal/cloud/awserr"
	"kerf.sh/kerf/internal/lifecycle"
)

// How old types and prices become before they are read again. Spot prices move by the hour;
// types and list prices change a few times a year (Karpenter: 12 h for all of them).
const (
	typesAge    = 6 * time.Hour
	onDemandAge = 12 * time.Hour
	spotAge     = 30 * time.Minute
)

// prices reads what the region sells, and what it costs, where that is due. A part that
// cannot be read keeps what was known, with its age.
func (r *catalogRun) prices(ctx context.Context) error {
	now := r.Now()
	ages := r.facts.Prices
	due := func(at time.Time, age time.Duration) bool { return now.Sub(at) >= age }
	doTypes, doList, doSpot := due(ages.Types, typesAge), due(ages.OnDemand, onDemandAge), due(ages.Spot, spotAge)
	if !doTypes && !doList && !doSpot || r.late(ctx, "types and prices") {
		return nil
	}
	list, spot := pricesOf(r.facts.Catalog, ages)
	c := r.facts.Catalog
	if ages.Types.IsZero() {
		c = tableFor(r.Region)
	}
	if doTypes {
		if got, err := r.Market.Offered(ctx, tableFor(r.Region), r.zoneIDs()); !r.failed("instance types", ages.Types, err) {
			c, ages.Types = got, now
			r.rep.Read = append(r.rep.Read, "types")
		}
	}
	if doSpot && !r.late(ctx, "spot prices") {
		if got, err := r.Market.Spot(ctx); !r.failed("spot prices", ages.Spot, err) {
			spot, ages.Spot = got, now
			r.rep.Read = append(r.rep.Read, "spot")
		}
	}
	if doList && !r.late(ctx, "list prices") {
		if got, err := r.Market.OnDemand(ctx); !r.failed("list prices", ages.OnDemand, err) && got != nil {
			list, ages.OnDemand = got, now
			r.rep.Read = append(r.rep.Read, "onDemand")
		}
	}
	if len(r.rep.Read) == 0 {
		return nil
	}
	c = r.Market.Priced(c, list, spot)
	c.Region = r.Region
	c.Date, c.Source = describe(ages)
	return r.storeTypes(ctx, c, ages)
}

// failed notes what could not be read, and since when what is known of it is known.
func (r *catalogRun) failed(what string, known time.Time, err error) bool {
	if err == nil {
		return false
	}
	since := "those of the embedded table are used"
	if !known.IsZero() {
		since = "those of " + known.UTC().Format(time.RFC3339) + " are used"
	}
	r.rep.Warnings = append(r.rep.Warnings, fmt.Sprintf("%s could not be read, %s: %v", what, since, err))
	if awserr.Is(err, awserr.Throttled) {
		r.throttled = err.Error()
	}
	return true
}

// tableFor is what the program knows of types by itself. For a region without a table, that
// is the table of another one: its prices are then no more than an estimate.
func tableFor(region string) *catalog.Catalog {
	if c, ok := catalog.Embedded(region); ok {
		return c
	}
	c := *catalog.Default()
	c.Region, c.Types = region, slices.Clone(c.Types)
	for i := range c.Types {
		t := &c.Types[i]
		t.Offerings = slices.Clone(t.Offerings)
		for k := range t.Offerings {
			t.Offerings[k].Estimated = true
		}
	}
	return &c
}

// pricesOf are the prices of a catalogue that were read from AWS; nil where none were.
func pricesOf(c *catalog.Catalog, ages PriceAges) (list map[string]int64, spot map[string]map[string]int64) {
	if !ages.OnDemand.IsZero() {
		list = map[string]int64{}
	}
	if !ages.Spot.IsZero() {
		spot = map[string]map[string]int64{}
	}
	for i := range c.Types {
		t := &c.Types[i]
		for _, o := range t.Offerings {
			switch {
			case o.Estimated || o.Price <= 0:
			case o.CapacityType == catalog.OnDemand && list != nil:
				list[t.Name] = o.Price
			case o.CapacityType == catalog.Spot && o.Available && spot != nil:
				if spot[t.Name] == nil {
					spot[t.Name] = map[string]int64{}
				}
				spot[t.Name][o.Zone] = o.Price
			}
		}
	}
	return list, spot
}

// zoneIDs are the ids of zones, as far as subnets and the catalogue tell.
func (r *catalogRun) zoneIDs() map[string]string {
	ids := map[string]string{}
	for i := range r.facts.Catalog.Types {
		for _, o := range r.facts.Catalog.Types[i].Offerings {
			if o.ZoneID != "" && r.facts.Catalog.Region == r.Region {
				ids[o.Zone] = o.ZoneID
			}
		}
	}
	for _, c := range r.facts.Classes {
		for _, n := range c.Resolved.Subnets {
			if n.ZoneID != "" {
				ids[n.Zone] = n.ZoneID
			}
		}
	}
	return ids
}

// describe says of when a catalogue is: the date is that of its oldest part.
func describe(ages PriceAges) (date, source string) {
	oldest := time.Time{}
	var parts []string
	for _, p := range []struct {
		what string
		at   time.Time
	}{{"types", ages.Types}, {"list prices", ages.OnDemand}, {"spot prices", ages.Spot}} {
		if p.at.IsZero() {
			parts = append(parts, p.what+" of the embedded table")
			continue
		}
		parts = append(parts, p.what+" of "+p.at.UTC().Format("2006-01-02 15:04Z"))
		if oldest.IsZero() || p.at.Before(oldest) {
			oldest = p.at
		}
	}
	return oldest.UTC().Format(time.DateOnly), "AWS: " + strings.Join(parts, ", ")
}

func (r *catalogRun) storeTypes(ctx context.Context, c *catalog.Catalog, ages PriceAges) error {
	data, err := encodeTypes(c, ages)
	if err != nil {
		return fmt.Errorf("store types and prices: %w", err)
	}
	version, err := r.version(ctx, typesPart, r.Now())
	if err != nil {
		return err
	}
	if err := r.Memory.PutPart(ctx, lifecycle.Part{Name: typesPart, Data: data, Generation: version}); err != nil {
		return err
	}
	if err := r.index(ctx, func(i *factsIndex) { i.Types = max(version, i.Types) }); err != nil {
		return err
	}
	facts, err := LoadFacts(ctx, r.Memory, r.Region, r.Now(), r.Catalog.Facts)
	if err == nil {
		r.facts = facts
	}
	return err
}
