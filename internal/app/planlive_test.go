package app_test

import (
	"encoding/json"
	"net/http"
	"path"
	"slices"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"

	"kerf.sh/kerf/internal/app"
)

// lists are the kinds of lists that come as protobuf, by resource.
var lists = map[string]string{
	"namespaces": "Namespace", "nodes": "Node", "daemonsets": "DaemonSet", "deployments": "Deployment", "replicasets": "ReplicaSet", "statefulsets": "StatefulSet",
	"jobs": "Job", "poddisruptionbudgets": "PodDisruptionBudget", "limitranges": "LimitRange", "podtemplates": "PodTemplate", "runtimeclasses": "RuntimeClass",
	"priorityclasses": "PriorityClass", "storageclasses": "StorageClass", "csinodes": "CSINode", "volumeattachments": "VolumeAttachment",
	"persistentvolumes": "PersistentVolume", "persistentvolumeclaims": "PersistentVolumeClaim", "pods": "Pod",
}

// everything answers all lists of a cluster with one pod that waits and nothing else.
func everything(t *testing.T) http.HandlerFunc {
	return func(w http.ResponseWriter, q *http.Request) {
		resource := path.Base(q.URL.Path)
		kind, ok := lists[resource]
		if !ok { // custom resources
			w.Header().Set("Content-Type", "application/json")
			w.Write([]byte(`{"apiVersion":"x/v1","kind":"List","metadata":{},"items":[]}`)) //nolint:errcheck // a test client
			return
		}
		list, err := (&corev1.NodeList{}).Marshal() // an empty list is the same bytes for all
		if resource == "pods" {
			list, err = (&corev1.PodList{Items: []corev1.Pod{{
				ObjectMeta: metav1.ObjectMeta{Name: "web", Namespace: "shop", UID: "u"},
				Spec:       corev1.PodSpec{Containers: []corev1.Container{{Name: "a"}}},
			}}}).Marshal()
		}
		if err != nil {
			t.Error(err)
		}
		body, err := (&runtime.Unknown{TypeMeta: runtime.TypeMeta{APIVersion: "v1", Kind: kind + "List"}, Raw: list}).Marshal()
		if err != nil {
			t.Error(err)
		}
		w.Header().Set("Content-Type", "application/vnd.kubernetes.protobuf")
		w.Write(append([]byte{0x6b, 0x38, 0x73, 0}, body...)) //nolint:errcheck // a test client
	}
}

// TestPlanLive: a plan function with a cluster plans on it when it is sent no objects; what it
// may not read is said, and nothing is written anywhere.
func TestPlanLive(t *testing.T) {
	o := newOutside(t)
	fn, err := app.PlanFunction(o.environ())
	if err != nil {
		t.Fatal(err)
	}
	ask := func(payload string) string {
		t.Helper()
		out, err := fn.Handle(t.Context(), json.RawMessage(payload))
		if err != nil {
			t.Fatal(err)
		}
		return string(out)
	}
	if got := ask(`{}`); !strings.Contains(got, `"code":"InvalidInput"`) || !strings.Contains(got, "list") || !strings.Contains(got, "nodes") {
		t.Errorf("nothing may be listed: %s", got)
	}
	o.kube.Config.Handler = everything(t)
	o.take()
	got := ask(`{"format":"text"}`)
	if !strings.Contains(got, "Plan for cluster prod") || !strings.Contains(got, "shop/web") || !strings.Contains(got, "NoNodePool") {
		t.Errorf("%s", got)
	}
	for _, r := range o.take() {
		if !slices.ContainsFunc([]string{"eks /clusters/prod", "dynamodb GetItem", "dynamodb Query", "dynamodb DescribeTable"}, func(p string) bool { return strings.HasPrefix(r, p) }) {
			t.Errorf("it asked for %s", r)
		}
	}
	for payload, want := range map[string]string{
		`{"cluster":"other"}`: "are for", `{"explain":"pod/shop/web"}`: "pod/shop/web",
		`{"remove":["pod/shop/web"],"mode":"diff","format":"text"}`: "What would change",
	} {
		if got := ask(payload); !strings.Contains(got, want) {
			t.Errorf("%s: %s", payload, got)
		}
	}
}
