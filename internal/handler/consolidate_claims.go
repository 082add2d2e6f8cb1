package handler

import (
	"context"
	"errors"
	"fmt"
	"time"

	"kerf.sh/kerf/internal/cloud/nodeclass"
	"kerf.sh/kerf/internal/disruption"
	"kerf.sh/kerf/internal/kube/api"
	"kerf.sh/kerf/internal/lifecycle"
	"kerf.sh/kerf/internal/snapshot"
)

// Conditions of a NodeClaim about its disruption, as Karpenter's users know them.
const (
	consolidatable   = "Consolidatable"
	drifted          = "Drifted"
	disruptionReason = "DisruptionReason"
)

// tellClaims has NodeClaims say whether they have drifted, whether they may be consolidated,
// and why they go, where they say something else. A pass writes so many at most, those that
// go first: the next one goes on.
func (x *consolidating) tellClaims(ctx context.Context, states []disruption.State) {
	goes := map[string]string{}
	for _, c := range x.commands {
		if c.Phase == lifecycle.Tainted || c.Phase == lifecycle.Replacing || c.Phase == lifecycle.Removing {
			for _, claim := range c.Candidates {
				goes[claim] = c.Reason
			}
		}
	}
	claims := make(map[string]*snapshot.NodeClaim, len(x.w.snap.NodeClaims))
	for i := range x.w.snap.NodeClaims {
		claims[x.w.snap.NodeClaims[i].Name] = &x.w.snap.NodeClaims[i]
	}
	left := mostMarks
	for _, going := range []bool{true, false} {
		for i := range states {
			s := &states[i]
			c := claims[s.Claim]
			if c == nil || c.UID == "" || (goes[s.Claim] != "" || hasCondition(c, disruptionReason)) != going {
				continue
			}
			status := claimSays(c, s, goes[s.Claim], x.now())
			if len(status.Conditions)+len(status.Gone)+len(status.Fields) == 0 {
				continue
			}
			if left--; left < 0 || !enough(ctx, x.now()) {
				return
			}
			_, err := x.h.Sweep.Cluster.PatchStatus(ctx, "NodeClaim", s.Claim, c.UID, status)
			if err != nil && !errors.Is(err, api.ErrNotFound) && !errors.Is(err, api.ErrConflict) {
				x.rep.warn(fmt.Errorf("write the conditions of nodeclaim %s: %w", s.Claim, err))
				return // what keeps one from being written keeps the others
			}
		}
	}
}

func hasCondition(c *snapshot.NodeClaim, typ string) bool {
	return snapshot.FindCondition(c.Conditions, typ) != nil
}

// claimSays is what the status of a NodeClaim has to be changed by.
func claimSays(c *snapshot.NodeClaim, s *disruption.State, reason string, now time.Time) api.Status {
	var out api.Status
	say := func(typ string, is bool, why, message string) {
		have := snapshot.FindCondition(c.Conditions, typ)
		switch {
		case !is && have != nil:
			out.Gone = append(out.Gone, typ)
		case is && (have == nil || have.Status != nodeclass.True || have.Reason != why || have.Message != message):
			out.Conditions = append(out.Conditions, snapshot.Condition{Type: typ, Status: nodeclass.True, Reason: why, Message: message, Since: now})
		}
	}
	say(disruptionReason, reason != "", reason, "")
	if s.Asked {
		say(drifted, s.Drift != "", s.Drift, s.DriftDetail)
	}
	say(consolidatable, s.Consolidatable, consolidatable, "")
	if !s.PodEvent.IsZero() {
		out.Fields = map[string]any{"lastPodEventTime": s.PodEvent.UTC().Format(time.RFC3339)}
	}
	return out
}
