package oracle

import (
	"fmt"
	"testing"

	corev1 "k8s.io/api/core/v1"
	corev1helpers "k8s.io/component-helpers/scheduling/corev1"
	"k8s.io/klog/v2"

	"pgregory.net/rapid"

	"kerf.sh/kerf/internal/scheduling"
	"kerf.sh/kerf/internal/snapshot"
)

func TestTolerates(t *testing.T) {
	const keyless = "a toleration without a key tolerates with Exists only (Kubernetes: the API server rejects others)"
	faults := []string{"effects are not compared", "Gt and Lt are not understood", "every key matches"}
	check(t, []string{keyless}, faults, func(t *rapid.T, fault string) difference {
		key, value := rapid.SampledFrom([]string{"a", "b"}), rapid.SampledFrom([]string{"", "x", "3", "5", "7"})
		effect := rapid.SampledFrom([]string{"NoSchedule", "PreferNoSchedule", "NoExecute"})
		taint := snapshot.Taint{Key: key.Draw(t, "key"), Value: value.Draw(t, "value"), Effect: effect.Draw(t, "effect")}
		their := corev1.Taint{Key: taint.Key, Value: taint.Value, Effect: corev1.TaintEffect(taint.Effect)}
		var ours []snapshot.Toleration
		var theirs []corev1.Toleration
		without := false
		for range rapid.IntRange(0, 3).Draw(t, "tolerations") {
			tol := snapshot.Toleration{
				Key:      rapid.OneOf(key, rapid.Just("")).Draw(t, "toleration key"),
				Operator: rapid.SampledFrom([]string{"", "Equal", "Exists", "Gt", "Lt", "Near"}).Draw(t, "operator"),
				Value:    value.Draw(t, "toleration value"),
				Effect:   rapid.OneOf(effect, rapid.Just("")).Draw(t, "toleration effect"),
			}
			without = without || tol.Key == "" && tol.Operator != "Exists"
			theirs = append(theirs, corev1.Toleration{Key: tol.Key, Operator: corev1.TolerationOperator(tol.Operator), Value: tol.Value, Effect: corev1.TaintEffect(tol.Effect)})
			switch fault {
			case "effects are not compared":
				tol.Effect = ""
			case "Gt and Lt are not understood":
				if tol.Operator == "Gt" || tol.Operator == "Lt" {
					continue
				}
			case "every key matches":
				tol.Key = taint.Key
			}
			ours = append(ours, tol)
		}
		got := scheduling.Tolerates(ours, &taint)
		want := corev1helpers.TolerationsTolerateTaint(klog.Logger{}, theirs, &their, true)
		if got == want {
			return difference{}
		}
		return difference{fmt.Sprintf("%+v, %+v: ours %v, theirs %v", theirs, taint, got, want), []departure{{keyless, without}}}
	})
}
