package worldtest

import (
	"fmt"
	"maps"
	"slices"
	"strings"
)

// Rule names a rule of scheduling that a drawn world contains.
type Rule string

// NotYet reports whether plans do not keep the rule yet.
func (r Rule) NotYet() bool {
	for prefix, kind := range map[string]kindOfRule{
		"spread": aboutSpread, "node-going-spread": aboutSpread, "affinity": aboutAffinity, "anti-affinity": aboutAffinity,
		"volume": aboutVolumes, "prefer": aboutPreferences, "spread-soft": aboutPreferences,
	} {
		if strings.HasPrefix(string(r), prefix) && notYet[kind] {
			return true
		}
	}
	return false
}

// part is an option of a line, or the line's kind and name, or more of the option
// before it (text that begins with a comma or "#"), and the rule that it is there for; ""
// when it belongs to the ground that the rules stand on.
type part struct {
	text string
	rule Rule
	// instead is there in a world without the rule; "" = nothing.
	instead string
}

// drawnLine is a line of a drawn world: without its first part it is not there.
type drawnLine []part

func (l drawnLine) String() string {
	var b strings.Builder
	for i, p := range l {
		if i > 0 && !strings.HasPrefix(p.text, ",") && !strings.HasPrefix(p.text, "#") {
			b.WriteByte(' ')
		}
		b.WriteString(p.text)
	}
	return b.String()
}

// drawn makes a world of lines.
func drawn(lines []drawnLine) *World {
	w := NewWorld()
	w.drawn = lines
	if err := w.Exec(w.Text()); err != nil {
		panic(fmt.Sprintf("worldtest: a drawn world cannot be read: %v\n%s", err, w.Text()))
	}
	return w
}

// Text is a drawn world in the line language; "" for a world that was not drawn.
func (w *World) Text() string {
	var b strings.Builder
	for _, l := range w.drawn {
		fmt.Fprintln(&b, l)
	}
	return b.String()
}

// Rules lists the rules that a drawn world contains, sorted.
func (w *World) Rules() []Rule {
	set := map[Rule]bool{}
	for _, l := range w.drawn {
		for _, p := range l {
			if p.rule != "" {
				set[p.rule] = true
			}
		}
	}
	return slices.Sorted(maps.Keys(set))
}

// Without is a drawn world as it would be if nobody knew the rule: every option and
// line that is there for it is left out. The rule binds in a world when the plan of
// that other world breaks a rule of this one.
func (w *World) Without(rule Rule) *World {
	var lines []drawnLine
	for _, l := range w.drawn {
		var left drawnLine
		for i, p := range l {
			if p.rule == rule {
				p.text = p.instead
			}
			if p.text == "" && i == 0 {
				break
			}
			if p.text != "" {
				left = append(left, p)
			}
		}
		if left != nil {
			lines = append(lines, left)
		}
	}
	return drawn(lines)
}

// Shrink takes lines and options away from a drawn world for as long as fails says
// that it still fails, and returns the smallest world it comes to. Worlds that cannot
// be read are not asked about.
func (w *World) Shrink(fails func(*World) bool) *World {
	try := func(lines []drawnLine) bool {
		v := NewWorld()
		v.drawn = lines
		if err := v.Exec(v.Text()); err != nil {
			return false
		}
		if _, _, err := v.Snapshot(); err != nil || !fails(v) {
			return false
		}
		w = v
		return true
	}
	for again := true; again; {
		again = false
		for size := (len(w.drawn) + 1) / 2; size > 0; size /= 2 {
			for at := 0; at < len(w.drawn); {
				if try(slices.Delete(slices.Clone(w.drawn), at, min(at+size, len(w.drawn)))) {
					again = true
				} else {
					at += size
				}
			}
		}
		for i := range w.drawn {
			for k := len(w.drawn[i]) - 1; k > 0; k-- {
				lines := slices.Clone(w.drawn)
				lines[i] = slices.Delete(slices.Clone(lines[i]), k, k+1)
				if try(lines) {
					again = true
					continue
				}
				if fewer := fewer(w.drawn[i][k].text); fewer != "" {
					lines = slices.Clone(w.drawn)
					lines[i] = slices.Clone(lines[i])
					lines[i][k].text = fewer
					again = try(lines) || again
				}
			}
		}
	}
	return w
}

// fewer is an option for fewer pods; "" when there is none.
func fewer(option string) string {
	var n int
	if _, err := fmt.Sscanf(option, "count=%d", &n); err != nil || n <= 1 {
		return ""
	}
	return fmt.Sprintf("count=%d", n-1)
}
