// Package runtimeapi runs built functions as Lambda does: a process for each environment,
// kept warm, that asks the runtime API for its next event; a deadline, after which the
// process is killed; a new process after a crash. Nothing of the caller's environment gets
// into a function.
//
// A pump brings the messages of queues to functions, as event source mappings do: what a
// function names as failed, and all of a batch whose invocation fails, becomes visible
// again; the rest is deleted.
//
// It measures what Lambda bills or reports: how long a start takes, in time and in CPU
// time, how long an invocation takes, and how much memory a process has had.
package runtimeapi
