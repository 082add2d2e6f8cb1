package live

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/rest"

	"kerf.sh/kerf/internal/kube"
	"kerf.sh/kerf/internal/snapshot"
)

var now = time.Date(2026, 11, 30, 12, 0, 0, 0, time.UTC)

// fake is an API server that holds lists and can be told to answer wrongly.
type fake struct {
	t  *testing.T
	mu sync.Mutex
	// lists are the objects by the path of their list.
	lists map[string][]any
	// version is the resource version of lists; a continue token is "VERSION/OFFSET".
	version int
	// wrong answers a request in place of the fake, when it returns true.
	wrong func(w http.ResponseWriter, q *http.Request, nth int) bool
	seen  []string // "GET /api/v1/pods?..."
	times map[string]int
	auth  []string
}

func newFake(t *testing.T) *fake {
	f := &fake{t: t, lists: map[string][]any{}, version: 7, times: map[string]int{}}
	f.lists["/api/v1/namespaces"] = []any{&corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "kube-system", UID: "ns-1"}}}
	return f
}

// client starts the fake and makes a client for it.
func (f *fake) client(o Options, change ...func(*rest.Config)) *Client {
	f.t.Helper()
	s := httptest.NewServer(f)
	f.t.Cleanup(s.Close)
	config := &rest.Config{Host: s.URL}
	for _, c := range change {
		c(config)
	}
	if o.Retries == 0 {
		o.Retries = -1
	}
	c, err := New(config, o)
	if err != nil {
		f.t.Fatal(err)
	}
	return c
}

func (f *fake) ServeHTTP(w http.ResponseWriter, q *http.Request) {
	f.mu.Lock()
	f.times[q.URL.Path]++
	nth := f.times[q.URL.Path]
	f.seen = append(f.seen, q.Method+" "+q.URL.RequestURI())
	f.auth = append(f.auth, q.Header.Get("Authorization"))
	f.mu.Unlock()
	if f.wrong != nil && f.wrong(w, q, nth) {
		return
	}
	f.answer(w, q)
}

// answer gives a page of a list.
func (f *fake) answer(w http.ResponseWriter, q *http.Request) {
	if i := strings.LastIndex(q.URL.Path, "/"); strings.HasPrefix(q.URL.Path, "/apis/karpenter") || strings.HasPrefix(q.URL.Path, "/apis/autoscaling.x") {
		if _, ok := f.lists[q.URL.Path]; !ok {
			status(w, http.StatusNotFound, metav1.StatusReasonNotFound, "the server could not find the requested resource "+q.URL.Path[i+1:])
			return
		}
	}
	all := f.lists[q.URL.Path]
	limit, err := strconv.Atoi(q.URL.Query().Get("limit"))
	if err != nil {
		limit = len(all)
	}
	from := 0
	if token := q.URL.Query().Get("continue"); token != "" {
		_, offset, _ := strings.Cut(token, "/")
		from, _ = strconv.Atoi(offset)
	}
	to := min(from+limit, len(all))
	meta := metav1.ListMeta{ResourceVersion: strconv.Itoa(f.version)}
	if to < len(all) {
		meta.Continue = fmt.Sprintf("%d/%d", f.version, to)
		left := int64(len(all) - to)
		meta.RemainingItemCount = &left
	}
	f.page(w, q, meta, all[from:to])
}

// kindOfPath is the kind that a path lists.
func kindOfPath(path string) *kind {
	for i := range kinds {
		if kinds[i].request("list").path() == path {
			return &kinds[i]
		}
	}
	return nil
}

func (f *fake) page(w http.ResponseWriter, q *http.Request, meta metav1.ListMeta, items []any) {
	k := kindOfPath(q.URL.Path)
	if k == nil {
		status(w, http.StatusNotFound, metav1.StatusReasonNotFound, "no such path")
		return
	}
	if k.decode == nil {
		w.Header().Set("Content-Type", plainJSON)
		json.NewEncoder(w).Encode(map[string]any{"apiVersion": k.group + "/" + k.version, "kind": k.name + "List", "metadata": meta, "items": append([]any{}, items...)})
		return
	}
	if !strings.Contains(q.Header.Get("Accept"), protobuf) {
		f.t.Errorf("%s accepts %q", q.URL.Path, q.Header.Get("Accept"))
	}
	w.Header().Set("Content-Type", protobuf)
	w.Write(listBytes(f.t, k, meta, items))
}

// listBytes encodes a list whose items are of whatever type: in protobuf a list is its
// metadata as field 1, and every item as field 2.
func listBytes(t testing.TB, k *kind, meta metav1.ListMeta, items []any) []byte {
	raw, err := meta.Marshal()
	if err != nil {
		t.Fatal(err)
	}
	body := field(nil, 1, raw)
	for _, it := range items {
		raw, err := it.(interface{ Marshal() ([]byte, error) }).Marshal()
		if err != nil {
			t.Fatal(err)
		}
		body = field(body, 2, raw)
	}
	return wrap(t, k.name+"List", body)
}

func field(b []byte, number byte, raw []byte) []byte {
	b = append(b, number<<3|2)
	for n := len(raw); ; n >>= 7 {
		if n < 0x80 {
			b = append(b, byte(n))
			break
		}
		b = append(b, byte(n)|0x80)
	}
	return append(b, raw...)
}

// wrap puts an encoded object into the envelope.
func wrap(t testing.TB, kind string, body []byte) []byte {
	u := runtime.Unknown{TypeMeta: runtime.TypeMeta{APIVersion: "v1", Kind: kind}, Raw: body}
	out, err := u.Marshal()
	if err != nil {
		t.Fatal(err)
	}
	return append([]byte("k8s\x00"), out...)
}

func status(w http.ResponseWriter, code int, reason metav1.StatusReason, message string) {
	s := metav1.Status{TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "Status"}, Status: metav1.StatusFailure, Code: int32(code), Reason: reason, Message: message}
	w.Header().Set("Content-Type", plainJSON)
	w.WriteHeader(code)
	json.NewEncoder(w).Encode(s)
}

func node(i int) *corev1.Node {
	return &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: fmt.Sprintf("node-%04d", i), UID: types.UID(fmt.Sprintf("n-%d", i)), Labels: map[string]string{nodePoolLabel: "general"}}}
}

func pod(i int, node string) *corev1.Pod {
	return &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: fmt.Sprintf("web-%05d", i), UID: types.UID(fmt.Sprintf("p-%d", i)),
			ManagedFields: []metav1.ManagedFieldsEntry{{Manager: "kubelet", FieldsV1: metav1.NewFieldsV1(`{"f:spec":{}}`)}}},
		Spec: corev1.PodSpec{NodeName: node, Containers: []corev1.Container{{Name: "app"}}},
	}
}

func claim(i int) any {
	return map[string]any{"apiVersion": "karpenter.sh/v1", "kind": "NodeClaim", "metadata": map[string]any{"name": fmt.Sprintf("general-%d", i), "uid": fmt.Sprintf("c-%d", i)},
		"spec": map[string]any{"requirements": []any{}, "nodeClassRef": map[string]any{"group": "karpenter.k8s.aws", "kind": "EC2NodeClass", "name": "default"}}}
}

func pool(name string) any {
	return map[string]any{"apiVersion": "karpenter.sh/v1", "kind": "NodePool", "metadata": map[string]any{"name": name, "uid": "np-" + name},
		"spec": map[string]any{"template": map[string]any{"spec": map[string]any{"requirements": []any{}, "nodeClassRef": map[string]any{"group": "karpenter.k8s.aws", "kind": "EC2NodeClass", "name": "default"}}}}}
}

func class() any {
	return map[string]any{"apiVersion": "karpenter.k8s.aws/v1", "kind": "EC2NodeClass", "metadata": map[string]any{"name": "default", "uid": "nc-1"},
		"spec": map[string]any{"role": "node", "amiSelectorTerms": []any{map[string]any{"alias": "al2023@latest"}},
			"subnetSelectorTerms":        []any{map[string]any{"tags": map[string]any{"a": "b"}}},
			"securityGroupSelectorTerms": []any{map[string]any{"tags": map[string]any{"a": "b"}}}}}
}

const (
	podsPath    = "/api/v1/pods"
	nodesPath   = "/api/v1/nodes"
	poolsPath   = "/apis/karpenter.sh/v1/nodepools"
	claimsPath  = "/apis/karpenter.sh/v1/nodeclaims"
	classesPath = "/apis/karpenter.k8s.aws/v1/ec2nodeclasses"
)

// cluster fills the fake with a whole cluster.
func (f *fake) cluster(nodes, pods int) *fake {
	for i := range nodes {
		f.lists[nodesPath] = append(f.lists[nodesPath], node(i))
	}
	for i := range pods {
		n := ""
		if i%2 == 0 && nodes > 0 {
			n = node(i % nodes).Name
		}
		f.lists[podsPath] = append(f.lists[podsPath], pod(i, n))
	}
	f.lists[poolsPath], f.lists[classesPath] = []any{pool("general")}, []any{class()}
	f.lists[claimsPath] = []any{claim(1)}
	return f
}

func read(t *testing.T, c *Client) (*snapshot.Snapshot, *kube.Report, error) {
	t.Helper()
	return kube.Read([]kube.Source{c.Source(context.Background())}, kube.Options{Now: now})
}

func readWith(ctx context.Context, c *Client) (*snapshot.Snapshot, error) {
	s, _, err := kube.Read([]kube.Source{c.Source(ctx)}, kube.Options{Now: now})
	return s, err
}

func saved(t *testing.T, s *snapshot.Snapshot) string {
	t.Helper()
	var b strings.Builder
	if err := kube.Save(&b, s); err != nil {
		t.Fatal(err)
	}
	return b.String()
}
