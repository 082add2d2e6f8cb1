// Package checkup gathers what package doctor looks at in AWS: the stack and what starts its
// functions, the roles of nodes and whether they may be handed on, the network, quotas, and
// instances that have no node. It reads and changes nothing. A look that fails is among the
// facts, with the permission that is missing; the others go on.
package checkup
