//go:build e2e

package e2e

import (
	"os"
	"path/filepath"
	"testing"
)

// logsDir is where the logs of a failed test are kept; "" = nowhere.
func logsDir(t *testing.T) string {
	dir := os.Getenv("KERF_E2E_LOGS")
	if dir == "" {
		return ""
	}
	return filepath.Join(dir, t.Name())
}
