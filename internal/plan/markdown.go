package plan

import (
	"fmt"
	"strings"
)

// Markdown writes the reference of all codes: docs/reasons.md.
func Markdown() string {
	var b strings.Builder
	b.WriteString(`# Reasons

<!-- Generated from internal/plan by go run ./scripts/docs. Do not edit. -->

Every "no" of a plan, and every remark, carries a code. Codes are never reworded once released, so scripts may rely on
them; the detail beside a code is for people and names the object, the value and the nearest miss in numbers.
`)
	for _, part := range []struct {
		kind        Kind
		title, text string
	}{
		{KindCannotRun, "Pods that cannot run", "The pod has no place. The verdict lists one reason per NodePool, the nearest first; the same codes tell why a NodePool as a whole is out."},
		{KindNotPlanned, "Pods that are not planned", "The pod is left alone on purpose."},
		{KindStays, "Nodes that stay", "With `--consolidate` every node is in a move, or has one of these."},
		{KindWarning, "Warnings", "They stop nothing; the plan was made as the detail says."},
		{KindRefused, "Refusals", "No plan was made. The command line writes the message to standard error and ends with status 2; the function answers `{\"error\": {\"code\", \"message\"}}`, where `NotSupported` may stand too."},
	} {
		fmt.Fprintf(&b, "\n## %s\n\n%s\n\n| code | meaning | what to do |\n|---|---|---|\n", part.title, part.text)
		for _, r := range codeRows {
			if r.Kind == part.kind {
				fmt.Fprintf(&b, "| `%s` | %s | %s |\n", r.Code, r.Meaning, r.Do)
			}
		}
	}
	return b.String()
}
