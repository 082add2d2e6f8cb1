package app

import (
	"slices"
	"testing"
	"time"

	"kerf.sh/kerf/internal/handler"
	"kerf.sh/kerf/internal/telemetry/report"
)

// TestIdleSweepWarns: a sweep that had nothing to plan says what it could not do, such as to
// send the other ticks of its minute: nobody else would.
func TestIdleSweepWarns(t *testing.T) {
	warned := func(warnings ...string) bool {
		rep := &report.Report{}
		sweepSummary(rep, &handler.SweepReport{Outcome: "Idle", Warnings: warnings}, time.Second)
		return slices.ContainsFunc(rep.Properties(), func(p report.Property) bool { return p.Key == "warnings" })
	}
	if !warned("send 5 of 5 messages: AccessDenied") || warned() {
		t.Errorf("said with a warning: %t, without: %t; want true and false", warned("x"), warned())
	}
}
