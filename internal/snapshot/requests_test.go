package snapshot

import (
	"testing"

	"github.com/google/go-cmp/cmp"
)

const mi = int64(1 << 20)

func need(cpu, memMi int64) Resources { return Resources{CPU: cpu, Memory: memMi * mi} }

func gpus(r Resources, n int64) Resources { return r.With("nvidia.com/gpu", n) }

func TestEffectiveRequests(t *testing.T) {
	sidecar := func(name string, r Resources) Container {
		return Container{Name: name, Init: true, Sidecar: true, Requests: r}
	}
	start := func(name string, r Resources) Container { return Container{Name: name, Init: true, Requests: r} }
	app := func(r Resources) Container { return Container{Name: "main", Requests: r} }
	for _, c := range []struct {
		name       string
		containers []Container
		podLevel   *PodLevel
		overhead   Resources
		want       Resources // without pods: 1
	}{
		{name: "nothing"},
		{name: "containers add up", containers: []Container{app(need(500, 128)), app(need(250, 64))}, want: need(750, 192)},
		{name: "init containers do not", containers: []Container{start("a", need(300, 10)), start("b", need(200, 50)), app(need(250, 20))}, want: need(300, 50)},
		{name: "BC-09", containers: []Container{
			sidecar("a", need(500, 256)), start("b", need(2000, 1024)), sidecar("c", need(300, 128)), app(need(1000, 512))}, want: need(2500, 1280)},
		{name: "BC-09 twin: c before b", containers: []Container{
			sidecar("a", need(500, 256)), sidecar("c", need(300, 128)), start("b", need(2000, 1024)), app(need(1000, 512))}, want: need(2800, 1408)},
		{name: "sidecar after the init container", containers: []Container{
			start("b", need(2000, 1024)), sidecar("a", need(500, 256)), app(need(1000, 512))}, want: need(2000, 1024)},
		{name: "per resource", containers: []Container{start("b", need(100, 900)), app(need(1000, 50))}, want: need(1000, 900)},
		{name: "listed in another order", containers: []Container{
			app(need(1000, 512)), sidecar("a", need(500, 256)), start("b", need(2000, 1024)), sidecar("c", need(300, 128))}, want: need(2500, 1280)},
		{name: "restartPolicy of an app container", containers: []Container{{Name: "main", Sidecar: true, Requests: need(100, 10)}, start("b", need(50, 1))}, want: need(100, 10)},
		{name: "extended", containers: []Container{start("b", gpus(need(1, 1), 2)), app(gpus(need(5, 5), 1))}, want: gpus(need(5, 5), 2)},
		{name: "overhead comes on top", containers: []Container{start("b", need(500, 10)), app(need(100, 20))}, overhead: need(250, 120), want: need(750, 140)},
		{name: "pod-level replaces per resource", containers: []Container{app(need(100, 64)), app(need(100, 64))},
			podLevel: &PodLevel{Requests: Resources{CPU: 1000}}, overhead: need(10, 0), want: need(1010, 128)},
		{name: "pod-level knows cpu, memory and huge pages", containers: []Container{app(gpus(need(100, 64), 1))},
			podLevel: &PodLevel{Requests: gpus(Resources{Ephemeral: 5, Memory: 128 * mi}, 4).With("hugepages-2Mi", 4*mi)},
			want:     gpus(need(100, 128), 1).With("hugepages-2Mi", 4*mi)},
		{name: "pod-level limits alone do not count", containers: []Container{app(need(100, 64))}, podLevel: &PodLevel{Limits: need(900, 900)}, want: need(100, 64)},
		{name: "resize up under way", containers: []Container{{Requests: need(900, 64), Resize: &Resize{Allocated: need(500, 64), Actual: need(500, 128)}}}, want: need(900, 128)},
		{name: "resize down under way", containers: []Container{{Requests: need(200, 64), Resize: &Resize{Allocated: need(500, 64), Actual: need(300, 64)}}}, want: need(500, 64)},
		{name: "resize refused", containers: []Container{{Requests: need(9000, 64), Resize: &Resize{Allocated: need(500, 64), Actual: need(300, 64), Infeasible: true}}}, want: need(500, 64)},
		{name: "resize of a sidecar", containers: []Container{{Init: true, Sidecar: true, Requests: need(200, 64), Resize: &Resize{Allocated: need(500, 64)}}, app(need(100, 1))}, want: need(600, 65)},
		{name: "init containers are not resized", containers: []Container{{Init: true, Requests: need(200, 64), Resize: &Resize{Allocated: need(500, 64)}}}, want: need(200, 64)},
		{name: "absurd sums saturate", containers: []Container{app(Resources{Memory: MaxQuantity}), app(Resources{Memory: MaxQuantity}), app(Resources{Memory: MaxQuantity})}, want: Resources{Memory: MaxQuantity}},
	} {
		t.Run(c.name, func(t *testing.T) {
			c.want.Pods = 1
			if diff := cmp.Diff(c.want, EffectiveRequests(c.containers, c.podLevel, c.overhead)); diff != "" {
				t.Error(diff)
			}
		})
	}
}

func BenchmarkEffectiveRequests(b *testing.B) {
	cs := []Container{{Init: true, Sidecar: true, Requests: need(500, 256)}, {Init: true, Requests: need(2000, 1024)}, {Requests: need(1000, 512)}}
	b.ReportAllocs()
	for b.Loop() {
		EffectiveRequests(cs, nil, Resources{})
	}
}
