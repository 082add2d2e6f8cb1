package plan

import "encoding/json"

type moveJSON struct {
	ID         string          `json:"id"`
	Reason     MoveReason      `json:"reason"`
	Detail     string          `json:"detail"`
	Remove     []string        `json:"remove"`
	Add        []launchJSON    `json:"add"`
	Placements []placementJSON `json:"placements"`
	Saving     json.Number     `json:"savingPerHour"`
	// Cost is in average pods (Karpenter: disruption cost).
	Cost     json.Number `json:"disruptionCost"`
	Held     string      `json:"held"`
	Blockers []string    `json:"blockers"`
}

type savingsJSON struct {
	Now        json.Number `json:"pricePerHourNow"`
	After      json.Number `json:"pricePerHourAfterMoves"`
	Floor      json.Number `json:"floorPerHour,omitempty"`
	Considered int         `json:"nodesConsidered"`
	Left       int         `json:"nodesLeft"`
}

func moveToJSON(m *Move) moveJSON {
	return moveJSON{
		ID: m.ID, Reason: m.Reason, Detail: m.Detail, Remove: orEmpty(m.Remove), Add: launchesToJSON(m.Add),
		Placements: each(m.Placements, func(v *Placement) placementJSON { return placementJSON(*v) }),
		Saving:     dollars(m.Saving), Cost: dollars(m.Cost), Held: m.Held, Blockers: orEmpty(m.Blockers),
	}
}

func savingsToJSON(s *Savings) *savingsJSON {
	if s == nil {
		return nil
	}
	out := &savingsJSON{Now: dollars(s.Now), After: dollars(s.After), Considered: s.Considered, Left: s.Left}
	if s.Considered > 0 {
		out.Floor = dollars(s.Floor)
	}
	return out
}
