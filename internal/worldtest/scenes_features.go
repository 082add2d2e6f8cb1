package worldtest

import "fmt"

// Scenes about reserved capacity and features that are off by default. Each has a
// NodePool and pods of its own.

// gate switches a feature on.
func (g *gen) gate(name string) { g.gates[name] = true }

// reservation adds a pool of on-demand and reserved nodes, whose class has a
// reservation of one of the types, and returns the label that selects the pool.
func (g *gen) reservation(left, captype part) (selector string) {
	id, team := g.new("cr-"), g.new("team")
	typ, zone := g.types[g.r.IntN(len(g.types))], g.zone()
	g.line("reservation "+id, "type="+typ, "zone="+zone, "price=0", left)
	g.line("class class-"+id, fmt.Sprintf("reservations=%s:%s:%s", id, typ, zone))
	g.pool("pool-"+id, "class=class-"+id, "labels=team="+team, captype)
	return "selector=team=" + team
}

// What is paid for already comes first.
func reservedFirst(g *gen, rule Rule) {
	own := g.reservation(part{text: "left=2"}, by(rule, "captype=reserved,on-demand").or("captype=on-demand"))
	g.workload(g.app(), g.between(1, 3), "cpu=1200m mem=512Mi", own)
}

// It has fewer instances than the pods could use.
func reservedCount(g *gen, rule Rule) {
	own := g.reservation(by(rule, "left=1").or("left=9"), part{text: "captype=reserved,on-demand"})
	g.workload(g.app(), g.between(2, 3), "cpu=1200m mem=512Mi", own, "away=hostname:own="+own[len("selector=team="):], "labels=own="+own[len("selector=team="):])
}

// A type costs more, or less, than the catalogue says.
func overlayPrice(g *gen, rule Rule) {
	g.gate("NodeOverlay")
	pool, team := g.new("priced"), g.new("team")
	g.pool(pool, "labels=team="+team)
	g.line(by(rule, "overlay over-%s", pool), "require=nodepool="+pool, "adjust="+g.one("+40%", "+0.010", "-30%"))
	g.workload(g.app(), g.between(1, 3), g.size(), "selector=team="+team)
}

// Nodes have a device that the catalogue does not know.
func overlayCapacity(g *gen, rule Rule) {
	g.gate("NodeOverlay")
	pool := g.new("devices")
	g.pool(pool)
	g.line(by(rule, "overlay over-%s", pool), "require=nodepool="+pool, "capacity=example.com/"+pool+":2")
	g.workload(g.app(), g.between(1, 3), g.small(), "ext=example.com/"+pool+":1")
}

// Room is kept for pods to come.
func capacityBuffer(g *gen, rule Rule) {
	g.gate("CapacityBuffer")
	unit := g.new("unit")
	g.line("template "+unit, "cpu=1100m", "mem=512Mi")
	g.line(by(rule, "buffer spare-%s", unit), "template="+unit, fmt.Sprintf("replicas=%d", g.between(1, 3)))
	g.workload(g.app(), 1, g.small())
}

// A pool with a fixed number of nodes gets them, pods or not.
func staticLaunches(g *gen, rule Rule) {
	g.gate("StaticCapacity")
	g.pool(g.new("always"), by(rule, "replicas=%d", g.between(1, 2)), "taints="+g.new("own")+":NoSchedule")
	g.workload(g.app(), g.between(1, 2), g.size())
}
