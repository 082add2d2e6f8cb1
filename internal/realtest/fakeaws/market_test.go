package fakeaws

import (
	"bytes"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/ec2/types"

	"kerf.sh/kerf/internal/app"
	"kerf.sh/kerf/internal/app/region"
	"kerf.sh/kerf/internal/cloud/ec2fake"
)

// request is what the proxy sees of a request: which call it is, and the how manieth of its
// kind; whether it goes on with a list.
type request struct {
	action string
	nth    int
	goesOn bool
}

// proxy stands before an AWS and breaks answers. fault is asked before each request; nil from
// it: the request is passed on.
type proxy struct {
	aws   *AWS
	fault func(q request) http.HandlerFunc

	mu    sync.Mutex
	times map[string]int
}

func (p *proxy) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	body, err := io.ReadAll(r.Body)
	if err != nil {
		return
	}
	action := r.Header.Get("X-Amz-Target")
	action = action[strings.LastIndexByte(action, '.')+1:]
	for _, pair := range strings.Split(string(body), "&") {
		if v, ok := strings.CutPrefix(pair, "Action="); ok {
			action = v
		}
	}
	if action == "" {
		action = strings.Trim(r.URL.Path[strings.LastIndexByte(r.URL.Path, '/'):], "/")
	}
	p.mu.Lock()
	p.times[action]++
	q := request{action, p.times[action], bytes.Contains(body, []byte("NextToken"))}
	p.mu.Unlock()
	if f := p.fault(q); f != nil {
		f(w, r)
		return
	}
	r.Body = io.NopCloser(bytes.NewReader(body))
	switch r.URL.Path {
	case "/savings/DescribeSavingsPlans":
		fmt.Fprint(w, `{"savingsPlans":[{"savingsPlanId":"sp-1","savingsPlanType":"Compute","commitment":"0.05","state":"active"}]}`)
	case "/savings/DescribeSavingsPlanRates":
		fmt.Fprint(w, `{"searchResults":[{"rate":"0.05","properties":[{"name":"instanceType","value":"m5.large"}]}]}`)
	default:
		p.aws.handler().ServeHTTP(w, r)
	}
}

func xmlError(status int, code string) http.HandlerFunc {
	return func(w http.ResponseWriter, _ *http.Request) {
		w.WriteHeader(status)
		fmt.Fprintf(w, "<Response><Errors><Error><Code>%s</Code><Message>User: u is not authorized to perform: ec2:Some because it is so</Message></Error></Errors><RequestID>r</RequestID></Response>", code)
	}
}

func jsonError(status int, code string) http.HandlerFunc {
	return func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("X-Amzn-Errortype", code)
		w.WriteHeader(status)
		fmt.Fprintf(w, `{"__type":%q,"message":"User: u is not authorized to perform: pricing:GetProducts because it is so"}`, code)
	}
}

// reset breaks the connection off without an answer.
func reset(http.ResponseWriter, *http.Request) { panic(http.ErrAbortHandler) }

// truncated says that more is coming than comes.
func truncated(w http.ResponseWriter, _ *http.Request) {
	w.Header().Set("Content-Length", "5000")
	fmt.Fprint(w, "<DescribeInstanceTypesResponse><instanceTypeSet><item><instanceType>m5.large</instanceType></item>")
}

const oneCluster = `
apiVersion: karpenter.sh/v1
kind: NodePool
metadata: {name: general}
spec:
  template:
    spec:
      nodeClassRef: {group: karpenter.k8s.aws, kind: EC2NodeClass, name: default}
      requirements:
      - {key: karpenter.sh/capacity-type, operator: In, values: [spot, on-demand]}
---
apiVersion: karpenter.k8s.aws/v1
kind: EC2NodeClass
metadata: {name: default}
spec: {role: node, amiSelectorTerms: [{alias: al2023@latest}], subnetSelectorTerms: [{tags: {a: b}}], securityGroupSelectorTerms: [{tags: {a: b}}]}
---
apiVersion: v1
kind: Pod
metadata: {name: web, namespace: shop}
spec: {containers: [{name: a, image: a, resources: {requests: {cpu: "1", memory: 1Gi}}}]}
`

// TestFactsUnderFaults: the plan command asks an AWS over HTTP for types, prices and
// commitments, while answers are throttled, fail, break off or lose their place. What can be
// had with patience is had whole; what cannot is said, and is that of the embedded table.
func TestFactsUnderFaults(t *testing.T) {
	a := &AWS{EC2: ec2fake.New(time.Now), IAM: &ec2fake.IAM{Now: time.Now}, SSM: &ec2fake.SSM{}, Queues: &Queues{}}
	a.EC2.PageSize = 1
	a.EC2.AddSubnet("subnet-1", "us-east-1a", "use1-az9", 100)
	a.EC2.AddSubnet("subnet-2", "us-east-1b", "use1-az8", 100)
	a.EC2.AddType(ec2fake.Type{Name: "m5.large", Arch: "amd64", VCPU: 2, OnDemand: 90_000, Spot: 70_000}, ec2fake.Type{Name: "m5.xlarge", Arch: "amd64", VCPU: 4, OnDemand: 180_000, Spot: 140_000})
	p := &proxy{aws: a}
	server := httptest.NewServer(p)
	defer server.Close()
	for _, name := range []string{"EC2", "PRICING"} {
		t.Setenv("AWS_ENDPOINT_URL_"+name, server.URL+"/"+strings.ToLower(name))
	}
	t.Setenv("AWS_ENDPOINT_URL_SAVINGSPLANS", server.URL+"/savings")
	t.Setenv("AWS_ACCESS_KEY_ID", "AKID")
	t.Setenv("AWS_SECRET_ACCESS_KEY", "secret")
	t.Setenv("AWS_EC2_METADATA_DISABLED", "true")
	file := filepath.Join(t.TempDir(), "cluster.yaml")
	if err := os.WriteFile(file, []byte(oneCluster), 0o600); err != nil {
		t.Fatal(err)
	}
	run := func(fault func(q request) http.HandlerFunc, args ...string) (int, string, string) {
		p.mu.Lock()
		p.fault, p.times = fault, map[string]int{}
		p.mu.Unlock()
		var out, msg bytes.Buffer
		c := app.Command{Stdout: &out, Stderr: &msg, Facts: region.Facts}
		status := c.Main(append([]string{"-f", file, "--region", "us-east-1", "--facts", "live", "--now", "2026-11-30T12:00:00Z"}, args...))
		return status, out.String(), msg.String()
	}
	none := func(request) http.HandlerFunc { return nil }
	only := func(action string, goesOn bool, first int, f http.HandlerFunc) func(request) http.HandlerFunc {
		return func(q request) http.HandlerFunc {
			if q.action == action && q.goesOn == goesOn && (first == 0 || q.nth <= first) {
				return f
			}
			return nil
		}
	}
	for _, tt := range []struct {
		name  string
		fault func(q request) http.HandlerFunc
		args  []string
		// price is what the launch costs; says what is said besides.
		price, says string
	}{
		{"nothing is wrong", none, nil, "$0.0700", ""},
		{"types are throttled twice", only("DescribeInstanceTypes", false, 2, xmlError(503, "RequestLimitExceeded")), nil, "$0.0700", ""},
		{"an error of the server on the second page", only("DescribeInstanceTypeOfferings", true, 2, xmlError(500, "InternalError")), nil, "$0.0700", ""},
		{"a connection that is reset", only("DescribeSpotPriceHistory", false, 1, reset), nil, "$0.0700", ""},
		{"prices are throttled", only("GetProducts", false, 2, jsonError(400, "ThrottlingException")), nil, "$0.0700", ""},
		{"a token that expires once", only("DescribeInstanceTypes", true, 2, xmlError(400, "InvalidPaginationToken")), nil, "$0.0700", ""},
		{"a token that always expires", only("DescribeSpotPriceHistory", true, 0, xmlError(400, "InvalidPaginationToken")), nil, "",
			"spot prices of us-east-1 could not be read, those of the embedded table are used: read spot prices: InvalidPaginationToken"},
		{"answers that break off", only("DescribeInstanceTypes", true, 0, truncated), nil, "", "instance types of us-east-1 could not be read, those of the embedded table are used: describe instance types"},
		{"list prices may not be read", only("GetProducts", false, 0, jsonError(400, "AccessDeniedException")), nil, "$0.0700",
			"list prices of us-east-1 could not be read, those of the embedded table are used: read list prices of us-east-1: AccessDeniedException: permission pricing:GetProducts is missing"},
		{"commitments", none, []string{"--commitments"}, "$0.0500", ""},
		{"what runs may not be listed", only("DescribeInstances", false, 0, xmlError(403, "UnauthorizedOperation")), []string{"--commitments"}, "$0.0700", "commitments are not counted, as it is not known what uses them"},
		{"Savings Plans fail", only("DescribeSavingsPlans", false, 0, jsonError(403, "AccessDeniedException")), []string{"--commitments"}, "$0.0700", "Savings Plans are not counted: describe Savings Plans: AccessDeniedException"},
	} {
		status, out, msg := run(tt.fault, tt.args...)
		if status != 0 || !strings.Contains(out, tt.price) || tt.says == "" && msg != "" || !strings.Contains(msg, tt.says) {
			t.Errorf("%s: status %d\n%s\n%s", tt.name, status, msg, out)
		}
	}
	// Nothing can be read: with --facts live that is no plan.
	status, _, msg := run(func(request) http.HandlerFunc { return xmlError(403, "UnauthorizedOperation") })
	if status != 2 || !strings.Contains(msg, "--facts live: instance types of us-east-1 could not be read") {
		t.Errorf("nothing may be read: status %d, %s", status, msg)
	}
	// A reserved instance that is used is not counted on again.
	a.EC2.Reserved = []types.ReservedInstances{{ReservedInstancesId: aws.String("ri-1"), InstanceType: "m5.large", InstanceCount: aws.Int32(1), State: types.ReservedInstanceStateActive,
		ProductDescription: "Linux/UNIX", Scope: types.ScopeRegional, RecurringCharges: []types.RecurringCharge{{Amount: aws.Float64(0.04), Frequency: types.RecurringChargeFrequencyHourly}}}}
	if status, out, msg := run(none, "--commitments"); status != 0 || !strings.Contains(out, "$0.0400") || msg != "" {
		t.Errorf("a reserved instance: status %d, %s\n%s", status, msg, out)
	}
}
