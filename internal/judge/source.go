package judge

import (
	"context"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/client-go/tools/cache"
)

// source is an informer that is told of changes instead of watching for them: when
// a call of set or remove returns, every handler has seen it. So the scheduler's
// caches are never behind the objects they mirror, and nothing has to wait.
type source struct {
	cache.Indexer
	mu       sync.Mutex
	handlers []cache.ResourceEventHandler
}

var _ cache.SharedIndexInformer = &source{}

func newSource() *source {
	return &source{Indexer: cache.NewIndexer(cache.DeletionHandlingMetaNamespaceKeyFunc, cache.Indexers{
		cache.NamespaceIndex: cache.MetaNamespaceIndexFunc,
	})}
}

// set adds an object, or replaces the one of the same name.
func (s *source) set(obj any) {
	s.mu.Lock()
	defer s.mu.Unlock()
	old, exists, err := s.Get(obj)
	if err != nil {
		panic(err) // an object without metadata: a mistake in this package
	}
	if err := s.Update(obj); err != nil {
		panic(err)
	}
	for _, h := range s.handlers {
		if exists {
			h.OnUpdate(old, obj)
		} else {
			h.OnAdd(obj, false)
		}
	}
}

// remove takes an object away; none of that name is no mistake.
func (s *source) remove(obj any) {
	s.mu.Lock()
	defer s.mu.Unlock()
	old, exists, err := s.Get(obj)
	if err != nil {
		panic(err)
	}
	if !exists {
		return
	}
	if err := s.Delete(old); err != nil {
		panic(err)
	}
	for _, h := range s.handlers {
		h.OnDelete(old)
	}
}

// find returns the object of a name, nil when there is none.
func (s *source) find(namespace, name string) any {
	key := name
	if namespace != "" {
		key = namespace + "/" + name
	}
	obj, _, err := s.GetByKey(key)
	if err != nil {
		panic(err)
	}
	return obj
}

func (s *source) AddEventHandler(h cache.ResourceEventHandler) (cache.ResourceEventHandlerRegistration, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.handlers = append(s.handlers, h)
	for _, obj := range s.List() {
		h.OnAdd(obj, true)
	}
	return synced{}, nil
}

func (s *source) AddEventHandlerWithResyncPeriod(h cache.ResourceEventHandler, _ time.Duration) (cache.ResourceEventHandlerRegistration, error) {
	return s.AddEventHandler(h)
}

func (s *source) AddEventHandlerWithOptions(h cache.ResourceEventHandler, _ cache.HandlerOptions) (cache.ResourceEventHandlerRegistration, error) {
	return s.AddEventHandler(h)
}

func (s *source) RemoveEventHandler(cache.ResourceEventHandlerRegistration) error { return nil }
func (s *source) GetStore() cache.Store                                           { return s.Indexer }
func (s *source) GetIndexer() cache.Indexer                                       { return s.Indexer }
func (s *source) GetController() cache.Controller                                 { return nil }
func (s *source) Run(<-chan struct{})                                             {}
func (s *source) RunWithContext(context.Context)                                  {}
func (s *source) HasSynced() bool                                                 { return true }
func (s *source) HasSyncedChecker() cache.DoneChecker                             { return synced{} }
func (s *source) LastSyncResourceVersion() string                                 { return "" }
func (s *source) SetWatchErrorHandler(cache.WatchErrorHandler) error              { return nil }
func (s *source) SetTransform(cache.TransformFunc) error                          { return nil }
func (s *source) IsStopped() bool                                                 { return false }
func (s *source) SetWatchErrorHandlerWithContext(cache.WatchErrorHandlerWithContext) error {
	return nil
}

// synced says yes to every question whether something has been caught up with.
type synced struct{}

var closed = func() chan struct{} { c := make(chan struct{}); close(c); return c }()

func (synced) HasSynced() bool                     { return true }
func (synced) HasSyncedChecker() cache.DoneChecker { return synced{} }
func (synced) Name() string                        { return "source" }
func (synced) Done() <-chan struct{}               { return closed }

// name is namespace/name of an object, or its name.
func name(obj any) string {
	m, err := meta.Accessor(obj)
	if err != nil {
		panic(err)
	}
	if m.GetNamespace() == "" {
		return m.GetName()
	}
	return m.GetNamespace() + "/" + m.GetName()
}
