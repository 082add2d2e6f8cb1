package live

import (
	"context"
	"fmt"
	"net/http"
	"net/http/httptest"
	"runtime"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"

	"kerf.sh/kerf/internal/kube"
)

// BenchmarkRead50000 reads 5,000 nodes and 50,000 pods of an ordinary size, with
// managedFields, from pages that were encoded before. peak-MiB is the largest heap seen.
func BenchmarkRead50000(b *testing.B) {
	pages := map[string][][]byte{}
	add := func(path string, k *kind, n int, one func(i int) any) {
		for from := 0; from < n; from += defaultPageSize {
			var items []any
			for i := from; i < min(from+defaultPageSize, n); i++ {
				items = append(items, one(i))
			}
			meta := metav1.ListMeta{ResourceVersion: "7"}
			if from+defaultPageSize < n {
				meta.Continue = fmt.Sprint(from/defaultPageSize + 1)
			}
			pages[path] = append(pages[path], listBytes(b, k, meta, items))
		}
	}
	add(nodesPath, kindNamed("Node"), 5000, func(i int) any { return node(i) })
	add(podsPath, kindNamed("Pod"), 50000, func(i int) any { return ordinaryPod(i, node(i/10).Name) })
	add("/api/v1/namespaces", kindNamed("Namespace"), 1, func(int) any {
		return &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "shop"}}
	})
	f := &fake{lists: map[string][]any{poolsPath: {pool("general")}, classesPath: {class()}, claimsPath: {claim(1)}}, times: map[string]int{}}
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, q *http.Request) {
		if p := pages[q.URL.Path]; p != nil {
			i := 0
			fmt.Sscan(q.URL.Query().Get("continue"), &i)
			w.Header().Set("Content-Type", protobuf)
			w.Write(p[i])
			return
		}
		if k := kindOfPath(q.URL.Path); k.decode != nil {
			w.Header().Set("Content-Type", protobuf)
			w.Write(listBytes(b, k, metav1.ListMeta{ResourceVersion: "7"}, nil))
			return
		}
		f.answer(w, q)
	}))
	defer s.Close()
	c, err := New(&rest.Config{Host: s.URL}, Options{})
	if err != nil {
		b.Fatal(err)
	}
	runtime.GC()
	var before, m runtime.MemStats
	runtime.ReadMemStats(&before)
	var peak uint64
	stop := make(chan bool)
	go func() {
		for {
			select {
			case <-stop:
				return
			case <-time.After(20 * time.Millisecond):
				runtime.ReadMemStats(&m)
				peak = max(peak, m.HeapInuse)
			}
		}
	}()
	b.ResetTimer()
	for b.Loop() {
		s, _, err := kube.Read([]kube.Source{c.Source(context.Background())}, kube.Options{Now: now})
		if err != nil || len(s.Pods) != 50000 || len(s.Incomplete) != 0 {
			b.Fatal(err, len(s.Pods), s.Incomplete)
		}
	}
	close(stop)
	b.ReportMetric(float64(peak-before.HeapInuse)/(1<<20), "peak-MiB")
}

// ordinaryPod is a pod of about 4 KB.
func ordinaryPod(i int, node string) *corev1.Pod {
	p := pod(i, node)
	p.Labels = map[string]string{"app": fmt.Sprintf("app-%d", i%200), "pod-template-hash": "7d9f8c6b5", "team": "payments"}
	c := &p.Spec.Containers[0]
	c.Resources.Requests = corev1.ResourceList{"cpu": resource.MustParse("250m"), "memory": resource.MustParse("512Mi")}
	for k := range 12 {
		c.Env = append(c.Env, corev1.EnvVar{Name: fmt.Sprintf("SETTING_NUMBER_%d", k), Value: "https://some.service.internal:8443/path/value"})
	}
	p.ManagedFields[0].FieldsV1.SetRawBytes(make([]byte, 2000))
	p.Status.Phase = corev1.PodRunning
	return p
}
