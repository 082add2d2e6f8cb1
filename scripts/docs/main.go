// Command docs writes the reference pages that are generated from tables in the
// code: docs/reasons.md, docs/config.md, docs/metrics.md and docs/doctor.md. Run it at the root of the repository:
//
//	go run ./scripts/docs
package main

import (
	"fmt"
	"os"
	"path/filepath"

	"kerf.sh/kerf/internal/config"
	"kerf.sh/kerf/internal/doctor"
	"kerf.sh/kerf/internal/plan"
	"kerf.sh/kerf/internal/telemetry/report"
)

// pages are the generated pages, by file name.
func pages() map[string]string {
	return map[string]string{
		"reasons.md": plan.Markdown(),
		"config.md":  config.Markdown(),
		"metrics.md": report.Markdown(),
		"doctor.md":  doctor.Markdown(),
	}
}

func main() {
	for name, text := range pages() {
		if err := os.WriteFile(filepath.Join("docs", name), []byte(text), 0o644); err != nil {
			fmt.Fprintln(os.Stderr, "write the reference:", err)
			os.Exit(1)
		}
	}
}
