// Package report owns the words of what a function says about itself: which metrics there
// are, what one invocation reports, and the id of a decision. It writes nothing; that is
// telemetry's.
//
// Custom metrics are paid for by name and dimensions, each month, whoever looks: there are
// fewer than ten (Table), and one invocation reports them all in one line. Whatever else is
// worth knowing is a property of that line, which costs its bytes alone.
package report
