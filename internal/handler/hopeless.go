package handler

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"hash"
	"slices"
	"time"

	"kerf.sh/kerf/internal/kube/api"
	"kerf.sh/kerf/internal/lifecycle"
	"kerf.sh/kerf/internal/plan"
	"kerf.sh/kerf/internal/snapshot"
)

const hopelessNote = "hopeless"

// Back-off of passes that place nothing, while nothing changes.
const (
	hopelessMin = 10 * time.Second
	hopelessMax = 5 * time.Minute
)

// hopeless remembers a pass that placed nothing: the same pods against the same world would
// be refused again.
type hopeless struct {
	Pods  string        `json:"pods"`
	World string        `json:"world"`
	Until time.Time     `json:"until"`
	For   time.Duration `json:"for"`

	note lifecycle.Note
}

func (h *Sweep) readHopeless(ctx context.Context) (hopeless, error) {
	v, n, err := readNote[hopeless](ctx, h.Memory, hopelessNote)
	v.note = n
	return v, err
}

// skip reports whether the pods are those that a pass placed none of, not long ago.
func (x *hopeless) skip(pods []snapshot.Pod, now time.Time) bool {
	return x.Pods != "" && now.Before(x.Until) && x.Pods == podsKey(pods)
}

// podsKey tells sets of pods apart. What a pod asks for does not change while it waits,
// but for the gates that it has to pass first.
func podsKey(pods []snapshot.Pod) string {
	ids := make([]string, len(pods))
	for i := range pods {
		p := &pods[i]
		ids[i] = fmt.Sprintf("%s/%s/%s/%d/%d", p.Namespace, p.Name, p.UID, len(p.Spec.Gates), len(p.Spec.Tolerations))
	}
	slices.Sort(ids)
	h := sha256.New()
	for _, id := range ids {
		h.Write([]byte(id + "\x00"))
	}
	return hex.EncodeToString(h.Sum(nil))
}

// worldKinds are the kinds whose change may give a pod that was refused a place. Of those
// in the first list only what people write counts, of the others everything.
var (
	worldSpecs = []string{"NodePool", "EC2NodeClass", "NodeClaim", "NodeOverlay", "DaemonSet"}
	worldAll   = []string{"PersistentVolumeClaim", "StorageClass", "CapacityBuffer"}
)

// world is a fingerprint of what decides over pods that wait, for a fraction of the bytes.
func (h *Sweep) world(ctx context.Context) (string, error) {
	sum := sha256.New()
	for _, kind := range append(slices.Clone(worldSpecs), append(slices.Clone(worldAll), "Node")...) {
		list, err := h.Cluster.Metadata(ctx, kind)
		if errors.Is(err, api.ErrMissingKind) {
			continue
		}
		if err != nil {
			return "", fmt.Errorf("look whether anything has changed: %w", err)
		}
		slices.SortFunc(list, func(a, b api.Meta) int { return compareMeta(&a, &b) })
		for i := range list {
			fingerprint(sum, kind, &list[i])
		}
	}
	return hex.EncodeToString(sum.Sum(nil)), nil
}

func compareMeta(a, b *api.Meta) int {
	if a.Namespace != b.Namespace {
		return compareStrings(a.Namespace, b.Namespace)
	}
	return compareStrings(a.Name, b.Name)
}

func compareStrings(a, b string) int {
	switch {
	case a < b:
		return -1
	case a > b:
		return 1
	}
	return 0
}

// fingerprint writes what counts of an object. A Node changes all the time by itself: it
// counts that it is there, and what it is called.
func fingerprint(sum hash.Hash, kind string, m *api.Meta) {
	fmt.Fprintf(sum, "%s\x00%s\x00%s\x00%s\x00%t\x00", kind, m.Namespace, m.Name, m.Version.UID, m.Deleting.IsZero())
	switch {
	case slices.Contains(worldAll, kind):
		fmt.Fprintf(sum, "%s\x00", m.Version.Resource)
	case kind == "Node":
		for _, k := range sortedKeys(m.Labels) {
			fmt.Fprintf(sum, "%s=%s\x00", k, m.Labels[k])
		}
	default:
		fmt.Fprintf(sum, "%d\x00", m.Generation)
	}
}

// writeHopeless remembers a pass that placed nothing, and forgets it after one that did.
func (h *Sweep) writeHopeless(ctx context.Context, was hopeless, w *reading, p *plan.Plan, rep *SweepReport) error {
	next := hopeless{note: was.note}
	if len(p.Launches) == 0 && p.Summary.Placed == 0 && p.Summary.PendingPods > 0 && len(rep.Stale) == 0 {
		world, err := h.world(ctx)
		if err != nil {
			return err
		}
		pods := waiting(w.snap)
		next.Pods, next.World, next.For = podsKey(pods), world, hopelessMin
		if was.Pods == next.Pods && was.World == next.World {
			next.For = min(2*max(was.For, hopelessMin), hopelessMax)
		}
		next.Until = h.Now().Add(next.For)
		for _, x := range w.known.Health { // an offer that may be asked for again is a change
			if x.Until.After(h.Now()) && x.Until.Before(next.Until) {
				next.Until = x.Until
			}
		}
	}
	if next.Pods == "" && was.Pods == "" {
		return nil
	}
	err := saveNote(ctx, h.Memory, next.note, next)
	if errors.Is(err, lifecycle.ErrChanged) {
		return nil
	}
	return err
}
