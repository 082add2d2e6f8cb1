package local

import (
	"cmp"
	"context"
	"encoding/json"
	"encoding/xml"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/cloudformation"
	"github.com/aws/aws-sdk-go-v2/service/ec2/types"
	"github.com/aws/aws-sdk-go-v2/service/lambda"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"kerf.sh/kerf/internal/cloud/ec2fake"
)

// Invoke calls a function of the stack as make invoke does, and returns its answer.
func (s *Stack) Invoke(ctx context.Context, function string, payload any) ([]byte, error) {
	raw, err := json.Marshal(payload)
	if err != nil {
		return nil, err
	}
	out, err := lambda.NewFromConfig(s.emulator.config()).Invoke(ctx, &lambda.InvokeInput{FunctionName: aws.String(s.function(function)), Payload: raw})
	if err != nil {
		return nil, fmt.Errorf("invoke %s: %w", function, err)
	}
	if out.FunctionError != nil {
		return nil, fmt.Errorf("invoke %s: %s: %s", function, *out.FunctionError, out.Payload)
	}
	return out.Payload, nil
}

// Outputs are the outputs of the stack.
func (s *Stack) Outputs(ctx context.Context) (map[string]string, error) {
	list, err := cloudformation.NewFromConfig(s.emulator.config()).DescribeStacks(ctx, &cloudformation.DescribeStacksInput{StackName: aws.String(s.StackName())})
	if err != nil {
		return nil, err
	}
	out := map[string]string{}
	for _, o := range list.Stacks[0].Outputs {
		out[aws.ToString(o.OutputKey)] = aws.ToString(o.OutputValue)
	}
	return out, nil
}

// summary is what a function said at the end of one invocation.
type summary struct {
	Timestamp time.Time
	Function  string
	Seconds   float64
	Error     string
	// Calls are the requests by service and operation.
	Calls map[string]struct{ N, Failed int }
	// line is all of it.
	line string
}

// logs is what a function has logged so far.
func (s *Stack) logs(ctx context.Context, function string) ([]string, error) {
	out, err := s.Outputs(ctx)
	if err != nil {
		return nil, err
	}
	group := out[strings.ToUpper(function[:1])+function[1:]+"LogGroup"]
	if group == "" {
		return nil, fmt.Errorf("the stack names no log group of %s", function)
	}
	return s.emulator.logsOf(ctx, group)
}

// summaries are those of a function since a time.
func (s *Stack) summaries(ctx context.Context, function string, since time.Time) ([]summary, error) {
	lines, err := s.logs(ctx, function)
	if err != nil {
		return nil, err
	}
	var out []summary
	for _, l := range lines {
		if !strings.Contains(l, `"message":"summary"`) {
			continue
		}
		one := summary{line: l}
		if err := json.Unmarshal([]byte(l), &one); err != nil {
			return nil, fmt.Errorf("read a summary of %s: %w: %s", function, err, l)
		}
		if one.Timestamp.After(since) {
			out = append(out, one)
		}
	}
	return out, nil
}

// statistics makes a request of CloudWatch. It is by the older protocol: the emulator answers the
// one of the SDK with bodies that the SDK cannot read.
func (s *Stack) statistics(ctx context.Context, in url.Values, out any) error {
	in.Set("Version", "2010-08-01")
	answer, err := s.emulator.do(ctx, "monitoring", http.MethodPost, "/", map[string]string{"Content-Type": "application/x-www-form-urlencoded"}, []byte(in.Encode()))
	if err != nil {
		return err
	}
	return xml.Unmarshal(answer, out)
}

// sum adds up a metric in a span of whole minutes.
func (s *Stack) sum(ctx context.Context, namespace, metric, dimension, value string, from, to time.Time) (float64, error) {
	var out struct {
		Points []struct{ Sum float64 } `xml:"GetMetricStatisticsResult>Datapoints>member"`
	}
	err := s.statistics(ctx, url.Values{
		"Action": {"GetMetricStatistics"}, "Namespace": {namespace}, "MetricName": {metric}, "Dimensions.member.1.Name": {dimension}, "Dimensions.member.1.Value": {value},
		"StartTime": {from.UTC().Format(time.RFC3339)}, "EndTime": {to.UTC().Format(time.RFC3339)}, "Period": {"60"}, "Statistics.member.1": {"Sum"},
	}, &out)
	if err != nil {
		return 0, fmt.Errorf("read metric %s: %w", metric, err)
	}
	n := 0.0
	for _, p := range out.Points {
		n += p.Sum
	}
	return n, nil
}

// metrics are the custom metrics that CloudWatch has: each is billed.
func (s *Stack) metrics(ctx context.Context, namespace string) ([]string, error) {
	var out []string
	in := url.Values{"Action": {"ListMetrics"}, "Namespace": {namespace}}
	for {
		var page struct {
			Metrics []struct {
				MetricName string
				Dimensions []struct{ Name, Value string } `xml:"Dimensions>member"`
			} `xml:"ListMetricsResult>Metrics>member"`
			NextToken string `xml:"ListMetricsResult>NextToken"`
		}
		if err := s.statistics(ctx, in, &page); err != nil {
			return nil, fmt.Errorf("list metrics: %w", err)
		}
		for _, m := range page.Metrics {
			name := m.MetricName
			for _, d := range m.Dimensions {
				name += " " + d.Name + "=" + d.Value
			}
			out = append(out, name)
		}
		if page.NextToken == "" {
			slices.Sort(out)
			return out, nil
		}
		in.Set("NextToken", page.NextToken)
	}
}

// running are the pods of a namespace; an error until there are so many and all run.
func (s *Stack) running(ctx context.Context, namespace string, n int) ([]corev1.Pod, error) {
	list, err := s.Cluster.Clientset.CoreV1().Pods(namespace).List(ctx, metav1.ListOptions{})
	if err != nil {
		return nil, err
	}
	var waiting []string
	for _, p := range list.Items {
		if p.Status.Phase != corev1.PodRunning || p.DeletionTimestamp != nil {
			waiting = append(waiting, p.Name)
		}
	}
	if len(list.Items) != n || len(waiting) > 0 {
		return list.Items, fmt.Errorf("%d pods of %d are there, and these do not run: %v; machines: %v", len(list.Items), n, waiting, s.Machines.Failed())
	}
	return list.Items, nil
}

// living are the instances that run or will, the dearest first.
func (s *Stack) living() []ec2fake.Instance {
	var out []ec2fake.Instance
	for _, i := range s.EC2.Machines() {
		if state := i.State(time.Now()); state == types.InstanceStateNameRunning || state == types.InstanceStateNamePending {
			out = append(out, i)
		}
	}
	slices.SortFunc(out, func(a, b ec2fake.Instance) int {
		return cmp.Or(cmp.Compare(s.price(b), s.price(a)), cmp.Compare(a.ID, b.ID))
	})
	return out
}

// price is what an instance costs, in micro-dollars per hour.
func (s *Stack) price(i ec2fake.Instance) int64 {
	if i.Spot {
		return s.EC2.Types[i.Type].Spot
	}
	return s.EC2.Types[i.Type].OnDemand
}

// cost is what all instances cost.
func (s *Stack) cost() (sum int64) {
	for _, i := range s.living() {
		sum += s.price(i)
	}
	return sum
}

func dollars(micro int64) string { return fmt.Sprintf("$%.4f/h", float64(micro)/1e6) }

// nodes is a table of the nodes with what runs on them.
func (s *Stack) nodes(ctx context.Context) (string, error) {
	list, err := s.Cluster.Clientset.CoreV1().Nodes().List(ctx, metav1.ListOptions{})
	if err != nil {
		return "", err
	}
	pods, err := s.Cluster.Clientset.CoreV1().Pods("").List(ctx, metav1.ListOptions{})
	if err != nil {
		return "", err
	}
	on := map[string]map[string]int{}
	for _, p := range pods.Items {
		if on[p.Spec.NodeName] == nil {
			on[p.Spec.NodeName] = map[string]int{}
		}
		on[p.Spec.NodeName][p.Labels["app"]]++
	}
	var b strings.Builder
	for _, i := range s.living() {
		k := slices.IndexFunc(list.Items, func(n corev1.Node) bool { return strings.HasSuffix(n.Spec.ProviderID, "/"+i.ID) })
		if k < 0 {
			fmt.Fprintf(&b, "%-40s %-13s %s  %s\n", i.ID+" (no node yet)", i.Type, i.Zone, dollars(s.price(i)))
			continue
		}
		n := list.Items[k]
		what := "on-demand"
		if i.Spot {
			what = "spot"
		}
		fmt.Fprintf(&b, "%-32s %-13s %s  %-9s  %s  ", n.Name, i.Type, i.Zone, what, dollars(s.price(i)))
		for _, app := range sorted(on[n.Name]) {
			fmt.Fprintf(&b, " %d %s", on[n.Name][app], app)
		}
		b.WriteString("\n")
	}
	fmt.Fprintf(&b, "%d nodes, %s", len(s.living()), dollars(s.cost()))
	return b.String(), nil
}

func sorted(m map[string]int) []string {
	out := make([]string, 0, len(m))
	for k := range m {
		out = append(out, k)
	}
	slices.Sort(out)
	return out
}

// object reads an object of Karpenter's.
func (s *Stack) object(ctx context.Context, path string, into any) error {
	raw, err := s.Cluster.Clientset.RESTClient().Get().AbsPath(path).DoRaw(ctx)
	if err != nil {
		return err
	}
	return json.Unmarshal(raw, into)
}

// classReady is nil when an EC2NodeClass can be launched from.
func (s *Stack) classReady(ctx context.Context, name string) error {
	var c struct {
		Status struct {
			Conditions []metav1.Condition
		}
	}
	if err := s.object(ctx, "/apis/karpenter.k8s.aws/v1/ec2nodeclasses/"+name, &c); err != nil {
		return err
	}
	for _, one := range c.Status.Conditions {
		if one.Type == "Ready" && one.Status == metav1.ConditionTrue {
			return nil
		}
	}
	return errors.New("EC2NodeClass " + name + " is not ready: " + fmt.Sprint(c.Status.Conditions))
}
