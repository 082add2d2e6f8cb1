package handler

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"

	"kerf.sh/kerf/internal/catalog"
	"kerf.sh/kerf/internal/cloud/nodeclass"
	"kerf.sh/kerf/internal/plan"
	"kerf.sh/kerf/internal/snapshot"
)

// load reads the parts of an index that the cache does not hold.
func (c *FactsCache) load(ctx context.Context, m Memory, region string, index *factsIndex) (*Facts, error) {
	old, types, classes := c.facts, c.types, c.classes
	if old == nil || c.region != region {
		old, types, classes = &Facts{}, 0, nil
	}
	f := &Facts{Classes: map[string]Class{}}
	c.facts, c.types, c.classes, c.region = f, 0, map[string]int64{}, region
	done := false
	defer func() {
		if !done {
			c.facts = nil // half of it was read
		}
	}()
	if index.Types > 0 && types == index.Types {
		f.Catalog, f.Prices, c.types = old.Catalog, old.Prices, types
	} else if index.Types > 0 {
		if err := c.loadTypes(ctx, m, region, f); err != nil {
			return nil, err
		}
	}
	if f.Catalog == nil {
		f.Catalog = embeddedFor(region, f)
	}
	for _, name := range slices.Sorted(maps.Keys(index.Classes)) {
		if got, ok := old.Classes[name]; ok && classes[name] == index.Classes[name] {
			f.Classes[name], c.classes[name] = got, classes[name]
			continue
		}
		if err := c.loadClass(ctx, m, name, f); err != nil {
			return nil, err
		}
	}
	done = true
	return f, nil
}

// embeddedFor is the table of a region that is in the program, or that of another one,
// with a warning.
func embeddedFor(region string, f *Facts) *catalog.Catalog {
	if c, ok := catalog.Embedded(region); ok {
		return c
	}
	c := catalog.Default()
	f.Warnings = append(f.Warnings, plan.Warning{Code: plan.CatalogueOfOther, Detail: fmt.Sprintf(
		"no table of region %q: types, zones and prices of %s (%s) are used until the function catalog has asked AWS", region, c.Region, c.Date)})
	return c
}

func (c *FactsCache) loadTypes(ctx context.Context, m Memory, region string, f *Facts) error {
	p, ok, err := m.Part(ctx, typesPart)
	if err != nil {
		return err
	}
	bad := func(why string) {
		f.Warnings = append(f.Warnings, plan.Warning{Code: plan.IncompleteReading, Detail: "the stored instance types are not used: " + why})
	}
	if !ok {
		bad("they are listed and not there")
		return nil
	}
	got, ages, err := decodeTypes(p.Data)
	switch {
	case err != nil:
		bad(err.Error())
	case got.Region != region:
		bad(fmt.Sprintf("they are of region %q", got.Region))
	default:
		f.Catalog, f.Prices, c.types = got, ages, p.Generation
	}
	return nil
}

func (c *FactsCache) loadClass(ctx context.Context, m Memory, name string, f *Facts) error {
	p, ok, err := m.Part(ctx, classPrefix+name)
	if err != nil {
		return err
	}
	got, err := decodeClass(name, p.Data)
	if err == nil && !ok {
		err = errors.New("it is listed and not there")
	}
	if err != nil {
		f.Warnings = append(f.Warnings, plan.Warning{Object: "nodeclass/" + name, Code: plan.IncompleteReading,
			Detail: "its stored resolution is not used: " + err.Error()})
		return nil
	}
	f.Classes[name], c.classes[name] = got, p.Generation
	return nil
}

// encodeTypes writes a catalogue as a part: its ages, and the packed table.
func encodeTypes(c *catalog.Catalog, ages PriceAges) ([]byte, error) {
	head, err := json.Marshal(ages)
	if err != nil {
		return nil, fmt.Errorf("write the ages of prices: %w", err)
	}
	table, err := catalog.Pack(c)
	if err != nil {
		return nil, err
	}
	return slices.Concat(head, []byte("\n"), table), nil
}

func decodeTypes(data []byte) (*catalog.Catalog, PriceAges, error) {
	head, table, ok := bytes.Cut(data, []byte("\n"))
	if !ok {
		return nil, PriceAges{}, errors.New("they are cut short")
	}
	var ages PriceAges
	if err := json.Unmarshal(head, &ages); err != nil {
		return nil, PriceAges{}, fmt.Errorf("read the ages of prices: %w", err)
	}
	c, err := catalog.Unpack(table)
	return c, ages, err
}

// storedClass is a resolved class in a part.
type storedClass struct {
	UID         string              `json:"uid"`
	Generation  int64               `json:"generation"`
	Annotations map[string]string   `json:"annotations,omitempty"`
	Spec        json.RawMessage     `json:"spec,omitempty"`
	Resolved    *nodeclass.Resolved `json:"resolved"`
	Status      nodeclass.Status    `json:"status"`
}

func encodeClass(c *snapshot.NodeClass, o *nodeclass.Outcome) ([]byte, error) {
	s := storedClass{UID: c.UID, Generation: c.Generation, Annotations: c.Annotations, Resolved: o.Resolved, Status: o.Status}
	if json.Valid(c.Spec) {
		s.Spec = c.Spec
	}
	out, err := json.Marshal(s)
	if err != nil {
		return nil, fmt.Errorf("write nodeclass %s: %w", c.Name, err)
	}
	return out, nil
}

func decodeClass(name string, data []byte) (Class, error) {
	var s storedClass
	if err := json.Unmarshal(data, &s); err != nil {
		return Class{}, fmt.Errorf("read nodeclass %s: %w", name, err)
	}
	if s.Resolved == nil {
		return Class{}, errors.New("it says nothing of what was resolved")
	}
	out := Class{UID: s.UID, Generation: s.Generation, Resolved: s.Resolved, Status: s.Status}
	// A spec that cannot be read is said in the status.
	out.Class, _ = nodeclass.Parse(&snapshot.NodeClass{Name: name, UID: s.UID, Generation: s.Generation, Annotations: s.Annotations, Spec: s.Spec})
	return out, nil
}
