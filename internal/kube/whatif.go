package kube

import (
	"maps"
	"slices"
	"strings"

	"kerf.sh/kerf/internal/plan"
	"kerf.sh/kerf/internal/snapshot"
)

// Overlay is what a reading is changed by before it is planned on.
type Overlay struct {
	// Sources hold objects that are added, or that take the place of those of the
	// same kind, namespace and name. Of several in the overlay the last one counts.
	Sources []Source
	// Remove names objects to be taken away, after that (snapshot.Remove says what
	// goes with them).
	Remove []snapshot.Ref
}

// Empty reports whether the overlay changes nothing.
func (o *Overlay) Empty() bool { return len(o.Sources)+len(o.Remove) == 0 }

// Reading is a snapshot with its report.
type Reading struct {
	Snapshot *snapshot.Snapshot
	Report   *Report
}

// UnknownError is a removal of an object that was not read.
type UnknownError struct {
	Ref   snapshot.Ref
	Known []snapshot.Ref // everything that was, sorted
}

func (e *UnknownError) Error() string { return "there is no " + e.Ref.String() + " to remove" }

// ReadWhatIf reads sources as Read does, and tells what they would be with an
// overlay: as if its objects had been among them, and what it removes not. The
// defaults of admission are those of the changed cluster. A workload of the overlay
// gets the pods that its controller would make; those that it has are replaced where
// its template differs, and added or taken away where only their number does.
func ReadWhatIf(sources []Source, ov Overlay, o Options) (before, after *Reading, err error) {
	r := newReader(o)
	if err := r.sources(sources); err != nil {
		return nil, nil, err
	}
	f := r.fork()
	if err := r.finish(); err != nil {
		return nil, nil, err
	}
	if err := f.sources(ov.Sources); err != nil {
		return nil, nil, err
	}
	f.over.remove = ov.Remove
	f.over.before = r.snap
	if err := f.finish(); err != nil {
		return nil, nil, err
	}
	return &Reading{r.snap, r.report}, &Reading{f.snap, f.report}, nil
}

// overlay is the state of a reader that lays objects over what was read.
type overlay struct {
	index   snapshot.Index
	drafts  map[objectKey]int // where the draft of an object is
	objects map[objectKey]plan.ChangeKind
	places  map[objectKey]place
	// left and warned count what the reading without the overlay had to say.
	left, warned int
	remove       []snapshot.Ref
	removed      []snapshot.Removal
	// missing are the pods that the overlay's workloads want beyond those they have;
	// notes say what became of their pods.
	missing map[objectKey]int64
	notes   map[objectKey]string
	before  *snapshot.Snapshot
}

// fork returns a reader that has read the same and does not share what it changes.
func (r *reader) fork() *reader {
	out := *r
	out.snap = r.snap.Fork()
	out.report = &Report{
		Objects: maps.Clone(r.report.Objects), Ignored: maps.Clone(r.report.Ignored),
		Left: slices.Clone(r.report.Left), Warnings: slices.Clone(r.report.Warnings),
	}
	out.seen = maps.Clone(r.seen)
	out.drafts = slices.Clone(r.drafts)
	out.over = &overlay{
		index: snapshot.NewIndex(out.snap), drafts: make(map[objectKey]int, len(r.drafts)),
		objects: map[objectKey]plan.ChangeKind{}, places: map[objectKey]place{}, notes: map[objectKey]string{},
		left: len(r.report.Left), warned: len(r.report.Warnings),
	}
	for i := range out.drafts {
		out.over.drafts[out.drafts[i].object.key()] = i
	}
	return &out
}

func (k objectKey) ref() snapshot.Ref {
	return snapshot.Ref{Kind: k.kind, Namespace: k.namespace, Name: k.name}
}

// lay puts the object that was read last in the place of the one that it replaces.
// drafts is how many drafts there were before it.
func (r *reader) lay(o object, drafts int) {
	key := o.key()
	at, replaced := r.over.index.Settle(r.snap, key.ref())
	if replaced {
		if i, ok := r.over.drafts[key]; ok {
			r.drafts[i].index = -1
			delete(r.over.drafts, key)
		}
	}
	if len(r.drafts) > drafts {
		r.drafts[drafts].index = at
		r.over.drafts[key] = drafts
	}
	if first, twice := r.over.places[key]; twice {
		r.warn(key.ref().String(), plan.DuplicateObject, "given in %s and in %s; the last one counts",
			first.problem("", "", "").Place(), o.at.problem("", "", "").Place())
	} else if replaced {
		r.over.objects[key] = plan.Replaced
	} else {
		r.over.objects[key] = plan.Added
	}
	r.over.places[key] = o.at
	r.seen[key] = o.at
}

// outdated drops what was said about objects that the overlay replaced or removed.
func (r *reader) outdated() {
	if r.over == nil {
		return
	}
	names, refs := map[string]bool{}, map[string]bool{}
	note := func(k objectKey) {
		o := object{kind: k.kind, namespace: k.namespace, name: k.name}
		names[o.ref()], refs[o.warningRef()] = true, true
	}
	for k := range r.over.objects {
		note(k)
	}
	for _, m := range r.over.removed {
		for _, o := range append([]snapshot.Ref{m.Object}, m.Gone...) {
			note(objectKey{o.Kind, o.Namespace, o.Name})
		}
	}
	r.report.Left = slices.Concat(
		slices.DeleteFunc(r.report.Left[:r.over.left:r.over.left], func(p LeftOut) bool { return names[p.Object] }),
		r.report.Left[r.over.left:])
	r.report.Warnings = slices.Concat(
		slices.DeleteFunc(r.report.Warnings[:r.over.warned:r.over.warned], func(w plan.Warning) bool { return refs[w.Object] }),
		r.report.Warnings[r.over.warned:])
	r.snap.Remarks = slices.DeleteFunc(slices.Clone(r.snap.Remarks), func(m snapshot.Remark) bool { return refs[m.Object] })
}

// take removes what is to be removed and is there. What the overlay itself has added
// is just not added.
func (r *reader) take() {
	if r.over == nil || len(r.over.remove) == 0 {
		return
	}
	there := map[snapshot.Ref]bool{}
	for _, o := range r.snap.Objects() {
		there[o] = true
	}
	var later []snapshot.Ref
	for _, ref := range r.over.remove {
		if claim := (snapshot.Ref{Kind: "NodeClaim", Name: ref.Name}); ref.Kind == "Node" && !there[ref] && there[claim] {
			ref = claim // a node that is on its way has the name of its claim
		}
		key := objectKey{ref.Kind, ref.Namespace, ref.Name}
		switch {
		case !there[ref]:
			later = append(later, ref)
			continue
		case r.over.objects[key] == plan.Added:
			r.snap.Drop(ref)
		default:
			r.over.removed = append(r.over.removed, r.snap.Remove([]snapshot.Ref{ref}, r.snap.Now)[0])
		}
		delete(r.over.objects, key)
	}
	r.over.remove = later
	r.redraft()
}

// redraft finds the objects of the drafts again, after the lists have changed.
func (r *reader) redraft() {
	index := snapshot.NewIndex(r.snap)
	for i := range r.drafts {
		if d := &r.drafts[i]; d.index >= 0 {
			d.index = index.At(d.object.key().ref())
		}
	}
	for k := range r.seen {
		if index.At(k.ref()) < 0 {
			delete(r.seen, k)
		}
	}
	r.over.index = index
}

// changes lists what the overlay does. The error is a removal that names nothing.
func (r *reader) changes() error {
	if r.over == nil {
		return nil
	}
	if len(r.over.remove) > 0 {
		return &UnknownError{r.over.remove[0], r.over.before.Objects()}
	}
	now, then := snapshot.NewIndex(r.snap), snapshot.NewIndex(r.over.before)
	out := &r.report.Changes
	for k, what := range r.over.objects {
		c := plan.Change{Object: k.ref().String(), Kind: what, Note: r.over.notes[k]}
		if what == plan.Replaced && now.Same(r.snap, then, r.over.before, k.ref()) {
			c.Kind = plan.Unchanged
		}
		*out = append(*out, c)
	}
	for _, m := range r.over.removed {
		c := plan.Change{Object: m.Object.String(), Kind: plan.Removed}
		if m.Object.Kind == "Node" || m.Object.Kind == "NodeClaim" {
			c.Kind = plan.Going
		}
		for _, o := range slices.Concat(m.Going, m.Gone) {
			if o != m.Object {
				c.With = append(c.With, o.String())
			}
		}
		slices.Sort(c.With)
		*out = append(*out, c)
	}
	slices.SortFunc(*out, func(a, b plan.Change) int { return strings.Compare(a.Object, b.Object) })
	*out = slices.CompactFunc(*out, func(a, b plan.Change) bool { return a.Object == b.Object })
	clear(r.report.Objects)
	for _, o := range r.snap.Objects() {
		r.report.Objects[o.Kind]++
	}
	return nil
}
