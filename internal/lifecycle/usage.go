package lifecycle

import (
	"maps"
	"slices"

	"kerf.sh/kerf/internal/snapshot"
)

// Price is the name in a Usage of what nodes cost, in micro-dollars per hour. It stands
// beside the resources, so that a ceiling on money is a limit like any other.
const Price = "price"

// Usage is what nodes take from the limits of their NodePool: capacity by resource in the
// units of snapshot.Resources, snapshot.Nodes, and Price. A name that is missing is 0.
type Usage map[string]int64

// UsageOf is the usage of one node with a capacity and a price.
func UsageOf(capacity snapshot.Resources, price snapshot.Price) Usage {
	out := Usage{snapshot.Nodes: 1}
	for _, name := range capacity.Names() {
		out[name] = max(capacity.Get(name), 0)
	}
	if price > 0 {
		out[Price] = price
	}
	return out
}

// Resources are the resources of a usage, without nodes and price.
func (u Usage) Resources() snapshot.Resources {
	var out snapshot.Resources
	for _, name := range u.Names() {
		if name != snapshot.Nodes && name != Price {
			out = out.With(name, u[name])
		}
	}
	return out
}

// Max is the larger of both by name: what a node reserves while it may still become
// one of several offers.
func (u Usage) Max(o Usage) Usage {
	return u.merge(o, func(a, b int64) int64 { return max(a, b) })
}

// Add is the sum of both.
func (u Usage) Add(o Usage) Usage {
	return u.merge(o, func(a, b int64) int64 { return snapshot.Clamp(snapshot.Clamp(a) + snapshot.Clamp(b)) })
}

// Sub is u without o; names that become 0 are left out.
func (u Usage) Sub(o Usage) Usage {
	return u.merge(o, func(a, b int64) int64 { return snapshot.Clamp(snapshot.Clamp(a) - snapshot.Clamp(b)) })
}

func (u Usage) merge(o Usage, f func(a, b int64) int64) Usage {
	out := Usage{}
	for name, v := range u {
		if r := f(v, o[name]); r != 0 {
			out[name] = r
		}
	}
	for name, v := range o {
		if _, ok := u[name]; ok {
			continue
		}
		if r := f(0, v); r != 0 {
			out[name] = r
		}
	}
	return out
}

// Names are the names that are not 0, sorted.
func (u Usage) Names() []string {
	var out []string
	for _, name := range slices.Sorted(maps.Keys(u)) {
		if u[name] != 0 {
			out = append(out, name)
		}
	}
	return out
}

// PoolUsage recomputes from the records what every NodePool uses. It is what the ledger's
// counters have to be when no commit is under way. Records without a pool count nowhere.
func PoolUsage(records []Record) map[string]Usage {
	out := map[string]Usage{}
	for i := range records {
		if r := &records[i]; r.NodePool != "" && r.Phase != Closed {
			out[r.NodePool] = out[r.NodePool].Add(r.Reserved)
		}
	}
	return out
}
