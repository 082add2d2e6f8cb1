//go:build wire

package queue

import (
	"context"
	"errors"
	"net"
	"os"
	"os/exec"
	"slices"
	"syscall"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/sqs"
	"github.com/aws/aws-sdk-go-v2/service/sqs/types"

	"kerf.sh/kerf/internal/lifecycle"
)

// emulated is a client of an SQS that the program named by KERF_EMULATOR serves (make
// test-queue installs one), and a new queue in it.
func emulated(t *testing.T) (*sqs.Client, *Queue) {
	t.Helper()
	program := os.Getenv("KERF_EMULATOR")
	if program == "" {
		t.Fatal("KERF_EMULATOR does not name the emulator's program: use make test-queue")
	}
	free, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	address := free.Addr().String()
	_, port, _ := net.SplitHostPort(address)
	free.Close()
	dir := t.TempDir()
	cmd := exec.Command(program)
	cmd.Env = append(os.Environ(), "GATEWAY_PORT="+port, "BIND_HOST=127.0.0.1", "SERVICES=sqs", "LOG_LEVEL=WARNING", "TMPDIR="+dir, "STATE_DIR="+dir)
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL)
		_ = cmd.Wait()
	})
	client := sqs.New(sqs.Options{Region: "us-east-1", BaseEndpoint: aws.String("http://" + address),
		Credentials: aws.CredentialsProviderFunc(func(context.Context) (aws.Credentials, error) {
			return aws.Credentials{AccessKeyID: "test", SecretAccessKey: "test"}, nil
		})}, Options)
	for range 600 {
		if c, err := net.Dial("tcp", address); err == nil {
			c.Close()
			break
		}
		time.Sleep(100 * time.Millisecond)
	}
	made, err := client.CreateQueue(t.Context(), &sqs.CreateQueueInput{QueueName: aws.String("work"), Attributes: map[string]string{"VisibilityTimeout": "720"}})
	if err != nil {
		t.Fatal(err)
	}
	return client, New(client, *made.QueueUrl)
}

// receive takes what comes within some seconds, until there are enough.
func receive(t *testing.T, client *sqs.Client, q *Queue, enough int, within time.Duration) []types.Message {
	t.Helper()
	var out []types.Message
	for end := time.Now().Add(within); len(out) < enough && time.Now().Before(end); {
		got, err := client.ReceiveMessage(t.Context(), &sqs.ReceiveMessageInput{QueueUrl: &q.url, MaxNumberOfMessages: 10, WaitTimeSeconds: 1})
		if err != nil {
			t.Fatal(err)
		}
		out = append(out, got.Messages...)
	}
	return out
}

func bodies(ms []types.Message) []string {
	var out []string
	for _, m := range ms {
		out = append(out, *m.Body)
	}
	slices.Sort(out)
	return out
}

// TestWireWholeWay: what is sent comes, what is delayed comes later, and what is to be
// brought back comes back long before its visibility timeout.
func TestWireWholeWay(t *testing.T) {
	client, q := emulated(t)
	out := []lifecycle.Outgoing{{Body: "late", Delay: 4 * time.Second}}
	want := []string{}
	for i := range 12 {
		body := string(rune('a' + i))
		out, want = append(out, lifecycle.Outgoing{Body: body}), append(want, body)
	}
	if err := q.Send(t.Context(), out...); err != nil {
		t.Fatal(err)
	}
	first := receive(t, client, q, 12, 3*time.Second)
	if got := bodies(first); !slices.Equal(got, want) {
		t.Fatalf("received %v, want %v", got, want)
	}
	later := receive(t, client, q, 1, 20*time.Second)
	if got := bodies(later); !slices.Equal(got, []string{"late"}) {
		t.Fatalf("received %v later", got)
	}
	err := q.ChangeVisibility(t.Context(), Visibility{*first[0].ReceiptHandle, 0}, Visibility{"no receipt", time.Second}, Visibility{*first[1].ReceiptHandle, 2 * time.Second})
	be, _ := errors.AsType[*BatchError](err)
	if be == nil || len(be.Failed) != 1 || be.Failed[0].Index != 1 {
		t.Errorf("a receipt that is none: %v", err)
	}
	back := receive(t, client, q, 2, 20*time.Second)
	if got, want := bodies(back), bodies(first[:2]); !slices.Equal(got, want) {
		t.Errorf("%v came back, want %v", got, want)
	}
}
