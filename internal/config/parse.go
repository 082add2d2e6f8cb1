package config

import (
	"errors"
	"fmt"
	"log/slog"
	"math/big"
	"net/url"
	"regexp"
	"strconv"
	"strings"
	"time"

	"kerf.sh/kerf/internal/snapshot"
)

// ErrNotSupported marks a setting of a feature that is not there yet. It is told
// apart from a mistake: the key and the value are right.
var ErrNotSupported = errors.New("not supported yet")

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
		{"NodeRepair", false, "Replace nodes that stay unhealthy.",
			func(s *snapshot.Settings, on bool) { s.NodeRepair = on }},
		{"ReservedCapacity", true, "Use on-demand capacity reservations and capacity blocks.",
			func(s *snapshot.Settings, on bool) { s.ReservedCapacity = on }},
		{"SpotToSpotConsolidation", false, "Replace spot nodes by cheaper spot nodes.",
			func(s *snapshot.Settings, on bool) { s.SpotToSpot = on }},
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

// duration parses what Go writes, within bounds, in whole steps.
func duration(v string, lo, hi, step time.Duration) (time.Duration, error) {
	d, err := time.ParseDuration(v)
	switch {
	case err != nil:
		return 0, fmt.Errorf("want a duration from %s to %s, like 10s", lo, hi)
	case d < lo || d > hi:
		return 0, fmt.Errorf("is out of bounds: want %s to %s", lo, hi)
	case d%step != 0:
		return 0, fmt.Errorf("want a multiple of %s", step)
	}
	return d, nil
}

// level parses the names of Karpenter's levels, and warn.
func level(v string) (slog.Level, error) {
	switch v {
	case "debug":
		return slog.LevelDebug, nil
	case "info":
		return slog.LevelInfo, nil
	case "warn":
		return slog.LevelWarn, nil
	case "error":
		return slog.LevelError, nil
	}
	return 0, errors.New("want debug, info, warn or error")
}

func queueURL(v string) error {
	u, err := url.Parse(v)
	if v != "" && (err != nil || u.Scheme != "https" && u.Scheme != "http" || u.Host == "" || u.Path == "") {
		return errors.New("want the URL of a queue")
	}
	return nil
}

// busName checks the name or ARN of an event bus.
var busPattern = regexp.MustCompile(`^(arn:[a-z-]+:events:[a-z0-9-]+:[0-9]{12}:event-bus/)?[A-Za-z0-9._/-]{1,256}$`)

func busName(v string) error {
	if v != "" && !busPattern.MatchString(v) {
		return errors.New("want the name or the ARN of an event bus")
	}
	return nil
}
