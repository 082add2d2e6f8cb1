package worldtest

import (
	"fmt"
	"strings"
)

// DrawTiny makes a world for brute force: at most six pending pods of up to three apps
// under rules about other pods, up to three instance types, two zones, one NodePool.
// Nodes that exist are full, and their pods count.
func DrawTiny(seed uint64) *World {
	g := newGen(seed, 0x74696e79)
	types := []string{"c5.large", "m5.large", "c5.xlarge", "m5.xlarge", "m5.2xlarge"}
	g.r.Shuffle(len(types), func(i, k int) { types[i], types[k] = types[k], types[i] })
	g.line("catalog", "only="+strings.Join(types[:g.between(1, 3)], ","), g.zonePrices())
	g.pool("general", "zones=z-a,z-b", g.one("", "captype=spot", "captype=on-demand"))
	apps := []string{"web", "db", "job"}[:g.between(1, 3)]
	for range g.r.IntN(3) {
		g.runs(g.one(apps...), g.node(g.one("z-a", "z-b"), full), g.one("", "", "", "deleting", "away=zone:app=web", "phase=Succeeded"))
	}
	for left := 6; len(apps) > 0; apps = apps[1:] {
		n := g.between(1, min(4, left-len(apps)+1))
		left -= n
		options := []any{fmt.Sprintf("labels=app=%s,tier=%s", apps[0], g.tier())}
		for range 1 + g.r.IntN(2) {
			options = append(options, g.term(apps[0]))
		}
		g.workload(apps[0], n, append(options, fmt.Sprintf("cpu=%dm mem=%dMi", 100*g.between(1, 18), 256*g.between(1, 12)))...)
	}
	return g.done()
}

// term is a rule of an app about its own pods or others.
func (g *gen) term(app string) string {
	key, of := g.one("zone", "hostname"), "app="+g.one(app, app, app, "web", "db", "job")
	if g.chance(1) {
		of = "tier=" + g.tier()
	}
	switch g.r.IntN(8) {
	case 0, 1, 2:
		return fmt.Sprintf("spread=%s:%d:hard:app=%s", g.one(key, "zone", "captype"), 1+g.r.IntN(4)/3, app)
	case 3:
		return fmt.Sprintf("spread=%s:1:hard:%s", key, of)
	case 4, 5:
		return fmt.Sprintf("away=%s:%s", key, of)
	case 6:
		return fmt.Sprintf("near=%s:%s", key, of)
	}
	return g.one("", "selector=zone="+g.one("z-a", "z-b"), "affinity=captype=on-demand;zone=z-a")
}
