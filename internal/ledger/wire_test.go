//go:build wire

package ledger

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"kerf.sh/kerf/internal/lifecycle"
	"kerf.sh/kerf/internal/snapshot"
)

// emulator is where DynamoDB's API is served.
var emulator string

// TestMain starts the emulator: the program that KERF_EMULATOR names, which serves
// DynamoDB on the port GATEWAY_PORT of BIND_HOST. make test-ledger installs one.
func TestMain(m *testing.M) {
	stop, err := start(os.Getenv("KERF_EMULATOR"))
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	code := m.Run()
	stop()
	os.Exit(code)
}

func start(program string) (stop func(), err error) {
	if program == "" {
		return nil, errors.New("KERF_EMULATOR does not name the emulator's program: use make test-ledger")
	}
	free, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return nil, err
	}
	address := free.Addr().String()
	free.Close()
	_, port, _ := net.SplitHostPort(address)
	dir, err := os.MkdirTemp("", "kerf-emulator")
	if err != nil {
		return nil, err
	}
	cmd := exec.Command(program)
	cmd.Env = append(os.Environ(), "GATEWAY_PORT="+port, "BIND_HOST=127.0.0.1", "SERVICES=dynamodb", "LOG_LEVEL=WARNING", "TMPDIR="+dir, "STATE_DIR="+dir)
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	log, err := os.Create(dir + "/log")
	if err != nil {
		return nil, err
	}
	cmd.Stdout, cmd.Stderr = log, log
	if err := cmd.Start(); err != nil {
		return nil, fmt.Errorf("start the emulator: %w", err)
	}
	stop = func() {
		_ = syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL)
		_ = cmd.Wait()
		_ = os.RemoveAll(dir)
	}
	emulator = "http://" + address
	for range 600 {
		c, err := net.Dial("tcp", address)
		if err == nil {
			c.Close()
			return stop, nil
		}
		time.Sleep(100 * time.Millisecond)
	}
	text, _ := os.ReadFile(dir + "/log")
	stop()
	return nil, fmt.Errorf("the emulator does not listen on %s after a minute:\n%s", address, text)
}

var tables atomic.Int64

// faults is a transport that loses and makes up answers.
type faults struct {
	// lose: the answers of so many requests, which are applied, are lost.
	// refuse: so many requests are answered with an error and not applied.
	lose, refuse int
	with         string // the error's code
	seen         int
}

func (f *faults) RoundTrip(r *http.Request) (*http.Response, error) {
	f.seen++
	if f.refuse > 0 {
		f.refuse--
		body := fmt.Sprintf(`{"__type":"com.amazonaws.dynamodb.v20120810#%s","message":"made up"}`, f.with)
		return &http.Response{
			StatusCode: 400, Status: "400 Bad Request", Proto: "HTTP/1.1", ProtoMajor: 1, ProtoMinor: 1, Request: r,
			Header: http.Header{"Content-Type": {"application/x-amz-json-1.0"}}, Body: io.NopCloser(strings.NewReader(body)),
			ContentLength: int64(len(body)),
		}, nil
	}
	// A copy of the body: the SDK closes its own when the answer comes, which on one busy
	// machine can be before net/http has noticed its end.
	body, err := io.ReadAll(r.Body)
	if err != nil {
		return nil, err
	}
	r = r.Clone(r.Context())
	r.Body = io.NopCloser(bytes.NewReader(body))
	answer, err := http.DefaultTransport.RoundTrip(r)
	if f.lose > 0 && err == nil {
		f.lose--
		_, _ = io.Copy(io.Discard, answer.Body)
		answer.Body.Close()
		return nil, errors.New("connection reset by peer (made up)")
	}
	return answer, err
}

// wireTable makes a table in the emulator, and how faults are put in its way.
func wireTable(t *testing.T) (*DynamoDB, *faults) {
	t.Helper()
	f := &faults{}
	api := dynamodb.New(dynamodb.Options{
		Region: "us-east-1", BaseEndpoint: &emulator, HTTPClient: &http.Client{Transport: f},
		Credentials: aws.CredentialsProviderFunc(func(context.Context) (aws.Credentials, error) {
			return aws.Credentials{AccessKeyID: "test", SecretAccessKey: "test"}, nil
		}),
	}, Options)
	name := fmt.Sprintf("kerf-%d", tables.Add(1))
	_, err := api.CreateTable(t.Context(), &dynamodb.CreateTableInput{
		TableName: &name, BillingMode: types.BillingModePayPerRequest,
		AttributeDefinitions: []types.AttributeDefinition{
			{AttributeName: aws.String(attrPK), AttributeType: types.ScalarAttributeTypeS},
			{AttributeName: aws.String(attrSK), AttributeType: types.ScalarAttributeTypeS},
		},
		KeySchema: []types.KeySchemaElement{
			{AttributeName: aws.String(attrPK), KeyType: types.KeyTypeHash}, {AttributeName: aws.String(attrSK), KeyType: types.KeyTypeRange},
		},
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_, _ = api.DeleteTable(context.Background(), &dynamodb.DeleteTableInput{TableName: &name})
	})
	return NewDynamoDB(api, name), f
}

// TestWire holds DynamoDB's API to the contract, over HTTP.
func TestWire(t *testing.T) {
	contract(t, func(t *testing.T) Table {
		tb, _ := wireTable(t)
		return tb
	})
}

// TestWireFlows runs the ledger's own tests over HTTP.
func TestWireFlows(t *testing.T) {
	flows(t, func(t *testing.T) Table {
		tb, _ := wireTable(t)
		return tb
	})
}

// TestWireFaults: what the SDK makes of throttling, conflicts and lost answers is what
// the ledger tells apart, and a repeated call knows that it was applied.
func TestWireFaults(t *testing.T) {
	tb, f := wireTable(t)
	ctx := t.Context()
	one := put(item("F", "1", Item{"v": N(1)}), Absent(attrPK))
	for code, kind := range map[string]error{
		"ProvisionedThroughputExceededException": ErrThrottled, "ThrottlingException": ErrThrottled, "RequestLimitExceeded": ErrThrottled,
		"TransactionConflictException": ErrConflict, "TransactionInProgressException": ErrConflict, "InternalServerError": ErrUnknown,
		"AccessDeniedException": ErrUnauthorized, "ResourceNotFoundException": ErrNoTable,
	} {
		*f = faults{refuse: 2, with: code}
		if _, err := tb.Write(ctx, one); !errors.Is(err, kind) {
			t.Errorf("%s: %v", code, err)
		}
		if err := tb.Transact(ctx, "", []Write{one}); !errors.Is(err, kind) {
			t.Errorf("%s: %v", code, err)
		}
		if f.seen != 2 {
			t.Errorf("%s: %d requests: the SDK repeats by itself", code, f.seen)
		}
	}
	*f = faults{}
	want(t, tb, one.Key, nil)
	*f = faults{lose: 1}
	if _, err := tb.Write(ctx, one); !errors.Is(err, ErrUnknown) {
		t.Errorf("a lost answer: %v", err)
	}
	want(t, tb, one.Key, one.Put)

	l := testLedger(tb, newClock(), "me")
	*f = faults{lose: 1}
	two := put(item("F", "2", nil), Absent(attrPK))
	if _, err := l.write(ctx, two); err != nil {
		t.Errorf("a write whose answer is lost: %v", err)
	}
	*f = faults{lose: 1}
	three := []Write{put(item("F", "3", nil), Absent(attrPK)), {Key: Key{"F", "n"}, Add: map[string]int64{"n": 1}}}
	if err := l.transact(ctx, three); err != nil {
		t.Errorf("a transaction whose answer is lost: %v", err)
	}
	want(t, tb, Key{"F", "n"}, item("F", "n", Item{"n": N(1)}))
	// Long after, with another token: the row itself proves it.
	if err := l.transact(ctx, three); err != nil {
		t.Errorf("the same once more: %v", err)
	}
	want(t, tb, Key{"F", "n"}, item("F", "n", Item{"n": N(1)}))
	gone := NewDynamoDB(tb.api, "no-such-table")
	if _, err := gone.ID(ctx); !errors.Is(err, ErrNoTable) {
		t.Errorf("no table: %v", err)
	}
	if _, err := gone.Get(ctx, Key{"a", "b"}); !errors.Is(err, ErrNoTable) {
		t.Errorf("no table: %v", err)
	}
}

// TestWireConcurrent: passes that commit at the same moment do not exceed a limit, and
// count right.
func TestWireConcurrent(t *testing.T) {
	tb, _ := wireTable(t)
	c := newClock()
	boot, _ := ready(t, tb, c)
	lease := acquire(t, boot)
	limits := Limits{"p": {snapshot.Nodes: 20}}
	var group sync.WaitGroup
	var refused, done atomic.Int64
	for pass := range 6 {
		// One invocation each, all with the one lease: what could happen if it failed to
		// keep them apart.
		l := testLedger(tb, c, fmt.Sprintf("pass-%d", pass))
		l.Wait = Jitter(func(n int64) int64 { return n / int64(pass+2) })
		l.Tries = 50
		group.Go(func() {
			for i := range 8 {
				r := intent(c, fmt.Sprintf("n-%d-%d", pass, i), "p", 1)
				_, err := l.Commit(context.Background(), lease, []lifecycle.Record{r}, limits)
				if _, full := errors.AsType[*LimitError](err); full {
					refused.Add(1)
				} else if err != nil {
					t.Error(err)
				} else {
					done.Add(1)
				}
			}
		})
	}
	group.Wait()
	if done.Load() != 20 || refused.Load() != 28 {
		t.Errorf("%d committed, %d refused", done.Load(), refused.Load())
	}
	usage(t, boot, "p", lifecycle.Usage{snapshot.CPU: 20_000, snapshot.Nodes: 20, lifecycle.Price: 800_000})
}
