package snapshot

// Settings are the knobs that change a decision. The zero value is not the
// default: DefaultSettings is. Names in comments are the keys that people set.
type Settings struct {
	// ReservedENIs are network interfaces not used for pods. RESERVED_ENIS.
	ReservedENIs int64 `json:"reservedENIs"`
	// VMMemoryOverhead is the share of memory the hypervisor takes, in parts per
	// million (75000 = 7.5 %). VM_MEMORY_OVERHEAD_PERCENT.
	VMMemoryOverhead int64 `json:"vmMemoryOverhead"`
	// MinValuesBestEffort relaxes minValues that cannot be met. MIN_VALUES_POLICY.
	MinValuesBestEffort bool `json:"minValuesBestEffort,omitempty"`
	// IgnorePreferences drops preferences at once. PREFERENCE_POLICY=Ignore.
	IgnorePreferences bool `json:"ignorePreferences,omitempty"`
	// ReservedCapacity, NodeOverlay, StaticCapacity, CapacityBuffer: feature gates.
	ReservedCapacity bool `json:"reservedCapacity,omitempty"`
	NodeOverlay      bool `json:"nodeOverlay,omitempty"`
	StaticCapacity   bool `json:"staticCapacity,omitempty"`
	CapacityBuffer   bool `json:"capacityBuffer,omitempty"`
	// NodeRepair replaces nodes that stay unhealthy: a feature gate too.
	NodeRepair bool `json:"nodeRepair,omitempty"`
	// SpotToSpot lets cheaper spot nodes stand in for spot nodes: a feature gate too.
	SpotToSpot bool `json:"spotToSpotConsolidation,omitempty"`
	// CostPerNode is added to every node's price when plans are compared, in
	// micro-dollars per hour. KERF_COST_PER_NODE.
	CostPerNode int64 `json:"costPerNode,omitempty"`
	// OptionPriceCap is the most an option of a launch may cost, in percent of the
	// chosen offer. KERF_OPTION_PRICE_CAP.
	OptionPriceCap int64 `json:"optionPriceCap"`
	// MinSaving is the least that a move which brings nodes has to save, in micro-dollars per
	// hour, MinSavingPercent the same in percent of what the removed nodes cost.
	// KERF_MIN_SAVING, KERF_MIN_SAVING_PERCENT.
	MinSaving        int64 `json:"minSaving,omitempty"`
	MinSavingPercent int64 `json:"minSavingPercent,omitempty"`
	// Work is the packer's search budget in abstract steps; it bounds the time of a
	// plan without a clock. KERF_WORK.
	Work int64 `json:"work"`
	// PlanWorkloads plans pods for workloads that have none in the input.
	PlanWorkloads bool `json:"planWorkloads,omitempty"`
}

// DefaultSettings returns the defaults: Karpenter's where it has them.
func DefaultSettings() Settings {
	return Settings{
		VMMemoryOverhead: 75_000,
		ReservedCapacity: true,
		OptionPriceCap:   118,
		MinSaving:        2_000,
		MinSavingPercent: 5,
		Work:             4_000_000,
	}
}
