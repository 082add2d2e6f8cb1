// Package sim is a world in which the real handlers run: one simulated clock, an API
// server with its controllers, kube-scheduler and kubelets, EC2, SQS, DynamoDB, Lambda and
// a schedule, with faults at every call. What it holds the handlers to is in check*.go.
//
//	Run(seed) -> Report{Broken, Trace, ...}     the same seed gives the same trace, byte for byte
//
// Everything happens in one order. An invocation is real code on a goroutine of its own,
// but it and the world hand over to one another: each call that it makes of the outside is
// a boundary at which the world goes on, and it may be delayed there, be answered with an
// error, lose its answer after the effect, be cut off before or after the effect, or be
// frozen for minutes and go on. Two invocations overlap at these boundaries, in an order
// that the seed chooses. Time passes only between boundaries.
//
// The world has to run in a bubble of testing/synctest: contexts and timers in the code
// under test then follow the simulated clock without knowing it.
//
// The world knows no fence: what was sent is done, whoever sent it.
package sim
