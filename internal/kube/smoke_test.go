package kube

import (
	"encoding/json"
	"io"
	"strings"
	"testing"
	"time"
)

func text1(name, s string) Source {
	return Source{Name: name, Open: func() (io.ReadCloser, error) { return io.NopCloser(strings.NewReader(s)), nil }}
}

func TestSmoke(t *testing.T) {
	in := `# header
apiVersion: v1
kind: Pod
metadata: {name: web, namespace: a}
spec:
  containers:
  - name: c
    resources: {limits: {cpu: 500m, memory: 1Gi}}
---
apiVersion: karpenter.sh/v1
kind: NodePool
metadata: {name: general}
spec:
  limits: {cpu: 10, nodes: 3}
  template:
    spec:
      nodeClassRef: {group: karpenter.k8s.aws, kind: EC2NodeClass, name: default}
      requirements: [{key: kubernetes.io/arch, operator: In, values: [arm64]}]
---
apiVersion: karpenter.k8s.aws/v1
kind: EC2NodeClass
metadata: {name: default}
spec:
  amiSelectorTerms: [{alias: al2023@latest}]
  role: x
---
apiVersion: apps/v1
kind: DaemonSet
metadata: {name: ds, namespace: a}
spec: {template: {spec: {containers: [{name: c}]}}}
---
apiVersion: v1
kind: LimitRange
metadata: {name: l, namespace: a}
spec: {limits: [{type: Container, defaultRequest: {cpu: 1}}]}
---
apiVersion: v1
kind: ConfigMap
metadata: {name: x}
---
apiVersion: v1
kind: List
items:
- apiVersion: v1
  kind: Node
  metadata: {name: n1}
  status: {allocatable: {cpu: 3920m, memory: 1Gi, pods: 58}}
`
	s, rep, err := Read([]Source{text1("a.yaml", in)}, Options{Region: "us-east-1", Now: time.Unix(0, 0)})
	if err != nil {
		t.Fatal(err)
	}
	b, _ := json.MarshalIndent(s, "", " ")
	t.Logf("%s\n%+v", b, rep)
	for _, bad := range []string{"a: b: c", "", "{", `{"apiVersion":"v1","kind":"Pod","metadata":{"name":"x"},"spec":{"containers":[{"name":3}]}}`,
		"apiVersion: v1\nkind: Pod\nmetadata: {name: x}\nspec: {containers: [{resources: {requests: {cpu: lots}}}]}",
		"apiVersion: karpenter.sh/v1\nkind: NodePool\nmetadata: {name: x}\nspec: {template: {spec: {requirments: []}}}",
	} {
		_, _, err := Read([]Source{text1("a.yaml", bad)}, Options{})
		t.Log(err)
	}
}
