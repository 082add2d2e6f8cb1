package plan_test

import (
	"fmt"
	"testing"

	"kerf.sh/kerf/internal/plan"
	"kerf.sh/kerf/internal/snapshot"
)

// large is a plan of 50,000 pods on 1,500 new nodes with 60 options each, as open
// pools give them: neighbours share their options.
func large() *plan.Plan {
	p := &plan.Plan{ID: "x", Cluster: "c", Region: "us-east-1", Complete: true}
	var options []plan.Offer
	for i := range 60 {
		options = append(options, plan.Offer{InstanceType: fmt.Sprintf("m%dg.4xlarge", i%20), Zone: fmt.Sprintf("us-east-1%c", 'a'+i%3), CapacityType: "spot", Price: int64(200_000 + i)})
	}
	labels := map[string]string{}
	for i := range 22 {
		labels[fmt.Sprintf("karpenter.k8s.aws/label-%d", i)] = "value"
	}
	use := snapshot.Resources{CPU: 15_800, Memory: 60 << 30, Pods: 36}
	pod := 0
	for i := range 1500 {
		l := plan.Launch{Name: fmt.Sprintf("general-%d", i+1), NodePool: "general", NodeClass: "default", Requests: use, Daemons: use, Allocatable: use, Chosen: options[0], Options: options, Labels: labels}
		for pod < (i+1)*50_000/1500 {
			ref := fmt.Sprintf("shop/web-7d9f8b6c5-%05d", pod)
			l.Pods = append(l.Pods, ref)
			p.Pods = append(p.Pods, plan.PodUse{Ref: ref, Workload: "shop/web", Requests: snapshot.Resources{CPU: 450, Memory: 1 << 30, Pods: 1}})
			pod++
		}
		p.Launches = append(p.Launches, l)
	}
	return p
}

func BenchmarkJSON(b *testing.B) {
	p := large()
	b.ReportAllocs()
	for b.Loop() {
		out, err := plan.JSON(p, false)
		if err != nil {
			b.Fatal(err)
		}
		b.ReportMetric(float64(len(out))/1e6, "MB")
	}
}

func BenchmarkText(b *testing.B) {
	p := large()
	b.ReportAllocs()
	for b.Loop() {
		if len(plan.Text(p, plan.TextOptions{})) == 0 {
			b.Fatal("nothing")
		}
	}
}
