package worldtest

import (
	"cmp"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
)

// Draw makes a small cluster in which many rules of scheduling meet: 1 to 60 pending
// pods, up to 8 nodes with pods on them, 1 to 5 NodePools. Equal seeds give equal
// worlds. Each world plays a few scenes, each of which sets a rule up so that it
// matters; World.Rules says which rules those are, World.Without forgets one, and
// World.Text is the world in lines. All of Rules occur, each in many seeds.
func Draw(seed uint64) *World {
	g := newGen(seed, 0x6b657266)
	g.ground()
	// Small worlds are easy to read; in large ones rules meet.
	want := 1 + g.r.IntN(3)
	if g.chance(8) {
		want = hand + g.r.IntN(4)
	}
	for _, s := range deal(seed)[:min(want, hand)] {
		g.play(s)
	}
	for played := hand; played < want; played++ {
		g.play(scenes[g.r.IntN(len(scenes))])
	}
	if g.pods == 0 {
		g.workload(g.app(), 1+g.r.IntN(4))
	}
	return g.done()
}

// DrawOne makes a world of one scene, the one that is about the rule.
func DrawOne(seed uint64, rule Rule) *World {
	g := newGen(seed, 0x6f6e65)
	g.ground()
	i := slices.IndexFunc(scenes, func(s scene) bool { return s.rule == rule })
	g.play(scenes[i])
	return g.done()
}

// hand is how many scenes a seed is dealt.
const hand = 12

// deal returns the scenes of a seed: seeds in a row go through all of them again and
// again, each time in another order, so that none is rare.
func deal(seed uint64) []scene {
	var out []scene
	cards := slices.Clone(scenes)
	for _, s := range scenes {
		if s.twice {
			cards = append(cards, s)
		}
	}
	n := uint64(len(cards))
	for at := seed * hand; at < (seed+1)*hand; at++ {
		deck := rand.New(rand.NewPCG(at/n, 0x6465636b)).Perm(len(cards))
		out = append(out, cards[deck[at%n]])
	}
	return out
}

// Scenes lists the rules that the scenes of Draw are about, a scene's main one each.
func Scenes() []Rule {
	var out []Rule
	for _, s := range scenes {
		out = append(out, s.rule)
	}
	return out
}

// scene sets up one rule.
type scene struct {
	rule Rule
	// pods, nodes and pools are the most that it adds of each.
	pods, nodes, pools int
	play               func(*gen, Rule)
	// twice: other rules often hide it, or leave no nodes for it, so it is played more.
	twice bool
}

// Most that a world has of each.
const (
	mostPods  = 60
	mostNodes = 8
	mostPools = 5
)

// gen draws a world.
type gen struct {
	r     *rand.Rand
	lines []drawnLine
	types []string // of the catalogue
	names int      // for apps, claims and the like
	gates map[string]bool

	pods, nodes, pools int
}

func newGen(seed, kind uint64) *gen {
	return &gen{r: rand.New(rand.NewPCG(seed, kind)), gates: map[string]bool{}}
}

// done is the world.
func (g *gen) done() *World {
	if len(g.gates) > 0 {
		g.line("settings gates=" + strings.Join(sortedKeys(g.gates), ","))
	}
	slices.SortStableFunc(g.lines, func(a, b drawnLine) int { return cmp.Compare(kindRank(a), kindRank(b)) })
	return drawn(g.lines)
}

func (g *gen) play(s scene) {
	if g.pods+s.pods > mostPods || g.nodes+s.nodes > mostNodes || g.pools+s.pools > mostPools {
		return
	}
	s.play(g, s.rule)
}

// kindRank orders lines: what others refer to comes first.
func kindRank(l drawnLine) int {
	kind, _, _ := strings.Cut(l[0].text, " ")
	return slices.Index([]string{"catalog", "type", "reservation", "settings", "class", "pool", "overlay", "template", "buffer", "namespace", "limitrange", "runtimeclass", "daemonset",
		"storageclass", "pv", "pvc", "node", "claim", "csinode", "attachment", "pdb", "pod"}, kind)
}

// line adds a line; options are strings, which belong to the ground, or parts.
func (g *gen) line(head any, options ...any) {
	var l drawnLine
	for _, o := range append([]any{head}, options...) {
		switch o := o.(type) {
		case string:
			if o != "" {
				l = append(l, part{text: o})
			}
		case part:
			l = append(l, o)
		default:
			panic(fmt.Sprintf("worldtest: option %v", o))
		}
	}
	g.lines = append(g.lines, l)
}

// by is an option that is there for a rule.
func by(rule Rule, format string, args ...any) part {
	return part{text: fmt.Sprintf(format, args...), rule: rule}
}

// or gives a part what is there instead when the rule is not.
func (p part) or(format string, args ...any) part {
	p.instead = fmt.Sprintf(format, args...)
	return p
}

func (g *gen) one(of ...string) string { return of[g.r.IntN(len(of))] }

func (g *gen) between(lo, hi int) int { return lo + g.r.IntN(hi-lo+1) }

// chance is true n times in ten.
func (g *gen) chance(n int) bool { return g.r.IntN(10) < n }

func (g *gen) zone() string { return g.one(Zones...) }

// twoZones are two different zones.
func (g *gen) twoZones() (string, string) {
	i := g.r.Perm(len(Zones))
	return Zones[i[0]], Zones[i[1]]
}

// new is a name that no other thing of the world has.
func (g *gen) new(prefix string) string {
	g.names++
	return fmt.Sprintf("%s%d", prefix, g.names)
}

func (g *gen) app() string { return g.new(g.one("web", "db", "cache", "job", "api")) }

// ground is the catalogue, one NodePool for everybody, and at times some nodes with
// room, daemonsets, and pods without any rule.
func (g *gen) ground() {
	all := []string{"c5.large", "m5.large", "c5.xlarge", "m5.xlarge", "m5.2xlarge", "c5.4xlarge"}
	g.r.Shuffle(len(all), func(i, j int) { all[i], all[j] = all[j], all[i] })
	g.types = all[:g.between(2, 5)]
	slices.Sort(g.types)
	g.line("catalog", "only="+strings.Join(g.types, ","), g.zonePrices())
	options := []any{}
	if g.chance(2) {
		options = append(options, "captype="+g.one("spot", "on-demand"))
	}
	g.pool("general", options...)
	if g.chance(3) {
		g.line("daemonset agent", fmt.Sprintf("cpu=%dm", 50*g.between(1, 4)), "mem=64Mi", "tolerate=*")
	}
	for range g.r.IntN(3) {
		g.node(g.zone(), g.filler())
	}
	if g.chance(4) {
		g.workload(g.app(), g.between(1, 5))
	}
}

// zonePrices makes zones dear or cheap, so that what a rule asks for costs something.
func (g *gen) zonePrices() string {
	if g.chance(3) {
		return ""
	}
	a, b := g.twoZones()
	return fmt.Sprintf("zone-percent=%s:%d,%s:%d", a, 80+5*g.r.IntN(4), b, 105+5*g.r.IntN(4))
}

func (g *gen) pool(name string, options ...any) {
	g.pools++
	g.line("pool "+name, options...)
}

// sizes of nodes: what pods of scenes are cut to.
const (
	nodeType  = "type=m5.large" // 1930m, 6903Mi
	nodeMilli = 1930
)

// node adds an initialised m5.large of pool general (or of no pool); it returns its
// name. Its figures are given, so that the type need not be in the catalogue.
func (g *gen) node(zone string, options ...any) string {
	g.nodes++
	name := fmt.Sprintf("n%d", g.nodes)
	base := []any{nodeType, "cpu=1930m", "mem=6903Mi", "pods=29", "eph=17Gi", "zone=" + zone, "captype=" + g.one("on-demand", "spot")}
	full := 0
	for _, o := range options {
		if f, ok := o.(filled); ok {
			full = int(f)
			continue
		}
		base = append(base, o)
	}
	g.line("node "+name, append(base, "pool=general")...)
	if full > 0 {
		g.line("pod on-"+name, "node="+name, fmt.Sprintf("cpu=%dm", full), "mem=128Mi")
	}
	return name
}

// own keeps a node for the pods of a scene: the taint of the node, and what tolerates it.
func (g *gen) own() (taint, toleration string) {
	key := g.new("own")
	return "taints=" + key + ":NoSchedule", "tolerate=" + key
}

// filled is how many milli cores of a node are taken.
type filled int

func (g *gen) filler() filled { return filled(g.between(13, 18) * 100) }

// full leaves no room that a pod of a scene could use.
const full = filled(nodeMilli - 30)

// room leaves as much.
func room(milli int) filled { return filled(nodeMilli - milli) }

// small is the size of a pod of which many share a node.
func (g *gen) small() string {
	return fmt.Sprintf("cpu=%dm mem=%dMi", 50*g.between(2, 6), 64*g.between(1, 5))
}

// large is the size of a pod that takes most of a node.
func (g *gen) large() string {
	return fmt.Sprintf("cpu=%dm mem=%dMi", 50*g.between(25, 32), 128*g.between(1, 8))
}

// size is any size that every type can take.
func (g *gen) size() string {
	return fmt.Sprintf("cpu=%dm mem=%dMi", 100*g.between(1, 16), 128*g.between(1, 20))
}

// tier is a label that apps share.
func (g *gen) tier() string { return g.one("front", "back") }

// workload adds n pending pods of an app; labels among the options take the place of
// the usual ones.
func (g *gen) workload(app string, n int, options ...any) {
	g.pods += n
	labels := "labels=app=" + app + ",tier=" + g.tier()
	base := []any{fmt.Sprintf("count=%d", n), labels}
	sized := false
	for _, o := range options {
		switch o := o.(type) {
		case bare:
			sized = true
			continue
		case string:
			sized = sized || strings.HasPrefix(o, "cpu=")
		case part:
			sized = sized || strings.HasPrefix(o.text, "cpu=")
		}
		base = append(base, o)
	}
	if !sized {
		base = append(base, g.size())
	}
	g.line("pod "+app, base...)
}

// bare is the option of a workload that asks for nothing.
type bare struct{}

// runs adds a pod of an app that runs on a node.
func (g *gen) runs(app, node string, options ...any) {
	g.line("pod "+g.new(app+"-old"), append([]any{"node=" + node, "labels=app=" + app + ",tier=" + g.tier(), "cpu=10m"}, options...)...)
}
