// Command catalog turns a JSON file of published facts about instance types into
// what the project carries: the embedded table, the golden file of published
// allocatable figures, or a catalogue file for --catalog.
//
//	go run ./scripts/catalog -facts FILE -date 2026-07-20 -table internal/catalog/us-east-1.table -golden internal/catalog/testdata/published.tsv.gz
//	go run ./scripts/catalog -facts FILE -date 2026-07-20 -spot spread -catalogue catalogue.json
//
// With -live it asks AWS instead, with the credentials of the environment; a table that is
// beside the first one is embedded with it:
//
//	go run ./scripts/catalog -live -region eu-west-1 -table internal/catalog/eu-west-1.table
//	go run ./scripts/catalog -live -region eu-west-1 -catalogue catalogue.json
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"slices"
	"strings"
	"time"

	"kerf.sh/kerf/internal/catalog"
	"kerf.sh/kerf/internal/workload"
)

func main() {
	if err := run(os.Args[1:]); err != nil {
		fmt.Fprintln(os.Stderr, "catalog:", err)
		os.Exit(1)
	}
}

func run(args []string) error {
	flags := flag.NewFlagSet("catalog", flag.ContinueOnError)
	var (
		factsPath = flags.String("facts", "", "JSON `file` of published facts")
		live      = flags.Bool("live", false, "ask AWS for types, zones and prices of -region, in place of -facts")
		region    = flags.String("region", "us-east-1", "`region` of the facts")
		date      = flags.String("date", "", "`date` of the prices, YYYY-MM-DD (required)")
		zones     = flags.String("zones", "us-east-1a=use1-az1,us-east-1b=use1-az2,us-east-1c=use1-az4", "zone ids, `ZONE=ID,...`")
		spot      = flags.String("spot", "none", "spot offerings of -catalogue: none, or `spread` (35 to 45 % of on-demand by a hash of type and zone)")
		table     = flags.String("table", "", "write the embedded table to `file`")
		golden    = flags.String("golden", "", "write the published allocatable figures and labels to `file` (gzip)")
		catalogue = flags.String("catalogue", "", "write a catalogue file to `file`")
	)
	if err := flags.Parse(args); err != nil {
		return err
	}
	if *live {
		return runLive(*factsPath+*golden, *region, *date, *table, *catalogue)
	}
	if *factsPath == "" || *date == "" {
		return errors.New("-facts and -date are required, or -live")
	}
	if *table+*golden+*catalogue == "" {
		return errors.New("nothing to write: give -table, -golden or -catalogue")
	}
	zoneIDs, err := zoneFlag(*zones)
	if err != nil {
		return err
	}
	f, err := readFacts(*factsPath)
	if err != nil {
		return err
	}
	c, err := build(f, *region, *date, zoneIDs)
	if err != nil {
		return err
	}
	if err := write(*table, c, catalog.EncodeTable); err != nil {
		return fmt.Errorf("write table: %w", err)
	}
	if err := write(*golden, f, goldenFile); err != nil {
		return fmt.Errorf("write golden file: %w", err)
	}
	c.Source = fmt.Sprintf("list prices of %s", *date)
	switch *spot {
	case "none":
	case "spread":
		c = c.WithSpot(workload.SpotPrice)
	default:
		return fmt.Errorf("-spot: %q is not none or spread", *spot)
	}
	if err := write(*catalogue, c, (*catalog.Catalog).Format); err != nil {
		return fmt.Errorf("write catalogue: %w", err)
	}
	return nil
}

func runLive(others, region, date, table, catalogue string) error {
	switch {
	case others != "":
		return errors.New("-live: -facts and -golden are of published figures")
	case table+catalogue == "":
		return errors.New("nothing to write: give -table or -catalogue")
	case date == "":
		date = time.Now().UTC().Format(time.DateOnly)
	}
	c, err := fromAWS(context.Background(), region)
	if err != nil {
		return fmt.Errorf("ask AWS about %s: %w", region, err)
	}
	return writeLive(c, date, table, catalogue)
}

// write writes what format makes of v; no path, no file.
func write[T any](path string, v T, format func(T) ([]byte, error)) error {
	if path == "" {
		return nil
	}
	data, err := format(v)
	if err != nil {
		return err
	}
	return os.WriteFile(path, data, 0o644)
}

func build(f *facts, region, date string, zoneIDs map[string]string) (*catalog.Catalog, error) {
	c := &catalog.Catalog{
		Region: region, Date: date,
		Source: fmt.Sprintf("embedded table of %s, on-demand list prices of %s; every type is assumed in %d zones, spot is estimated at 40 %% of on-demand",
			region, date, len(zoneIDs)),
	}
	for zone := range zoneIDs {
		c.Zones = append(c.Zones, zone)
	}
	slices.Sort(c.Zones)
	for i := range f.InstanceTypes {
		t, err := f.InstanceTypes[i].instanceType(zoneIDs)
		if err != nil {
			return nil, err
		}
		c.Types = append(c.Types, t)
	}
	slices.SortFunc(c.Types, func(a, b catalog.InstanceType) int { return strings.Compare(a.Name, b.Name) })
	return c, nil
}
