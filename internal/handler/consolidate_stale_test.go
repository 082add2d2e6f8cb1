package handler_test

import (
	"errors"
	"testing"
	"time"

	"kerf.sh/kerf/internal/kube/api"
	"kerf.sh/kerf/internal/snapshot"
)

// TestConsolidateStale (S-19): a NodeClaim says that it may be consolidated, which was so a
// while ago, and the list of pods is throttled: nothing goes, at whatever step a move is. What
// a NodeClaim says is for people; it is read back by nobody.
func TestConsolidateStale(t *testing.T) {
	throttled := map[string]func(w *thriftWorld){
		"pods are missing": func(w *thriftWorld) { w.incomplete, w.kube.pods = []string{"pods: 429 too many requests"}, nil },
		"the reading fails": func(w *thriftWorld) {
			w.kube.fail = func(verb, kind, _ string) error {
				if verb == "list" && kind == "everything" {
					return &api.Error{Verb: "list", Resource: "pods", Detail: "429 too many requests", Is: api.ErrUnavailable}
				}
				return nil
			}
		},
	}
	for name, throttle := range throttled {
		for step, before := range map[string]func(w *thriftWorld){
			"nothing is proposed": func(*thriftWorld) {},
			"it is proposed":      func(w *thriftWorld) { w.run(); w.pass(16 * time.Second) },
			"it is tainted":       func(w *thriftWorld) { w.run(); w.pass(16 * time.Second); w.run(); w.pass(6 * time.Second) },
		} {
			t.Run(name+", "+step, func(t *testing.T) {
				w := newThriftWorld(t, 2)
				w.kube.pools[0].Disruption.Budgets = []snapshot.Budget{{Nodes: "0"}}
				w.run()
				if got := w.condition(w.node(0), "Consolidatable"); got != "True Consolidatable" {
					t.Fatalf("it says %q", got)
				}
				w.kube.pools[0].Disruption.Budgets = []snapshot.Budget{{Nodes: "100%"}}
				before(w)
				commands, tainted := w.commands(), len(w.tainted())
				// Pods have come, which nobody can see.
				w.put(w.node(0), "a", 1500)
				w.put(w.node(1), "b", 1500)
				pods := w.kube.pods
				throttle(w)
				for range 3 {
					rep, err := w.h.Handle(background)
					if err == nil && rep.Outcome != "Incomplete" || err != nil && !errors.Is(err, api.ErrUnavailable) || rep.Proposed+rep.Begun+rep.Removed > 0 {
						t.Fatalf("%+v, %v", rep, err)
					}
					w.now = w.now.Add(20 * time.Second)
				}
				if w.commands() != commands || len(w.tainted()) != tainted || len(w.deleting()) > 0 {
					t.Fatalf("commands %s, were %s; tainted %v, deleted %v", w.commands(), commands, w.tainted(), w.deleting())
				}
				// They are seen again: nothing goes, and nothing is left behind.
				w.kube.fail, w.incomplete, w.kube.pods = nil, nil, pods
				w.pass(10 * time.Second)
				for range 3 {
					w.run()
					w.pass(20 * time.Second)
				}
				w.untouched("the pods are seen again")
			})
		}
	}
}
