package live

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// TestWhole: every list is read to its end, pods after all others, and nothing is asked of
// the same page twice.
func TestWhole(t *testing.T) {
	f := newFake(t).cluster(25, 103)
	c := f.client(Options{PageSize: 10})
	s, report, err := read(t, c)
	if err != nil {
		t.Fatal(err)
	}
	if len(s.Incomplete) != 0 || len(report.Left) != 0 {
		t.Errorf("incomplete %q, left %v", s.Incomplete, report.Left)
	}
	if len(s.Nodes) != 25 || len(s.Pods) != 103 || len(s.NodePools) != 1 || len(s.NodeClaims) != 1 || len(s.NodeClasses) != 1 || len(s.Namespaces) != 1 {
		t.Errorf("%d nodes, %d pods, %d pools, %d claims, %d classes", len(s.Nodes), len(s.Pods), len(s.NodePools), len(s.NodeClaims), len(s.NodeClasses))
	}
	first := slices.IndexFunc(f.seen, func(q string) bool { return strings.Contains(q, podsPath+"?") })
	for _, q := range f.seen[first:] {
		if !strings.Contains(q, podsPath+"?") {
			t.Errorf("%s was asked for after pods had begun", q)
		}
	}
	if n := len(f.seen) - first; n != 11 {
		t.Errorf("%d requests for 11 pages of pods", n)
	}
	seen := slices.Sorted(slices.Values(f.seen))
	if len(slices.Compact(slices.Clone(seen))) != len(seen) {
		t.Errorf("a page was asked for twice: %q", seen)
	}
}

// TestSame: another page size, and other order of answers, give the same bytes.
func TestSame(t *testing.T) {
	var want string
	for _, size := range []int64{1, 7, 500} {
		s, _, err := read(t, newFake(t).cluster(9, 31).client(Options{PageSize: size, Parallel: int(size)}))
		if err != nil {
			t.Fatal(err)
		}
		got := saved(t, s)
		if want == "" {
			want = got
		}
		if d := cmp.Diff(want, got); d != "" {
			t.Errorf("pages of %d: %s", size, d)
		}
	}
}

// TestBrokenReadings: what a wrong answer to one list makes of the reading.
func TestBrokenReadings(t *testing.T) {
	type answer = func(w http.ResponseWriter, q *http.Request, nth int) bool
	on := func(path string, f answer) answer {
		return func(w http.ResponseWriter, q *http.Request, nth int) bool { return q.URL.Path == path && f(w, q, nth) }
	}
	fail := func(code int, reason metav1.StatusReason, message string) answer {
		return func(w http.ResponseWriter, _ *http.Request, _ int) bool {
			status(w, code, reason, message)
			return true
		}
	}
	forbidden := fail(http.StatusForbidden, metav1.StatusReasonForbidden, `nodepools.karpenter.sh is forbidden: User "kerf" cannot list resource "nodepools"`)
	truncated := func(w http.ResponseWriter, _ *http.Request, _ int) bool {
		w.Header().Set("Content-Length", "1000")
		w.Header().Set("Content-Type", protobuf)
		w.Write([]byte("k8s\x00abc"))
		return true
	}
	second := func(f answer) answer {
		return func(w http.ResponseWriter, q *http.Request, nth int) bool {
			return q.URL.Query().Get("continue") != "" && f(w, q, nth)
		}
	}
	garbage := func(w http.ResponseWriter, _ *http.Request, _ int) bool {
		w.Header().Set("Content-Type", protobuf)
		w.Write([]byte("k8s\x00\xff\xff\xff"))
		return true
	}
	login := func(w http.ResponseWriter, _ *http.Request, _ int) bool {
		w.Header().Set("Content-Type", "text/html")
		w.Write([]byte("<html>please log in</html>"))
		return true
	}
	empty := func(w http.ResponseWriter, _ *http.Request, _ int) bool {
		w.Header().Set("Content-Type", plainJSON)
		w.Write([]byte(`{"kind":"NodePoolList","apiVersion":"karpenter.sh/v1","metadata":{}}`))
		return true
	}
	tests := []struct {
		name  string
		wrong answer
		// incomplete is part of the one thing that is missing; fatal of the error.
		incomplete, fatal string
		is                error
	}{
		{"BC-37: pools may not be listed", on(poolsPath, forbidden), `lacks verb "list" on resource "nodepools" of API group "karpenter.sh"`, "", nil},
		{"pods may not be listed", on(podsPath, fail(403, metav1.StatusReasonForbidden, "pods is forbidden")), "", `lacks verb "list" on resource "pods" of API group ""`, ErrForbidden},
		{"BC-37: every list is answered 401, with a renewed identity too", fail(401, metav1.StatusReasonUnauthorized, "Unauthorized"), "", "does not accept our identity", ErrUnauthorized},
		{"BC-37: one list is answered 401", on(claimsPath, fail(401, metav1.StatusReasonUnauthorized, "Unauthorized")), "", "does not accept our identity", ErrUnauthorized},
		{"a page that fails: the first of pods breaks off", on(podsPath, truncated), "", "list pods", ErrUnavailable},
		{"a page that fails: the second of nodes breaks off", on(nodesPath, second(truncated)), "", "list nodes", ErrUnavailable},
		{"the second page of nodes is no protobuf", on(nodesPath, second(garbage)), "", "list nodes: decode the answer", ErrUnavailable},
		{"S-19: the list of pods is throttled", on(podsPath, fail(429, metav1.StatusReasonTooManyRequests, "too many requests")), "", "list pods: too many requests", ErrUnavailable},
		{"S-19: the second page of pods is throttled", on(podsPath, second(fail(429, metav1.StatusReasonTooManyRequests, "too many requests"))), "", "list pods: too many requests", ErrUnavailable},
		{"a proxy answers with a page of its own", on(nodesPath, login), "", `an answer of type "text/html"`, ErrUnavailable},
		{"daemon sets fail", on("/apis/apps/v1/daemonsets", fail(500, metav1.StatusReasonInternalError, "etcd is away")), "list daemonsets.apps: etcd is away (500)", "", nil},
		{"a list without items", on(poolsPath, empty), "without items: the answer is not whole", "", nil},
		{"the CRD of pools is missing", on(poolsPath, fail(404, metav1.StatusReasonNotFound, "the server could not find the requested resource")),
			"does not serve nodepools.karpenter.sh: the CRD is not installed", "", nil},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			f := newFake(t).cluster(5, 5)
			f.wrong = tt.wrong
			s, _, err := read(t, f.client(Options{PageSize: 2}))
			if tt.fatal != "" {
				if err == nil || !strings.Contains(err.Error(), tt.fatal) || !errors.Is(err, tt.is) {
					t.Fatalf("got %v, want %q", err, tt.fatal)
				}
				if s != nil {
					t.Error("there is a snapshot all the same")
				}
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			if len(s.Incomplete) != 1 || !strings.Contains(s.Incomplete[0], tt.incomplete) {
				t.Errorf("incomplete: %q, want %q", s.Incomplete, tt.incomplete)
			}
			if len(s.Pods) != 5 || len(s.Nodes) != 5 {
				t.Errorf("the others were not read: %d pods, %d nodes", len(s.Pods), len(s.Nodes))
			}
		})
	}
}

// TestZeroItemsThoughClaimsExist: a list that is empty though it cannot be.
func TestZeroItemsThoughClaimsExist(t *testing.T) {
	for _, tt := range []struct{ name, path, want string }{
		{"pods", podsPath, "list pods: the API server gave none, though there are 1 NodeClaim"},
		{"nodes", nodesPath, "list nodes: the API server gave none, though there are 1 NodeClaim"},
		{"pools", poolsPath, "list nodepools: the API server gave none, though there are 1 NodeClaim"},
		{"classes", classesPath, "list ec2nodeclasses: the API server gave none, though there are 1 NodeClaim"},
		{"claims", claimsPath, "list nodeclaims: the API server gave none, though 3 Nodes carry the label karpenter.sh/nodepool"},
		{"namespaces", "/api/v1/namespaces", "list namespaces: the API server gave none, though every cluster has some"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			f := newFake(t).cluster(3, 3)
			f.lists[tt.path] = []any{}
			s, _, err := read(t, f.client(Options{}))
			if err != nil {
				t.Fatal(err)
			}
			if d := cmp.Diff([]string{strings.Replace(tt.want, "there are 1 N", "there is 1 N", 1)}, s.Incomplete); d != "" {
				t.Error(d)
			}
		})
	}
	t.Run("a new cluster", func(t *testing.T) {
		f := newFake(t)
		f.lists[poolsPath], f.lists[classesPath], f.lists[claimsPath] = []any{pool("general")}, []any{class()}, []any{}
		s, _, err := read(t, f.client(Options{}))
		if err != nil || len(s.Incomplete) != 0 {
			t.Errorf("%v, incomplete %q: without nodes and pods a cluster is whole", err, s.Incomplete)
		}
	})
}

// TestExpiredToken: a continue token that has expired begins the list anew; nothing of the
// first try stays.
func TestExpiredToken(t *testing.T) {
	f := newFake(t).cluster(10, 10)
	f.wrong = func(w http.ResponseWriter, q *http.Request, nth int) bool {
		if q.URL.Path != podsPath || nth != 3 {
			return false
		}
		f.lists[podsPath] = f.lists[podsPath][4:] // four pods are gone meanwhile
		f.version++
		status(w, http.StatusGone, metav1.StatusReasonExpired, "The provided continue parameter is too old")
		return true
	}
	s, report, err := read(t, f.client(Options{PageSize: 2}))
	if err != nil {
		t.Fatal(err)
	}
	if len(s.Pods) != 6 || report.Objects["Pod"] != 6 || len(report.Left) != 0 || len(s.Incomplete) != 0 {
		t.Errorf("%d pods (%d counted), left %v, incomplete %q", len(s.Pods), report.Objects["Pod"], report.Left, s.Incomplete)
	}
	if f.times[podsPath] != 3+3 {
		t.Errorf("%d requests for pods", f.times[podsPath])
	}
}

// TestTokenThatAlwaysExpires: a list that is never finished is not there, and is named.
func TestTokenThatAlwaysExpires(t *testing.T) {
	f := newFake(t).cluster(10, 10)
	f.wrong = func(w http.ResponseWriter, q *http.Request, nth int) bool {
		if q.URL.Query().Get("continue") == "" || q.URL.Path != nodesPath {
			return false
		}
		status(w, http.StatusGone, metav1.StatusReasonExpired, "too old")
		return true
	}
	s, _, err := read(t, f.client(Options{PageSize: 2}))
	if s != nil || err == nil || !strings.Contains(err.Error(), "list nodes: begun 3 times and never finished") {
		t.Errorf("got %v", err)
	}
}

// TestMixed: pages of two states of the cluster are not one list.
func TestMixed(t *testing.T) {
	f := newFake(t).cluster(10, 0)
	f.wrong = func(_ http.ResponseWriter, q *http.Request, nth int) bool {
		if q.URL.Path == nodesPath && nth == 2 {
			f.version++
		}
		return false
	}
	if nodes, err := f.client(Options{PageSize: 4}).Nodes(context.Background(), ""); err != nil || len(nodes) != 10 {
		t.Errorf("%d nodes, %v", len(nodes), err)
	}
	if f.times[nodesPath] != 2+3 {
		t.Errorf("%d requests: the list was not begun anew", f.times[nodesPath])
	}
}

// TestSamePage: a server that never comes to an end is left.
func TestSamePage(t *testing.T) {
	f := newFake(t).cluster(10, 0)
	f.wrong = func(w http.ResponseWriter, q *http.Request, _ int) bool {
		if q.URL.Path != nodesPath {
			return false
		}
		f.page(w, q, metav1.ListMeta{ResourceVersion: "7", Continue: "again"}, f.lists[nodesPath][:2])
		return true
	}
	if _, err := f.client(Options{PageSize: 2}).Nodes(context.Background(), ""); err == nil {
		t.Error("no error")
	}
}

// TestOneBad: an object of a Karpenter kind that cannot be read is left out, the others are
// there.
func TestOneBad(t *testing.T) {
	f := newFake(t).cluster(2, 2)
	bad := pool("new").(map[string]any)
	bad["spec"].(map[string]any)["somethingNew"] = 1
	f.lists[poolsPath] = append(f.lists[poolsPath], bad)
	s, report, err := read(t, f.client(Options{}))
	if err != nil {
		t.Fatal(err)
	}
	if len(s.NodePools) != 1 || len(report.Left) != 1 || report.Left[0].Object != "NodePool new" || report.Left[0].Field != "spec.somethingNew" {
		t.Errorf("%d pools, left %+v", len(s.NodePools), report.Left)
	}
}

// TestIdle: whether there is anything to do is one small request.
func TestIdle(t *testing.T) {
	f := newFake(t)
	pods, err := f.client(Options{}).PendingPods(context.Background())
	if err != nil || len(pods) != 0 {
		t.Fatalf("%d pods, %v", len(pods), err)
	}
	if want := []string{"GET /api/v1/pods?fieldSelector=spec.nodeName%3D&limit=500"}; !slices.Equal(f.seen, want) {
		t.Errorf("asked %q", f.seen)
	}
	f.lists[podsPath] = []any{pod(1, "")}
	pods, err = f.client(Options{}).PendingPods(context.Background())
	if err != nil || len(pods) != 1 || pods[0].UID != "p-1" {
		t.Errorf("%v, %v", pods, err)
	}
}

// TestGivenUp: a context that ends is an error, and no snapshot.
func TestGivenUp(t *testing.T) {
	f := newFake(t).cluster(3, 3)
	ctx, cancel := context.WithCancel(context.Background())
	f.wrong = func(_ http.ResponseWriter, q *http.Request, _ int) bool {
		if q.URL.Path == podsPath {
			cancel()
		}
		return false
	}
	c := f.client(Options{PageSize: 1})
	if s, err := readWith(ctx, c); s != nil || !errors.Is(err, context.Canceled) {
		t.Errorf("got %v", err)
	}
}

// TestProgress: every page is told, with what is to come.
func TestProgress(t *testing.T) {
	var got []string
	f := newFake(t).cluster(5, 0)
	c := f.client(Options{PageSize: 2, Progress: func(p Progress) { got = append(got, fmt.Sprint(p)) }})
	if _, err := c.Nodes(context.Background(), ""); err != nil {
		t.Fatal(err)
	}
	if d := cmp.Diff([]string{"{nodes 2 3 false}", "{nodes 4 1 false}", "{nodes 5 0 true}"}, got); d != "" {
		t.Error(d)
	}
}
