package handler

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	"kerf.sh/kerf/internal/cloud/launch"
	"kerf.sh/kerf/internal/kube/api"
	"kerf.sh/kerf/internal/lifecycle"
	"kerf.sh/kerf/internal/snapshot"
)

const (
	// smallCluster is up to how many Nodes all of them are listed at every look.
	smallCluster = 200
	// manyNodes is from how many single Nodes on a list of all is less work.
	manyNodes = 50
	// fullEvery is how often all Nodes of a large cluster are listed, for those that carry
	// no label of ours because their image does not set it.
	fullEvery = time.Minute
	// implausible: a list that shows nothing, where so many or more are known, is not
	// believed.
	implausible = 3
	// idsPerLook is how many instances are asked for at once: a call that fails says
	// nothing of these, and only of these.
	idsPerLook = 500

	// joining selects the Nodes that have something to come.
	joining = "karpenter.sh/nodepool,!" + lifecycle.LabelInitialized
)

// look is what was read about records: lists that were not read whole say nothing about
// what they do not show.
type look struct {
	h     *Lifecycle
	chain *chain // nil: the look is for a single record
	now   time.Time

	byClaim       map[string]*api.Meta
	objectsWhole  bool
	instances     map[string]*launch.Described
	instanceKnown map[string]bool // EC2 was asked and answered
	byInstance    map[string][]snapshot.Node
	nodesWhole    bool
	single        map[string]bool // by claim: the Node was asked for and answered
	left          map[string]*leaving
	poolGone      map[string]bool // by pool, where a NodeClaim is still to be made

	incomplete []string
}

// leaving is what is still on a node that is to go.
type leaving struct {
	pods    []string // that have to leave first
	held    []snapshot.Pod
	volumes int
	whole   bool
}

func (h *Lifecycle) newLook(c *chain) *look {
	return &look{
		h: h, chain: c, now: h.Now(), byClaim: map[string]*api.Meta{}, instances: map[string]*launch.Described{}, instanceKnown: map[string]bool{},
		byInstance: map[string][]snapshot.Node{}, single: map[string]bool{}, left: map[string]*leaving{},
		poolGone: map[string]bool{},
	}
}

func (l *look) fails(what string, err error) {
	l.incomplete = append(l.incomplete, what+": "+err.Error())
}

// objects lists the NodeClaims. records are those known before.
func (l *look) objects(ctx context.Context, records []lifecycle.Record) {
	list, err := l.h.Cluster.Metadata(ctx, "NodeClaim")
	if err != nil {
		l.fails("list nodeclaims", err)
		return
	}
	known := 0
	for i := range records {
		if records[i].UID != "" && records[i].Phase.Live() {
			known++
		}
	}
	if len(list) == 0 && known >= implausible {
		l.fails("list nodeclaims", fmt.Errorf("the API server shows none, and %d are known: that is not believed", known))
		return
	}
	l.objectsWhole = true
	for i := range list {
		l.byClaim[list[i].Name] = &list[i]
	}
}

// object reads one NodeClaim.
func (l *look) object(ctx context.Context, claim string) {
	m, err := l.h.Cluster.NodeClaim(ctx, claim)
	switch {
	case err == nil:
		l.byClaim[claim] = &m
	case !errors.Is(err, api.ErrNotFound):
		l.fails("read nodeclaim "+claim, err)
		return
	}
	l.objectsWhole = true
}

// deleted reports whether somebody deleted the NodeClaim of a record, or is about to.
func (l *look) deleted(r *lifecycle.Record) bool {
	o := l.byClaim[r.Claim]
	if o == nil || o.Version.UID != r.UID {
		return l.objectsWhole && r.UID != ""
	}
	return !o.Deleting.IsZero()
}

// read observes what records need beside their objects.
func (l *look) read(ctx context.Context, records []lifecycle.Record) {
	l.readInstances(ctx, records)
	l.readNodes(ctx, records)
	l.readLeaving(ctx, records)
}

func (l *look) readInstances(ctx context.Context, records []lifecycle.Record) {
	var ids []string
	for i := range records {
		if id := records[i].Instance.ID; id != "" {
			ids = append(ids, id)
		}
	}
	for some := range slices.Chunk(ids, idsPerLook) {
		found, missing, err := l.h.Executor.Cloud.Describe(ctx, some)
		if err != nil {
			l.fails("describe instances", err)
			continue
		}
		for i := range found {
			l.instances[found[i].ID], l.instanceKnown[found[i].ID] = &found[i], true
		}
		for _, id := range missing {
			l.instanceKnown[id] = true
		}
	}
}

// nowhere reports whether a Node of the record may be there under a name and without the
// labels by which it would be found.
func (l *look) nowhere(r *lifecycle.Record) bool {
	if r.Instance.ID == "" || r.Node != "" {
		return false
	}
	switch r.Phase {
	case lifecycle.Launched:
		return l.now.Sub(r.LaunchedAt) >= fullEvery || l.deleted(r) || l.ended(r)
	case lifecycle.Draining, lifecycle.Terminating:
		return true
	}
	return false
}

// ended reports whether EC2 does not show the instance as one that is there.
func (l *look) ended(r *lifecycle.Record) bool {
	i := l.instances[r.Instance.ID]
	return i != nil && i.Gone() || i == nil && l.instanceKnown[r.Instance.ID] && l.now.Sub(r.LaunchedAt) >= lifecycle.InstanceGrace
}

func (l *look) readNodes(ctx context.Context, records []lifecycle.Record) {
	named, hidden, coming := 0, false, false
	for i := range records {
		r := &records[i]
		switch {
		case r.Phase == lifecycle.Launched || r.Phase == lifecycle.Registered:
			coming = true
		case r.Node != "":
			named++
		}
		hidden = hidden || l.nowhere(r)
	}
	full := hidden
	if c := l.chain; c != nil {
		small := !c.FullAt.IsZero() && c.Nodes <= smallCluster
		full = small && (coming || named > 0 || hidden) || hidden && l.now.Sub(c.FullAt) >= fullEvery || named > manyNodes
	}
	switch {
	case full:
		l.list(ctx, "", records)
	case coming:
		l.list(ctx, joining, records)
	}
	var todo []*lifecycle.Record
	for i := range records {
		r := &records[i]
		if r.Node != "" && !l.nodesWhole && len(l.byInstance[r.Instance.ID]) == 0 {
			todo = append(todo, r)
		}
	}
	if len(todo) == 0 || full && len(todo) > manyNodes {
		return // a list that failed is not made up for by hundreds of requests
	}
	var mu sync.Mutex
	l.h.each(len(todo), func(i int) {
		n, err := l.h.Cluster.Node(ctx, todo[i].Node)
		mu.Lock()
		defer mu.Unlock()
		l.took(todo[i], n, err)
	})
}

// instanceOf is the id of the instance in a provider id (aws:///zone/id), "" when there is
// none.
func instanceOf(providerID string) string {
	if !strings.HasPrefix(providerID, "aws:///") {
		return ""
	}
	return providerID[strings.LastIndexByte(providerID, '/')+1:]
}

// list lists Nodes.
func (l *look) list(ctx context.Context, selector string, records []lifecycle.Record) {
	nodes, err := l.h.Cluster.Nodes(ctx, selector)
	if err != nil {
		l.fails("list nodes", err)
		return
	}
	for _, n := range nodes {
		if id := instanceOf(n.ProviderID); id != "" {
			l.byInstance[id] = append(l.byInstance[id], n)
		}
	}
	if selector != "" {
		return
	}
	known := 0
	for i := range records {
		if records[i].Node != "" && records[i].Phase.Live() {
			known++
		}
	}
	if len(nodes) == 0 && known >= implausible {
		l.fails("list nodes", fmt.Errorf("the API server shows none, and %d are known: that is not believed", known))
		return
	}
	l.nodesWhole = true
	if l.chain != nil {
		l.chain.FullAt, l.chain.Nodes = l.now, len(nodes)
	}
}

// took takes the answer to a question for one Node.
func (l *look) took(r *lifecycle.Record, n snapshot.Node, err error) {
	switch {
	case errors.Is(err, api.ErrNotFound):
		l.single[r.Claim] = true
	case err != nil:
		l.fails("read node "+r.Node, err)
	default:
		l.single[r.Claim] = true
		// One of the same name may be another machine's.
		if id := r.Instance.ID; instanceOf(n.ProviderID) == id || n.ProviderID == "" && n.UID == r.NodeUID {
			l.byInstance[id] = []snapshot.Node{n}
		}
	}
}

// readLeaving reads what is on the nodes that drain.
func (l *look) readLeaving(ctx context.Context, records []lifecycle.Record) {
	staying := map[string]map[string]bool{} // claims of the pods that stay, by node
	empty := map[string]*leaving{}
	type place struct {
		node string
		of   *leaving
		pods []snapshot.Pod
		err  error
	}
	var places []place
	var drains []*leaving
	for i := range records {
		r := &records[i]
		if r.Phase != lifecycle.Draining || len(l.byInstance[r.Instance.ID]) == 0 {
			continue
		}
		out := &leaving{whole: true}
		l.left[r.Claim] = out
		drains = append(drains, out)
		for _, n := range l.byInstance[r.Instance.ID] {
			places = append(places, place{node: n.Name, of: out})
		}
	}
	l.h.each(len(places), func(i int) { places[i].pods, places[i].err = l.h.Cluster.PodsOn(ctx, places[i].node) })
	for i := range places {
		p := &places[i]
		if p.err != nil {
			l.fails("list pods of node "+p.node, p.err)
			p.of.whole = false
			continue
		}
		staying[p.node] = p.of.sort(p.pods, l.now)
	}
	for _, out := range drains {
		slices.Sort(out.pods)
	}
	for i := range places {
		if p := &places[i]; len(p.of.pods) == 0 && p.of.whole { // before that its volumes do not matter
			empty[p.node] = p.of
		}
	}
	if len(empty) == 0 {
		return
	}
	attached, err := l.attachments(ctx, empty)
	if err != nil {
		l.fails("list volume attachments", err)
		for _, out := range empty {
			out.whole = false
		}
		return
	}
	for _, a := range attached {
		if a.claim == "" || !staying[a.node][a.claim] {
			empty[a.node].volumes++
		}
	}
}

// sort tells pods that have to leave from those that stay, and returns the claims of these.
func (x *leaving) sort(pods []snapshot.Pod, now time.Time) map[string]bool {
	staying := map[string]bool{}
	for k := range pods {
		p := &pods[k]
		if leaves(p, now) {
			x.pods = append(x.pods, p.Ref())
			x.held = append(x.held, *p)
			continue
		}
		for _, v := range p.Spec.Volumes {
			staying[p.Namespace+"/"+claimOf(p, v)] = true
		}
	}
	return staying
}

// attachment is a volume at a node, with the claim ("namespace/name") that it is bound to,
// "" when that is not known.
type attachment struct{ node, claim string }

// attachments are those at some nodes. One that names no volume is not waited for
// (Karpenter: same).
func (l *look) attachments(ctx context.Context, nodes map[string]*leaving) ([]attachment, error) {
	s, err := l.h.Cluster.Some(ctx, "VolumeAttachment")
	if err != nil {
		return nil, err
	}
	ours := slices.DeleteFunc(s.Attachments, func(a snapshot.VolumeAttachment) bool { return nodes[a.Node] == nil || a.Volume == "" })
	if len(ours) == 0 {
		return nil, nil
	}
	if s, err = l.h.Cluster.Some(ctx, "PersistentVolumeClaim"); err != nil {
		return nil, err
	}
	claims := map[string]string{}
	for i := range s.Claims {
		if c := &s.Claims[i]; c.Spec.VolumeName != "" {
			claims[c.Spec.VolumeName] = c.Namespace + "/" + c.Name
		}
	}
	var out []attachment
	for _, a := range ours {
		out = append(out, attachment{a.Node, claims[a.Volume]})
	}
	return out, nil
}

// claimOf is the name of the claim behind a volume of a pod: that of a generic ephemeral
// volume follows from pod and volume.
func claimOf(p *snapshot.Pod, v snapshot.Volume) string {
	if v.Ephemeral != nil {
		return p.Name + "-" + v.Name
	}
	return v.Claim
}

// leaves reports whether a node waits for a pod to leave it: not for pods that have
// finished, static ones, those that tolerate that it goes, and those that hang in their
// deletion (Karpenter: same).
func leaves(p *snapshot.Pod, now time.Time) bool { return lifecycle.Holds(p, now) }

// observation is what was seen of one record.
func (l *look) observation(r *lifecycle.Record) lifecycle.Observation {
	o := lifecycle.Observation{
		PoolGone:        l.poolGone[r.NodePool],
		ObjectsComplete: l.objectsWhole, NodesComplete: l.nodesWhole || l.single[r.Claim], InstancesComplete: l.instanceKnown[r.Instance.ID],
	}
	if m := l.byClaim[r.Claim]; m != nil {
		o.Object = &lifecycle.Object{UID: m.Version.UID, Deleting: m.Deleting, Annotations: m.Annotations, Finalizers: m.Finalizers}
	}
	if i := l.instances[r.Instance.ID]; i != nil {
		o.Instance = &lifecycle.InstanceSeen{ID: i.ID, State: i.State, ImageID: i.ImageID}
	}
	if id := r.Instance.ID; id != "" {
		for _, n := range l.byInstance[id] {
			// Whether the finalizer is still there, taking it off finds out.
			o.Nodes = append(o.Nodes, lifecycle.Node{Node: n, Finalizers: []string{lifecycle.Finalizer}})
		}
	}
	if x := l.left[r.Claim]; x != nil {
		o.Pods, o.Volumes, o.PodsComplete = len(x.pods), x.volumes, x.whole
	}
	return o
}

// waitsFor says which pods keep a node, for people.
func (x *leaving) waitsFor() string {
	const shown = 3
	names := x.pods
	more := ""
	if len(names) > shown {
		names, more = names[:shown], fmt.Sprintf(" and %d more", len(names)-shown)
	}
	return fmt.Sprintf("waits for %d pods to leave: %s%s", len(x.pods), strings.Join(names, ", "), more)
}
