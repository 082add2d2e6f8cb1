package plan

import (
	"strings"
	"unicode"
	"unicode/utf8"
)

// style paints text for a terminal, or leaves it as it is.
type style bool

func (s style) paint(code, text string) string {
	if !s || text == "" {
		return text
	}
	return "\x1b[" + code + "m" + text + "\x1b[0m"
}

func (s style) bold(t string) string   { return s.paint("1", t) }
func (s style) dim(t string) string    { return s.paint("2", t) }
func (s style) red(t string) string    { return s.paint("31", t) }
func (s style) green(t string) string  { return s.paint("32", t) }
func (s style) yellow(t string) string { return s.paint("33", t) }
func (s style) blue(t string) string   { return s.paint("34", t) }

// clean makes a name or message from the input harmless on a terminal: one line,
// no control characters.
func clean(t string) string {
	if !strings.ContainsFunc(t, unsafeRune) {
		return t
	}
	return strings.Map(func(r rune) rune {
		switch {
		case r == '\n', r == '\t', r == '\r':
			return ' '
		case unsafeRune(r):
			return '\uFFFD'
		}
		return r
	}, t)
}

func unsafeRune(r rune) bool {
	return unicode.IsControl(r) || unicode.In(r, unicode.Cf, unicode.Zl, unicode.Zp)
}

// visible is the number of columns of a text, colour sequences left out.
func visible(t string) int {
	n := utf8.RuneCountInString(t)
	for {
		i := strings.Index(t, "\x1b[")
		if i < 0 {
			return n
		}
		j := strings.IndexByte(t[i:], 'm')
		if j < 0 {
			return n
		}
		n -= j + 1
		t = t[i+j+1:]
	}
}

// pad fills to a width on the right; left pads on the left.
func pad(t string, w int) string {
	return t + strings.Repeat(" ", max(0, w-utf8.RuneCountInString(t)))
}

func left(t string, w int) string {
	return strings.Repeat(" ", max(0, w-utf8.RuneCountInString(t))) + t
}

// takeLine takes as many words as fit on a line of width, one at least: a word
// longer than that stays whole, so that names can be copied.
func takeLine(words []string, width int) (line string, rest []string) {
	n := 0
	for i, w := range words {
		n += utf8.RuneCountInString(w)
		if i > 0 && n+i > width {
			return strings.Join(words[:i], " "), words[i:]
		}
	}
	return strings.Join(words, " "), nil
}

// flow puts items on lines of at most width, with a separator between them.
func flow(items []string, sep string, width int) []string {
	width -= len(strings.TrimRight(sep, " ")) // a broken line ends with it
	var lines []string
	cur, n := "", 0
	for _, it := range items {
		w := utf8.RuneCountInString(it)
		switch {
		case cur == "":
			cur, n = it, w
		case n+len(sep)+w <= width:
			cur += sep + it
			n += len(sep) + w
		default:
			lines = append(lines, strings.TrimRight(cur+sep, " "))
			cur, n = it, w
		}
	}
	if cur != "" {
		lines = append(lines, cur)
	}
	return lines
}
