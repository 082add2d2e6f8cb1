package plan

import (
	"fmt"
	"slices"
	"strings"
)

// mostMoves is how many moves a report spells out.
const mostMoves = 20

// moves writes what should go, the best saving first, and why the other nodes stay.
func (t *report) moves() {
	s := t.p.Savings
	if s == nil {
		return
	}
	t.section("Moves")
	if len(t.p.Moves) == 0 {
		t.para("  ", "  ", "None. "+s.String(), nil)
	} else {
		t.para("  ", "  ", s.String()+" There "+are(len(t.p.Moves))+" "+Count(len(t.p.Moves), "move")+".", nil)
	}
	if s.Left > 0 {
		t.para("  ", "  ", fmt.Sprintf("The work of the pass ended before %s had a turn; the next one goes on there.", Count(s.Left, "node")), nil)
	}
	for i := range t.p.Moves {
		if i == mostMoves {
			t.line("  ... and %s more; JSON has them all", Count(len(t.p.Moves)-i, "move"))
			break
		}
		m := &t.p.Moves[i]
		head := fmt.Sprintf("%s: remove %s", m.Reason, strings.Join(m.Remove, ", "))
		if len(m.Add) > 0 {
			head += fmt.Sprintf(", add %s %s in %s", m.Add[0].Chosen.CapacityType, m.Add[0].Chosen.InstanceType, m.Add[0].Chosen.Zone)
			if more := len(m.Add) - 1; more > 0 {
				head += fmt.Sprintf(" and %d more", more)
			}
		}
		t.para("  ", "      ", head, t.bold)
		saves := "saves " + Dollars(m.Saving) + " an hour"
		if m.Saving < 0 {
			saves = "costs " + Dollars(-m.Saving) + " an hour more"
		}
		t.para("      ", "      ", fmt.Sprintf("%s, moves %s: %s", saves, CountMoved(m.Placements), m.Detail), nil)
		for _, b := range m.Blockers {
			t.para("      ", "      ", "held up by "+b, nil)
		}
		if m.Held != "" {
			t.para("      ", "      ", "held: "+m.Held, nil)
		}
	}
	t.stays()
}

// String says what is paid, what is reachable and where the floor is: "You pay $31.20 an
// hour; $18.40 is reachable now; $17.90 is the floor."
func (s *Savings) String() string {
	out := fmt.Sprintf("You pay %s an hour; ", Dollars(s.Now))
	if s.After < s.Now {
		out += Dollars(s.After) + " is reachable now; "
	} else {
		out += "no less is reachable now; "
	}
	if Dollars(s.Floor) == Dollars(s.Now) {
		return out + "that is the floor."
	}
	return out + Dollars(s.Floor) + " is the floor."
}

func are(n int) string {
	if n == 1 {
		return "is"
	}
	return "are"
}

// stays sums up why nodes stay, by code, with one example of each.
func (t *report) stays() {
	type group struct {
		code  Code
		first *Verdict
		n     int
	}
	var groups []group
	for i := range t.p.Verdicts {
		v := &t.p.Verdicts[i]
		if Info(v.Code).Kind != KindStays && !strings.HasPrefix(v.Object, "node/") {
			continue
		}
		k := slices.IndexFunc(groups, func(g group) bool { return g.code == v.Code })
		if k < 0 {
			groups = append(groups, group{v.Code, v, 1})
			continue
		}
		groups[k].n++
	}
	if len(groups) == 0 {
		return
	}
	t.section("Nodes that stay")
	for _, g := range groups {
		who := strings.TrimPrefix(g.first.Object, "node/")
		if g.n > 1 {
			who += fmt.Sprintf(" and %d more", g.n-1)
		}
		t.para("  ", "      ", fmt.Sprintf("%s: %s: %s", g.code, who, g.first.Detail), nil)
	}
}
