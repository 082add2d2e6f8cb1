package handler

import (
	"context"
	"errors"
	"fmt"
	"time"

	"kerf.sh/kerf/internal/catalog"
	"kerf.sh/kerf/internal/disruption"
	"kerf.sh/kerf/internal/lifecycle"
	"kerf.sh/kerf/internal/plan"
)

const (
	// massFew is how many nodes of a pool are never many.
	massFew = 3
	// confirmedNote remembers what people have let go, until confirmedFor after that.
	confirmedNote = "confirmed"
	confirmedFor  = time.Hour
)

// Confirm lets a mass removal go: for an hour moves of the pool for the reason are not held.
func (h *Consolidation) Confirm(ctx context.Context, pool string, reason plan.MoveReason) error {
	if pool == "" || reason == "" {
		return errors.New(`confirm a mass removal: name the NodePool and the reason, like {"nodePool": "general", "reason": "Drifted"}`)
	}
	m, now := h.Sweep.Memory, h.Sweep.Now()
	for range 3 {
		until, note, err := readNote[map[string]time.Time](ctx, m, confirmedNote)
		if err != nil {
			return err
		}
		next := map[string]time.Time{massKey(pool, reason): now.Add(confirmedFor)}
		for k, t := range until {
			if now.Before(t) && next[k].IsZero() {
				next[k] = t
			}
		}
		note.Name = confirmedNote
		if err = saveNote(ctx, m, note, next); !errors.Is(err, lifecycle.ErrChanged) {
			return err
		}
	}
	return fmt.Errorf("confirm a mass removal: %w", lifecycle.ErrChanged)
}

func massKey(pool string, reason plan.MoveReason) string { return pool + "/" + string(reason) }

// hold holds moves back that would take more of a pool than a person would expect, for a
// reason that the pool has not had lately and nobody has confirmed. Budgets come first;
// three nodes are always few.
func (x *consolidating) hold(ctx context.Context, moves []plan.Move) error {
	if x.h.MassShare <= 0 {
		return nil
	}
	pool, total, going := map[string]string{}, map[string]int{}, map[string]int{}
	for i := range x.w.snap.NodeClaims {
		c := &x.w.snap.NodeClaims[i]
		pool[c.Name] = c.Labels[catalog.LabelNodePool]
	}
	for i := range x.w.snap.Nodes {
		n := &x.w.snap.Nodes[i]
		pool[n.Name] = n.Labels[catalog.LabelNodePool]
		total[pool[n.Name]]++
	}
	for i := range moves {
		for _, n := range moves[i].Remove {
			going[massKey(pool[n], moves[i].Reason)]++
		}
	}
	seen := map[string]bool{}
	for _, c := range x.commands {
		for _, p := range c.Pools {
			seen[massKey(p, plan.MoveReason(c.Reason))] = c.Phase == lifecycle.Removing || c.Phase == lifecycle.Done || c.Confirmed || seen[massKey(p, plan.MoveReason(c.Reason))]
		}
	}
	until, _, err := readNote[map[string]time.Time](ctx, x.h.Sweep.Memory, confirmedNote)
	if err != nil {
		return err
	}
	told := map[string]bool{}
	for i := range moves {
		m := &moves[i]
		if disruption.Elsewhere(m.Reason) {
			continue
		}
		for _, n := range m.Remove {
			key := massKey(pool[n], m.Reason)
			if going[key] <= massFew || going[key]*100 <= total[pool[n]]*x.h.MassShare || seen[key] || x.now().Before(until[key]) {
				continue
			}
			m.Held = "MassRemoval"
			if !told[key] {
				told[key] = true
				x.rep.Mass = append(x.rep.Mass, fmt.Sprintf("%s: %d of %s would go, more than %d %% at once: confirm it, or see why", key, going[key], plan.Count(total[pool[n]], "node"), x.h.MassShare))
			}
		}
	}
	return nil
}
