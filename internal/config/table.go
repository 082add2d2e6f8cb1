package config

import (
	"errors"
	"fmt"
	"math/big"
	"strconv"
	"strings"

	"kerf.sh/kerf/internal/snapshot"
)

// ErrNotSupported marks a setting of a feature that is not there yet. It is told
// apart from a mistake: the key and the value are right.
var ErrNotSupported = errors.New("not supported yet")

// Config is everything that can be set.
type Config struct {
	// Cluster names the cluster in reports. CLUSTER_NAME.
	Cluster string
	// Settings are the knobs that change a decision.
	Settings snapshot.Settings
}

// Default is the configuration when nothing is set.
func Default() Config { return Config{Settings: snapshot.DefaultSettings()} }

// Setting is one row of the table.
type Setting struct {
	Key     string
	Default string // as one would write it
	Values  string // what may be written, for people
	Meaning string
	// Karpenter tells whether Karpenter has the same key with the same meaning.
	Karpenter bool
	parse     func(c *Config, value string) error
}

// Table returns all settings, in the order of the documentation.
func Table() []Setting {
	return []Setting{
		{Key: "CLUSTER_NAME", Default: "", Values: "text", Karpenter: true,
			Meaning: "Name of the cluster, as reports and tags show it. The command line's --cluster wins.",
			parse:   func(c *Config, v string) error { c.Cluster = v; return nil }},
		{Key: "RESERVED_ENIS", Default: "0", Values: "whole number from 0 to 50", Karpenter: true,
			Meaning: "Network interfaces of a node that carry no pods (custom networking, security groups for pods): fewer pods fit on a node.",
			parse: func(c *Config, v string) (err error) {
				c.Settings.ReservedENIs, err = whole(v, 0, 50)
				return err
			}},
		{Key: "VM_MEMORY_OVERHEAD_PERCENT", Default: "0.075", Values: "decimal from 0 to less than 1, at most 6 decimals", Karpenter: true,
			Meaning: "Share of a type's memory that the hypervisor and the kernel keep (0.075 is 7.5 %).",
			parse: func(c *Config, v string) (err error) {
				c.Settings.VMMemoryOverhead, err = millionths(v, 0, 999_999)
				return err
			}},
		{Key: "MIN_VALUES_POLICY", Default: "Strict", Values: "Strict, BestEffort", Karpenter: true,
			Meaning: "Strict refuses a launch that cannot keep its minValues; BestEffort lowers them and says so.",
			parse: func(c *Config, v string) (err error) {
				c.Settings.MinValuesBestEffort, err = oneOf(v, "Strict", "BestEffort")
				return err
			}},
		{Key: "PREFERENCE_POLICY", Default: "Respect", Values: "Respect, Ignore", Karpenter: true,
			Meaning: "Respect keeps preferences of pods as long as they can be kept; Ignore plans as if they were not there.",
			parse: func(c *Config, v string) (err error) {
				c.Settings.IgnorePreferences, err = oneOf(v, "Respect", "Ignore")
				return err
			}},
		{Key: "FEATURE_GATES", Default: DefaultGates(), Values: "Gate=true,Gate=false,...", Karpenter: true,
			Meaning: "Features to turn on or off. Gates that are left out keep their default.",
			parse:   parseGates},
		{Key: "KERF_COST_PER_NODE", Default: "0", Values: "$/h from 0 to 100, at most 6 decimals",
			Meaning: "What a node costs besides its price (licences, agents). It is added when plans are compared, so that fewer, larger nodes win; reported prices leave it out.",
			parse: func(c *Config, v string) (err error) {
				c.Settings.CostPerNode, err = millionths(v, 0, 100_000_000)
				return err
			}},
		{Key: "KERF_OPTION_PRICE_CAP", Default: "118", Values: "whole number from 100 to 1000",
			Meaning: "The most that an option of a launch may cost, in percent of the chosen offer. More options make a launch likelier to succeed, and its worst price higher.",
			parse: func(c *Config, v string) (err error) {
				c.Settings.OptionPriceCap, err = whole(v, 100, 1000)
				return err
			}},
		{Key: "KERF_WORK", Default: "4000000", Values: "whole number from 1000 to 1000000000",
			Meaning: "How long the search for a cheaper plan may go on, in abstract steps. Steps, not seconds: the same input gives the same plan on every machine.",
			parse: func(c *Config, v string) (err error) {
				c.Settings.Work, err = whole(v, 1000, 1_000_000_000)
				return err
			}},
	}
}

// gate is one entry of FEATURE_GATES.
type gate struct {
	name    string
	def     bool
	meaning string
	set     func(s *snapshot.Settings, on bool) // nil: the feature is not there yet
}

func gates() []gate {
	return []gate{
		{"CapacityBuffer", false, "Headroom by CapacityBuffer objects.",
			func(s *snapshot.Settings, on bool) { s.CapacityBuffer = on }},
		{"NodeOverlay", false, "Price and capacity adjustments by NodeOverlay objects.",
			func(s *snapshot.Settings, on bool) { s.NodeOverlay = on }},
		{"NodeRepair", false, "Replace nodes that stay unhealthy.", nil},
		{"ReservedCapacity", true, "Use on-demand capacity reservations and capacity blocks.",
			func(s *snapshot.Settings, on bool) { s.ReservedCapacity = on }},
		{"SpotToSpotConsolidation", false, "Replace spot nodes by cheaper spot nodes.", nil},
		{"StaticCapacity", false, "NodePools with a fixed number of nodes (spec.replicas).",
			func(s *snapshot.Settings, on bool) { s.StaticCapacity = on }},
	}
}

// DefaultGates is the default of FEATURE_GATES, written out.
func DefaultGates() string {
	var out []string
	for _, g := range gates() {
		out = append(out, fmt.Sprintf("%s=%t", g.name, g.def))
	}
	return strings.Join(out, ",")
}

// parseGates reads Karpenter's syntax: Gate=bool, separated by commas; a partial
// list is merged over the defaults.
func parseGates(c *Config, v string) error {
	var problems []error
	seen := map[string]bool{}
	for part := range strings.SplitSeq(v, ",") {
		part = strings.TrimSpace(part)
		if part == "" {
			continue
		}
		name, val, ok := strings.Cut(part, "=")
		name = strings.TrimSpace(name)
		on, err := strconv.ParseBool(strings.TrimSpace(val))
		if !ok || err != nil {
			problems = append(problems, fmt.Errorf("gate %q: want Gate=true or Gate=false", part))
			continue
		}
		if seen[name] {
			problems = append(problems, fmt.Errorf("gate %q is given twice", name))
			continue
		}
		seen[name] = true
		if err := setGate(c, name, on); err != nil {
			problems = append(problems, err)
		}
	}
	return errors.Join(problems...)
}

func setGate(c *Config, name string, on bool) error {
	var names []string
	for _, g := range gates() {
		names = append(names, g.name)
		switch {
		case g.name != name:
		case g.set != nil:
			g.set(&c.Settings, on)
			return nil
		case on:
			return fmt.Errorf("gate %s: %w; leave it out or set it to false", name, ErrNotSupported)
		default:
			return nil
		}
	}
	return fmt.Errorf("gate %q is not known%s", name, hint(name, names))
}

// whole parses an integer within bounds.
func whole(v string, lo, hi int64) (int64, error) {
	n, err := strconv.ParseInt(v, 10, 64)
	if err != nil {
		return 0, fmt.Errorf("want a whole number from %d to %d", lo, hi)
	}
	if n < lo || n > hi {
		return 0, fmt.Errorf("is out of bounds: want %d to %d", lo, hi)
	}
	return n, nil
}

// millionths parses a decimal exactly into millionths within bounds.
func millionths(v string, lo, hi int64) (int64, error) {
	want := fmt.Sprintf("want %s to %s", decimal(lo), decimal(hi))
	if v == "" || strings.Trim(v, "+-.0123456789") != "" || len(v) > 40 {
		return 0, fmt.Errorf("is not a decimal number: %s", want)
	}
	r, ok := new(big.Rat).SetString(v)
	if !ok {
		return 0, fmt.Errorf("is not a decimal number: %s", want)
	}
	r.Mul(r, big.NewRat(1_000_000, 1))
	switch {
	case r.Cmp(big.NewRat(lo, 1)) < 0 || r.Cmp(big.NewRat(hi, 1)) > 0:
		return 0, fmt.Errorf("is out of bounds: %s", want)
	case !r.IsInt():
		return 0, errors.New("has more than 6 decimals")
	}
	return r.Num().Int64(), nil
}

func decimal(micro int64) string {
	return strings.TrimSuffix(strings.TrimRight(fmt.Sprintf("%d.%06d", micro/1_000_000, micro%1_000_000), "0"), ".")
}

// oneOf reports whether the second of two values was given.
func oneOf(v, first, second string) (bool, error) {
	switch v {
	case first:
		return false, nil
	case second:
		return true, nil
	}
	return false, fmt.Errorf("want %s or %s", first, second)
}
