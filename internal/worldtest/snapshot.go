package worldtest

import (
	"fmt"
	"io"
	"strconv"
	"strings"

	"kerf.sh/kerf/internal/kube"
	"kerf.sh/kerf/internal/snapshot"
)

// Snapshot reads the world's manifests as the plan program does, at Clock.
func (w *World) Snapshot() (*snapshot.Snapshot, *kube.Report, error) {
	settings, err := settingsOf(w.Settings)
	if err != nil {
		return nil, nil, err
	}
	text := w.Manifests()
	src := kube.Source{Name: "world", Open: func() (io.ReadCloser, error) {
		return io.NopCloser(strings.NewReader(text)), nil
	}}
	s, report, err := kube.Read([]kube.Source{src}, kube.Options{
		Cluster: "test", Region: w.Catalog.Region, Now: Clock, Settings: settings,
	})
	if err == nil {
		err = w.remember(s)
	}
	return s, report, err
}

func settingsOf(pairs []string) (snapshot.Settings, error) {
	s := snapshot.DefaultSettings()
	for _, kv := range pairs {
		k, v, _ := strings.Cut(kv, "=")
		var n *int64
		switch k {
		case "reserved-enis":
			n = &s.ReservedENIs
		case "vm-memory-overhead-ppm":
			n = &s.VMMemoryOverhead
		case "cost-per-node":
			n = &s.CostPerNode
		case "option-price-cap":
			n = &s.OptionPriceCap
		case "min-values":
			s.MinValuesBestEffort = v == "best-effort"
			continue
		case "gates":
			for gate := range strings.SplitSeq(v, ",") {
				switch gate {
				case "NodeOverlay":
					s.NodeOverlay = true
				case "StaticCapacity":
					s.StaticCapacity = true
				case "CapacityBuffer":
					s.CapacityBuffer = true
				case "!ReservedCapacity":
					s.ReservedCapacity = false
				default:
					return s, fmt.Errorf("gate %s is not known", gate)
				}
			}
			continue
		case "preferences":
			s.IgnorePreferences = v == "ignore"
			continue
		default:
			return s, fmt.Errorf("setting %s is not known", k)
		}
		var err error
		if *n, err = strconv.ParseInt(v, 10, 64); err != nil {
			return s, fmt.Errorf("setting %s: %w", k, err)
		}
	}
	return s, nil
}
