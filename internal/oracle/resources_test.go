package oracle

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"math/big"
	"strings"
	"testing"

	"gopkg.in/inf.v0"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	resourcehelper "k8s.io/component-helpers/resource"

	"pgregory.net/rapid"

	"kerf.sh/kerf/internal/kube"
	"kerf.sh/kerf/internal/snapshot"
)

var resourceNames = []string{"cpu", "memory", "ephemeral-storage", "hugepages-2Mi", "nvidia.com/gpu"}

// drawResources draws the same list for both.
func drawResources(t *rapid.T, label string) (snapshot.Resources, corev1.ResourceList) {
	our, their := snapshot.Resources{}, corev1.ResourceList{}
	for _, name := range resourceNames {
		v := rapid.SampledFrom([]int64{0, 0, 1, 2, 3, 5, 8, 1000}).Draw(t, label+" "+name)
		if v == 0 {
			continue
		}
		our = our.With(name, v)
		if name == "cpu" {
			their["cpu"] = *resource.NewMilliQuantity(v, resource.DecimalSI)
		} else {
			their[corev1.ResourceName(name)] = *resource.NewQuantity(v, resource.BinarySI)
		}
	}
	return our, their
}

// drawnPod is one pod for both.
type drawnPod struct {
	pod        *corev1.Pod
	containers []snapshot.Container
	podLevel   *snapshot.PodLevel
	overhead   snapshot.Resources
}

func drawPod(t *rapid.T) drawnPod {
	always := corev1.ContainerRestartPolicyAlways
	d := drawnPod{pod: &corev1.Pod{}}
	d.pod.Name, d.pod.Namespace, d.pod.UID = "web", "default", "u"
	infeasible := rapid.Bool().Draw(t, "infeasible")
	if infeasible {
		d.pod.Status.Conditions = []corev1.PodCondition{{Type: corev1.PodResizePending, Status: corev1.ConditionTrue, Reason: corev1.PodReasonInfeasible}}
	}
	for i := range rapid.IntRange(0, 5).Draw(t, "containers") {
		c := corev1.Container{Name: string(rune('a' + i))}
		our := snapshot.Container{Name: c.Name}
		our.Requests, c.Resources.Requests = drawResources(t, "requests")
		our.Init = rapid.Bool().Draw(t, "init")
		our.Sidecar = our.Init && rapid.Bool().Draw(t, "sidecar")
		if our.Sidecar {
			c.RestartPolicy = &always
		}
		status := corev1.ContainerStatus{Name: c.Name}
		if rapid.Bool().Draw(t, "status") {
			our.Resize = &snapshot.Resize{Infeasible: infeasible}
			status.Resources = &corev1.ResourceRequirements{}
			our.Resize.Allocated, status.AllocatedResources = drawResources(t, "allocated")
			our.Resize.Actual, status.Resources.Requests = drawResources(t, "actual")
			if our.Resize.Allocated.IsZero() && our.Resize.Actual.IsZero() {
				our.Resize, status.Resources, status.AllocatedResources = nil, nil, nil // no kubelet reports this
			}
		}
		if our.Init {
			d.pod.Spec.InitContainers = append(d.pod.Spec.InitContainers, c)
			d.pod.Status.InitContainerStatuses = append(d.pod.Status.InitContainerStatuses, status)
		} else {
			d.pod.Spec.Containers = append(d.pod.Spec.Containers, c)
			d.pod.Status.ContainerStatuses = append(d.pod.Status.ContainerStatuses, status)
		}
		d.containers = append(d.containers, our)
	}
	if rapid.Bool().Draw(t, "pod-level") {
		d.podLevel = &snapshot.PodLevel{}
		d.pod.Spec.Resources = &corev1.ResourceRequirements{}
		d.podLevel.Requests, d.pod.Spec.Resources.Requests = drawResources(t, "pod-level requests")
		d.podLevel.Limits, d.pod.Spec.Resources.Limits = drawResources(t, "pod-level limits")
	}
	if rapid.Bool().Draw(t, "overhead") {
		d.overhead, d.pod.Spec.Overhead = drawResources(t, "overhead")
	}
	return d
}

// differs compares a request with that of kube-scheduler.
func (d drawnPod) differs(our snapshot.Resources) string {
	their := resourcehelper.PodRequests(d.pod, resourcehelper.PodResourcesOptions{UseStatusResources: true})
	for _, name := range resourceNames {
		q := their[corev1.ResourceName(name)]
		if got, want := our.Get(name), units(name, q); got != want {
			return fmt.Sprintf("%s: ours %d, theirs %d\n%+v\n%+v", name, got, want, d.containers, d.podLevel)
		}
	}
	return ""
}

func TestEffectiveRequests(t *testing.T) {
	faults := []string{"sidecars count as containers", "init containers run all at once", "pod-level requests add to the containers'", "overhead is forgotten", "resizes are forgotten"}
	check(t, nil, faults, func(t *rapid.T, fault string) difference {
		d := drawPod(t)
		for i := range d.containers {
			switch c := &d.containers[i]; fault {
			case "sidecars count as containers":
				c.Init = c.Init && !c.Sidecar
			case "init containers run all at once":
				c.Sidecar = c.Init
			case "resizes are forgotten":
				c.Resize = nil
			}
		}
		our := snapshot.EffectiveRequests(d.containers, d.podLevel, d.overhead)
		switch fault {
		case "pod-level requests add to the containers'":
			our = our.Add(snapshot.EffectiveRequests(d.containers, nil, d.overhead))
		case "overhead is forgotten":
			our = snapshot.EffectiveRequests(d.containers, d.podLevel, snapshot.Resources{})
		}
		return difference{text: d.differs(our)}
	})
}

// The same from the object itself: what is read of a pod in the cluster.
func TestReadRequests(t *testing.T) {
	check(t, nil, []string{"the status is not read"}, func(t *rapid.T, fault string) difference {
		d := drawPod(t)
		if d.podLevel != nil {
			// Limits without requests get requests from the API server.
			d.podLevel.Limits, d.pod.Spec.Resources.Limits = snapshot.Resources{}, nil
		}
		asked := d.pod.DeepCopy()
		asked.APIVersion, asked.Kind = "v1", "Pod"
		if fault != "" {
			asked.Status = corev1.PodStatus{}
		}
		data, err := json.Marshal(asked)
		if err != nil {
			t.Fatal(err)
		}
		source := kube.Source{Name: "pod.json", Open: func() (io.ReadCloser, error) { return io.NopCloser(bytes.NewReader(data)), nil }}
		s, report, err := kube.Read([]kube.Source{source}, kube.Options{})
		if err != nil || len(s.Pods) != 1 {
			return difference{text: fmt.Sprintf("%s: %v, %+v", data, err, report)}
		}
		return difference{text: d.differs(s.Pods[0].Spec.Requests)}
	})
}

func TestParseQuantity(t *testing.T) {
	const (
		noDigits = "text without a digit is no quantity (Kubernetes: zero)"
		wraps    = "an exponent beyond 32 bits is as large as it says (Kubernetes: it wraps around)"
	)
	text := rapid.OneOf(
		rapid.Custom(func(t *rapid.T) string {
			return rapid.StringMatching(`[-+]?[0-9]{0,25}(\.[0-9]{0,12})?`).Draw(t, "number") +
				rapid.SampledFrom([]string{"", "n", "u", "m", "k", "M", "G", "T", "P", "E", "Ki", "Mi", "Gi", "Ti", "Pi", "Ei",
					"e3", "E3", "e-3", "E+3", "e25", "e-25", "e", "E+", "ki", "K", "mi", "g", "i", "e3i", "e4294967296"}).Draw(t, "suffix")
		}),
		rapid.StringMatching(`[-+.0-9eEinumkKMGTP]{0,6}`),
		rapid.StringN(0, 5, -1),
	)
	faults := []string{"rounds down", "k is 1024", "a bad suffix is ignored"}
	check(t, []string{noDigits, wraps}, faults, func(t *rapid.T, fault string) difference {
		name, s := rapid.SampledFrom(resourceNames).Draw(t, "resource"), text.Draw(t, "text")
		asked := s
		switch fault {
		case "k is 1024":
			asked = strings.Replace(s, "k", "Ki", 1)
		case "a bad suffix is ignored":
			asked = strings.TrimSuffix(s, "g")
		}
		got, err := snapshot.ParseQuantity(name, asked)
		if fault == "rounds down" && strings.HasSuffix(s, "n") && got > 0 {
			got--
		}
		q, theirErr := resource.ParseQuantity(s)
		if err != nil && theirErr != nil || err == nil && theirErr == nil && got == units(name, q) {
			return difference{}
		}
		number := s // without the suffix, which may hold digits
		if i := strings.IndexAny(s, "eEinumkKMGTP"); i >= 0 {
			number = s[:i]
		}
		return difference{
			fmt.Sprintf("%s %q: ours %d, %v; theirs %v, %v", name, s, got, err, q.String(), theirErr),
			[]departure{
				{noDigits, err != nil && !strings.ContainsAny(number, "0123456789")},
				{wraps, strings.HasSuffix(s, "e4294967296")},
			},
		}
	})
}

// units turns a Quantity into ours without the limits of int64.
func units(name string, q resource.Quantity) int64 {
	d := new(inf.Dec).Set(q.AsDec())
	if name == "cpu" {
		d.Mul(d, inf.NewDec(1000, 0))
	}
	v := new(inf.Dec).Round(d, 0, inf.RoundUp).UnscaledBig()
	limit := big.NewInt(snapshot.MaxQuantity)
	switch {
	case v.Cmp(limit) > 0:
		return snapshot.MaxQuantity
	case v.Cmp(new(big.Int).Neg(limit)) < 0:
		return -snapshot.MaxQuantity
	}
	return v.Int64()
}

// FormatQuantity is read back by Kubernetes as the same quantity.
func TestFormatQuantity(t *testing.T) {
	check(t, nil, []string{"rounds to Mi"}, func(t *rapid.T, fault string) difference {
		name := rapid.SampledFrom(resourceNames).Draw(t, "resource")
		v := rapid.Int64Range(-1<<50, 1<<50).Draw(t, "value") << rapid.SampledFrom([]int{0, 0, 10}).Draw(t, "shift")
		s := snapshot.FormatQuantity(name, v)
		if fault != "" && snapshot.InBytes(name) {
			s = snapshot.FormatQuantity(name, v>>20<<20)
		}
		q, err := resource.ParseQuantity(s)
		if err != nil || units(name, q) != v {
			return difference{text: fmt.Sprintf("%s %d: %q is read as %v, %v", name, v, s, q.String(), err)}
		}
		return difference{}
	})
}
