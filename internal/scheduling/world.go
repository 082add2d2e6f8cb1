package scheduling

import (
	"slices"
	"strings"

	"kerf.sh/kerf/internal/catalog"
	"kerf.sh/kerf/internal/packing"
	"kerf.sh/kerf/internal/plan"
	"kerf.sh/kerf/internal/requirements"
	"kerf.sh/kerf/internal/snapshot"
)

// World is a snapshot seen through the rules: classes of pending pods, pools with
// their templates, nodes with what is free on them. It refers to the snapshot and
// never changes it.
type World struct {
	Snapshot *snapshot.Snapshot
	Catalog  *catalog.Catalog

	// Rules are the distinct rules of pending pods, Classes the pods themselves.
	Rules   []Rules
	Classes []Class
	// Pools are all NodePools, heaviest first, equal weights by name descending.
	Pools     []Pool
	Templates []Template
	// Nodes are all nodes that exist or are in flight, initialised ones first, then
	// by name. Targets are those that pods may be put on, in the same order.
	Nodes   []Node
	Targets []int

	// Nominated are pods that were given a node before and keep it, by pod.
	Nominated []Nominated

	// Skipped are pods that are no candidates, Refused pending pods whose volumes
	// keep them from any node. Both are sorted by pod.
	Skipped  []plan.Verdict
	Refused  []plan.Verdict
	Warnings []plan.Warning
	// Missing are static pools that get fewer nodes than they should have.
	Missing []plan.Verdict
	// Displaced is how many pods in Classes still run, on nodes that are going.
	Displaced int

	Dims      []string // as in packing.Problem
	LimitDims []string

	order     []int32 // pods by name
	pending   []int32
	promised  map[int32]string // node by pod: nominations that hold
	kept      int              // of them, those that the ledger remembers
	groups    Groups
	volumes   *volumes // nil: no planned pod has any
	attach    *attachments
	profiles  []volumeProfile
	profileOf []int32        // by position in pending
	hadTurn   map[int32]bool // pods that were given a claim for one pod, to no avail
	poolIndex map[string]int
	universes map[string]*universe
	daemons   []daemon
	nodes     nodeTable
	overlaid  map[string]*overlaid  // by pool
	described map[string]bool       // classes that were remarked on
	planned   []Node                // launches of a plan that this one comes after
	reserved  map[string]int64      // instances of reservations that static pools take
	allow     []allowance           // by rules
	explain   map[int]*explainTable // by pool
	covers    map[*universe][]cover // by offer; nil = no commitment covers any
	purses    []purse
	purseOf   []int            // by commitment
	byScope   map[string][]int // commitments

	// base are the classes of the snapshot; Classes are those of the problem, which
	// dealing cuts further.
	base  []Class
	topo  *topology
	hosts hosts
	// What earlier rounds found out, see Revise.
	floors   [][]int       // by base class: pods that have lost so many preferences
	ceiling  map[place]int // the most of a class that finds room in a cell, or in all
	extra    map[extraKey][]int32
	verified struct { // the last result that was gone through
		result *packing.Result
		found  *verification
	}
	hits map[int][]packing.LimitHit // by base class: limits met
}

// extraKey is a spread term as pods of a rules-key see it.
type extraKey struct{ term, rules int32 }

// New applies the rules of a snapshot.
func New(s *snapshot.Snapshot, c *catalog.Catalog) *World {
	return newWorld(s, c, nil)
}

// read does the reading of New.
func (w *World) read() {
	w.splitPods()
	w.settleNominations()
	w.readVolumes()
	w.groups = Group(w.Snapshot.Pods, w.pending, w.groupBy())
	w.compile()
	w.applyProfiles()
	w.setDims()
	w.setLimitDims()
	w.readDaemons()
	w.readDaemonVolumes()
	w.readPools()
	w.readNodes()
	w.chargeLimits()
	w.buildTemplates()
	w.chooseZones()
	slices.SortFunc(w.Refused, func(a, b plan.Verdict) int { return strings.Compare(a.Object, b.Object) })
}

// compile reads the rules of every rules-key.
func (w *World) compile() {
	w.Rules = make([]Rules, len(w.groups.Rep))
	for r, i := range w.groups.Rep {
		w.Rules[r] = compileRules(&w.Snapshot.Pods[i].Spec).restrict()
	}
	w.base = w.groups.Classes
	w.Classes = w.base
	w.floors = make([][]int, len(w.base))
	if w.topo != nil {
		w.topo.adopt(w.groups.Key)
	}
}

// Refusal says why no node may be launched for the pods of a class, whatever the
// NodePools; "" when one may.
func (w *World) Refusal(class int) (plan.Code, string) {
	c := &w.Classes[class]
	if c.stuck.code != "" {
		return c.stuck.code, c.stuck.detail + w.shortNote(class)
	}
	r := &w.Rules[c.Rules]
	return r.refused, r.detail
}

func (w *World) warn(object string, code plan.Code, detail string) {
	w.Warnings = append(w.Warnings, plan.Warning{Object: object, Code: code, Detail: detail})
}

// cutRef splits "pod/ns/name".
func cutRef(object string) (namespace, name string) {
	_, rest, _ := strings.Cut(object, "/")
	namespace, name, _ = strings.Cut(rest, "/")
	return namespace, name
}

// setDims collects the resources that are compared: those that some class asks for.
// Pools need them to say why they are empty.
func (w *World) setDims() {
	extra := map[string]bool{}
	for i := range w.Classes {
		r := &w.Classes[i].Requests
		if r.Ephemeral != 0 {
			extra[snapshot.EphemeralStorage] = true
		}
		for k, v := range r.Extended {
			if v != 0 {
				extra[k] = true
			}
		}
	}
	for i := range w.Rules {
		for k := range w.Rules[i].slots {
			extra[k] = true
		}
	}
	w.Dims = append([]string{snapshot.CPU, snapshot.Memory, snapshot.Pods}, sortedKeys(extra)...)
	if w.attach != nil {
		w.attach.setAttachDims()
	}
}

// setLimitDims collects the resources that some pool limits.
func (w *World) setLimitDims() {
	limits := map[string]bool{}
	for i := range w.Snapshot.NodePools {
		if w.Snapshot.NodePools[i].Replicas != nil {
			continue // no pod has a node launched there
		}
		for k := range w.Snapshot.NodePools[i].Limits {
			limits[k] = true
		}
	}
	w.LimitDims = sortedKeys(limits)
}

// vector writes a resource list in the order of Dims.
func (w *World) vector(r *snapshot.Resources, out []int64) []int64 {
	out = append(out, r.CPU, r.Memory, r.Pods)
	for _, k := range w.Dims[3:] {
		out = append(out, r.Get(k))
	}
	return out
}

// universe resolves a NodeClass once.
func (w *World) universe(class *snapshot.NodeClass) (*universe, error) {
	if u := w.universes[class.Name]; u != nil {
		return u, nil
	}
	types, err := w.Catalog.Resolve(class, w.Snapshot.Settings)
	if err != nil {
		return nil, err
	}
	w.learn(class, types)
	u := newUniverse(w.Snapshot, class, types)
	u.leaveShort(w.Snapshot)
	u.setBack(w.Snapshot)
	w.universes[class.Name] = u
	return u, nil
}

// class finds a NodeClass by name.
func (w *World) class(name string) *snapshot.NodeClass {
	for i := range w.Snapshot.NodeClasses {
		if w.Snapshot.NodeClasses[i].Name == name {
			return &w.Snapshot.NodeClasses[i]
		}
	}
	return nil
}

// open is a custom label that a pool leaves open: Exists, NotIn, or In with
// several values. Templates fix it.
type open struct {
	key string
	req requirements.Requirement
	// def is its value when no pod asks for one; absent when the label is left out.
	def    string
	absent bool
}
