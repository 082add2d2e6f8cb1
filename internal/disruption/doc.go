// Package disruption decides which nodes should go, and what takes their place: those that
// are empty, that a cheaper set of nodes could stand in for, that are not what their
// NodePool or NodeClass asks for any more, that are too old or ill.
//
//	snapshot -> candidates (who may be disrupted, who not and why)
//	         -> search (which may go at what saving, in integers, within a work budget)
//	         -> proof (the planner places every pod, under every rule)
//	         -> moves, best saving per disruption first, within budgets; a verdict for the rest
//
// The search looks at the whole cluster at once. Whatever it finds is proved by the planner
// that plans launches: it is told where each pod is to go, and moves that do not hold are
// dropped. It is pure: equal input gives equal moves.
package disruption
