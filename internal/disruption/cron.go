package disruption

import (
	"fmt"
	"math/bits"
	"strconv"
	"strings"
	"time"
)

// schedule is a cron expression of five fields, as budgets use it. A day counts when both
// its fields allow it; where neither begins with *, when one does (cron's old rule).
type schedule struct {
	minutes, hours, days, months, weekdays uint64 // bit n: value n
	anyDay, anyWeekday                     bool
}

var macros = map[string]string{
	"@yearly": "0 0 1 1 *", "@annually": "0 0 1 1 *", "@monthly": "0 0 1 * *",
	"@weekly": "0 0 * * 0", "@daily": "0 0 * * *", "@midnight": "0 0 * * *", "@hourly": "0 * * * *",
}

var (
	monthNames   = []string{"", "jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec"}
	weekdayNames = []string{"sun", "mon", "tue", "wed", "thu", "fri", "sat"}
)

// parseSchedule reads a cron expression.
func parseSchedule(text string) (*schedule, error) {
	expr := strings.TrimSpace(text)
	if m, ok := macros[strings.ToLower(expr)]; ok {
		expr = m
	}
	fields := strings.Fields(expr)
	if len(fields) != 5 {
		return nil, fmt.Errorf("schedule %q: want five fields (minute hour day month weekday), or @daily and the like", text)
	}
	var s schedule
	for i, f := range []struct {
		name     string
		min, max int
		names    []string
		to       *uint64
	}{
		{"minute", 0, 59, nil, &s.minutes}, {"hour", 0, 23, nil, &s.hours}, {"day", 1, 31, nil, &s.days},
		{"month", 1, 12, monthNames, &s.months}, {"weekday", 0, 6, weekdayNames, &s.weekdays},
	} {
		set, err := parseField(fields[i], f.min, f.max, f.names)
		if err != nil {
			return nil, fmt.Errorf("schedule %q: %s %q: %w", text, f.name, fields[i], err)
		}
		*f.to = set
	}
	s.anyDay, s.anyWeekday = star(fields[2]), star(fields[4])
	return &s, nil
}

func star(field string) bool { return strings.HasPrefix(field, "*") || strings.HasPrefix(field, "?") }

// parseField reads a list of values, ranges and steps.
func parseField(field string, low, high int, names []string) (uint64, error) {
	var set uint64
	for _, part := range strings.Split(field, ",") {
		span, step, stepped := strings.Cut(part, "/")
		every := 1
		if stepped {
			n, err := strconv.Atoi(step)
			if err != nil || n < 1 {
				return 0, fmt.Errorf("step %q: want a whole number above 0", step)
			}
			every = n
		}
		from, to := low, high
		if span != "*" && span != "?" {
			a, b, ranged := strings.Cut(span, "-")
			var err error
			if from, err = parseValue(a, names); err != nil {
				return 0, err
			}
			switch {
			case ranged:
				if to, err = parseValue(b, names); err != nil {
					return 0, err
				}
			case !stepped:
				to = from
			}
		}
		if from < low || to > high || from > to {
			return 0, fmt.Errorf("%s: want values from %d to %d, the lower one first", span, low, high)
		}
		for v := from; v <= to; v += every {
			set |= 1 << v
		}
	}
	return set, nil
}

func parseValue(text string, names []string) (int, error) {
	for i, n := range names {
		if n != "" && strings.EqualFold(n, text) {
			return i, nil
		}
	}
	n, err := strconv.Atoi(text)
	if err != nil || n < 0 {
		return 0, fmt.Errorf("%q is no value", text)
	}
	return n, nil
}

func (s *schedule) day(t time.Time) bool {
	day, weekday := s.days>>t.Day()&1 == 1, s.weekdays>>int(t.Weekday())&1 == 1
	if s.anyDay || s.anyWeekday {
		return day && weekday
	}
	return day || weekday
}

// next is the first time after t that the schedule names, in t's zone; false when there is
// none within five years.
func (s *schedule) next(t time.Time) (time.Time, bool) {
	t = t.Add(time.Minute).Truncate(time.Minute)
	end := t.AddDate(5, 0, 0)
	for t.Before(end) {
		switch {
		case s.months>>int(t.Month())&1 == 0:
			t = time.Date(t.Year(), t.Month()+1, 1, 0, 0, 0, 0, t.Location())
		case !s.day(t):
			t = time.Date(t.Year(), t.Month(), t.Day()+1, 0, 0, 0, 0, t.Location())
		case s.hours>>t.Hour()&1 == 0:
			// By the clock on the wall hours repeat or are left out; by this one they pass.
			t = t.Add(time.Hour - time.Duration(t.Minute())*time.Minute)
		case s.minutes>>t.Minute()&1 == 0:
			rest := s.minutes >> t.Minute()
			skip := 60 - t.Minute()
			if rest != 0 {
				skip = bits.TrailingZeros64(rest)
			}
			t = t.Add(time.Duration(skip) * time.Minute)
		default:
			return t, true
		}
	}
	return time.Time{}, false
}
