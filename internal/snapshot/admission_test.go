package snapshot

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
)

func limitRange(name string, items ...LimitRangeItem) LimitRange {
	return LimitRange{Namespace: "ns", Name: name, Limits: items}
}

func TestAdmit(t *testing.T) {
	for _, c := range []struct {
		name   string
		in     Container
		limits []LimitRange
		want   Container
	}{
		{name: "nothing to add", in: Container{Requests: need(100, 10)}, want: Container{Requests: need(100, 10)}},
		{name: "BC-07: default request of the LimitRange", in: Container{},
			limits: []LimitRange{limitRange("a", LimitRangeItem{Type: "Container", DefaultRequest: map[string]int64{CPU: 1000}})},
			want:   Container{Requests: need(1000, 0)}},
		{name: "BC-07 twin: only limits", in: Container{Limits: gpus(need(400, 64), 1)},
			want: Container{Requests: gpus(need(400, 64), 1), Limits: gpus(need(400, 64), 1)}},
		{name: "limits fill only what is missing", in: Container{Requests: need(100, 0), Limits: need(400, 64)},
			want: Container{Requests: need(100, 64), Limits: need(400, 64)}},
		{name: "limits win over default requests", in: Container{Limits: need(400, 0)},
			limits: []LimitRange{limitRange("a", LimitRangeItem{Type: "Container", DefaultRequest: map[string]int64{CPU: 100, Memory: 5 * mi}})},
			want:   Container{Requests: need(400, 5), Limits: need(400, 0)}},
		{name: "a default limit is also the default request", in: Container{},
			limits: []LimitRange{limitRange("a", LimitRangeItem{Type: "Container", Default: map[string]int64{CPU: 500}})},
			want:   Container{Requests: need(500, 0), Limits: need(500, 0)}},
		{name: "default limit and default request", in: Container{},
			limits: []LimitRange{limitRange("a", LimitRangeItem{Type: "Container", Default: map[string]int64{CPU: 500}, DefaultRequest: map[string]int64{CPU: 50}})},
			want:   Container{Requests: need(50, 0), Limits: need(500, 0)}},
		{name: "max becomes the default limit", in: Container{},
			limits: []LimitRange{limitRange("a", LimitRangeItem{Type: "Container", Max: map[string]int64{CPU: 2000}, Min: map[string]int64{CPU: 10, Memory: mi}})},
			want:   Container{Requests: need(2000, 1), Limits: need(2000, 0)}},
		{name: "given requests are not raised to the min", in: Container{Requests: need(5, 0)},
			limits: []LimitRange{limitRange("a", LimitRangeItem{Type: "Container", Min: map[string]int64{CPU: 10}})},
			want:   Container{Requests: need(5, 0)}},
		{name: "limits of type Pod do not default", in: Container{},
			limits: []LimitRange{limitRange("a", LimitRangeItem{Type: "Pod", Max: map[string]int64{CPU: 2000}, Default: map[string]int64{CPU: 1}})}},
		{name: "the later item of one LimitRange wins", in: Container{},
			limits: []LimitRange{limitRange("a",
				LimitRangeItem{Type: "Container", DefaultRequest: map[string]int64{CPU: 1, Memory: mi}},
				LimitRangeItem{Type: "Container", DefaultRequest: map[string]int64{CPU: 2}})},
			want: Container{Requests: need(2, 1)}},
		{name: "the first LimitRange by name wins", in: Container{},
			limits: []LimitRange{
				limitRange("b", LimitRangeItem{Type: "Container", DefaultRequest: map[string]int64{CPU: 2, Memory: 2 * mi}}),
				limitRange("a", LimitRangeItem{Type: "Container", DefaultRequest: map[string]int64{CPU: 1}})},
			want: Container{Requests: need(1, 2)}},
		{name: "a request written as zero stays", in: Container{ZeroRequests: []string{CPU}, Limits: need(400, 64)},
			limits: []LimitRange{limitRange("a", LimitRangeItem{Type: "Container", DefaultRequest: map[string]int64{CPU: 100}})},
			want:   Container{Requests: need(0, 64), ZeroRequests: []string{CPU}, Limits: need(400, 64)}},
		{name: "a limit written as zero is a request of zero", in: Container{ZeroLimits: []string{CPU}},
			limits: []LimitRange{limitRange("a", LimitRangeItem{Type: "Container", Default: map[string]int64{CPU: 100}})},
			want:   Container{ZeroRequests: []string{CPU}, ZeroLimits: []string{CPU}}},
		{name: "init containers too", in: Container{Init: true},
			limits: []LimitRange{limitRange("a", LimitRangeItem{Type: "Container", DefaultRequest: map[string]int64{CPU: 100}})},
			want:   Container{Init: true, Requests: need(100, 0)}},
	} {
		t.Run(c.name, func(t *testing.T) {
			in := []Container{c.in}
			got := Admit(in, c.limits)
			if diff := cmp.Diff([]Container{c.want}, got, cmpopts.EquateEmpty()); diff != "" {
				t.Error(diff)
			}
			if diff := cmp.Diff([]Container{c.in}, in); diff != "" {
				t.Error("the input changed:", diff)
			}
			if diff := cmp.Diff(got, Admit(got, c.limits), cmpopts.EquateEmpty()); diff != "" {
				t.Error("admitting twice is not admitting once:", diff)
			}
		})
	}
}

// BC-07: what the two DaemonSets take of each node.
func TestDaemonOverhead(t *testing.T) {
	limits := []LimitRange{limitRange("defaults", LimitRangeItem{Type: "Container", DefaultRequest: map[string]int64{CPU: 1000}})}
	proxy := EffectiveRequests(Admit([]Container{{Name: "proxy", Requests: need(630, 0)}}, nil), nil, Resources{})
	agent := EffectiveRequests(Admit([]Container{{Name: "agent"}}, limits), nil, Resources{})
	if got := proxy.Add(agent); got.CPU != 1630 || got.Pods != 2 {
		t.Errorf("%v, want cpu 1630m, pods 2", got)
	}
}

func TestAdmitPodLevel(t *testing.T) {
	limits := []LimitRange{limitRange("a", LimitRangeItem{Type: "Container", DefaultRequest: map[string]int64{CPU: 100}})}
	for _, c := range []struct {
		name       string
		containers []Container
		in, want   *PodLevel
		effective  Resources
	}{
		{name: "none", containers: []Container{{}}, effective: need(100, 0)},
		{name: "limits of the pod, before LimitRanges", containers: []Container{{}},
			in: &PodLevel{Limits: need(500, 64)}, want: &PodLevel{Limits: need(500, 64), Requests: need(500, 64)}, effective: need(500, 64)},
		{name: "containers that request come first", containers: []Container{{Requests: need(200, 0)}},
			in: &PodLevel{Limits: need(500, 64)}, want: &PodLevel{Limits: need(500, 64), Requests: need(200, 64)}, effective: need(200, 64)},
		{name: "given requests stay", containers: []Container{{Requests: need(200, 0)}},
			in: &PodLevel{Requests: need(300, 0), Limits: need(500, 0)}, want: &PodLevel{Requests: need(300, 0), Limits: need(500, 0)}, effective: need(300, 0)},
		{name: "huge pages follow the limit", containers: []Container{{Limits: Resources{}.With("hugepages-2Mi", 2*mi)}},
			in:        &PodLevel{Limits: Resources{}.With("hugepages-2Mi", 8*mi)},
			want:      &PodLevel{Limits: Resources{}.With("hugepages-2Mi", 8*mi), Requests: Resources{}.With("hugepages-2Mi", 8*mi)},
			effective: need(100, 0).With("hugepages-2Mi", 8*mi)},
		{name: "requests alone default nothing", containers: []Container{{}},
			in: &PodLevel{Requests: need(0, 64)}, want: &PodLevel{Requests: need(0, 64)}, effective: need(100, 64)},
	} {
		t.Run(c.name, func(t *testing.T) {
			var before PodLevel
			if c.in != nil {
				before = *c.in
			}
			containers, got := AdmitPod(c.containers, c.in, limits)
			if diff := cmp.Diff(c.want, got); diff != "" {
				t.Error(diff)
			}
			if c.in != nil {
				if diff := cmp.Diff(before, *c.in); diff != "" {
					t.Error("the input changed:", diff)
				}
			}
			c.effective.Pods = 1
			if diff := cmp.Diff(c.effective, EffectiveRequests(containers, got, Resources{})); diff != "" {
				t.Error(diff)
			}
		})
	}
}

func TestApplyRuntimeClass(t *testing.T) {
	rc := &RuntimeClass{
		Name: "gvisor", Overhead: need(250, 120), NodeSelector: map[string]string{"sandbox": "gvisor"},
		Tolerations: []Toleration{{Key: "sandbox", Operator: "Exists"}, {Key: "other", Value: "x"}},
	}
	selector := map[string]string{"team": "web"}
	spec := PodSpec{Requests: need(100, 10).With(Pods, 1), NodeSelector: selector, Tolerations: []Toleration{{Key: "sandbox", Operator: "Exists"}}}
	if err := spec.ApplyRuntimeClass(rc); err != nil {
		t.Fatal(err)
	}
	want := PodSpec{
		Requests:     need(350, 130).With(Pods, 1),
		NodeSelector: map[string]string{"team": "web", "sandbox": "gvisor"},
		Tolerations:  []Toleration{{Key: "sandbox", Operator: "Exists"}, {Key: "other", Value: "x"}},
	}
	if diff := cmp.Diff(want, spec); diff != "" {
		t.Error(diff)
	}
	if len(selector) != 1 || len(rc.NodeSelector) != 1 {
		t.Error("a shared node selector was written to")
	}

	spec = PodSpec{Requests: need(100, 10), NodeSelector: map[string]string{"sandbox": "kata"}}
	before := spec
	err := spec.ApplyRuntimeClass(rc)
	if err == nil || !strings.Contains(err.Error(), "sandbox=kata") || !strings.Contains(err.Error(), "sandbox=gvisor") || !strings.Contains(err.Error(), "runtime class gvisor") {
		t.Error(err)
	}
	if diff := cmp.Diff(before, spec); diff != "" {
		t.Error("changed by a rejected class:", diff)
	}
	if err := spec.ApplyRuntimeClass(nil); err != nil {
		t.Error(err)
	}
	if diff := cmp.Diff(before, spec); diff != "" {
		t.Error("changed by no class:", diff)
	}
}
