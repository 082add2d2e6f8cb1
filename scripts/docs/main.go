// Command docs writes the reference pages that are generated from tables in the
// code: docs/reasons.md, docs/config.md, docs/metrics.md, docs/doctor.md and docs/cost.md. Run it at the root of the repository:
//
//	go run ./scripts/docs
package main

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"

	"kerf.sh/kerf/internal/config"
	"kerf.sh/kerf/internal/doctor"
	"kerf.sh/kerf/internal/idle"
	"kerf.sh/kerf/internal/plan"
	"kerf.sh/kerf/internal/telemetry/report"
)

// pages are the generated pages, by file name. root is that of the repository.
func pages(root string) (map[string]string, error) {
	alarms, err := alarmed(root)
	return map[string]string{
		"reasons.md": plan.Markdown(),
		"config.md":  config.Markdown(),
		"metrics.md": report.Markdown(),
		"doctor.md":  doctor.Markdown(),
		"cost.md":    idle.Markdown(billed(), alarms),
	}, err
}

// billed is how many metrics the functions make where nobody asks for more.
func billed() int {
	n := 0
	for _, r := range report.Table() {
		if !r.Optional {
			n++
		}
	}
	return n
}

// alarmed is how many metrics the stack's alarms watch, which is what CloudWatch bills.
func alarmed(root string) (int, error) {
	text, err := os.ReadFile(filepath.Join(root, "infra", "autoscaler", "testdata", "template.json"))
	if err != nil {
		return 0, err
	}
	var tm struct {
		Resources map[string]struct {
			Type       string
			Properties struct{ Metrics []struct{ MetricStat any } }
		}
	}
	if err := json.Unmarshal(text, &tm); err != nil {
		return 0, fmt.Errorf("read the template: %w", err)
	}
	n := 0
	for _, r := range tm.Resources {
		if r.Type != "AWS::CloudWatch::Alarm" {
			continue
		}
		if len(r.Properties.Metrics) == 0 {
			n++
		}
		for _, m := range r.Properties.Metrics {
			if m.MetricStat != nil {
				n++
			}
		}
	}
	return n, nil
}

func main() {
	all, err := pages(".")
	if err != nil {
		fmt.Fprintln(os.Stderr, "write the reference:", err)
		os.Exit(1)
	}
	for name, text := range all {
		if err := os.WriteFile(filepath.Join("docs", name), []byte(text), 0o644); err != nil {
			fmt.Fprintln(os.Stderr, "write the reference:", err)
			os.Exit(1)
		}
	}
}
