package execute

import (
	"crypto/sha256"
	"encoding/base32"
	"encoding/binary"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"

	"kerf.sh/kerf/internal/catalog"
	"kerf.sh/kerf/internal/cloud/launch"
	"kerf.sh/kerf/internal/cloud/nodeclass"
	"kerf.sh/kerf/internal/disruption"
	"kerf.sh/kerf/internal/lifecycle"
	"kerf.sh/kerf/internal/plan"
	"kerf.sh/kerf/internal/snapshot"
)

// Class is an EC2NodeClass as it was resolved.
type Class struct {
	Class    *nodeclass.Class
	Resolved *nodeclass.Resolved
}

// Order is what a pass wants launched, with all that is needed to do it.
type Order struct {
	Plan     *plan.Plan
	Snapshot *snapshot.Snapshot
	// Types are those that nodes of each pool can be (scheduling.PoolTypes).
	Types map[string]map[string]*catalog.Resolved
	// Classes are by name.
	Classes map[string]Class
	Lease   lifecycle.Lease
	// Avoid are shortages that are still fresh, beside those that the plan knows.
	Avoid []launch.Shortage
	// Taken are addresses of subnets that launches under way will need.
	Taken map[string]int64
	// Reservations: the gate ReservedCapacity is on.
	Reservations bool
}

// intent is one launch of the plan with its record.
type intent struct {
	launch *plan.Launch
	pool   *snapshot.NodePool
	class  Class
	record lifecycle.Record
	offers []plan.Offer // that may still be asked for
}

// intents makes the records of what a plan launches. A launch whose pool or class is not
// there any more is left out and named.
func (o *Order) intents(now time.Time) (out []*intent, lost []string) {
	pools := map[string]*snapshot.NodePool{}
	for i := range o.Snapshot.NodePools {
		pools[o.Snapshot.NodePools[i].Name] = &o.Snapshot.NodePools[i]
	}
	uids := make(map[string]*snapshot.Pod, len(o.Snapshot.Pods))
	for i := range o.Snapshot.Pods {
		p := &o.Snapshot.Pods[i]
		uids[p.Ref()] = p
	}
	for i := range o.Plan.Launches {
		l := &o.Plan.Launches[i]
		pool, class := pools[l.NodePool], o.Classes[l.NodeClass]
		if pool == nil || class.Class == nil || class.Resolved == nil {
			lost = append(lost, l.Name)
			continue
		}
		in := &intent{launch: l, pool: pool, class: class, offers: l.Options}
		in.record = o.record(in, now)
		for _, ref := range l.Pods {
			if p := uids[ref]; p != nil {
				in.record.Nominated = append(in.record.Nominated, lifecycle.Pod{Namespace: p.Namespace, Name: p.Name, UID: p.UID, Since: now, At: now})
			}
		}
		out = append(out, in)
	}
	return out, lost
}

// record is what is written down of a launch before anything is asked for.
func (o *Order) record(in *intent, now time.Time) lifecycle.Record {
	l, pool := in.launch, in.pool
	least, most := o.span(l)
	r := lifecycle.Record{
		Claim: ClaimName(pool.Name, o.Plan.ID, o.Lease.Token, l.Name, o.Snapshot.Now), Phase: lifecycle.Intended, NodePool: pool.Name,
		PlanID: o.Plan.ID, Fence: o.Lease.Token, Created: now, NextAt: now.Add(lifecycle.CallTimeout),
		Reserved: most, Allocatable: least, Shape: o.shape(l.NodeClass),
		Spec: lifecycle.Spec{
			Labels: o.labels(in), Annotations: o.annotations(in), Requirements: requirements(pool, l.Options),
			Taints: pool.Taints, StartupTaints: pool.StartupTaints, Requests: l.Requests, ClassRef: pool.ClassRef,
			ExpireAfter: pool.ExpireAfter, TerminationGracePeriod: pool.TerminationGracePeriod,
		},
	}
	return r
}

// annotations are those of the template, and what tells later whether the node is still what
// its pool and class ask for.
func (o *Order) annotations(in *intent) map[string]string {
	out := maps.Clone(in.pool.TemplateAnnotations)
	if out == nil {
		out = map[string]string{}
	}
	i := slices.IndexFunc(o.Snapshot.NodeClasses, func(c snapshot.NodeClass) bool { return c.Name == in.launch.NodeClass })
	if i < 0 {
		maps.Copy(out, disruption.Stamp(in.pool, nil))
		return out
	}
	maps.Copy(out, disruption.Stamp(in.pool, &o.Snapshot.NodeClasses[i]))
	return out
}

// shape is that of a class as the plan saw it.
func (o *Order) shape(class string) string {
	for i := range o.Snapshot.NodeClasses {
		if c := &o.Snapshot.NodeClasses[i]; c.Name == class {
			return lifecycle.Shape(c, o.Snapshot.Settings)
		}
	}
	return ""
}

// span is what a launch has at least for pods, and takes at most from limits, over all
// that it may become.
func (o *Order) span(l *plan.Launch) (least snapshot.Resources, most lifecycle.Usage) {
	seen := map[string]bool{}
	for _, offer := range l.Options {
		t := o.Types[l.NodePool][offer.InstanceType]
		if t == nil {
			continue
		}
		use := lifecycle.UsageOf(t.Capacity, offer.Price)
		most = most.Max(use)
		if seen[offer.InstanceType] {
			continue
		}
		if len(seen) == 0 {
			least = t.Allocatable
		} else {
			least = least.Min(t.Allocatable)
		}
		seen[offer.InstanceType] = true
	}
	return least, most
}

// labels are those that the node has whatever it becomes: those of the template, and those
// that all its options share. The others come when the instance is known.
func (o *Order) labels(in *intent) map[string]string {
	l := in.launch
	out := maps.Clone(l.Labels)
	for key, value := range l.Labels {
		for _, offer := range l.Options {
			if v, ok := o.offerLabel(in, offer, key); ok && v != value {
				delete(out, key)
				break
			}
		}
	}
	delete(out, "kubernetes.io/hostname")
	return out
}

// offerLabel is the label that a node has because of the offer it is; ok is false for
// labels that do not depend on that.
func (o *Order) offerLabel(in *intent, offer plan.Offer, key string) (string, bool) {
	v, ok := o.offerLabels(in.launch.NodePool, in.class, offer)[key]
	if ok {
		return v, true
	}
	// A label that some type has and this one lacks differs too.
	_, mine := in.pool.TemplateLabels[key]
	return "", !mine && typeLabel(key)
}

func typeLabel(key string) bool {
	return strings.HasPrefix(key, "karpenter.k8s.aws/instance-") && key != catalog.LabelTenancy
}

// offerLabels are the labels of a node as an offer.
func (o *Order) offerLabels(pool string, class Class, offer plan.Offer) map[string]string {
	return OfferLabels(o.Types[pool][offer.InstanceType], class.Resolved, offer.Zone, offer.CapacityType, offer.ReservationID)
}

// OfferLabels are the labels that a node has because of its type, zone and capacity type.
func OfferLabels(t *catalog.Resolved, class *nodeclass.Resolved, zone, capacityType, reservation string) map[string]string {
	out := map[string]string{}
	if t != nil {
		t.CopyLabels(out)
	}
	out[catalog.LabelZone], out[catalog.LabelCapacityType] = zone, capacityType
	if class != nil {
		for i := range class.Subnets {
			if s := &class.Subnets[i]; s.Zone == zone && s.ZoneID != "" {
				out[catalog.LabelZoneID] = s.ZoneID
			}
		}
		for i := range class.Reservations {
			if r := &class.Reservations[i]; reservation != "" && r.ID == reservation {
				out[catalog.LabelReservationID], out[catalog.LabelReservationType] = r.ID, r.Type
			}
		}
	}
	return out
}

// requirements are those of the NodeClaim: the pool's, narrowed to what the node may
// become (Karpenter: the instance types in spec.requirements).
func requirements(pool *snapshot.NodePool, options []plan.Offer) []snapshot.SelectorRequirement {
	narrow := map[string]map[string]bool{catalog.LabelInstanceType: {}, catalog.LabelZone: {}, catalog.LabelCapacityType: {}}
	for _, o := range options {
		narrow[catalog.LabelInstanceType][o.InstanceType] = true
		narrow[catalog.LabelZone][o.Zone] = true
		narrow[catalog.LabelCapacityType][o.CapacityType] = true
	}
	var out []snapshot.SelectorRequirement
	for _, r := range pool.Requirements {
		if _, ok := narrow[r.Key]; !ok {
			out = append(out, r)
		}
	}
	for _, key := range slices.Sorted(maps.Keys(narrow)) {
		min := 0
		for _, r := range pool.Requirements {
			if r.Key == key {
				min = max(min, r.MinValues)
			}
		}
		out = append(out, snapshot.SelectorRequirement{Key: key, Operator: "In", Values: slices.Sorted(maps.Keys(narrow[key])), MinValues: min})
	}
	return out
}

// nameAlphabet is what names may hold, almost without vowels, so that they spell nothing.
var nameAlphabet = base32.NewEncoding("bcdfghjklmnpqrstvwxz0123456789yu").WithPadding(base32.NoPadding)

// ClaimName names the NodeClaim of a launch. The same launch of the same plan of the same
// reading under the same lease has the same name, so that writing it down twice is once. A
// plan has the same id whenever its input is the same, so that the time of the reading is
// what tells a launch from one that came to nothing before.
func ClaimName(pool, planID string, fence int64, launch string, read time.Time) string {
	return pool + "-" + digest(8, pool, planID, launch+"/"+strconv.FormatInt(read.UnixNano(), 36), fence)
}

// digest is a short name of things that are told apart.
func digest(n int, a, b, c string, d int64) string {
	h := sha256.New()
	for _, s := range []string{a, b, c} {
		var size [8]byte
		binary.BigEndian.PutUint64(size[:], uint64(len(s)))
		h.Write(size[:])
		h.Write([]byte(s))
	}
	var num [8]byte
	binary.BigEndian.PutUint64(num[:], uint64(d))
	h.Write(num[:])
	return nameAlphabet.EncodeToString(h.Sum(nil))[:n]
}

// limits are those of the pools as they stand.
func (o *Order) limits() lifecycle.Limits { return LimitsOf(o.Snapshot.NodePools) }

// LimitsOf are the limits of NodePools, for commits.
func LimitsOf(pools []snapshot.NodePool) lifecycle.Limits {
	out := lifecycle.Limits{}
	for i := range pools {
		if len(pools[i].Limits) > 0 {
			out[pools[i].Name] = pools[i].Limits
		}
	}
	return out
}
