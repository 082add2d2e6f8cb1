package snapshot

// NodeOverlay is a karpenter.sh/v1alpha1 NodeOverlay: another price for offers, or
// more resources on types, than the catalogue says.
type NodeOverlay struct {
	Name   string `json:"name"`
	UID    string `json:"uid,omitempty"`
	Weight int32  `json:"weight,omitempty"` // unset = 0
	// Requirements select offers: labels of types and offers, the NodePool's name and
	// its template labels. None selects everything.
	Requirements []SelectorRequirement `json:"requirements,omitempty"`
	// Price in dollars per hour, as written; "" = not given. Price and PriceAdjustment
	// exclude each other.
	Price string `json:"price,omitempty"`
	// PriceAdjustment is added to the price ("+0.1", "-0.05"), or a share of it
	// ("+5%", "-10%").
	PriceAdjustment string `json:"priceAdjustment,omitempty"`
	// Capacity are extended resources, in whole units.
	Capacity map[string]int64 `json:"capacity,omitempty"`
}
