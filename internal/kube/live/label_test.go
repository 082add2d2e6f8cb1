package live

import (
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// TestLabel: labels that an object lacks are put on, in one write that is about this very
// object; where it has them already nothing is written.
func TestLabel(t *testing.T) {
	f := newFake(t)
	var patches []map[string]any
	f.wrong = func(w http.ResponseWriter, q *http.Request, _ int) bool {
		if !strings.HasSuffix(q.URL.Path, "/nodeclaims/c-1") {
			return false
		}
		if q.Method == http.MethodPatch {
			raw, err := io.ReadAll(q.Body)
			var body map[string]any
			if err == nil {
				err = json.Unmarshal(raw, &body)
			}
			if err != nil {
				t.Error(err)
			}
			patches = append(patches, body)
		}
		w.Header().Set("Content-Type", "application/json")
		_, _ = io.WriteString(w, `{"kind":"NodeClaim","apiVersion":"karpenter.sh/v1","metadata":{"name":"c-1","uid":"u-1","labels":{"a":"1","b":"2"}}}`)
		return true
	}
	c := f.client(Options{})
	for _, tc := range []struct {
		uid     string
		labels  map[string]string
		changed bool
		is      error
	}{
		{"u-1", map[string]string{"a": "1"}, false, nil},
		{"u-1", map[string]string{"a": "1", "b": "3", "c": "4"}, true, nil},
		{"u-2", map[string]string{"c": "4"}, false, ErrConflict},
	} {
		changed, err := c.Label(t.Context(), "NodeClaim", "c-1", tc.uid, tc.labels)
		if changed != tc.changed || !errors.Is(err, tc.is) || (err == nil) != (tc.is == nil) {
			t.Errorf("%+v: changed %v, %v", tc, changed, err)
		}
	}
	// Annotations are merged the same way.
	if changed, err := c.Annotate(t.Context(), "NodeClaim", "c-1", "u-1", map[string]string{"end": "soon"}); !changed || err != nil {
		t.Errorf("annotate: changed %v, %v", changed, err)
	}
	if _, err := c.Annotate(t.Context(), "NodeClaim", "c-1", "u-2", map[string]string{"end": "soon"}); !errors.Is(err, ErrConflict) {
		t.Errorf("annotate another: %v", err)
	}
	want := []map[string]any{{"metadata": map[string]any{"uid": "u-1", "labels": map[string]any{"b": "3", "c": "4"}}}, {"metadata": map[string]any{"uid": "u-1", "annotations": map[string]any{"end": "soon"}}}}
	if d := cmp.Diff(want, patches); d != "" {
		t.Errorf("patches (-want +got):\n%s", d)
	}
}

// TestUnless: a Node that somebody else has changed by then is left as it is.
func TestUnless(t *testing.T) {
	yes := true
	n := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Labels: map[string]string{"done": ""}}}
	change := NodeChange{Labels: map[string]string{"done": "true"}, Unschedulable: &yes, Unless: "done"}
	if body := nodePatch(&change, n); body != nil {
		t.Errorf("it is written: %v", body)
	}
	n.Labels = nil
	if body := nodePatch(&change, n); body == nil {
		t.Error("nothing is written")
	}
}
