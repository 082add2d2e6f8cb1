package sim

import (
	"maps"
	"slices"
	"time"

	"kerf.sh/kerf/internal/kube/api"
)

// meta is what the API server knows of every object.
type meta struct {
	uid        string
	version    int64
	generation int64
	finalizers []string
	owners     []api.Owner
	created    time.Time
	deleting   time.Time
}

// item is one object. What v holds is replaced, never changed in place: lists share it.
type item[T any] struct {
	meta
	key string
	v   T
}

// kind is all objects of one kind, by namespace/name or name.
type kind[T any] struct {
	c    *cluster
	name string
	by   map[string]*item[T]
	keys []string // sorted; nil = to be sorted again
	// set writes what the API server knows into the object.
	set func(*item[T])
}

func newKind[T any](c *cluster, name string, set func(*item[T])) *kind[T] {
	k := &kind[T]{c: c, name: name, by: map[string]*item[T]{}, set: set}
	c.removers = append(c.removers, k)
	return k
}

func (k *kind[T]) sorted() []string {
	if k.keys == nil {
		k.keys = slices.Sorted(maps.Keys(k.by))
	}
	return k.keys
}

// all are the objects in order.
func (k *kind[T]) all() []*item[T] {
	out := make([]*item[T], 0, len(k.by))
	for _, key := range k.sorted() {
		out = append(out, k.by[key])
	}
	return out
}

// list are copies of the objects as they are now.
func (k *kind[T]) list() []T {
	out := make([]T, 0, len(k.by))
	for _, key := range k.sorted() {
		out = append(out, k.by[key].v)
	}
	return out
}

// create makes an object, false if there is one of that name.
func (k *kind[T]) create(key string, v T, owners []api.Owner, finalizers ...string) (*item[T], bool) {
	if k.by[key] != nil {
		return k.by[key], false
	}
	it := &item[T]{key: key, v: v}
	it.uid, it.created, it.owners, it.finalizers, it.generation = k.c.w.uid(k.name), k.c.w.now().Truncate(time.Second), owners, finalizers, 1
	k.by[key], k.keys = it, nil
	k.touch(it)
	return it, true
}

// touch gives an object that was changed another version.
func (k *kind[T]) touch(it *item[T]) {
	k.c.version++
	it.version = k.c.version
	k.c.changes[k.name]++
	k.set(it)
	k.c.changed(k.name, it.key)
}

// delete marks an object as one to go, or removes it when nothing holds it.
func (k *kind[T]) delete(it *item[T]) {
	if it == nil || k.by[it.key] != it {
		return
	}
	if len(it.finalizers) == 0 {
		k.remove(it)
		return
	}
	if it.deleting.IsZero() {
		it.deleting = k.c.w.now().Truncate(time.Second)
		k.touch(it)
	}
}

func (k *kind[T]) remove(it *item[T]) {
	delete(k.by, it.key)
	k.keys = nil
	k.c.version++
	k.c.changes[k.name]++
	k.c.w.tracef("%s %s is gone", k.name, it.key)
	k.c.changed(k.name, it.key)
	k.c.orphaned(it.uid)
}

// finalize sets the finalizers of an object, which may be its end.
func (k *kind[T]) finalize(it *item[T], finalizers []string) {
	it.finalizers = finalizers
	if len(finalizers) == 0 && !it.deleting.IsZero() {
		k.remove(it)
		return
	}
	k.touch(it)
}

// objects is a kind without its type, for what holds for all.
type objects interface {
	kindName() string
	find(key string) *meta
	deleteUID(key string)
	finalizeKey(key string, finalizers []string)
	// dropOwned deletes what belongs to nothing but an object that is not there any more.
	dropOwned(there func(uid string) bool)
	metas() []api.Meta
}

func (k *kind[T]) kindName() string { return k.name }

func (k *kind[T]) find(key string) *meta {
	if it := k.by[key]; it != nil {
		return &it.meta
	}
	return nil
}

func (k *kind[T]) deleteUID(key string) { k.delete(k.by[key]) }

func (k *kind[T]) finalizeKey(key string, finalizers []string) {
	if it := k.by[key]; it != nil {
		k.finalize(it, finalizers)
	}
}

func (k *kind[T]) dropOwned(there func(uid string) bool) {
	for _, it := range k.all() {
		if len(it.owners) > 0 && it.deleting.IsZero() && !slices.ContainsFunc(it.owners, func(o api.Owner) bool { return there(o.UID) }) {
			k.c.w.tracef("the collector deletes %s %s", k.name, it.key)
			k.delete(it)
		}
	}
}
