package execute

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"kerf.sh/kerf/internal/catalog"
	"kerf.sh/kerf/internal/cloud/awserr"
	"kerf.sh/kerf/internal/cloud/launch"
	"kerf.sh/kerf/internal/cloud/nodeclass"
	"kerf.sh/kerf/internal/lifecycle"
	"kerf.sh/kerf/internal/plan"
	"kerf.sh/kerf/internal/snapshot"
)

const (
	// maxClaims is how many nodes one request asks for: its records and the attempt are one
	// transaction.
	maxClaims = 80
	// maxRounds is how often a launch asks for other offers in one pass.
	maxRounds = 8
)

// call is one attempt of this pass.
type call struct {
	batch     []*intent
	planned   *launch.Planned
	templates []string
	begun     lifecycle.Begun
	outcome   *launch.Outcome
	err       error
}

// launchAll asks for the nodes of a batch, offer after offer, until each has an instance
// or nothing is left to ask for. A request whose outcome is not known is left alone:
// whoever resolves its attempt settles it.
func (x *Executor) launchAll(ctx context.Context, o *Order, batch []*intent, avoid *[]launch.Shortage, rep *Report) error {
	for round := 0; len(batch) > 0; round++ {
		if round == maxRounds || !x.enough(ctx) {
			for _, in := range batch {
				x.giveUp(ctx, in, rep, failure{code: "InsufficientCapacityError", message: fmt.Sprintf("no instance after %d requests in this pass; the next one goes on", round), capacity: true})
			}
			return nil
		}
		calls := x.prepare(ctx, o, batch, *avoid, rep)
		for _, c := range calls {
			if c.err = x.begin(ctx, o, c); c.err != nil && ends(c.err) {
				return c.err
			}
		}
		x.each(len(calls), func(i int) { x.create(ctx, calls[i]) })
		batch = nil
		for _, c := range calls {
			again, err := x.settle(ctx, o, c, avoid, rep)
			if err != nil {
				return err
			}
			batch = append(batch, again...)
		}
	}
	return nil
}

// ends reports whether an error ends the pass: nothing more may be launched under the
// lease.
func ends(err error) bool {
	return errors.Is(err, lifecycle.ErrLostLease) || errors.Is(err, lifecycle.ErrRecovery)
}

// prepare makes the requests of a round: launches that may become the same things share
// one. Launches that nothing is left for are given up.
func (x *Executor) prepare(ctx context.Context, o *Order, batch []*intent, avoid []launch.Shortage, rep *Report) []*call {
	groups := map[string][]*intent{}
	var order []string
	for _, in := range batch {
		key := shape(in)
		if groups[key] == nil {
			order = append(order, key)
		}
		groups[key] = append(groups[key], in)
	}
	taken := map[string]int64{}
	for id, n := range o.Taken {
		taken[id] = n
	}
	var calls []*call
	for _, key := range order {
		for some := range slices.Chunk(groups[key], maxClaims) {
			c, err := x.request(o, some, avoid, taken)
			if err != nil {
				f := refused(err)
				for _, in := range some {
					x.giveUp(ctx, in, rep, f)
				}
				continue
			}
			for id, n := range c.planned.Request.Addresses() {
				taken[id] += n
			}
			calls = append(calls, c)
		}
	}
	return calls
}

// shape tells launches apart that cannot share a request.
func shape(in *intent) string {
	var b strings.Builder
	l := in.launch
	b.WriteString(l.NodePool + "\x00" + l.NodeClass + "\x00")
	for _, k := range sortedKeys(in.record.Spec.Labels) {
		b.WriteString(k + "=" + in.record.Spec.Labels[k] + "\x00")
	}
	for _, name := range []string{catalog.EFA, enclaves} {
		b.WriteString(strconv.FormatBool(l.Requests.Get(name) > 0))
	}
	for i := range in.offers {
		f := &in.offers[i]
		b.WriteString(f.InstanceType + "/" + f.Zone + "/" + f.CapacityType + "/" + f.ReservationID + "/" + strconv.FormatInt(int64(f.Price), 10) + "\x00")
	}
	return b.String()
}

// enclaves is the resource of pods that run in Nitro enclaves (Karpenter: same).
const enclaves = "aws.ec2.nitro/nitro_enclaves"

// request makes the request of launches that are alike.
func (x *Executor) request(o *Order, some []*intent, avoid []launch.Shortage, taken map[string]int64) (*call, error) {
	first := some[0]
	class := first.class
	group := ""
	if class.Resolved.PlacementGroup != nil {
		group = class.Resolved.PlacementGroup.Name
	}
	av := launch.NewAvoid(avoid, group)
	var offers []plan.Offer
	for _, f := range first.offers {
		if !av.Offer(f.InstanceType, f.Zone, f.CapacityType, f.ReservationID) {
			offers = append(offers, f)
		}
	}
	types := map[string]launch.Type{}
	for _, f := range offers {
		if t := o.Types[first.launch.NodePool][f.InstanceType]; t != nil {
			types[f.InstanceType] = launch.TypeOf(t)
		}
	}
	c := &call{batch: some}
	claims := make([]string, len(some))
	tries := 0
	for i, in := range some {
		claims[i] = in.record.Claim
		tries += in.record.Tries
	}
	id := "kerf-" + digest(32, o.Plan.ID, strings.Join(claims, ","), strconv.Itoa(tries), o.Lease.Token)
	var err error
	c.planned, err = launch.Plan(launch.Input{
		Attempt: id, Claims: claims, Cluster: x.Node, Region: x.Region, Pool: first.launch.NodePool,
		Class: class.Class, Resolved: class.Resolved, Offers: offers, Types: types,
		Subnets: nodeclass.ZoneSubnets(class.Resolved.Subnets, taken, av.Subnets),
		Labels:  first.record.Spec.Labels, Taints: slices.Concat(first.pool.Taints, first.pool.StartupTaints),
		RequestsEFA: first.launch.Requests.Get(catalog.EFA) > 0, RequestsEnclave: first.launch.Requests.Get(enclaves) > 0,
		Tenancy: tenancy(first.record.Spec.Labels), Reservations: o.Reservations,
		MinValues:        slices.ContainsFunc(first.pool.Requirements, func(r snapshot.SelectorRequirement) bool { return r.MinValues > 0 }),
		MinValuesRelaxed: slices.ContainsFunc(first.launch.Relaxed, func(s string) bool { return strings.Contains(s, "minValues") }),
		Isolated:         x.Isolated, Now: x.Now(),
	})
	if err != nil {
		return nil, err
	}
	c.templates = c.planned.Request.Templates()
	return c, nil
}

func tenancy(labels map[string]string) string {
	if labels[catalog.LabelTenancy] == "dedicated" {
		return "dedicated"
	}
	return ""
}

// begin makes the templates of a call and writes its attempt down: after that the call may
// be made until NotAfter, and no other for these claims.
func (x *Executor) begin(ctx context.Context, o *Order, c *call) error {
	if err := x.Cloud.Ensure(ctx, c.planned.Templates); err != nil {
		return err
	}
	stored, err := c.planned.Request.Encode()
	if err != nil {
		return err
	}
	reserved := o.reserved(c)
	for try := 0; ; try++ {
		records := make([]lifecycle.Record, len(c.batch))
		for i, in := range c.batch {
			records[i] = in.record
		}
		c.begun, err = x.Memory.Begin(ctx, o.Lease, lifecycle.Attempt{
			ID: c.planned.Request.Token, NodePool: c.batch[0].record.NodePool, PlanID: o.Plan.ID, Request: stored, Templates: c.templates,
		}, records, reserved, o.limits())
		if err == nil {
			for i, in := range c.batch {
				in.record = c.begun.Records[i]
			}
			return nil
		}
		// A lifecycle step may have written a record since: what is there now counts.
		if !errors.Is(err, lifecycle.ErrChanged) || try == 3 || !x.reread(ctx, c.batch) {
			return err
		}
	}
}

// reread reads the records of a batch again; false when one of them is not free any more.
func (x *Executor) reread(ctx context.Context, batch []*intent) bool {
	for _, in := range batch {
		r, ok, err := x.Memory.Record(ctx, in.record.Claim)
		if err != nil || !ok || r.Phase != lifecycle.Intended || r.Attempt != "" {
			return false
		}
		in.record = r
	}
	return true
}

// reserved is what each claim of a call may take from limits.
func (o *Order) reserved(c *call) map[string]lifecycle.Usage {
	var most lifecycle.Usage
	for _, f := range c.planned.Used {
		if t := o.Types[c.batch[0].launch.NodePool][f.InstanceType]; t != nil {
			most = most.Max(lifecycle.UsageOf(t.Capacity, f.Price))
		}
	}
	out := map[string]lifecycle.Usage{}
	if most == nil {
		return out
	}
	for _, in := range c.batch {
		out[in.record.Claim] = most
	}
	return out
}

// create makes the call of an attempt that was written down. It may be repeated with the
// same bytes while its time lasts: EC2 answers the same.
func (x *Executor) create(ctx context.Context, c *call) {
	if c.err != nil {
		return
	}
	a := c.begun.Attempt
	for try := 0; ; try++ {
		if !x.Now().Before(a.NotAfter) {
			c.err = fmt.Errorf("attempt %s: its time is over, it is resolved later", a.ID)
			return
		}
		c.outcome, c.err = x.Cloud.Create(ctx, a.Request)
		switch {
		case c.err == nil || try >= 2:
			return
		case awserr.Is(c.err, awserr.TemplateNotFound):
			x.Cloud.Forget(c.templates...)
			if err := x.Cloud.Ensure(ctx, c.planned.Templates); err != nil {
				c.err = err
				return
			}
		case !awserr.Is(c.err, awserr.Throttled) && !awserr.Is(c.err, awserr.Transient):
			return
		}
	}
}

// shortOffer is what is short, as plans know it: an offer, a whole capacity type or a
// reservation. ok is false for what is no matter of offers: subnets, placement groups.
func shortOffer(s launch.Shortage) (o lifecycle.Offer, ok bool) {
	switch s.Scope {
	case launch.ScopeOffer:
		return lifecycle.Offer{InstanceType: s.Type, Zone: s.Zone, CapacityType: s.CapacityType}, true
	case launch.ScopeCapacityType:
		return lifecycle.Offer{CapacityType: s.CapacityType}, true
	case launch.ScopeReservation:
		return lifecycle.Offer{CapacityType: catalog.Reserved, ReservationID: s.ID}, true
	}
	return lifecycle.Offer{}, false
}

// settle writes down what became of a call, and returns the launches that may ask for
// something else.
func (x *Executor) settle(ctx context.Context, o *Order, c *call, avoid *[]launch.Shortage, rep *Report) ([]*intent, error) {
	if c.begun.Attempt.ID == "" {
		return nil, x.notBegun(ctx, c, rep)
	}
	rep.Calls++
	if c.err != nil {
		if errors.Is(c.err, lifecycle.ErrLostLease) {
			return nil, c.err
		}
		// It is not known what became of it. The attempt is resolved by who comes next.
		rep.Errors = append(rep.Errors, fmt.Errorf("launch of %d nodes of nodepool %s: %w", len(c.batch), c.batch[0].record.NodePool, c.err))
		return nil, nil
	}
	for _, s := range c.outcome.Shortages {
		*avoid = append(*avoid, s)
		rep.Shortages = append(rep.Shortages, s)
		if offer, ok := shortOffer(s); ok {
			if err := x.Memory.Shortage(ctx, offer, s.Code); err != nil {
				rep.Errors = append(rep.Errors, err)
			}
		}
	}
	was := c.begun.Attempt
	a, err := x.Memory.Answer(ctx, was, was.Answer(outcomeOf(c.outcome, o.imageOf(c), lifecycle.FromAnswer, x.Now())))
	if err != nil {
		rep.Errors = append(rep.Errors, err) // what was asked for is known from the attempt
		return nil, nil
	}
	settled, err := x.Memory.Settle(ctx, a, o.known(c))
	if err != nil {
		rep.Errors = append(rep.Errors, err)
		return nil, nil
	}
	x.endExtra(ctx, settled.Extra, rep)
	byClaim := map[string]*intent{}
	for _, in := range c.batch {
		byClaim[in.record.Claim] = in
	}
	f, open := verdict(c.outcome)
	var again []*intent
	for _, r := range settled.Records {
		in := byClaim[r.Claim]
		if in == nil {
			continue
		}
		uid := in.record.UID
		in.record = r
		if in.record.UID == "" {
			in.record.UID = uid
		}
		switch {
		case r.Instance.ID != "":
			rep.Launched++
			rep.Records = append(rep.Records, r)
		case r.Phase != lifecycle.Intended:
		case open:
			again = append(again, in)
		default:
			x.giveUp(ctx, in, rep, f)
		}
	}
	return again, nil
}

// notBegun gives up the launches of a call that was never made.
func (x *Executor) notBegun(ctx context.Context, c *call, rep *Report) error {
	f := refused(c.err)
	for _, in := range c.batch {
		x.giveUp(ctx, in, rep, f)
	}
	return nil
}

// endExtra ends instances that are nobody's.
func (x *Executor) endExtra(ctx context.Context, extra []lifecycle.Instance, rep *Report) {
	if len(extra) == 0 {
		return
	}
	ids := make([]string, len(extra))
	for i, in := range extra {
		ids[i] = in.ID
	}
	if _, _, err := x.Cloud.Terminate(ctx, ids); err != nil {
		rep.Errors = append(rep.Errors, fmt.Errorf("terminate instances that no record owns: %w", err))
	}
}

// outcomeOf is an outcome as it is written down.
func outcomeOf(out *launch.Outcome, image func(typ string) string, source lifecycle.Source, now time.Time) lifecycle.Outcome {
	o := lifecycle.Outcome{Source: source, At: now}
	for _, i := range out.Instances {
		o.Instances = append(o.Instances, lifecycle.Instance{
			ID: i.ID, Type: i.Type, Zone: i.Zone, CapacityType: i.CapacityType, ReservationID: i.ReservationID,
			ImageID: image(i.Type), Price: snapshot.Price(i.Price), LaunchedAt: now,
		})
	}
	for _, id := range out.Surplus {
		o.Instances = append(o.Instances, lifecycle.Instance{ID: id, LaunchedAt: now})
	}
	for _, f := range out.Failures {
		o.Errors = append(o.Errors, lifecycle.OfferError{InstanceType: f.Type, Zone: f.Zone, CapacityType: f.CapacityType, Code: f.Code, Message: f.Message})
	}
	return o
}

func (o *Order) imageOf(c *call) func(string) string {
	pool := c.batch[0].launch.NodePool
	return func(typ string) string {
		if t := o.Types[pool][typ]; t != nil {
			return t.Image
		}
		return ""
	}
}

// known says what an instance of a call is.
func (o *Order) known(c *call) func(string, lifecycle.Instance) lifecycle.Known {
	pool, class := c.batch[0].launch.NodePool, c.batch[0].class
	return func(_ string, in lifecycle.Instance) lifecycle.Known {
		return KnownOf(o.Types[pool][in.Type], class.Resolved, in)
	}
}

// KnownOf says what an instance is, by its type under its class; nil types are not known.
func KnownOf(t *catalog.Resolved, class *nodeclass.Resolved, in lifecycle.Instance) lifecycle.Known {
	if t == nil {
		return lifecycle.Known{}
	}
	return lifecycle.Known{
		Capacity: t.Capacity, Allocatable: t.Allocatable, Price: in.Price, ImageID: t.Image,
		Labels: OfferLabels(t, class, in.Zone, in.CapacityType, in.ReservationID),
	}
}
