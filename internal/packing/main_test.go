package packing

import (
	"testing"

	"kerf.sh/kerf/internal/rapidtest"
)

func TestMain(m *testing.M) {
	rapidtest.Main(m, map[string]string{"rapid.checks": "300", "rapid.shrinktime": "10s"})
}
