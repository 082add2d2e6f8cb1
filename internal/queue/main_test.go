package queue

import (
	"testing"

	"kerf.sh/kerf/internal/rapidtest"
)

func TestMain(m *testing.M) { rapidtest.Main(m, nil) }
