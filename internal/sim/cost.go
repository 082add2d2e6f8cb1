package sim

import (
	"kerf.sh/kerf/internal/handler"
	"kerf.sh/kerf/internal/lifecycle"
)

// ticked remembers which tick an invocation works on.
func (c *checks) ticked(by *container, t lifecycle.Tick) {
	by.tick = t
	by.asked, by.sawPods = map[string]int{}, false
}

// swept: a tick that finds nothing to do costs one request of Kubernetes, and at most one
// of DynamoDB.
func (c *checks) swept(by *container, rep *handler.SweepReport) {
	if by.tick.Kind != lifecycle.TickSlot || rep.Outcome != "Idle" || rep.Pending > 0 || by.sawPods {
		return
	}
	if by.asked["kube"] > 1 || by.asked["table"] > 1 || by.asked["ec2"] > 0 || by.asked["sqs"] > 0 {
		c.w.broken("IdleTick", "a tick without work made %v requests", by.asked)
	}
}
