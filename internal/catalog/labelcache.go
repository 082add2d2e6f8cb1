package catalog

import "sync"

// labelCache keeps the labels of one catalogue's types by operating system. Labels
// depend on nothing else: not on the class, not on settings.
type labelCache struct {
	owner labelOwner
	mu    sync.Mutex
	sets  map[[2]string][]map[string]string // by os and Windows build
}

// labelOwner is the list of types that a cache was made for. A copy of a Catalog
// shares its cache and may have another list; then the cache is not for it.
type labelOwner struct {
	first  *InstanceType
	n      int
	region string
}

func (c *Catalog) labelOwner() labelOwner {
	if len(c.Types) == 0 {
		return labelOwner{}
	}
	return labelOwner{&c.Types[0], len(c.Types), c.Region}
}

// keepLabels makes labels be computed once. Constructors call it when the types
// are complete.
func (c *Catalog) keepLabels() {
	c.labels = &labelCache{owner: c.labelOwner(), sets: map[[2]string][]map[string]string{}}
}

// labelSets returns the labels of every type, in the order of c.Types.
func (c *Catalog) labelSets(os, windowsBuild string) []map[string]string {
	if c.labels == nil || c.labels.owner != c.labelOwner() {
		return c.newLabelSets(os, windowsBuild)
	}
	c.labels.mu.Lock()
	defer c.labels.mu.Unlock()
	key := [2]string{os, windowsBuild}
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
