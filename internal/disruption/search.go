package disruption

import (
	"cmp"
	"maps"
	"slices"

	"kerf.sh/kerf/internal/catalog"
	"kerf.sh/kerf/internal/plan"
	"kerf.sh/kerf/internal/scheduling"
	"kerf.sh/kerf/internal/snapshot"
)

// Options of one search.
type Options struct {
	// Base is the plan of the same snapshot without moves: what it places keeps its room.
	Base *plan.Plan
	// MinSaving is the least that a move has to save, in micro-dollars per hour, and
	// MinSavingShare in millionths of what the removed nodes cost. A move that adds nodes has
	// to reach both; one that only removes has to save something.
	MinSaving      snapshot.Price
	MinSavingShare int64
	// CostPerNode is added to the price of every node when moves are compared.
	CostPerNode snapshot.Price
	// Work bounds the search in looks at a node; 0 = DefaultWork.
	Work int64
	// Offered: the catalogue is what EC2 sells now, so that what it lacks is not sold.
	Offered bool
	// Instances are what EC2 says of nodes' instances, by node, Selected what NodeClasses
	// select, by name. What is not there is not known.
	Instances map[string]Instance
	Selected  map[string]Selected
	// Doomed are nodes that EC2 takes, Orphans instances that nobody knows, each with the
	// reason: others carry their moves out (Elsewhere).
	Doomed, Orphans map[string]string
	// From is the node at which the pass before ended, Result.Next; "" = begin with what
	// promises most.
	From string
	// NoFloor leaves the floor price out, which takes a packing of the whole cluster.
	NoFloor bool
}

// DefaultWork is enough for 5,000 nodes and 50,000 pods.
const DefaultWork = int64(2_000_000_000)

// Result is what a search found.
type Result struct {
	Moves    []plan.Move
	Verdicts []plan.Verdict // of nodes that are in no move
	Savings  plan.Savings
	// Marks are nodes to be annotated, Released those that run outside their reservation now.
	Marks    []Mark
	Released []string
	// States are what NodeClaims are to say, by node.
	States []State
	// Next is the node at which the next pass has to begin, "" when all were looked at.
	Next string
}

// search is one search under way.
type search struct {
	s *snapshot.Snapshot
	c *catalog.Catalog
	o Options

	prices     *scheduling.World // knows pools and prices, and no pods
	nodes      []*node
	byName     map[string]*node
	pools      map[string]*snapshot.NodePool
	budgets    map[string][]*snapshot.PodDisruptionBudget
	allowances map[string]allowance
	work       int64
	until      int64 // the work at which the part under way ends

	spent   map[string]int                           // nodes that go, by pool
	asked   map[*snapshot.PodDisruptionBudget]asking // by moves, nil = not counted yet
	askedOf map[string]asked
	images  map[string]map[string]string // by class, then type
	stale   map[string][2]string         // kind of drift and detail, by node; "" = none

	verdicts map[string]plan.Verdict
	// alternative is the best one to a node that stays, left are nodes that work ended before.
	// rests are nodes that consolidation leaves in peace, takenBack those of them that do not
	// drift either, each with the reason.
	rests, takenBack map[string]string
	// housed are the units of CapacityBuffers that are on nodes, as pods of the snapshot;
	// buffered is one of those that have to stay, by node.
	housed      map[string]bool
	buffered    map[string]string
	alternative map[string]plan.Verdict
	left        map[string]bool
	moves       []plan.Move
	// gone are nodes that moves remove, incoming what those launch, promises where their pods
	// go, keeps nodes that take such pods, with the node that they come from.
	gone     map[string]*node
	incoming []snapshot.NodeClaim
	promises []snapshot.Nomination
	keeps    map[string]string
	shrinks  map[string]bool // static pools with too many nodes
}

// Propose looks for moves in the whole cluster. It changes none of its arguments.
func Propose(s *snapshot.Snapshot, c *catalog.Catalog, o Options) *Result {
	x := newSearch(s, c, o)
	out := &Result{}
	out.Savings.Considered = len(x.nodes)
	for _, n := range x.nodes {
		out.Savings.Now += n.price
	}
	x.forced()
	x.drift()
	x.consolidate()
	out.Marks, out.Released, out.States = x.marks(), x.released(), x.states()
	out.Moves = x.moves
	out.Savings.After = out.Savings.Now
	for i := range out.Moves {
		if out.Moves[i].Held == "" {
			out.Savings.After -= out.Moves[i].Saving
		}
	}
	out.Next, out.Savings.Left = x.next()
	out.Verdicts = x.rest()
	if !o.NoFloor {
		out.Savings.Floor = min(x.floor(), out.Savings.After)
	}
	return out
}

func newSearch(s *snapshot.Snapshot, c *catalog.Catalog, o Options) *search {
	x := &search{
		s: s, c: c, o: o, allowances: map[string]allowance{}, verdicts: map[string]plan.Verdict{}, budgets: map[string][]*snapshot.PodDisruptionBudget{},
		alternative: map[string]plan.Verdict{}, left: map[string]bool{}, stale: map[string][2]string{},
		rests: map[string]string{}, takenBack: map[string]string{},
		spent: map[string]int{}, askedOf: map[string]asked{}, images: map[string]map[string]string{}, gone: map[string]*node{}, keeps: map[string]string{}, shrinks: map[string]bool{},
	}
	if x.o.Work == 0 {
		x.o.Work = DefaultWork
	}
	x.until = x.o.Work
	for i := range s.Rests {
		r := &s.Rests[i]
		if !r.Live(s.Now) {
			continue
		}
		x.rests[r.Node] = r.Why
		if r.TakenBack {
			x.takenBack[r.Node] = r.Why
		}
	}
	for i := range s.Budgets {
		b := &s.Budgets[i]
		x.budgets[b.Namespace] = append(x.budgets[b.Namespace], b)
	}
	x.prices = scheduling.New(bare(s), c)
	x.house()
	x.read()
	x.judge()
	return x
}

// bare is a snapshot with pools and classes, and nothing that runs.
func bare(s *snapshot.Snapshot) *snapshot.Snapshot {
	out := *s
	out.Pods, out.Nodes, out.NodeClaims, out.DaemonSets, out.Workloads, out.Nominations, out.Buffers = nil, nil, nil, nil, nil, nil, nil
	return &out
}

// say gives a node a verdict; the first one counts.
func (x *search) say(n *node, code plan.Code, detail string) {
	if _, ok := x.verdicts[n.name]; !ok {
		x.verdicts[n.name] = plan.Verdict{Object: "node/" + n.name, Code: code, Detail: detail}
	}
}

// rest are the verdicts of all nodes that are in no move, by name.
func (x *search) rest() []plan.Verdict {
	moved := x.moved()
	out := make([]plan.Verdict, 0, len(x.nodes))
	for _, n := range x.nodes {
		if moved[n.name] {
			continue
		}
		v, ok := x.verdicts[n.name]
		switch {
		case ok:
		case n.code != "":
			v = plan.Verdict{Object: "node/" + n.name, Code: n.code, Detail: n.detail}
		case n.idle != "":
			v = plan.Verdict{Object: "node/" + n.name, Code: n.idle, Detail: n.idleDetail}
		default:
			v = plan.Verdict{Object: "node/" + n.name, Code: plan.NothingCheaper, Detail: "no cheaper nodes can take its pods"}
		}
		out = append(out, v)
	}
	return out
}

// moved are the nodes that moves remove.
func (x *search) moved() map[string]bool {
	out := map[string]bool{}
	for i := range x.moves {
		for _, name := range x.moves[i].Remove {
			out[name] = true
		}
	}
	return out
}

// consolidate finds moves that make the cluster cheaper: first nodes that are empty, then
// nodes whose pods fit on others, then nodes that cheaper ones can stand in for.
func (x *search) consolidate() {
	var empty, used []*node
	for _, n := range x.nodes {
		switch {
		case n.code != "" || n.idle != "" || x.gone[n.name] != nil:
		case x.keeps[n.name] != "":
			x.say(n, plan.ReceivesPods, "it takes pods of "+x.keeps[n.name])
		case n.empty():
			empty = append(empty, n)
		default:
			used = append(used, n)
		}
	}
	slices.SortFunc(empty, func(a, b *node) int { return cmp.Or(cmp.Compare(b.price, a.price), cmp.Compare(a.name, b.name)) })
	var gone []*node
	for _, name := range sortedKeys(x.gone) {
		gone = append(gone, x.gone[name])
	}
	for _, n := range empty {
		if !x.take(n, plan.MoveEmpty) {
			continue
		}
		gone = append(gone, n)
		x.moves = append(x.moves, plan.Move{
			ID: moveID(plan.MoveEmpty, []string{n.name}), Reason: plan.MoveEmpty, Detail: "no pod would have to move",
			Remove: []string{n.name}, Saving: n.price, Cost: n.cost,
		})
	}
	x.underutilized(used, gone)
}

// take takes a node from its pool's budget, and its pods from theirs; where one of them
// allows no more it says so.
func (x *search) take(n *node, reason plan.MoveReason) bool {
	if a := x.allowed(n.pool, reason); a.left <= 0 {
		x.say(n, plan.BudgetExhausted, a.why)
		return false
	}
	if why := x.crowded(n); why != "" {
		x.say(n, plan.EvictionBlocked, why)
		return false
	}
	x.spend(n.pool, 1)
	x.ask(n, 1)
	return true
}

func sortedKeys[V any](m map[string]V) []string { return slices.Sorted(maps.Keys(m)) }

func moveID(reason plan.MoveReason, remove []string) string {
	id := string(reason)
	for _, r := range remove {
		id += "/" + r
	}
	return id
}
