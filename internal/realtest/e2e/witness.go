package e2e

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/watch"
)

// witness sees every change of the pods and budgets of a namespace, and counts what a budget
// counts: pods that are ready and not being deleted.
type witness struct {
	cancel context.CancelFunc
	group  sync.WaitGroup

	mu      sync.Mutex
	budgets map[string]guarded
	pods    map[string]corev1.Pod // by UID
	broken  []string
	events  int
}

// guarded is a budget with the fewest healthy pods that it may have and has had.
type guarded struct {
	selector     labels.Selector
	want, lowest int
}

// witness begins to look. What budgets want is what they want now.
func (r *Rig) witness(ctx context.Context, namespace string) (*witness, error) {
	ctx, cancel := context.WithCancel(ctx)
	w := &witness{cancel: cancel, budgets: map[string]guarded{}}
	pods, budgets := r.Cluster.Clientset.CoreV1().Pods(namespace), r.Cluster.Clientset.PolicyV1().PodDisruptionBudgets(namespace)
	list, err := budgets.List(ctx, metav1.ListOptions{})
	if err != nil {
		cancel()
		return nil, err
	}
	for i := range list.Items {
		b := &list.Items[i]
		s, err := metav1.LabelSelectorAsSelector(b.Spec.Selector)
		if err != nil || b.Status.DesiredHealthy == 0 || b.Status.ObservedGeneration != b.Generation {
			cancel()
			return nil, fmt.Errorf("budget %s: %v, status %+v", b.Name, err, b.Status)
		}
		w.budgets[b.Name] = guarded{s, int(b.Status.DesiredHealthy), int(b.Status.CurrentHealthy)}
	}
	w.group.Go(func() {
		w.follow(ctx, func() (string, watch.Interface, error) {
			all, err := pods.List(ctx, metav1.ListOptions{})
			if err != nil {
				return "", nil, err
			}
			w.all(all.Items)
			from, err := pods.Watch(ctx, metav1.ListOptions{ResourceVersion: all.ResourceVersion})
			return all.ResourceVersion, from, err
		})
	})
	w.group.Go(func() {
		w.follow(ctx, func() (string, watch.Interface, error) {
			from, err := budgets.Watch(ctx, metav1.ListOptions{})
			return "", from, err
		})
	})
	return w, nil
}

// follow takes events until ctx ends, beginning anew when the server closes the watch.
func (w *witness) follow(ctx context.Context, open func() (string, watch.Interface, error)) {
	for ctx.Err() == nil {
		_, from, err := open()
		if err != nil {
			time.Sleep(100 * time.Millisecond)
			continue
		}
		for e := range from.ResultChan() {
			w.see(e)
		}
		from.Stop()
	}
}

func (w *witness) all(list []corev1.Pod) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.pods = map[string]corev1.Pod{}
	for _, p := range list {
		w.pods[string(p.UID)] = p
	}
	w.count()
}

func (w *witness) see(e watch.Event) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.events++
	switch o := e.Object.(type) {
	case *corev1.Pod:
		if e.Type == watch.Deleted {
			delete(w.pods, string(o.UID))
		} else {
			w.pods[string(o.UID)] = *o
		}
		w.count()
	case *policyv1.PodDisruptionBudget:
		if s := o.Status; e.Type != watch.Deleted && s.CurrentHealthy < s.DesiredHealthy {
			w.say("budget %s says that it has %d healthy pods of %d", o.Name, s.CurrentHealthy, s.DesiredHealthy)
		}
	}
}

// count looks whether every budget has the pods that it wants.
func (w *witness) count() {
	healthy := map[string]int{}
	for _, p := range w.pods {
		if p.DeletionTimestamp != nil || !slices.ContainsFunc(p.Status.Conditions, func(c corev1.PodCondition) bool {
			return c.Type == corev1.PodReady && c.Status == corev1.ConditionTrue
		}) {
			continue
		}
		for name, b := range w.budgets {
			if b.selector.Matches(labels.Set(p.Labels)) {
				healthy[name]++
			}
		}
	}
	for name, b := range w.budgets {
		if n := healthy[name]; n < b.lowest {
			b.lowest = n
			w.budgets[name] = b
			if n < b.want {
				w.say("budget %s had %d healthy pods, and wants %d", name, n, b.want)
			}
		}
	}
}

func (w *witness) say(format string, args ...any) {
	text := fmt.Sprintf(format, args...)
	if !slices.Contains(w.broken, text) {
		w.broken = append(w.broken, text)
	}
}

// stop ends it and returns what was broken, and a line about each budget.
func (w *witness) stop() (broken, told []string) {
	w.cancel()
	w.group.Wait()
	for _, name := range slices.Sorted(maps.Keys(w.budgets)) {
		b := w.budgets[name]
		told = append(told, fmt.Sprintf("%s: wants %d healthy pods, had %d at least", name, b.want, b.lowest))
	}
	return w.broken, append(told, fmt.Sprintf("%d changes seen", w.events))
}
