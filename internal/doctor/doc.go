// Package doctor says why a pod gets no node: it walks the way from a pending pod to a ready
// node, step by step, over facts that were gathered before, and names the first step that is
// broken, with what shows it and the command that mends it.
//
// Examine is a pure function: Facts in, Report out, the same bytes for the same facts. What
// could not be looked at is among the facts too (Unseen), with the permission that is missing:
// a step about which nothing is known is never called fine.
package doctor
