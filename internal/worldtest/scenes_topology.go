package worldtest

import "fmt"

// Scenes about where pods of an app may be with regard to other pods. A plan that
// knows nothing of the rule puts small pods together, on nodes that exist, and else in
// the cheapest zone: the scenes are made so that this is wrong.

// anyOf is a selector of the app, or now and then of the tier, which pods of other
// scenes share.
func (g *gen) anyOf(app string) string {
	if g.chance(2) {
		return "tier=" + g.tier()
	}
	return "app=" + app
}

func spreadZone(g *gen, rule Rule) {
	app := g.app()
	for range g.r.IntN(2) {
		g.runs(app, g.node(g.zone(), full))
	}
	g.workload(app, g.between(2, 8), g.small(), by(rule, "spread=zone:%d:hard:%s", 1+g.r.IntN(4)/3, g.anyOf(app)))
}

func spreadHostname(g *gen, rule Rule) {
	app := g.app()
	if g.chance(5) {
		g.runs(app, g.node(g.zone(), room(900)))
	}
	g.workload(app, g.between(2, 6), g.small(), by(rule, "spread=hostname:%d:hard:%s", 1+g.r.IntN(3)/2, g.anyOf(app)))
}

func spreadCapacityType(g *gen, rule Rule) {
	app := g.app()
	g.workload(app, g.between(2, 6), g.small(), by(rule, "spread=captype:1:hard:app=%s", app))
}

func spreadLabel(g *gen, rule Rule) {
	app := g.app()
	key := g.new("rack")
	g.pool(g.new("racks"), fmt.Sprintf("require=%s=r1|r2|r3", key))
	g.workload(app, g.between(2, 6), g.small(), by(rule, "spread=%s:1:hard:app=%s", key, app))
}

// Both spread at once: over zones and over nodes.
func spreadTwice(g *gen, rule Rule) {
	app := g.app()
	g.workload(app, g.between(3, 7), g.small(), by(rule, "spread=hostname:1:hard:app=%s", app), by(ruleSpreadZone, "spread=zone:1:hard:app=%s", app))
}

// Two zones are allowed and three wanted: as long as that is so, no zone may hold more
// than the skew.
func spreadMinDomains(g *gen, rule Rule) {
	app := g.app()
	a, b := g.twoZones()
	g.workload(app, g.between(3, 5), g.small(), fmt.Sprintf("affinity=zone=%s|%s", a, b),
		fmt.Sprintf("spread=zone:1:hard:app=%s", app), by(rule, ",minDomains=3"))
}

// The zone that the pods' affinity excludes counts all the same, and is empty.
func spreadAffinityPolicy(g *gen, rule Rule) {
	app := g.app()
	a, b := g.twoZones()
	g.node(thirdZone(a, b), full)
	g.workload(app, g.between(3, 5), g.small(), fmt.Sprintf("affinity=zone=%s|%s", a, b),
		fmt.Sprintf("spread=zone:1:hard:app=%s", app), by(rule, ",affinityPolicy=ignore"))
}

// The only node of a zone has a taint that the pods do not tolerate.
func spreadTaintsPolicy(g *gen, rule Rule) {
	app := g.app()
	team := g.new("team")
	a, b := g.twoZones()
	g.pool(g.new("duo"), "zones="+a+","+b, "labels=team="+team)
	g.node(thirdZone(a, b), full, "labels=team="+team, "taints=busy:NoSchedule")
	g.workload(app, g.between(3, 5), g.small(), "selector=team="+team,
		fmt.Sprintf("spread=zone:1:hard:app=%s", app), by(rule, ",taintsPolicy=honor"))
}

func thirdZone(a, b string) string {
	for _, z := range Zones {
		if z != a && z != b {
			return z
		}
	}
	return ""
}

// Pods of the old revision do not count for the new one.
func spreadMatchLabelKeys(g *gen, rule Rule) {
	app := g.app()
	a, b := g.twoZones()
	for _, z := range []string{a, b} {
		n := g.node(z, full)
		g.runs(app, n, "labels=app="+app+",rev=1")
		g.runs(app, n, "labels=app="+app+",rev=1")
	}
	g.workload(app, g.between(2, 4), g.small(), "labels=app="+app+",rev=2",
		fmt.Sprintf("spread=zone:1:hard:app=%s", app), by(rule, ",keys=rev"))
}

func spreadSoft(g *gen, rule Rule) {
	app := g.app()
	g.workload(app, g.between(2, 5), "cpu=650m mem=128Mi", by(rule, "spread=%s:1:soft:app=%s", g.one("zone", "hostname", "zone"), app))
}

// Terminating and finished pods are not counted: the zone that has them is the one
// with the fewest.
func spreadGone(option string) func(*gen, Rule) {
	return func(g *gen, rule Rule) {
		app := g.app()
		low, other := g.twoZones()
		n, m := g.node(low, full), g.node(other, full)
		g.runs(app, n)
		g.runs(app, n, by(rule, "%s", option))
		g.runs(app, m)
		g.runs(app, m)
		g.workload(app, 1, g.small(), fmt.Sprintf("affinity=zone=%s|%s", low, other), fmt.Sprintf("spread=zone:1:hard:app=%s", app))
	}
}

// Nodes with room for one pod each tempt to part pods that belong together.
func nearZoneSelf(g *gen, rule Rule) {
	app := g.app()
	a, b := g.twoZones()
	taint, tolerates := g.own()
	g.node(a, room(700), taint)
	g.node(b, room(700), taint)
	g.workload(app, g.between(2, 5), "cpu=600m mem=256Mi", tolerates, by(rule, "near=zone:app=%s", app))
}

func nearHostnameSelf(g *gen, rule Rule) {
	app := g.app()
	taint, tolerates := g.own()
	g.node(g.zone(), room(750), taint)
	g.node(g.zone(), room(750), taint)
	g.workload(app, g.between(2, 3), "cpu=700m mem=128Mi", tolerates, by(rule, "near=hostname:app=%s", app))
}

func nearRunning(g *gen, rule Rule) {
	db, web := g.app(), g.app()
	g.runs(db, g.node(g.zone(), full))
	g.workload(web, g.between(1, 5), g.size(), by(rule, "near=zone:app=%s", db))
}

// The node with the other pod has room for one of two.
func nearRunningHostname(g *gen, rule Rule) {
	db, web := g.app(), g.app()
	g.runs(db, g.node(g.zone(), room(700)))
	g.workload(web, g.between(1, 2), "cpu=500m mem=128Mi", by(rule, "near=hostname:app=%s", db))
}

func nearPending(g *gen, rule Rule) {
	db, web := g.app(), g.app()
	g.workload(db, g.between(1, 2), g.size(), "selector=zone="+g.zone())
	g.workload(web, g.between(1, 4), g.size(), by(rule, "near=zone:app=%s", db))
}

// Pods that must be on the node of another pending pod.
func nearPendingHostname(g *gen, rule Rule) {
	db, web := g.app(), g.app()
	taint, tolerates := g.own()
	g.node(g.zone(), room(450), taint)
	g.workload(db, 1, "cpu=800m mem=256Mi")
	g.workload(web, g.between(1, 2), "cpu=400m mem=128Mi", tolerates, by(rule, "near=hostname:app=%s", db))
}

func awayHostnameSelf(g *gen, rule Rule) {
	app := g.app()
	if g.chance(5) {
		g.runs(app, g.node(g.zone(), room(900)))
	}
	g.workload(app, g.between(2, 6), g.small(), by(rule, "away=hostname:app=%s", app))
}

// Up to one more than there are zones.
func awayZoneSelf(g *gen, rule Rule) {
	app := g.app()
	g.workload(app, g.between(2, 4), g.small(), by(rule, "away=zone:app=%s", app))
}

// Every zone but one has a pod that is to be avoided.
func awayRunning(g *gen, rule Rule) {
	db, web := g.app(), g.app()
	a, b := g.twoZones()
	g.runs(db, g.node(a, room(900)))
	g.runs(db, g.node(b, room(900)))
	g.workload(web, g.between(1, 4), g.small(), by(rule, "away=zone:app=%s", db))
}

func awayPending(g *gen, rule Rule) {
	db, web := g.app(), g.app()
	g.workload(db, g.between(1, 3), g.small())
	g.workload(web, g.between(1, 3), g.small(), by(rule, "away=%s:app=%s", g.one("hostname", "hostname", "zone"), db))
}

// The pods that run are the ones with the rule.
func awaySymmetric(g *gen, rule Rule) {
	db, web := g.app(), g.app()
	a, b := g.twoZones()
	g.runs(db, g.node(a, room(900)), by(rule, "away=zone:app=%s", web))
	g.runs(db, g.node(b, room(900)), by(rule, "away=zone:app=%s", web))
	g.workload(web, g.between(1, 4), g.small())
}

func awaySymmetricHostname(g *gen, rule Rule) {
	db, web := g.app(), g.app()
	taint, tolerates := g.own()
	g.runs(db, g.node(g.zone(), room(1700), taint), by(rule, "away=hostname:app=%s", web))
	g.workload(web, 1, g.large(), tolerates)
}

// The pods to avoid, or to be near to, run in another namespace.
func awayNamespaces(g *gen, rule Rule) {
	db, web, ns := g.app(), g.app(), g.new("shop")
	a, b := g.twoZones()
	g.line("namespace " + ns)
	g.runs(db, g.node(a, room(900)), "ns="+ns)
	g.runs(db, g.node(b, room(900)), "ns="+ns)
	g.workload(web, g.between(1, 3), g.small(), fmt.Sprintf("away=zone:app=%s", db), by(rule, ",ns=%s", ns))
}

func nearNamespaceSelector(g *gen, rule Rule) {
	db, web, ns := g.app(), g.app(), g.new("shop")
	g.line("namespace "+ns, "labels=kind="+ns)
	g.runs(db, g.node(g.zone(), full), "ns="+ns)
	g.workload(web, g.between(1, 3), g.size(), fmt.Sprintf("near=zone:app=%s", db), by(rule, ",nsselector=%s", g.one("kind="+ns, "*")))
}

func awayNamespaceSelector(g *gen, rule Rule) {
	db, web, ns := g.app(), g.app(), g.new("shop")
	a, b := g.twoZones()
	g.line("namespace "+ns, "labels=kind="+ns)
	g.runs(db, g.node(a, room(900)), "ns="+ns)
	g.runs(db, g.node(b, room(900)), "ns="+ns)
	g.workload(web, g.between(1, 3), g.small(), fmt.Sprintf("away=zone:app=%s", db), by(rule, ",nsselector=kind=%s", ns))
}

// Only pods of the same revision keep away from each other, so that the node with an
// old one will do.
func awayMatchLabelKeys(g *gen, rule Rule) {
	app := g.app()
	taint, tolerates := g.own()
	g.runs(app, g.node(g.zone(), room(1300), taint), "labels=app="+app+",rev=1")
	g.workload(app, 1, "cpu=850m mem=128Mi", tolerates, "labels=app="+app+",rev=2", fmt.Sprintf("away=hostname:app=%s", app), by(rule, ",keys=rev"))
}

// Pods of other revisions are avoided, not those of the own.
func awayMismatchLabelKeys(g *gen, rule Rule) {
	app := g.app()
	g.runs(app, g.node(g.zone(), room(900)), "labels=app="+app+",rev=1")
	g.workload(app, g.between(3, 5), g.small(), "labels=app="+app+",rev=2", fmt.Sprintf("away=zone:app=%s", app), by(rule, ",mismatch=rev"))
}

func preferNode(g *gen, rule Rule) {
	_, z := g.twoZones()
	g.workload(g.app(), g.between(1, 4), g.size(), by(rule, "prefer=%d:%s", 10*g.between(1, 9), g.one("zone="+z, "captype=on-demand")))
}

func preferNear(g *gen, rule Rule) {
	db, web := g.app(), g.app()
	g.runs(db, g.node(g.zone(), full))
	g.workload(web, g.between(1, 3), g.size(), by(rule, "prefer-near=50:zone:app=%s", db))
}

func preferAway(g *gen, rule Rule) {
	app := g.app()
	g.workload(app, g.between(2, 4), g.small(), by(rule, "prefer-away=100:%s:app=%s", g.one("hostname", "zone"), app))
}

// The heavier pool has a taint that is only a wish.
func preferNoSchedule(g *gen, rule Rule) {
	g.pool(g.new("spare"), "weight=80", by(rule, "taints=spare:PreferNoSchedule"))
	g.workload(g.app(), g.between(1, 3), g.size())
}

// Pods whose own node is going, under a rule about the others.
func goingSpread(g *gen, rule Rule) {
	app := g.app()
	a, b := g.twoZones()
	spread := fmt.Sprintf("spread=zone:1:hard:app=%s", app)
	g.runs(app, g.node(a, full), spread)
	g.runs(app, g.node(b, full), spread)
	n := g.node(thirdZone(a, b), full, by(rule, "deleting"))
	g.runs(app, n, spread, "cpu=200m")
	g.workload(app, g.between(1, 2), g.small(), spread)
}
