// Package queue owns the way of messages through SQS: sending them with a delay, and
// taking the batches that Lambda brings. It refuses to own what a message says (lifecycle)
// and what is done about it (handler).
//
//	Queue.Send      -> SQS -> Lambda -> Decode -> Consumer.Each -> the ids that come back
//
// Nothing here is exactly once. A message may be sent twice when an answer is lost, and is
// delivered at least once, in any order: receivers are idempotent, and a step that is late
// is theirs to recognise.
package queue
