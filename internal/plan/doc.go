// Package plan holds what a planning pass decided: launches, placements,
// verdicts and warnings, and renders them as text, JSON and HTML.
//
// It owns the vocabulary (Plan, Launch, Verdict, the Code constants) and the
// rendering. It decides nothing.
package plan
