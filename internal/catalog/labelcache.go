package catalog

import "sync"

// labelCache keeps the labels of a catalogue's types. They depend on what is in
// its key and on nothing else: not on the class, not on settings.
type labelCache struct {
	mu   sync.Mutex
	sets map[labelKey][]map[string]string
}

type labelKey struct {
	types                    *InstanceType // the first of the list
	n                        int
	region, os, windowsBuild string
}

// labelSets returns the labels of every type, in the order of c.Types.
func (c *Catalog) labelSets(os, windowsBuild string) []map[string]string {
	if c.labels == nil || len(c.Types) == 0 {
		return c.newLabelSets(os, windowsBuild)
	}
	// The list is part of the key: a copy of the catalogue may have another one.
	key := labelKey{&c.Types[0], len(c.Types), c.Region, os, windowsBuild}
	c.labels.mu.Lock()
	defer c.labels.mu.Unlock()
	sets, ok := c.labels.sets[key]
	if !ok {
		sets = c.newLabelSets(os, windowsBuild)
		c.labels.sets[key] = sets
	}
	return sets
}

func (c *Catalog) newLabelSets(os, windowsBuild string) []map[string]string {
	sets := make([]map[string]string, len(c.Types))
	for i := range c.Types {
		sets[i] = c.Types[i].labels(c.Region, os, windowsBuild)
	}
	return sets
}

func newLabelCache() *labelCache { return &labelCache{sets: map[labelKey][]map[string]string{}} }
