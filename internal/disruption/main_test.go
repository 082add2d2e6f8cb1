package disruption

import (
	"testing"

	"kerf.sh/kerf/internal/rapidtest"
)

func TestMain(m *testing.M) {
	rapidtest.Main(m, map[string]string{"rapid.checks": "60", "rapid.shrinktime": "5s"})
}
