package handler

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"sync"
	"time"

	"kerf.sh/kerf/internal/catalog"
	"kerf.sh/kerf/internal/cloud/nodeclass"
	"kerf.sh/kerf/internal/plan"
	"kerf.sh/kerf/internal/snapshot"
)

// Facts are what can be launched, as the function catalog wrote it down last. They are
// shared between invocations and must not be changed.
type Facts struct {
	// Catalog are the types of the region with their prices: those of AWS, or the embedded
	// table where AWS was not asked yet.
	Catalog *catalog.Catalog
	// Prices say how old the figures of Catalog are.
	Prices PriceAges
	// Classes are the EC2NodeClasses that were resolved, by name. One that is here need not
	// be the present generation: see Class.
	Classes map[string]Class
	// Warnings say what of the above could not be read, or is not what it should be.
	Warnings []plan.Warning
}

// PriceAges are the times at which the parts of a catalogue were read from AWS; zero: the
// figures are those of the embedded table.
type PriceAges struct {
	Types    time.Time `json:"types,omitzero"`
	OnDemand time.Time `json:"onDemand,omitzero"`
	Spot     time.Time `json:"spot,omitzero"`
}

// Class is an EC2NodeClass as it was resolved: UID and Generation say which.
type Class struct {
	UID        string
	Generation int64
	Class      *nodeclass.Class // nil when its spec cannot be read; Status says why
	Resolved   *nodeclass.Resolved
	Status     nodeclass.Status
}

// Class is the resolution of this very class: false when it is another one of the name, or
// at another generation.
func (f *Facts) Class(c *snapshot.NodeClass) (Class, bool) {
	got, ok := f.Classes[c.Name]
	if !ok || got.UID != c.UID || got.Generation != c.Generation {
		return Class{}, false
	}
	return got, true
}

// retryUnknown is how long a class whose parts could not all be asked for is left before it
// is stale.
const retryUnknown = 30 * time.Second

// Fill puts what classes resolved to into a snapshot, for the planner. A class that was not
// resolved at its present generation becomes not ready, so that its pools wait, and is named
// as stale: the function catalog has to be asked for it. So is one of which not everything
// could be asked for. What the status in the cluster says does not count, of classes as of
// their pools: it may be older than what is known, or somebody else's.
func (f *Facts) Fill(s *snapshot.Snapshot) (stale []string) {
	for i := range s.NodeClasses {
		c := &s.NodeClasses[i]
		if got, ok := f.Class(c); ok {
			nodeclass.Fill(c, got.Resolved, &got.Status, s.Now)
			if r := got.Status.Condition(nodeclass.Ready); c.Deleting.IsZero() && r != nil && r.Status == nodeclass.Unknown && s.Now.Sub(got.Resolved.At) >= retryUnknown {
				stale = append(stale, c.Name)
			}
			continue
		}
		why := fmt.Sprintf("not resolved yet at generation %d%s", c.Generation, f.resolvedAt(c))
		if c.Deleting.IsZero() {
			stale = append(stale, c.Name)
		} else {
			why = "it is being deleted"
		}
		c.HasStatus, c.Zones, c.Images, c.Reservations = true, nil, nil, nil
		c.Conditions = []snapshot.Condition{{
			Type: nodeclass.Ready, Status: nodeclass.False, Reason: string(plan.NodeClassNotReady), ObservedGeneration: c.Generation, Since: s.Now, Message: why,
		}}
	}
	for i := range s.NodePools {
		p := &s.NodePools[i]
		if Ours(p.ClassRef) {
			p.Conditions = slices.DeleteFunc(slices.Clone(p.Conditions), func(c snapshot.Condition) bool { return slices.Contains(poolConditions, c.Type) })
		}
	}
	return stale
}

// resolvedAt says what was resolved instead of a class.
func (f *Facts) resolvedAt(c *snapshot.NodeClass) string {
	switch got, ok := f.Classes[c.Name]; {
	case !ok:
		return ""
	case got.UID != c.UID:
		return ", only a former class of this name"
	default:
		return fmt.Sprintf(", only at %d", got.Generation)
	}
}

// FactsCache keeps facts between the invocations of a process. Its zero value is empty.
type FactsCache struct {
	mu      sync.Mutex
	index   []byte // content of the index that facts were read by
	region  string
	facts   *Facts
	types   int64            // version of the types in facts
	classes map[string]int64 // version of each class in facts
}

// Names in the ledger: of the note that lists the parts, and of the parts.
const (
	indexNote   = "catalog"
	typesPart   = "types"
	classPrefix = "class."
)

// factsIndex is the note that says which parts there are, and of which version. One small
// read tells a warm function that nothing has changed.
type factsIndex struct {
	Types   int64            `json:"types,omitempty"`
	Classes map[string]int64 `json:"classes,omitempty"`
}

// LoadFacts reads the facts of a region from the ledger. Where cache holds them already,
// that is one small read, and nothing is decoded. A part that is missing or cannot be made
// sense of is left out, with a warning: the class is then stale, and for types the embedded
// table is used. The error is one of the ledger.
func LoadFacts(ctx context.Context, m Memory, region string, now time.Time, cache *FactsCache) (*Facts, error) {
	cache.mu.Lock()
	defer cache.mu.Unlock()
	note, err := m.Note(ctx, indexNote)
	if err != nil {
		return nil, fmt.Errorf("load what can be launched: %w", err)
	}
	if cache.facts != nil && cache.region == region && string(cache.index) == string(note.Data) {
		return cache.facts.at(now), nil
	}
	var index factsIndex
	var warnings []plan.Warning
	if len(note.Data) > 0 {
		if err := json.Unmarshal(note.Data, &index); err != nil {
			warnings = append(warnings, plan.Warning{Code: plan.IncompleteReading, Detail: "the list of what can be launched cannot be read: " + err.Error()})
		}
	}
	f, err := cache.load(ctx, m, region, &index)
	if err != nil {
		return nil, fmt.Errorf("load what can be launched: %w", err)
	}
	f.Warnings = append(warnings, f.Warnings...)
	cache.index = slices.Clone(note.Data)
	return f.at(now), nil
}

// oldPrices is the age from which prices of spot are said to be old: they change within
// hours.
const oldPrices = 24 * time.Hour

// at are the facts, with a warning where prices are old at a time.
func (f *Facts) at(now time.Time) *Facts {
	if f.Prices.Spot.IsZero() || now.Sub(f.Prices.Spot) < oldPrices {
		return f
	}
	out := *f
	out.Warnings = append(slices.Clip(f.Warnings), plan.Warning{Code: plan.PriceOld, Detail: fmt.Sprintf(
		"spot prices could not be read since %s and are those of then", f.Prices.Spot.UTC().Format(time.RFC3339))})
	return &out
}
