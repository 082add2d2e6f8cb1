package kube

import (
	"bytes"
	"fmt"
	"io"
	"math/rand/v2"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/yaml"
)

// now is the clock of the tests.
var now = time.Date(2026, 3, 4, 12, 0, 0, 0, time.UTC)

// from makes a source of a text.
func from(name, text string) Source {
	return Source{Name: name, Open: func() (io.ReadCloser, error) {
		return io.NopCloser(strings.NewReader(text)), nil
	}}
}

func ptr[T any](v T) *T { return &v }

// livePod is a pod as a busy cluster reports it.
func livePod(r *rand.Rand, i int) *corev1.Pod {
	app := fmt.Sprintf("app-%d", r.IntN(400))
	at := metav1.NewTime(now.Add(-time.Duration(i) * time.Second))
	p := &corev1.Pod{
		TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "Pod"},
		ObjectMeta: metav1.ObjectMeta{
			Name: fmt.Sprintf("%s-7d9f8c6b5-%05d", app, i), Namespace: fmt.Sprintf("team-%d", r.IntN(40)),
			UID:               types.UID(fmt.Sprintf("%08x-0000-4000-8000-%012x", r.Uint32(), i)),
			CreationTimestamp: at, ResourceVersion: fmt.Sprint(1000 + i),
			GenerateName: app + "-7d9f8c6b5-",
			Labels: map[string]string{"app.kubernetes.io/name": app, "app.kubernetes.io/instance": app,
				"app.kubernetes.io/version": "1.2.3", "pod-template-hash": "7d9f8c6b5"},
			Annotations: map[string]string{"prometheus.io/scrape": "true", "checksum/config": strings.Repeat("0123456789abcdef", 4)},
			OwnerReferences: []metav1.OwnerReference{{APIVersion: "apps/v1", Kind: "ReplicaSet", Name: app + "-7d9f8c6b5",
				UID: types.UID(fmt.Sprintf("%032x", i)), Controller: ptr(true), BlockOwnerDeletion: ptr(true)}},
		},
		Spec: corev1.PodSpec{
			NodeName: fmt.Sprintf("ip-10-0-%d-%d.ec2.internal", i%200, i%250),
			Containers: []corev1.Container{{
				Name: "main", Image: "registry.example.com/" + app + ":1.2.3",
				Ports: []corev1.ContainerPort{{ContainerPort: 8080, Name: "http", Protocol: corev1.ProtocolTCP}},
				Env: []corev1.EnvVar{{Name: "LOG_LEVEL", Value: "info"}, {Name: "POD_NAME", ValueFrom: &corev1.EnvVarSource{
					FieldRef: &corev1.ObjectFieldSelector{APIVersion: "v1", FieldPath: "metadata.name"}}}},
				Resources: corev1.ResourceRequirements{
					Requests: corev1.ResourceList{"cpu": resource.MustParse(fmt.Sprintf("%dm", 50+r.IntN(40)*50)), "memory": resource.MustParse(fmt.Sprintf("%dMi", 64+r.IntN(64)*64))},
					Limits:   corev1.ResourceList{"memory": resource.MustParse("8Gi")},
				},
				ReadinessProbe: &corev1.Probe{ProbeHandler: corev1.ProbeHandler{TCPSocket: &corev1.TCPSocketAction{}}, PeriodSeconds: 10, TimeoutSeconds: 1, SuccessThreshold: 1, FailureThreshold: 3},
				VolumeMounts:   []corev1.VolumeMount{{Name: "kube-api-access-x", ReadOnly: true, MountPath: "/var/run/secrets/kubernetes.io/serviceaccount"}},
			}},
			RestartPolicy: corev1.RestartPolicyAlways, SchedulerName: "default-scheduler", ServiceAccountName: app,
			TerminationGracePeriodSeconds: ptr(int64(30)), DNSPolicy: corev1.DNSClusterFirst, Priority: ptr(int32(0)),
			SecurityContext: &corev1.PodSecurityContext{},
			Tolerations: []corev1.Toleration{
				{Key: "node.kubernetes.io/not-ready", Operator: "Exists", Effect: "NoExecute", TolerationSeconds: ptr(int64(300))},
				{Key: "node.kubernetes.io/unreachable", Operator: "Exists", Effect: "NoExecute", TolerationSeconds: ptr(int64(300))}},
			TopologySpreadConstraints: []corev1.TopologySpreadConstraint{{MaxSkew: 1, TopologyKey: "topology.kubernetes.io/zone", WhenUnsatisfiable: "ScheduleAnyway",
				LabelSelector: &metav1.LabelSelector{MatchLabels: map[string]string{"app.kubernetes.io/name": app}}}},
			Volumes: []corev1.Volume{{Name: "kube-api-access-x", VolumeSource: corev1.VolumeSource{Projected: &corev1.ProjectedVolumeSource{DefaultMode: ptr(int32(420))}}}},
		},
		Status: corev1.PodStatus{
			Phase: corev1.PodRunning, HostIP: "10.0.0.1", PodIP: "10.0.1.1", StartTime: &at, QOSClass: corev1.PodQOSBurstable,
			ContainerStatuses: []corev1.ContainerStatus{{Name: "main", Ready: true, Image: "registry.example.com/" + app + ":1.2.3",
				ImageID: "registry.example.com/" + app + "@sha256:" + strings.Repeat("0f", 32), ContainerID: "containerd://" + strings.Repeat("ab", 32),
				State: corev1.ContainerState{Running: &corev1.ContainerStateRunning{StartedAt: at}}, Started: ptr(true)}},
		},
	}
	for _, c := range []corev1.PodConditionType{"PodReadyToStartContainers", "Initialized", "Ready", "ContainersReady", "PodScheduled"} {
		p.Status.Conditions = append(p.Status.Conditions, corev1.PodCondition{Type: c, Status: "True", LastTransitionTime: at})
	}
	return p
}

// podList writes n pods as kubectl get -o yaml does.
func podList(n int) []byte {
	r := rand.New(rand.NewPCG(1, 2))
	var b bytes.Buffer
	b.WriteString("apiVersion: v1\nitems:\n")
	for i := range n {
		raw, err := yaml.Marshal(livePod(r, i))
		if err != nil {
			panic(err)
		}
		for j, line := range strings.SplitAfter(strings.TrimSuffix(string(raw), "\n"), "\n") {
			if j == 0 {
				b.WriteString("- ")
			} else {
				b.WriteString("  ")
			}
			b.WriteString(line)
		}
		b.WriteByte('\n')
	}
	b.WriteString("kind: List\nmetadata:\n  resourceVersion: \"\"\n")
	return b.Bytes()
}

func jsonList(n int) []byte {
	r := rand.New(rand.NewPCG(1, 2))
	var b bytes.Buffer
	b.WriteString("{\n    \"apiVersion\": \"v1\",\n    \"items\": [\n")
	for i := range n {
		raw, err := yaml.Marshal(livePod(r, i))
		if err != nil {
			panic(err)
		}
		if raw, err = yaml.YAMLToJSON(raw); err != nil {
			panic(err)
		}
		if i > 0 {
			b.WriteString(",\n")
		}
		b.Write(raw)
	}
	b.WriteString("],\n    \"kind\": \"List\"\n}\n")
	return b.Bytes()
}
