package config

import (
	"fmt"
	"maps"
	"slices"
	"strings"
)

// Markdown writes the reference of all settings: docs/config.md.
func Markdown() string {
	var b strings.Builder
	b.WriteString(`# Settings

<!-- Generated from internal/config by go run ./scripts/docs. Do not edit. -->

Every setting is a key with a value. The functions read them from their environment; the stack writes them there from
context with the same keys (` + "`-c KEY=VALUE`" + `, or cdk.json).

Keys that Karpenter has keep their name, their values and their meaning. An unknown key is an error, and so is a value
out of bounds: nothing is left out in silence.

## What changes a plan

The command line takes these as well, with ` + "`--set KEY=VALUE` and `--settings FILE`" + ` (lines of KEY=VALUE, or a map in YAML or JSON;
` + "`--set`" + ` wins over the file), and so does the payload of the plan function, under ` + "`settings`" + `. The command line reads no
settings from the environment: what is planned depends on its arguments alone.

`)
	table(&b, planner())
	b.WriteString(`
## What changes the functions that act

`)
	table(&b, functions())
	b.WriteString(`
## What the stack sets itself

`)
	table(&b, made())
	b.WriteString("\n## Feature gates\n\n| gate | default | meaning |\n|---|---|---|\n")
	for _, g := range gates() {
		note := ""
		if g.set == nil {
			note = " Not supported yet: turning it on is answered with `NotSupported`."
		}
		fmt.Fprintf(&b, "| `%s` | %t | %s%s |\n", g.name, g.def, g.meaning, note)
	}
	b.WriteString("\n## Settings of Karpenter that Kerf does not take\n\nThey are refused by name when they are given with `--set`, `--settings` or in a payload.\n\n| key | why |\n|---|---|\n")
	other := elsewhere()
	for _, k := range slices.Sorted(maps.Keys(other)) {
		fmt.Fprintf(&b, "| `%s` | %s |\n", k, other[k])
	}
	return b.String()
}

func table(b *strings.Builder, settings []Setting) {
	b.WriteString("| key | default | values | meaning |\n|---|---|---|---|\n")
	for _, s := range settings {
		from, def := "", "`"+s.Default+"`"
		if s.Karpenter {
			from = " (Karpenter's)"
		}
		switch {
		case s.Default == "":
			def = "none"
		case s.Key == "FEATURE_GATES":
			def = "see below"
		}
		fmt.Fprintf(b, "| `%s`%s | %s | %s | %s |\n", s.Key, from, def, s.Values, s.Meaning)
	}
}
