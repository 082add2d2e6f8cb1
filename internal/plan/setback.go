package plan

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"kerf.sh/kerf/internal/snapshot"
)

// Setback are offers that went wrong lately. Fields that are "" stand for whichever.
type Setback struct {
	InstanceType, Zone, CapacityType, ReservationID string
	Interrupted, Failures                           int       // that still count
	Last                                            time.Time // the last of them
	// Share is how much dearer they count than they are, in millionths of their price.
	Share  int64
	Offers int // how many it concerns
}

// String names the offers: "m5.large spot in z-a".
func (b *Setback) String() string {
	return offersName(b.InstanceType, b.Zone, b.CapacityType, b.ReservationID)
}

// Why says what went wrong: "interrupted 2 times, no capacity once, last at 11:20:00".
func (b *Setback) Why() string {
	var parts []string
	if b.Interrupted > 0 {
		parts = append(parts, "interrupted "+timesOf(b.Interrupted))
	}
	if b.Failures > 0 {
		parts = append(parts, "no capacity "+timesOf(b.Failures))
	}
	return strings.Join(parts, ", ") + ", last at " + b.Last.UTC().Format(time.DateTime)
}

func timesOf(n int) string {
	if n == 1 {
		return "once"
	}
	return fmt.Sprintf("%d times", n)
}

// Percent writes a share in whole percent: "15 %".
func Percent(share int64) string {
	return fmt.Sprintf("%d %%", (share*100+snapshot.Whole/2)/snapshot.Whole)
}

// setbacks says which offers count as dearer, those that do most first.
func (m *Memory) setbacks() []string {
	const most = 6
	var out []string
	for i := range m.Setbacks {
		if i == most {
			out = append(out, Count(len(m.Setbacks)-most, "other offer")+" that went wrong lately as well, and counts less")
			break
		}
		b := &m.Setbacks[i]
		verb := "counts"
		if b.Offers > 1 && b.InstanceType == "" {
			verb = "count"
		}
		out = append(out, fmt.Sprintf("%s %s as %s dearer when offers are compared: %s", b, verb, Percent(b.Share), b.Why()))
	}
	return out
}

// Against is what is held against an offer, "" when nothing is.
func (m *Memory) Against(f Offer) string {
	if m == nil {
		return ""
	}
	is := func(want, got string) bool { return want == "" || want == got }
	var parts []string
	for i := range m.Setbacks {
		b := &m.Setbacks[i]
		if is(b.InstanceType, f.InstanceType) && is(b.Zone, f.Zone) && is(b.CapacityType, f.CapacityType) && is(b.ReservationID, f.ReservationID) {
			parts = append(parts, b.Why())
		}
	}
	return strings.Join(slices.Compact(parts), "; ")
}

type setbackJSON struct {
	InstanceType  string    `json:"instanceType,omitempty"`
	Zone          string    `json:"zone,omitempty"`
	CapacityType  string    `json:"capacityType,omitempty"`
	ReservationID string    `json:"reservationId,omitempty"`
	Interrupted   int       `json:"interrupted"`
	Failures      int       `json:"failures"`
	Last          time.Time `json:"last"`
	DearerPercent float64   `json:"dearerPercent"`
	Offers        int       `json:"offers"`
}

func setbacksToJSON(list []Setback) []setbackJSON {
	return each(list, func(b *Setback) setbackJSON {
		return setbackJSON{
			InstanceType: b.InstanceType, Zone: b.Zone, CapacityType: b.CapacityType, ReservationID: b.ReservationID,
			Interrupted: b.Interrupted, Failures: b.Failures, Last: b.Last.UTC(), DearerPercent: float64(b.Share) / 10_000, Offers: b.Offers,
		}
	})
}
