package handler

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"kerf.sh/kerf/internal/cloud/nodeclass"
	"kerf.sh/kerf/internal/kube/api"
	"kerf.sh/kerf/internal/snapshot"
)

const (
	// ClassFinalizer keeps an EC2NodeClass until nothing needs it and what was made for it is
	// gone (Karpenter: same).
	ClassFinalizer = "karpenter.k8s.aws/termination"

	kindClass = "EC2NodeClass"
	kindPool  = "NodePool"
	kindClaim = "NodeClaim"
	kindNode  = "Node"
)

// catalogReserve is what is left of an invocation's time for writing down what was found
// out: nothing new is asked of AWS after that.
const catalogReserve = 8 * time.Second

// Catalog finds out what can be launched: what EC2NodeClasses select, which instance types
// there are, and what they cost. It writes that down for the functions that plan, and into
// the statuses that people read.
type Catalog struct {
	Memory   Memory
	Cluster  Cluster
	Resolver Resolver
	Market   Market
	// Leftovers removes what was made for classes; nil: nothing ever is.
	Leftovers Leftovers
	Facts     *FactsCache
	Region    string
	// Reservations: the gate ReservedCapacity is on.
	Reservations bool
	// Controller and Instance tell who writes Events ("kerf.sh/catalog").
	Controller, Instance string
	Now                  func() time.Time
}

// CatalogRequest is the payload of the function catalog. The zero value is everything.
type CatalogRequest struct {
	// Class is one EC2NodeClass to resolve at once; nothing else is done then.
	Class string `json:"class"`
	// Classes are several of them.
	Classes []string `json:"classes"`
	// Only is "classes" or "prices", for a function that can reach one half of what is asked, or
	// "pools": the statuses of NodePools, whose nodes have changed.
	Only string `json:"only"`
}

// DecodeCatalogRequest reads a payload strictly. The event of a schedule is everything.
func DecodeCatalogRequest(payload []byte) (CatalogRequest, error) {
	var event struct {
		DetailType string `json:"detail-type"`
	}
	text := strings.TrimSpace(string(payload))
	if text == "" || text == "null" || json.Unmarshal(payload, &event) == nil && event.DetailType != "" {
		return CatalogRequest{}, nil
	}
	var r CatalogRequest
	d := json.NewDecoder(strings.NewReader(text))
	d.DisallowUnknownFields()
	if err := d.Decode(&r); err != nil {
		return r, fmt.Errorf("read the payload: %s", decodeMessage(err))
	}
	if d.More() {
		return r, errors.New("read the payload: there is more after the JSON object")
	}
	if r.Class != "" {
		r.Classes, r.Class = append(r.Classes, r.Class), ""
	}
	if slices.Contains(r.Classes, "") {
		return r, errors.New("read the payload: classes: a name is empty")
	}
	switch {
	case r.Only != "" && r.Only != "classes" && r.Only != "prices" && r.Only != "pools":
		return r, fmt.Errorf("read the payload: only: %q; want classes, prices or pools", r.Only)
	case r.Only != "" && r.Only != "classes" && len(r.Classes) > 0:
		return r, fmt.Errorf(`read the payload: "only" says %s, and classes are named; give one of them`, r.Only)
	}
	return r, nil
}

// ClassReport is what became of one class.
type ClassReport struct {
	Name       string `json:"name"`
	Generation int64  `json:"generation"`
	// Ready is True, False, Unknown, Deleting or Deleted; Reason and Message say why.
	Ready   string `json:"ready"`
	Reason  string `json:"reason,omitempty"`
	Message string `json:"message,omitempty"`
	// Kept are conditions that rest on an earlier answer, because AWS gave none now.
	Kept []string `json:"kept,omitempty"`
	// Problem is what could not be written.
	Problem string `json:"problem,omitempty"`
}

// CatalogReport is what one run did.
type CatalogReport struct {
	Classes []ClassReport `json:"classes,omitempty"`
	Pools   int           `json:"poolsChanged,omitempty"`
	// Read says which parts of types and prices were read: types, onDemand, spot.
	Read   []string  `json:"read,omitempty"`
	Types  int       `json:"types,omitempty"`
	Prices PriceAges `json:"prices"`
	// Refused says why nothing was asked about classes.
	Refused string `json:"refused,omitempty"`
	// Removed are instance profiles that nothing needed any more.
	Removed []string `json:"removed,omitempty"`
	// Left is what was not done, and why.
	Left     []string `json:"left,omitempty"`
	Warnings []string `json:"warnings,omitempty"`
}

// Handle does what a request asks for. What AWS or the cluster says "no" to is in the
// report and in the statuses of the classes; the error joins what could not be read or
// written, and the report says what was done all the same.
func (h *Catalog) Handle(ctx context.Context, r CatalogRequest) (*CatalogReport, error) {
	rep := &CatalogReport{}
	facts, err := LoadFacts(ctx, h.Memory, h.Region, h.Now(), h.Facts)
	if err != nil {
		return rep, err
	}
	run := &catalogRun{Catalog: h, facts: facts, rep: rep}
	var errs []error
	if r.Only == "pools" {
		errs = append(errs, run.guard(ctx, func() error { return run.poolsOnly(ctx) }))
		rep.Prices, rep.Types = run.facts.Prices, len(run.facts.Catalog.Types)
		return rep, errors.Join(errs...)
	}
	if r.Only != "prices" {
		errs = append(errs, run.guard(ctx, func() error { return run.classes(ctx, r.Classes) }))
	}
	if r.Only != "classes" && len(r.Classes) == 0 {
		errs = append(errs, run.prices(ctx))
	}
	if r.Only == "" && len(r.Classes) == 0 && rep.Refused == "" {
		errs = append(errs, run.collect(ctx))
	}
	rep.Prices, rep.Types = run.facts.Prices, len(run.facts.Catalog.Types)
	return rep, errors.Join(errs...)
}

// catalogRun is one run: what it started from, and what it has found out since.
type catalogRun struct {
	*Catalog
	facts *Facts
	rep   *CatalogReport
	// throttled says which call was throttled; what comes after is left.
	throttled string
}

// guard does something unless Karpenter runs: two that write the same statuses, and make the
// same instance profiles, would never be done.
func (r *catalogRun) guard(ctx context.Context, do func() error) error {
	err := Guard(ctx, r.Cluster, r.Now())
	var alive *KarpenterError
	if errors.As(err, &alive) {
		r.rep.Refused = alive.Error()
		return nil
	}
	if err != nil {
		return err
	}
	return do()
}

// late reports whether no new work may be begun, and notes what is left.
func (r *catalogRun) late(ctx context.Context, what string) bool {
	why := ""
	if end, ok := ctx.Deadline(); ctx.Err() != nil || ok && end.Sub(r.Now()) < catalogReserve {
		why = "no time is left"
	} else if r.throttled != "" {
		why = "AWS throttles: " + r.throttled
	}
	if why != "" {
		r.rep.Left = append(r.rep.Left, what+": "+why)
	}
	return why != ""
}

// classes resolves all classes, or the named ones.
func (r *catalogRun) classes(ctx context.Context, names []string) error {
	listed := r.Now()
	kinds := []string{kindClass, kindPool, kindClaim}
	if len(names) == 0 {
		kinds = append(kinds, kindNode)
	}
	s, err := r.Cluster.Some(ctx, kinds...)
	if err != nil {
		if errors.Is(err, api.ErrMissingKind) {
			return fmt.Errorf("read the NodeClasses: install the CRDs of Karpenter first: %w", err)
		}
		return fmt.Errorf("read the NodeClasses: %w", err)
	}
	s.Now = listed
	r.rep.Warnings = append(r.rep.Warnings, s.Incomplete...)
	metas, err := r.Cluster.Metadata(ctx, kindClass)
	if err != nil {
		return fmt.Errorf("read the NodeClasses: %w", err)
	}
	finalizers := map[string][]string{}
	for _, m := range metas {
		finalizers[m.Version.UID] = m.Finalizers
	}
	var errs []error
	for _, c := range r.order(s.NodeClasses, names) {
		if r.late(ctx, "EC2NodeClass "+c.Name) {
			continue
		}
		errs = append(errs, r.class(ctx, s, c, slices.Contains(finalizers[c.UID], ClassFinalizer), listed))
	}
	for _, name := range names {
		if !slices.ContainsFunc(s.NodeClasses, func(c snapshot.NodeClass) bool { return c.Name == name }) {
			r.rep.Warnings = append(r.rep.Warnings, "there is no EC2NodeClass "+name)
		}
	}
	errs = append(errs, r.dropGone(ctx, s.NodeClasses), r.pools(ctx, s, len(names) == 0))
	return errors.Join(errs...)
}

// order are the classes to resolve: those that pools wait for first, then those that were
// resolved longest ago, so that a run without time enough leaves others than the one before.
func (r *catalogRun) order(all []snapshot.NodeClass, names []string) []*snapshot.NodeClass {
	var out []*snapshot.NodeClass
	for i := range all {
		if len(names) == 0 || slices.Contains(names, all[i].Name) {
			out = append(out, &all[i])
		}
	}
	at := func(c *snapshot.NodeClass) time.Time {
		if got, ok := r.facts.Class(c); ok {
			return got.Resolved.At
		}
		return time.Time{}
	}
	slices.SortStableFunc(out, func(a, b *snapshot.NodeClass) int {
		return cmp.Or(at(a).Compare(at(b)), strings.Compare(a.Name, b.Name))
	})
	return out
}

// class resolves one class, writes it down, and tells the class.
func (r *catalogRun) class(ctx context.Context, s *snapshot.Snapshot, c *snapshot.NodeClass, final bool, listed time.Time) error {
	if !c.Deleting.IsZero() {
		return r.deleting(ctx, s, c, final)
	}
	var problems []error
	if !final {
		// Before anything is made for it.
		if err := r.Cluster.AddFinalizer(ctx, kindClass, c.Name, c.UID, ClassFinalizer); err != nil {
			problems = append(problems, fmt.Errorf("put the finalizer on EC2NodeClass %s: %w", c.Name, err))
		}
	}
	var old *nodeclass.Resolved
	if got, ok := r.facts.Class(c); ok {
		old = got.Resolved
	}
	o := r.Resolver.Class(ctx, c, old)
	if o.Throttled {
		r.throttled = "EC2NodeClass " + c.Name + " could not be resolved whole"
	}
	if err := r.store(ctx, c, o, listed); err != nil {
		problems = append(problems, err)
	}
	if _, err := r.Cluster.PatchStatus(ctx, kindClass, c.Name, c.UID, classStatus(&o.Status, r.Reservations)); err != nil && !errors.Is(err, api.ErrNotFound) {
		problems = append(problems, fmt.Errorf("write the status of EC2NodeClass %s: %w", c.Name, err))
	}
	problems = append(problems, r.tell(ctx, c, o))
	err := errors.Join(problems...)
	rep := ClassReport{Name: c.Name, Generation: c.Generation, Ready: nodeclass.Unknown, Kept: o.Kept}
	if ready := o.Status.Condition(nodeclass.Ready); ready != nil {
		rep.Ready = ready.Status
	}
	if first := blocking(&o.Status); first != nil {
		rep.Reason, rep.Message = first.Reason, first.Message
	}
	if err != nil {
		rep.Problem = err.Error()
	}
	r.rep.Classes = append(r.rep.Classes, rep)
	// For pools, below.
	nodeclass.Fill(c, o.Resolved, &o.Status, r.Now())
	return err
}

// blocking is the first condition that says why a class is not ready, nil when it is.
func blocking(s *nodeclass.Status) *nodeclass.Condition {
	for i := range s.Conditions {
		if s.Conditions[i].Status != nodeclass.True {
			return &s.Conditions[i]
		}
	}
	return nil
}

// tell writes an Event when a class has become not ready, or is so for another reason.
func (r *catalogRun) tell(ctx context.Context, c *snapshot.NodeClass, o *nodeclass.Outcome) error {
	ready, why := o.Status.Condition(nodeclass.Ready), blocking(&o.Status)
	was := snapshot.FindCondition(c.Conditions, nodeclass.Ready)
	if ready == nil || ready.Status != nodeclass.False || was != nil && was.Status == nodeclass.False && was.ObservedGeneration == c.Generation {
		return nil
	}
	return r.event(ctx, c, why.Reason, why.Message)
}

func (r *catalogRun) event(ctx context.Context, c *snapshot.NodeClass, reason, note string) error {
	_, err := r.Cluster.Emit(ctx, api.Event{
		Object: api.Reference{APIVersion: ourGroup + "/v1", Kind: kindClass, Name: c.Name, UID: c.UID},
		Key:    reason + " " + note, Reason: reason, Action: "Resolve", Warning: true, Note: note,
		Time: r.Now(), Controller: r.Controller, Instance: r.Instance,
	})
	if err != nil {
		return fmt.Errorf("write an Event of EC2NodeClass %s: %w", c.Name, err)
	}
	return nil
}
