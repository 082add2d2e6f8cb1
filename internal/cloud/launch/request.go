package launch

import (
	"bytes"
	"encoding/json"
	"fmt"
	"slices"

	"kerf.sh/kerf/internal/catalog"
	"kerf.sh/kerf/internal/cloud/nodeclass"
)

// version of the form of a stored request. How a request becomes an SDK call may not
// change under one version: EC2 compares a repeated token with what was sent first.
const version = 1

// Strategies of allocation.
const (
	strategySpot         = "price-capacity-optimized"
	strategySpotPriority = "capacity-optimized-prioritized"
	strategyOnDemand     = "lowest-price"
	strategyPriority     = "prioritized"
	marketInterruptible  = "interruptible-capacity-reservation"
	targetReserved       = "reserved-capacity"
	targetBlock          = "capacity-block"
)

// Request is one CreateFleet request of type instant.
type Request struct {
	Version int `json:"version"`
	// Token is the attempt id. EC2 answers the same request with the same token with the
	// same instances, for a day.
	Token  string   `json:"token"`
	Claims []string `json:"claims"`
	// CapacityType is what is asked for: spot, on-demand or reserved; Target is what EC2
	// calls it.
	CapacityType     string   `json:"capacityType"`
	Target           string   `json:"target"`
	SpotStrategy     string   `json:"spotStrategy,omitempty"`
	OnDemandStrategy string   `json:"onDemandStrategy,omitempty"`
	ReservationTypes []string `json:"reservationTypes,omitempty"`
	Context          string   `json:"context,omitempty"`
	// PlacementGroup is that of the templates: what is short in it is short for it alone.
	PlacementGroup string   `json:"placementGroup,omitempty"`
	Configs        []Config `json:"configs"`
	// Tags are on instances, volumes and the fleet; the attempt id is one of them.
	Tags map[string]string `json:"tags"`
}

// Config is one launch template with what overrides it.
type Config struct {
	Template  string     `json:"template"`
	Overrides []Override `json:"overrides"`
}

// Override is one offer. Price is in micro-dollars per hour.
type Override struct {
	Type          string `json:"type"`
	Zone          string `json:"zone"`
	Subnet        string `json:"subnet"`
	Price         int64  `json:"price"`
	ReservationID string `json:"reservationID,omitempty"`
	Overlaid      bool   `json:"overlaid,omitempty"` // the price is a NodeOverlay's
	Pods          int64  `json:"pods,omitempty"`     // that a node of the type takes
}

// request puts the buckets together.
func (in *Input) request(b *buckets) Request {
	r := Request{
		Version: version, Token: in.Attempt, Claims: slices.Clone(in.Claims), CapacityType: b.ct, Configs: b.configs,
		Tags: in.tags(),
	}
	r.Tags[nodeclass.TagAttempt] = in.Attempt
	if g := in.Resolved.PlacementGroup; g != nil {
		r.PlacementGroup = g.ID
	}
	if !in.MinValuesRelaxed {
		r.Context = in.Class.Spec.Context
	}
	overlaid := slices.ContainsFunc(r.Configs, func(c Config) bool {
		return slices.ContainsFunc(c.Overrides, func(o Override) bool { return o.Overlaid })
	})
	switch b.ct {
	case catalog.Spot:
		r.Target, r.SpotStrategy = "spot", strategySpot
		if overlaid {
			r.SpotStrategy = strategySpotPriority
		}
	default:
		r.Target, r.OnDemandStrategy = "on-demand", strategyOnDemand
		if overlaid {
			r.OnDemandStrategy = strategyPriority
		}
		switch b.market {
		case targetBlock:
			r.Target, r.OnDemandStrategy = targetBlock, ""
		case marketInterruptible:
			r.Target, r.OnDemandStrategy = targetReserved, ""
			r.ReservationTypes = []string{marketInterruptible}
		}
	}
	return r
}

// Prioritized reports whether EC2 goes by our prices and not by its own: an overlay
// changed one of them.
func (r *Request) Prioritized() bool {
	return r.SpotStrategy == strategySpotPriority || r.OnDemandStrategy == strategyPriority
}

// Templates are the names of the templates that a request needs, sorted.
func (r *Request) Templates() []string {
	out := make([]string, len(r.Configs))
	for i, c := range r.Configs {
		out[i] = c.Template
	}
	slices.Sort(out)
	return slices.Compact(out)
}

// Offer is the override of a type in a zone, or nil.
func (r *Request) Offer(typ, zone string) *Override {
	for i := range r.Configs {
		for j := range r.Configs[i].Overrides {
			if o := &r.Configs[i].Overrides[j]; o.Type == typ && o.Zone == zone {
				return o
			}
		}
	}
	return nil
}

// MaxPrice is the dearest override: what a commit reserves for each node.
func (r *Request) MaxPrice() int64 {
	var most int64
	for _, c := range r.Configs {
		for _, o := range c.Overrides {
			most = max(most, o.Price)
		}
	}
	return most
}

// Addresses are how many addresses of each subnet the request may take before EC2 counts
// them: for each claim the fewest pods of all types, in every subnet that it names, because
// nobody knows yet which one EC2 picks (Karpenter: in-flight addresses).
func (r *Request) Addresses() map[string]int64 {
	least := int64(0)
	out := map[string]int64{}
	for _, c := range r.Configs {
		for _, o := range c.Overrides {
			if least == 0 || o.Pods < least {
				least = o.Pods
			}
			out[o.Subnet] = 0
		}
	}
	for id := range out {
		out[id] = int64(len(r.Claims)) * max(least, 1)
	}
	return out
}

// Encode writes a request; equal requests are equal bytes.
func (r *Request) Encode() ([]byte, error) {
	out, err := json.Marshal(r)
	if err != nil {
		return nil, fmt.Errorf("write request %s: %w", r.Token, err)
	}
	return out, nil
}

// Decode reads a stored request. One of another version, and one with fields that this
// version does not know, is refused: it could not be repeated as it was.
func Decode(data []byte) (*Request, error) {
	d := json.NewDecoder(bytes.NewReader(data))
	d.DisallowUnknownFields()
	var r Request
	if err := d.Decode(&r); err != nil {
		return nil, fmt.Errorf("read stored request: %w", err)
	}
	if r.Version != version {
		return nil, fmt.Errorf("read stored request %s: it has version %d, and this program repeats version %d only", r.Token, r.Version, version)
	}
	if r.Token == "" || len(r.Claims) == 0 || len(r.Configs) == 0 {
		return nil, fmt.Errorf("read stored request %q: token, claims or templates are missing", r.Token)
	}
	return &r, nil
}
