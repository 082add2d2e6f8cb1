package app

import (
	"context"
	"errors"
	"fmt"
	"io"
	"time"

	"kerf.sh/kerf/internal/catalog"
	"kerf.sh/kerf/internal/handler"
	"kerf.sh/kerf/internal/plan"
)

// Facts asks AWS what a region sells and what it costs, with the credentials of whoever runs
// the command. It is handed in by the program, because the clients behind it are large:
// package region has it. What could not be read is a warning; ErrNoCredentials: there is
// nobody to ask as.
type Facts func(ctx context.Context, q Asking) (*catalog.Catalog, []plan.Warning, error)

// Asking is what Facts are wanted for.
type Asking struct {
	// Region is that of the cluster; "" = that of the configuration of AWS.
	Region string
	// Commitments: Savings Plans and reserved instances too.
	Commitments bool
	Now         func() time.Time
}

// ErrNoCredentials: the environment has no AWS credentials, or none that work.
var ErrNoCredentials = errors.New("no AWS credentials")

// factsTime is how long types and prices are waited for: some dozens of pages, which AWS
// throttles at times.
const factsTime = 3 * time.Minute

// Where types and prices come from (--facts).
const (
	factsAuto  = "auto"  // AWS for a running cluster, where there are credentials
	factsLive  = "live"  // AWS, or no plan
	factsTable = "table" // the embedded table
)

// asks reports whether AWS is to be asked about types and prices.
func (o *options) asks() bool {
	return o.catalog == "" && (o.facts == factsLive || o.facts == factsAuto && o.live())
}

// present asks for types and prices, where they are wanted, and puts them in place of the
// table. nil: the embedded table has to do; a note says so.
func (o *options) present(facts Facts, reading *handler.Reading, known bool, stderr io.Writer) (*catalog.Catalog, error) {
	if !o.asks() {
		return nil, nil
	}
	if facts == nil {
		if o.facts == factsLive {
			return nil, &handler.Refusal{Code: plan.NotSupported, Message: "--facts live: this program was built without the clients for it"}
		}
		return nil, nil
	}
	q := Asking{Commitments: o.commitments, Now: time.Now}
	if known {
		q.Region = reading.Snapshot.Region
	}
	ctx, done := context.WithTimeout(context.Background(), factsTime)
	defer done()
	clear := waiting(stderr, "asking AWS for types and prices")
	c, warnings, err := facts(ctx, q)
	clear()
	switch {
	case err == nil && c == nil && o.facts == factsLive:
		return nil, fmt.Errorf("--facts live: %s", warnings[0].Detail)
	case err != nil && o.facts == factsLive:
		return nil, fmt.Errorf("--facts live: %w", err)
	case err != nil && errors.Is(err, ErrNoCredentials):
		t := tableOf(reading.Snapshot.Region)
		say(stderr, fmt.Sprintf("types and prices: the embedded table of %s, %s (%v); --facts table says that it is meant, --catalog gives another", t.Region, t.Date, err))
	case err != nil:
		warnings = append(warnings, plan.Warning{Code: plan.FactsNotRead, Detail: err.Error()})
	}
	for _, w := range warnings {
		say(stderr, w.Detail)
	}
	for _, r := range []*handler.Reading{reading, reading.Before} {
		if r == nil {
			continue
		}
		r.Warnings = append(r.Warnings, warnings...)
		if c != nil && !known {
			r.Snapshot.Region = c.Region
		}
	}
	return c, nil
}

// tableOf is the embedded table that a plan in a region is made on.
func tableOf(region string) *catalog.Catalog {
	if c, ok := catalog.Embedded(region); ok {
		return c
	}
	return catalog.Default()
}
