package kube

import (
	"strings"
	"testing"

	"pgregory.net/rapid"
)

// TestPlainYAMLAgrees draws documents of lines that are almost right and compares
// what plainYAML accepts with the full parser.
func TestPlainYAMLAgrees(t *testing.T) {
	scalars := []string{"", "a", "a b", "a: b", "a:", "a #b", "a#b", "'it''s'", "'a' b", `"a\nb"`, `"a\x41"`, `"a" # b`, "1", "01", "-1", "- 1", "--x=1", "-x", "1.5",
		"1e3", "1_0", "0x1", "0o7", "0b1", "500m", "1Gi", "10.0.0.1", "2026-03-04", "2026-03-04T12:00:00Z", "12:30:45", "yes", "No", "null", "~", "true", "TRUE", "nulls",
		"{}", "[]", "{a: b}", "[a]", "{", "|", "|-", "|+", ">", "|2", "&x a", "*x", "!!str 1", "!a", "%a", "@a", "`a`", "$(A)", "/a", "=", "<<", "?", "? a", ".5", ".inf", "+1", "a\\b", `a"b`, "a'b", "#c", "a,b", "a]", "a}", "...", "--- a", "a ", "9223372036854775808", "123456789012345678901"}
	keys := []string{"a:", "b:", "c:", "a.b/c-d:", "yes:", "f:a:", `"a":`, "1:", "<<:", "- a:", "- b:", "-", "- -", "-  a:", "a :", "_x:", "?", "&x a:", "null:", "y:"}
	accepted := 0
	rapid.Check(t, func(t *rapid.T) {
		var b strings.Builder
		indents := []int{0}
		for i := range rapid.IntRange(1, 8).Draw(t, "lines") {
			// Mostly the indentation of a line above, or a bit more.
			indent := rapid.SampledFrom(indents).Draw(t, "indent")
			if i > 0 && rapid.IntRange(0, 2).Draw(t, "deeper") == 0 {
				indent += rapid.IntRange(1, 3).Draw(t, "by")
			}
			indents = append(indents, indent)
			b.WriteString(strings.Repeat(" ", indent))
			if rapid.IntRange(0, 9).Draw(t, "bare") > 0 {
				b.WriteString(rapid.SampledFrom(keys).Draw(t, "key"))
				b.WriteString(" ")
			}
			b.WriteString(rapid.SampledFrom(scalars).Draw(t, "value"))
			b.WriteString("\n")
			if rapid.IntRange(0, 9).Draw(t, "blank") == 0 {
				b.WriteString(strings.Repeat(" ", rapid.IntRange(0, 4).Draw(t, "spaces")) + "\n")
			}
		}
		doc := b.String()
		if rapid.IntRange(0, 9).Draw(t, "cut") == 0 {
			doc = strings.TrimSuffix(doc, "\n")
		}
		var p plainYAML
		got, ok := p.convert([]byte(doc))
		if !ok {
			return
		}
		accepted++
		if d := disagreement([]byte(doc), got); d != "" {
			t.Fatalf("%q\naccepted as %s\n%s", doc, got, d)
		}
	})
	if accepted == 0 {
		t.Error("not one document was accepted: the property proves nothing")
	}
}
