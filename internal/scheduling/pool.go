package scheduling

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"kerf.sh/kerf/internal/catalog"
	"kerf.sh/kerf/internal/packing"
	"kerf.sh/kerf/internal/plan"
	"kerf.sh/kerf/internal/requirements"
	"kerf.sh/kerf/internal/snapshot"
)

// Group is the API group of NodeClasses that are ours. Pools, claims and nodes of
// other groups (EKS Auto Mode) do not exist for us.
const classGroup = "karpenter.k8s.aws"

// Pool is a NodePool and whether it can launch nodes.
type Pool struct {
	Spec  *snapshot.NodePool
	Class *snapshot.NodeClass
	// Code and Detail say why it launches nothing; Code "" = it can.
	Code   plan.Code
	Detail string
	// Used is the capacity of its nodes and claims; UsedNodes their number.
	Used      snapshot.Resources
	UsedNodes int64

	u    *universe
	reqs requirements.Set // of types and offers, template labels included
	// labels of every node of the pool, what types and offers add left out.
	labels map[string]string
	open   []open
	types  []int32 // universe types that it allows and that have an offer
	offers []int32 // its available offers
	short  []int32 // offers that it allows and that are short of capacity
	// named tells that the pool names types, families or devices itself, so that
	// no type is exotic in it.
	named bool
}

// refuse marks the pool as unable to launch.
func (p *Pool) refuse(code plan.Code, detail string) { p.Code, p.Detail = code, detail }

// readPools judges every NodePool, heaviest first.
func (w *World) readPools() {
	s := w.Snapshot
	w.Pools = make([]Pool, len(s.NodePools))
	for i := range s.NodePools {
		w.Pools[i].Spec = &s.NodePools[i]
	}
	slices.SortFunc(w.Pools, func(a, b Pool) int {
		return cmp.Or(cmp.Compare(b.Spec.Weight, a.Spec.Weight), strings.Compare(b.Spec.Name, a.Spec.Name))
	})
	w.readOverlays()
	w.poolIndex = make(map[string]int, len(w.Pools))
	for i := range w.Pools {
		w.poolIndex[w.Pools[i].Spec.Name] = i
		w.readPool(&w.Pools[i])
	}
}

// pool finds a NodePool of ours by name; nil when there is none.
func (w *World) pool(name string) *Pool {
	i, ok := w.poolIndex[name]
	if !ok || w.Pools[i].Code == plan.ForeignNodeClass {
		return nil
	}
	return &w.Pools[i]
}

func (w *World) readPool(p *Pool) {
	n := p.Spec
	if n.ClassRef.Group != classGroup {
		p.refuse(plan.ForeignNodeClass, fmt.Sprintf("nodeClassRef.group is %q; only %s is served", n.ClassRef.Group, classGroup))
		return
	}
	if !n.Deleting.IsZero() {
		p.refuse(plan.NodePoolDeleting, "the NodePool is being deleted")
		return
	}
	if n.Replicas != nil {
		defer w.readStatic(p)
		if !w.Snapshot.Settings.StaticCapacity {
			return
		}
	}
	if errs := requirements.ValidatePool(n.Requirements, n.TemplateLabels, n.Taints, n.StartupTaints); len(errs) > 0 {
		p.refuse(plan.NodePoolInvalid, joinErrors(errs))
		return
	}
	if n.HasStatus {
		if why := notReady(n.Conditions, n.Generation); why != "" {
			p.refuse(plan.NodePoolNotReady, why)
			return
		}
	}
	if !w.readClass(p) {
		return
	}
	w.readRequirements(p)
	w.chooseOffers(p)
}

// notReady says why conditions block: Ready is present and not True, or was
// observed on an older generation. An absent condition does not block.
func notReady(cs []snapshot.Condition, generation int64) string {
	c := snapshot.FindCondition(cs, "Ready")
	if c == nil {
		return ""
	}
	if c.Status != "True" {
		why := "condition Ready is " + c.Status
		if c.Reason != "" {
			why += ", " + c.Reason
		}
		if c.Message != "" {
			why += ": " + c.Message
		}
		return why
	}
	if c.ObservedGeneration != 0 && c.ObservedGeneration < generation {
		return fmt.Sprintf("condition Ready is of generation %d, the object is at %d: wait until it is observed", c.ObservedGeneration, generation)
	}
	return ""
}

// readClass finds and resolves the NodeClass; false when that blocks the pool.
func (w *World) readClass(p *Pool) bool {
	name := p.Spec.ClassRef.Name
	p.Class = w.class(name)
	if p.Class == nil {
		p.refuse(plan.NodeClassNotFound, "EC2NodeClass "+name+" does not exist")
		return false
	}
	if !p.Class.Deleting.IsZero() {
		p.refuse(plan.NodeClassNotReady, "EC2NodeClass "+name+" is being deleted")
		return false
	}
	if p.Class.HasStatus {
		if why := notReady(p.Class.Conditions, p.Class.Generation); why != "" {
			p.refuse(plan.NodeClassNotReady, "EC2NodeClass "+name+": "+why)
			return false
		}
	}
	first := !w.described[name]
	u, err := w.universe(p.Class)
	if err != nil {
		p.refuse(plan.NodeClassInvalid, err.Error())
		return false
	}
	if w.described == nil {
		w.described = map[string]bool{}
	}
	w.described[name] = true
	if first && !p.Class.HasStatus {
		w.warn("nodeclass/"+name, plan.ClassNotResolved, "no status: planned with every zone of the catalogue and the images that its alias implies")
	}
	if first {
		w.warnReservations(p.Class)
	}
	if p.u = w.overlaid[p.Spec.Name].universe(); p.u == nil {
		p.u = u
	}
	return true
}

// warnReservations remarks on reservations of a class whose size nothing tells: the
// status of an EC2NodeClass does not, a catalogue file can.
func (w *World) warnReservations(c *snapshot.NodeClass) {
	if !w.Snapshot.Settings.ReservedCapacity {
		return
	}
	var unknown []string
	for i := range c.Reservations {
		r := &c.Reservations[i]
		at, ok := slices.BinarySearchFunc(w.Catalog.Types, r.InstanceType, func(t catalog.InstanceType, name string) int { return strings.Compare(t.Name, name) })
		known := r.Remaining >= 0 || ok && slices.ContainsFunc(w.Catalog.Types[at].Offerings, func(o catalog.Offering) bool {
			return o.Reservation != nil && o.Reservation.ID == r.ID
		})
		if !known {
			unknown = append(unknown, r.ID)
		}
	}
	if len(unknown) > 0 {
		w.warn("nodeclass/"+c.Name, plan.ReservationUnknown, fmt.Sprintf("how many instances are left of %s is not known, so none is used: a catalogue file can say it (offerings[].reservation.remaining)", strings.Join(unknown, ", ")))
	}
}

func joinErrors(errs []error) string {
	const most = 3
	var parts []string
	for i, e := range errs {
		if i == most {
			parts = append(parts, fmt.Sprintf("and %d more", len(errs)-most))
			break
		}
		parts = append(parts, e.Error())
	}
	return strings.Join(parts, "; ")
}

// readRequirements splits what the pool says into requirements on types and
// offers, labels that all its nodes have, and labels that it leaves open.
func (w *World) readRequirements(p *Pool) {
	n := p.Spec
	all, _ := requirements.Parse(n.Requirements) // valid: ValidatePool has seen it
	for _, k := range sortedKeys(n.TemplateLabels) {
		all.Add(requirements.In(k, n.TemplateLabels[k]))
	}
	if t, ok := all.Get(catalog.LabelTenancy); !ok || !t.Impossible() {
		all.Add(requirements.In(catalog.LabelTenancy, "dedicated", "default"))
	}
	p.labels = map[string]string{catalog.LabelNodePool: n.Name, catalog.LabelNodeClass: p.Class.Name}
	for r := range all.All() {
		key := r.Key()
		if key != catalog.LabelTenancy && (requirements.WellKnown(key) || offerKey(key) || p.u.typeKey(key)) {
			p.reqs.Add(r)
			p.named = p.named || namesTypes(key)
			continue
		}
		if r.Impossible() {
			p.reqs.Add(r) // no node can have it: the pool has no type
			continue
		}
		if v, ok := r.Single(); ok {
			p.labels[key] = v
			continue
		}
		o := open{key: key, req: r}
		switch {
		case key == catalog.LabelTenancy:
			o.def = "default" // Karpenter leaves it to the launch, which is shared
		case r.AllowsAbsent():
			o.absent = true
		default:
			o.def, _ = r.Any()
		}
		p.open = append(p.open, o)
	}
}

// namesTypes: a pool that says this about its types means them, exotic ones too.
func namesTypes(key string) bool {
	switch key {
	case catalog.LabelInstanceType, catalog.LabelFamily, catalog.LabelCategory,
		catalog.LabelGPUName, catalog.LabelGPUManufacturer, catalog.LabelGPUCount, catalog.LabelGPUMemory,
		catalog.LabelAcceleratorName, catalog.LabelAcceleratorManufacturer, catalog.LabelAcceleratorCount:
		return true
	}
	return false
}

// chooseOffers applies the pool's requirements to the catalogue.
func (w *World) chooseOffers(p *Pool) {
	u := p.u
	ok := make([]bool, len(u.types))
	for i := range ok {
		ok[i] = u.types[i].Unusable == ""
	}
	var conds []condition
	var buf []bool
	for r := range p.reqs.All() {
		c := u.column(r.Key())
		if offerKey(r.Key()) {
			conds = append(conds, condition{c, c.table(&r, nil)})
			continue
		}
		buf = c.table(&r, buf)
		for i := range ok {
			ok[i] = ok[i] && buf[c.ids[i]+1]
		}
	}
	total := 0
	for i := range ok {
		if ok[i] {
			total += int(u.first[i+1] - u.first[i])
		}
	}
	p.offers = make([]int32, 0, total)
	for i := range u.types {
		if !ok[i] {
			continue
		}
		n := len(p.offers)
	next:
		for k := u.first[i]; k < u.first[i+1]; k++ {
			out := u.offers[k].why != ""
			if out && u.short[k] == nil {
				continue
			}
			for _, c := range conds {
				if !c.ok[c.col.ids[k]+1] {
					continue next
				}
			}
			if out {
				p.short = append(p.short, k)
				continue
			}
			p.offers = append(p.offers, k)
		}
		if len(p.offers) > n {
			p.types = append(p.types, int32(i))
		}
	}
	w.warnUnknown(p)
	if len(p.types) == 0 {
		code, detail := w.emptyPool(p)
		p.refuse(code, detail)
	}
}

// condition is a requirement evaluated on the values of a column.
type condition struct {
	col *column
	ok  []bool
}

// warnUnknown remarks on zones and types that the pool names and the catalogue
// does not have.
func (w *World) warnUnknown(p *Pool) {
	object := "nodepool/" + p.Spec.Name
	if r, ok := p.reqs.Get(catalog.LabelZone); ok {
		values, complement := r.Values()
		for _, z := range values {
			if complement || slices.Contains(w.Catalog.Zones, z) && (p.Class.Zones == nil || slices.ContainsFunc(p.Class.Zones, func(s snapshot.SubnetZone) bool { return s.Zone == z })) {
				continue
			}
			w.warn(object, plan.UnknownZone, fmt.Sprintf("zone %s has no offer: zones of its NodeClass are %s", z, strings.Join(w.classZones(p.Class), ", ")))
		}
	}
	if r, ok := p.reqs.Get(catalog.LabelInstanceType); ok {
		values, complement := r.Values()
		for _, t := range values {
			_, found := slices.BinarySearchFunc(w.Catalog.Types, t, func(it catalog.InstanceType, name string) int { return strings.Compare(it.Name, name) })
			if complement || found {
				continue
			}
			detail := "instance type " + t + " is not in the catalogue"
			if near := plan.Nearest(t, w.typeNames(), 1); len(near) > 0 {
				detail += "; did you mean " + near[0] + "?"
			}
			w.warn(object, plan.UnknownInstance, detail)
		}
	}
}

func (w *World) typeNames() []string {
	out := make([]string, len(w.Catalog.Types))
	for i := range w.Catalog.Types {
		out[i] = w.Catalog.Types[i].Name
	}
	return out
}

func (w *World) classZones(c *snapshot.NodeClass) []string {
	if c.Zones == nil {
		return w.Catalog.Zones
	}
	var out []string
	for _, z := range c.Zones {
		out = append(out, z.Zone)
	}
	slices.Sort(out)
	return slices.Compact(out)
}

// remaining is what the pool's limits leave, by LimitDims. It may be negative: a
// pool above a limit takes no node at all (Karpenter: exceeded limits).
func (w *World) remaining(p *Pool) []int64 {
	out := make([]int64, len(w.LimitDims))
	for i, k := range w.LimitDims {
		limit, ok := p.Spec.Limits[k]
		if !ok {
			out[i] = packing.NoLimit
			continue
		}
		out[i] = snapshot.Clamp(snapshot.Clamp(limit) - p.UsedOf(k))
	}
	return out
}

// UsedOf is the capacity of the pool's nodes and claims in one resource, "nodes"
// included.
func (p *Pool) UsedOf(resource string) int64 {
	if resource == snapshot.Nodes {
		return p.UsedNodes
	}
	return p.Used.Get(resource)
}

// Size is how many types and available offers the pool allows.
func (p *Pool) Size() (types, offers int) { return len(p.types), len(p.offers) }
