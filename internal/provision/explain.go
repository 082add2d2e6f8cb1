package provision

import (
	"fmt"
	"strings"

	"kerf.sh/kerf/internal/plan"
)

// explain builds the verdict tree of one object.
func (pl *planner) explain(object string) *plan.Explanation {
	kind, rest, _ := strings.Cut(object, "/")
	e := &plan.Explanation{Object: object}
	switch kind {
	case "pod":
		e.Lines = pl.explainPod(rest)
	case "node":
		e.Lines = pl.explainNode(rest)
	case "nodepool":
		e.Lines = pl.explainPool(rest)
	default:
		e.Lines = []plan.Line{{Text: fmt.Sprintf("unknown kind %q: use pod/NAMESPACE/NAME, node/NAME or nodepool/NAME", kind)}}
	}
	return e
}

func line(format string, args ...any) plan.Line { return plan.Line{Text: fmt.Sprintf(format, args...)} }
