package live

import (
	"errors"
	"net/http"
	"strings"
	"testing"

	"kerf.sh/kerf/internal/kube"
)

// TestSome: a few kinds are read whole, and nothing else is asked for.
func TestSome(t *testing.T) {
	f := newFake(t).cluster(25, 103)
	c := f.client(Options{PageSize: 10})
	s, report, err := kube.Read([]kube.Source{c.Some(t.Context(), "NodePool", "Node", "NodeOverlay")}, kube.Options{Now: now})
	if err != nil || len(report.Left) > 0 {
		t.Fatal(err, report.Left)
	}
	if len(s.Nodes) != 25 || len(s.NodePools) != 1 || len(s.Pods)+len(s.NodeClaims)+len(s.Namespaces) != 0 || len(s.Incomplete) != 0 {
		t.Errorf("%d nodes, %d pools, %d pods, incomplete %q", len(s.Nodes), len(s.NodePools), len(s.Pods), s.Incomplete)
	}
	for _, q := range f.seen {
		if !strings.Contains(q, "nodepools") && !strings.Contains(q, "/nodes") && !strings.Contains(q, "nodeoverlays") {
			t.Errorf("%s was asked for", q)
		}
	}
}

// TestSomeBroken: a list that is not whole is an error, and so is a kind that nobody reads.
func TestSomeBroken(t *testing.T) {
	f := newFake(t).cluster(25, 3)
	f.wrong = func(w http.ResponseWriter, q *http.Request, nth int) bool {
		if !strings.Contains(q.URL.Path, "nodepools") {
			return false
		}
		w.WriteHeader(http.StatusForbidden)
		return true
	}
	c := f.client(Options{PageSize: 10})
	for _, tc := range []struct {
		kinds []string
		want  error
	}{{[]string{"Node", "NodePool"}, ErrForbidden}, {[]string{"Node"}, nil}, {[]string{"NodeOverlay"}, nil}} {
		_, _, err := kube.Read([]kube.Source{c.Some(t.Context(), tc.kinds...)}, kube.Options{Now: now})
		if !errors.Is(err, tc.want) || (err == nil) != (tc.want == nil) {
			t.Errorf("%v: %v, want %v", tc.kinds, err, tc.want)
		}
	}
	if _, _, err := kube.Read([]kube.Source{c.Some(t.Context(), "Secret")}, kube.Options{Now: now}); err == nil {
		t.Error("secrets were read")
	}
}
