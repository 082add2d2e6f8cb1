//go:build local

package local

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"kerf.sh/kerf/internal/cloud/ec2fake"
	"kerf.sh/kerf/internal/realtest"
)

// patience is how long a step may take on a busy machine.
const patience = 9 * time.Minute

var functions = []string{"sweep", "lifecycle", "catalog", "interruption", "consolidation", "plan", "bootstrap"}

// story is a stack that is told of.
type story struct {
	*Stack
	t   *testing.T
	ctx context.Context
	// kept: the logs of the functions are beside the emulator's.
	kept bool
}

// up starts and deploys a stack as the Makefile says.
func up(ctx context.Context, t *testing.T, port int) *story {
	t.Helper()
	s, err := Start(ctx, Options{Dir: os.Getenv("KERF_LOCAL_DIR"), Template: os.Getenv("KERF_LOCAL_TEMPLATE"), Build: os.Getenv("KERF_LOCAL_BUILD"), Emulator: os.Getenv("KERF_EMULATOR"), Port: port, Out: os.Stdout})
	if err != nil {
		t.Fatal(err)
	}
	st := &story{Stack: s, t: t, ctx: ctx}
	t.Cleanup(func() {
		if !st.kept {
			st.keepLogs()
		}
		s.Stop()
	})
	s.say("A control plane runs (etcd, kube-apiserver, kube-scheduler, kube-controller-manager %s), and AWS at %s.", realtest.Version, s.URL)
	st.must(s.Account(ctx))
	return st
}

func (s *story) must(err error) {
	s.t.Helper()
	if err != nil {
		s.t.Fatal(err)
	}
}

func (s *story) chapter(title string) { fmt.Fprintf(s.o.Out, "\n== %s\n", title) }

// until waits for what has to come, and says how long it took.
func (s *story) until(check func() error) time.Duration {
	s.t.Helper()
	began := time.Now()
	s.must(realtest.Eventually(s.ctx, patience, check))
	return time.Since(began).Round(100 * time.Millisecond)
}

// keepLogs writes what the functions logged beside the emulator's log.
func (s *story) keepLogs() {
	s.kept = true
	for _, f := range functions {
		lines, err := s.logs(context.Background(), f)
		if err == nil {
			err = os.WriteFile(s.o.Dir+"/"+f+".log", []byte(strings.Join(lines, "\n")+"\n"), 0o600)
		}
		if err != nil {
			s.t.Log(err)
		}
	}
}

// TestStory is what the stack is for, from its deployment to its end.
func TestStory(t *testing.T) {
	s := up(context.Background(), t, 0)
	s.deploy()
	s.nothing()
	s.launch()
	s.dryRun()
	s.interruption()
	s.consolidation()
	s.idle()
	s.clean()
	s.remove()
}

func (s *story) deploy() {
	s.chapter("Deploy: the synthesised template, in the emulator's CloudFormation")
	began := time.Now()
	s.must(s.Deploy(s.ctx))
	var parts []string
	for _, typ := range sorted(s.template.types) {
		parts = append(parts, fmt.Sprintf("%d %s", s.template.types[typ], typ))
	}
	s.say("Stack %s is CREATE_COMPLETE after %.1f s:\n%s", s.StackName(), time.Since(began).Seconds(), strings.Join(parts, "\n"))
	var crds struct {
		Items []struct{ Metadata metav1.ObjectMeta }
	}
	s.must(s.object(s.ctx, "/apis/apiextensions.k8s.io/v1/customresourcedefinitions", &crds))
	roles, err := s.Cluster.Clientset.RbacV1().ClusterRoles().List(s.ctx, metav1.ListOptions{})
	s.must(err)
	mine := 0
	for _, r := range roles.Items {
		if strings.HasPrefix(r.Name, "kerf-") {
			mine++
		}
	}
	s.say("Its custom resource had function bootstrap set the cluster up: %d CustomResourceDefinitions, %d ClusterRoles.", len(crds.Items), mine)
	if len(crds.Items) != 5 || mine < 5 {
		s.t.Errorf("%d definitions and %d roles, want 5 and at least 5", len(crds.Items), mine)
	}
}

// read is a manifest of testdata for this cluster.
func (s *story) read(file string) string {
	text, err := os.ReadFile("testdata/" + file)
	s.must(err)
	return strings.ReplaceAll(string(text), "CLUSTER", s.Name)
}

const (
	webPods = 12
	allPods = webPods + 2
	fewPods = webPods/2 + 1
)

func (s *story) launch() {
	s.chapter("Pods get nodes: schedule, queue, function")
	s.must(s.Cluster.Create(s.ctx, s.read("shop.yaml")))
	s.say("Two Deployments of %d pods are applied.", allPods)
	took := s.until(func() error { return s.classReady(s.ctx, "default") })
	s.say("The EC2NodeClass is Ready after %v.", took)
	took = s.until(func() error { _, err := s.running(s.ctx, "shop", allPods); return err })
	s.say("All %d pods run after %v.", allPods, took)
	s.tellNodes()
	s.tell("sweep", time.Time{}, some("Launched"), "outcome", "PendingPods", "Launched", "fleetCalls", "passSeconds", "planId")
}

func (s *story) tellNodes() {
	table, err := s.Stack.nodes(s.ctx)
	s.must(err)
	s.say("%s", table)
}

// tell shows what a function said of the invocations since a time that which picks.
func (s *story) tell(function string, since time.Time, which func(line map[string]any) bool, keys ...string) {
	s.t.Helper()
	list, err := s.summaries(s.ctx, function, since)
	s.must(err)
	n := 0
	for _, one := range list {
		var line map[string]any
		s.must(json.Unmarshal([]byte(one.line), &line))
		if !which(line) {
			continue
		}
		n++
		text := one.Timestamp.Format(time.TimeOnly) + " " + function + ":"
		for _, k := range keys {
			if v, ok := line[k]; ok {
				raw, err := json.Marshal(v)
				s.must(err)
				text += " " + k + "=" + string(raw)
			}
		}
		s.say("%s", text)
	}
	if n == 0 {
		s.t.Errorf("%s has said nothing of what was looked for", function)
	}
}

// some says that a line has a number that is not zero.
func some(keys ...string) func(map[string]any) bool {
	return func(line map[string]any) bool {
		return slices.ContainsFunc(keys, func(k string) bool { n, _ := line[k].(float64); return n > 0 })
	}
}

func (s *story) dryRun() {
	s.chapter("A dry run: the plan function, called by hand, with twenty pods that are not there")
	before := len(s.EC2.Machines())
	var pods []string
	for i := range 20 {
		pods = append(pods, fmt.Sprintf("apiVersion: v1\nkind: Pod\nmetadata: {name: batch-%d, namespace: shop, labels: {app: batch}}\nspec: {containers: [{name: batch, image: batch, resources: {requests: {cpu: 500m, memory: 3Gi}}}]}\n", i))
	}
	raw, err := s.Invoke(s.ctx, "plan", map[string]any{"mode": "plan", "format": "text", "whatIf": []string{strings.Join(pods, "---\n")}})
	s.must(err)
	var answer struct{ Text string }
	s.must(json.Unmarshal(raw, &answer))
	s.say("%s", strings.TrimSpace(answer.Text))
	if !strings.Contains(answer.Text, "batch") {
		s.t.Errorf("the plan does not speak of the pods")
	}
	time.Sleep(15 * time.Second) // more than a tick
	if n := len(s.EC2.Machines()); n != before {
		s.t.Errorf("%d instances after a dry run, %d before", n, before)
	}
	s.say("Nothing was launched.")
}

func (s *story) interruption() {
	s.chapter("An interruption: EC2's event, rule, queue, function")
	var victim ec2fake.Instance
	for _, i := range s.living() {
		if i.Spot {
			victim = i
			break
		}
	}
	if victim.ID == "" {
		s.t.Fatal("no spot instance is there to be interrupted")
	}
	began := time.Now()
	s.must(s.Interrupt(s.ctx, victim.ID))
	s.say("EC2 says that it takes %s (%s, %s) back in two minutes.", victim.ID, victim.PrivateDNS, victim.Type)
	nodes := s.Cluster.Clientset.CoreV1().Nodes()
	s.until(func() error {
		n, err := nodes.Get(s.ctx, victim.PrivateDNS, metav1.GetOptions{})
		if err != nil {
			return err
		}
		for _, t := range n.Spec.Taints {
			if t.Key == "karpenter.sh/disrupted" {
				return nil
			}
		}
		return errors.New("the node has no taint")
	})
	s.say("The node is tainted after %v.", time.Since(began).Round(time.Millisecond))
	s.until(func() error {
		pods, err := s.running(s.ctx, "shop", allPods)
		if err != nil {
			return err
		}
		for _, p := range pods {
			if p.Spec.NodeName == victim.PrivateDNS {
				return errors.New(p.Name + " is still there")
			}
		}
		return nil
	})
	moved := time.Since(began)
	s.say("All pods run elsewhere after %.1f s, of the %.0f s that EC2 gives.", moved.Seconds(), Notice.Seconds())
	if moved > Notice {
		s.t.Errorf("the pods were away after %v only", moved)
	}
	s.tellNotice(victim.ID)
	s.until(func() error {
		if slices.ContainsFunc(s.living(), func(i ec2fake.Instance) bool { return i.ID == victim.ID }) {
			return errors.New("the instance lives")
		}
		return nil
	})
	s.say("The instance is gone after %.1f s.", time.Since(began).Seconds())
	s.tellNodes()
}

// tellNotice shows what function interruption made of the event.
func (s *story) tellNotice(instance string) {
	lines, err := s.logs(s.ctx, "interruption")
	s.must(err)
	for _, l := range lines {
		var one struct {
			Notice map[string]any
		}
		if json.Unmarshal([]byte(l), &one) == nil && one.Notice["instance"] == instance && one.Notice["outcome"] == "Handled" {
			raw, err := json.Marshal(one.Notice)
			s.must(err)
			s.say("interruption: %s", raw)
			return
		}
	}
	s.t.Errorf("interruption does not say what became of %s", instance)
}

func (s *story) consolidation() {
	s.chapter("A consolidation: schedule, function")
	before, nodes, began := s.cost(), len(s.living()), time.Now()
	deployments := s.Cluster.Clientset.AppsV1().Deployments("shop")
	for name, replicas := range map[string]int32{"web": webPods / 2, "db": 1} {
		scale, err := deployments.GetScale(s.ctx, name, metav1.GetOptions{})
		s.must(err)
		scale.Spec.Replicas = replicas
		_, err = deployments.UpdateScale(s.ctx, name, scale, metav1.UpdateOptions{})
		s.must(err)
	}
	s.until(func() error { _, err := s.running(s.ctx, "shop", fewPods); return err })
	s.say("Deployment web goes from %d pods to %d, and db from 2 to 1. The plan function, asked what could be cheaper:", webPods, webPods/2)
	raw, err := s.Invoke(s.ctx, "plan", map[string]any{"mode": "plan", "format": "text", "consolidate": true})
	s.must(err)
	var answer struct{ Text string }
	s.must(json.Unmarshal(raw, &answer))
	s.say("%s", strings.TrimSpace(answer.Text))
	took := s.until(func() error {
		if now := s.cost(); now*4 > before*3 {
			return fmt.Errorf("the nodes cost %s, of %s", dollars(now), dollars(before))
		}
		list, err := s.summaries(s.ctx, "consolidation", began)
		if err != nil || len(list) == 0 {
			return errors.Join(err, errors.New("no pass of consolidation yet"))
		}
		if last := list[len(list)-1].line; !strings.Contains(last, `"outcome":"Idle"`) {
			return errors.New("consolidation goes on: " + last)
		}
		_, err = s.running(s.ctx, "shop", fewPods)
		return err
	})
	s.say("After %v the nodes cost %s instead of %s; %d instead of %d of them.", took, dollars(s.cost()), dollars(before), len(s.living()), nodes)
	s.tellNodes()
	s.tell("consolidation", began, some("proposed", "begun", "removed"), "outcome", "moves", "proposed", "begun", "removed", "PricePerHour", "PriceReachable", "PriceFloor")
}

// clean reports what should not have happened.
func (s *story) clean() {
	s.keepLogs()
	for _, err := range s.Failed() {
		s.t.Error(err)
	}
	for id, err := range s.Machines.Failed() {
		s.t.Errorf("machine %s: %v", id, err)
	}
	for _, f := range functions {
		lines, err := s.logs(s.ctx, f)
		s.must(err)
		for _, l := range lines {
			for _, word := range []string{"not authorized", "AccessDenied", "forbidden", `"level":"ERROR"`, "panic:"} {
				if strings.Contains(l, word) {
					s.t.Errorf("%s: %.600s", f, l)
					break
				}
			}
		}
	}
}
