package scheduling

import (
	"strings"
)

// place is a class in a cell, across rounds of dealing.
type place struct {
	class int
	cell  string
}

// full reports whether earlier rounds found that no more of a class find room in a
// cell, or in all of them.
func (d *dealer) full(u *unit, c *cell) bool {
	w := d.w
	if len(w.ceiling) == 0 {
		return false
	}
	if n, ok := w.ceiling[place{u.base, c.id}]; ok && d.dealt[place{u.base, c.id}] >= n {
		return true
	}
	n, ok := w.ceiling[place{u.base, ""}]
	return ok && d.dealt[place{u.base, ""}] >= n
}

func (d *dealer) filled(u *unit, c *cell) {
	if len(d.w.ceiling) > 0 {
		d.dealt[place{u.base, c.id}]++
		d.dealt[place{u.base, ""}]++
	}
}

// stuck says why a unit got no cell: empty when rules about other pods are not to blame.
func (d *dealer) stuck(u *unit) refusal {
	if len(u.sets) == 0 {
		return refusal{}
	}
	set := u.sets[len(u.sets)-1]
	if set == nil {
		return refusal{}
	}
	var out refusal
	why := map[string][]string{} // domains by what is wrong there
	var order []string
	say := func(name, text string) {
		if why[text] == nil {
			order = append(order, text)
		}
		why[text] = append(why[text], name)
	}
	usable := false
	for i := range set.cells {
		c := &set.cells[i]
		name := d.cellName(set, c)
		if !d.room(u, c) && d.cost(u, c) < 0 {
			continue
		}
		usable = true
		block := d.blockedIn(u, c)
		if block.code == "" {
			if d.full(u, c) {
				say(name, "the plan finds no more room there")
			}
			continue
		}
		if out.code == "" {
			out.code = block.code
		}
		say(name, block.detail)
	}
	if !usable || out.code == "" {
		return refusal{}
	}
	parts := make([]string, len(order))
	for i, text := range order {
		parts[i] = strings.Join(why[text], ", ") + ": " + text
	}
	out.detail = strings.Join(parts, "; ")
	if len(set.keys) == 1 {
		out.detail = "over " + d.w.topo.domains[set.keys[0]].key + ": " + out.detail
	}
	return out
}

// blockedIn names the member that may not be in a cell, after those before it.
func (d *dealer) blockedIn(u *unit, c *cell) refusal {
	var out refusal
	type joined struct{ rules int }
	var in []joined
	for _, m := range u.members {
		for range m.n {
			if why := d.describe(m.rules, c); why.code != "" {
				out = why
				break
			}
			d.join(m.rules, c.dom)
			in = append(in, joined{m.rules})
		}
		if out.code != "" {
			break
		}
	}
	for _, j := range in {
		d.leave(j.rules, c.dom)
	}
	return out
}

// cellName names the domains of a cell for people.
func (d *dealer) cellName(set *cellSet, c *cell) string {
	if len(set.keys) == 0 {
		return "any node"
	}
	var parts []string
	for _, k := range set.keys {
		dm := d.w.topo.domains[k]
		switch v := c.dom[k]; {
		case v < 0:
			parts = append(parts, "no label "+dm.key)
		case len(set.keys) == 1:
			parts = append(parts, dm.names[v])
		default:
			parts = append(parts, dm.key+"="+dm.names[v])
		}
	}
	return strings.Join(parts, ", ")
}
