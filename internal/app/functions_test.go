package app_test

import (
	"encoding/base64"
	"encoding/json"
	"encoding/pem"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/aws/aws-lambda-go/events"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime"

	"kerf.sh/kerf/internal/app"
	"kerf.sh/kerf/internal/app/region"
	"kerf.sh/kerf/internal/handler"
	"kerf.sh/kerf/internal/lifecycle"
)

// outside is what functions find when they are started: AWS behind one endpoint, as the
// SDK's variables name it, and the API server of a cluster.
type outside struct {
	t         *testing.T
	aws, kube *httptest.Server
	mu        sync.Mutex
	seen      []string // "eks GET /clusters/prod", "kube GET /api/v1/pods"
}

func newOutside(t *testing.T) *outside {
	o := &outside{t: t}
	o.kube = httptest.NewTLSServer(http.HandlerFunc(o.serveKube))
	o.aws = httptest.NewServer(http.HandlerFunc(o.serveAWS))
	t.Cleanup(o.kube.Close)
	t.Cleanup(o.aws.Close)
	for k, v := range map[string]string{
		"AWS_ENDPOINT_URL": o.aws.URL, "AWS_ACCESS_KEY_ID": "AKIA", "AWS_SECRET_ACCESS_KEY": "secret", "AWS_SESSION_TOKEN": "",
		"AWS_CONFIG_FILE": "/dev/null", "AWS_SHARED_CREDENTIALS_FILE": "/dev/null", "AWS_EC2_METADATA_DISABLED": "true", "AWS_MAX_ATTEMPTS": "1",
	} {
		t.Setenv(k, v)
	}
	return o
}

func (o *outside) environ(more ...string) []string {
	return append([]string{"AWS_REGION=us-east-1", "CLUSTER_NAME=prod", "KERF_TABLE=kerf", "KERF_TICK_QUEUE=https://sqs.us-east-1.amazonaws.com/1/ticks",
		"KERF_WORK_QUEUE=https://sqs.us-east-1.amazonaws.com/1/work", "KERF_CATALOG_FUNCTION=kerf-catalog"}, more...)
}

func (o *outside) saw(format string, args ...any) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.seen = append(o.seen, fmt.Sprintf(format, args...))
}

// take are the requests since the last take.
func (o *outside) take() []string {
	o.mu.Lock()
	defer o.mu.Unlock()
	out := o.seen
	o.seen = nil
	return out
}

// serveAWS knows the cluster and an empty table, and refuses the rest.
func (o *outside) serveAWS(w http.ResponseWriter, q *http.Request) {
	scope := strings.Split(q.Header.Get("Authorization"), "/") // Credential=AKIA/date/region/service/...
	if len(scope) < 4 {
		o.t.Errorf("%s is not signed", q.URL)
		return
	}
	op := q.Header.Get("X-Amz-Target")
	op = op[strings.LastIndexByte(op, '.')+1:]
	body, _ := io.ReadAll(q.Body)
	if scope[3] == "ec2" {
		op = strings.TrimPrefix(strings.Split(string(body), "&")[0], "Action=")
	}
	o.saw("%s %s", scope[3], op+strings.TrimSuffix(q.URL.Path, "/"))
	answer := map[string]any{}
	switch {
	case q.URL.Path == "/clusters/prod":
		cert := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: o.kube.Certificate().Raw})
		answer["cluster"] = map[string]any{"name": "prod", "endpoint": o.kube.URL, "version": "1.34", "status": "ACTIVE",
			"certificateAuthority":    map[string]any{"data": base64.StdEncoding.EncodeToString(cert)},
			"kubernetesNetworkConfig": map[string]any{"ipFamily": "ipv4", "serviceIpv4Cidr": "172.20.0.0/16"}}
	case op == "DescribeTable":
		answer["Table"] = map[string]any{"TableId": "table-1", "TableStatus": "ACTIVE", "TableName": "kerf"}
	case op == "GetItem":
	case op == "Query":
		answer["Items"], answer["Count"] = []any{}, 0
	case op == "UpdateItem", op == "PutItem", op == "TransactWriteItems":
	case strings.HasPrefix(op, "SendMessage"):
		var in struct{ Entries []struct{ Id string } }
		if err := json.Unmarshal(body, &in); err != nil {
			o.t.Error(err)
		}
		var done []any
		for _, e := range in.Entries {
			done = append(done, map[string]any{"Id": e.Id, "MessageId": e.Id, "MD5OfMessageBody": ""})
		}
		answer["Successful"] = done
	default:
		w.WriteHeader(http.StatusBadRequest)
		fmt.Fprint(w, `{"__type":"AccessDeniedException","message":"not here"}`)
		return
	}
	if err := json.NewEncoder(w).Encode(answer); err != nil {
		o.t.Error(err)
	}
}

// serveKube knows no pods, and lets in who has a token of the cluster.
func (o *outside) serveKube(w http.ResponseWriter, q *http.Request) {
	token, ok := strings.CutPrefix(q.Header.Get("Authorization"), "Bearer k8s-aws-v1.")
	signed, err := base64.RawURLEncoding.DecodeString(token)
	if !ok || err != nil || !strings.Contains(string(signed), "sts.us-east-1.amazonaws.com") {
		o.t.Errorf("token %q", token)
	}
	o.saw("kube %s %s", q.Method, q.URL.Path)
	if q.URL.Path != "/api/v1/pods" || q.URL.Query().Get("fieldSelector") != "spec.nodeName=" {
		w.WriteHeader(http.StatusForbidden)
		return
	}
	list, err := (&corev1.PodList{}).Marshal()
	if err != nil {
		o.t.Error(err)
	}
	body, err := (&runtime.Unknown{TypeMeta: runtime.TypeMeta{APIVersion: "v1", Kind: "PodList"}, Raw: list}).Marshal()
	if err != nil {
		o.t.Error(err)
	}
	w.Header().Set("Content-Type", "application/vnd.kubernetes.protobuf")
	w.Write(append([]byte{0x6b, 0x38, 0x73, 0}, body...)) //nolint:errcheck // a test client
}

// batch is the event of messages on a queue.
func batch(t *testing.T, bodies ...string) json.RawMessage {
	var e events.SQSEvent
	for i, b := range bodies {
		e.Records = append(e.Records, events.SQSMessage{MessageId: fmt.Sprint("m-", i), ReceiptHandle: "r", Body: b, EventSource: "aws:sqs",
			Attributes: map[string]string{"SentTimestamp": fmt.Sprint(time.Now().UnixMilli()), "ApproximateReceiveCount": "1"}})
	}
	raw, err := json.Marshal(e)
	if err != nil {
		t.Fatal(err)
	}
	return raw
}

// TestSweepIdle: with nothing pending, a tick costs one request to the API server; who the
// cluster is, is asked once in the life of a process.
func TestSweepIdle(t *testing.T) {
	o := newOutside(t)
	fn, err := app.SweepFunction(t.Context(), o.environ())
	if err != nil {
		t.Fatal(err)
	}
	if got := o.take(); len(got) > 0 {
		t.Errorf("requests before the first invocation: %q", got)
	}
	now := time.Now()
	tick, err := lifecycle.Tick{Kind: lifecycle.TickSlot, Slot: now.Unix(), Sent: now}.Encode()
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range [][]string{{"eks /clusters/prod", "kube GET /api/v1/pods"}, {"kube GET /api/v1/pods"}} {
		out, err := fn(t.Context(), batch(t, tick))
		if r, ok := out.(events.SQSEventResponse); err != nil || !ok || len(r.BatchItemFailures) > 0 {
			t.Errorf("answer %+v, %v", out, err)
		}
		if got := o.take(); !slices.Equal(got, want) {
			t.Errorf("requests %q, want %q", got, want)
		}
	}
	// A message that is none is dropped; one that fails comes back alone.
	urgent, err := lifecycle.Tick{Kind: lifecycle.TickUrgent, Sent: now}.Encode()
	if err != nil {
		t.Fatal(err)
	}
	out, err := fn(t.Context(), batch(t, "{", tick, urgent))
	r, ok := out.(events.SQSEventResponse)
	if err != nil || !ok || len(r.BatchItemFailures) != 1 || r.BatchItemFailures[0].ItemIdentifier != "m-2" {
		t.Errorf("answer %+v, %v", out, err)
	}
	if _, err := fn(t.Context(), json.RawMessage(`{"dryrun":true, "x":1}`)); err == nil || !strings.Contains(err.Error(), `{"dryRun": true}`) {
		t.Errorf("an unknown field: %v", err)
	}
	if _, err := fn(t.Context(), json.RawMessage(`{"dryRun":true}`)); err == nil || !strings.Contains(err.Error(), "read the cluster") {
		t.Errorf("a cluster that cannot be read: %v", err)
	}
}

// TestLifecycleStarts: the function comes up and looks after what there is.
func TestLifecycleStarts(t *testing.T) {
	o := newOutside(t)
	fn, err := app.LifecycleFunction(t.Context(), o.environ())
	if err != nil {
		t.Fatal(err)
	}
	if _, err := fn(t.Context(), json.RawMessage(`{"kind":"nothing"}`)); err == nil {
		t.Error("work of no kind was taken")
	}
	out, err := fn(t.Context(), batch(t, `{"kind":"node","claim":"web-1","step":3}`))
	if r, ok := out.(events.SQSEventResponse); err != nil || !ok {
		t.Errorf("answer %+v, %v", r, err)
	}
	if got := o.take(); !slices.ContainsFunc(got, func(s string) bool { return strings.HasPrefix(s, "dynamodb ") }) {
		t.Errorf("requests %q", got)
	}
}

// TestCatalogStarts: the half without a cluster works without one; each part that AWS
// refuses is named; endpoints of single services can be elsewhere.
func TestCatalogStarts(t *testing.T) {
	o := newOutside(t)
	fn, err := app.CatalogFunction(t.Context(), o.environ(), region.Ask)
	if err != nil {
		t.Fatal(err)
	}
	out, err := fn(t.Context(), json.RawMessage(`{"only":"prices"}`))
	rep, ok := out.(*handler.CatalogReport)
	if err != nil || !ok || len(rep.Warnings) != 3 || rep.Types < 100 {
		t.Errorf("answer %+v, %v", out, err)
	}
	got := strings.Join(o.take(), "\n")
	for _, want := range []string{"dynamodb GetItem", "ec2 DescribeInstanceTypes", "ec2 DescribeSpotPriceHistory", "pricing GetProducts"} {
		if !strings.Contains(got, want) {
			t.Errorf("no request %q:\n%s", want, got)
		}
	}
	if strings.Contains(got, "eks") || strings.Contains(got, "kube") {
		t.Errorf("the cluster was asked:\n%s", got)
	}
	if _, err := fn(t.Context(), json.RawMessage(`{"class":"x"}`)); err == nil || !strings.Contains(err.Error(), "Karpenter runs") {
		t.Errorf("a cluster that refuses: %v", err)
	}
	isolated, err := app.CatalogFunction(t.Context(), o.environ("ISOLATED_VPC=true"), region.Ask)
	if err != nil {
		t.Fatal(err)
	}
	o.take()
	if _, err := isolated(t.Context(), json.RawMessage(`{"only":"prices"}`)); err != nil || strings.Contains(strings.Join(o.take(), ""), "pricing") {
		t.Errorf("isolated: %v", err)
	}
	other := newOutside(t)
	t.Setenv("AWS_ENDPOINT_URL_EC2", other.aws.URL)
	t.Setenv("AWS_ENDPOINT_URL", o.aws.URL)
	fn, err = app.CatalogFunction(t.Context(), o.environ(), region.Ask)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := fn(t.Context(), json.RawMessage(`{"only":"prices"}`)); err != nil {
		t.Error(err)
	}
	if got := strings.Join(other.take(), " "); !strings.Contains(got, "ec2 ") || strings.Contains(got, "dynamodb") {
		t.Errorf("the other endpoint saw %q", got)
	}
}

// TestFunctionSettings: what is missing is named, all at once, before anything is asked.
func TestFunctionSettings(t *testing.T) {
	for _, tc := range []struct {
		name  string
		build func(environ []string) (app.Function, error)
		want  []string
	}{
		{"sweep", func(e []string) (app.Function, error) { return app.SweepFunction(t.Context(), e) }, []string{"AWS_REGION", "CLUSTER_NAME", "KERF_TABLE"}},
		{"lifecycle", func(e []string) (app.Function, error) { return app.LifecycleFunction(t.Context(), e) }, []string{"AWS_REGION", "CLUSTER_NAME", "KERF_TABLE"}},
		{"catalog", func(e []string) (app.Function, error) { return app.CatalogFunction(t.Context(), e, region.Ask) }, []string{"AWS_REGION", "CLUSTER_NAME", "KERF_TABLE"}},
	} {
		_, err := tc.build(nil)
		if err == nil {
			t.Errorf("%s was built of nothing", tc.name)
			continue
		}
		for _, want := range tc.want {
			if !strings.Contains(err.Error(), want+" is not set") {
				t.Errorf("%s: %v; want %s named", tc.name, err, want)
			}
		}
	}
	if _, err := app.SweepFunction(t.Context(), []string{"AWS_REGION=x", "CLUSTER_NAME=y", "KERF_TABLE=z", "KERF_TICK_QUEUE=https://q/t"}); err == nil || !strings.Contains(err.Error(), "KERF_WORK_QUEUE is not set") {
		t.Errorf("no queue: %v", err)
	}
	if _, err := app.SweepFunction(t.Context(), []string{"KERF_TABEL=z"}); err == nil || !strings.Contains(err.Error(), "KERF_TABEL") {
		t.Errorf("a slip: %v", err)
	}
}
