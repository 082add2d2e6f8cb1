package runtimeapi

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"kerf.sh/kerf/internal/realtest/fakeaws"
)

var binary string

func TestMain(m *testing.M) {
	dir, err := os.MkdirTemp("", "runtimeapi")
	if err == nil {
		binary = filepath.Join(dir, "bootstrap")
		var out []byte
		if out, err = exec.Command("go", "build", "-tags", "lambda.norpc", "-o", binary, "./testdata/echo").CombinedOutput(); err != nil {
			err = fmt.Errorf("build the function: %w\n%s", err, out)
		}
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	code := m.Run()
	os.RemoveAll(dir)
	os.Exit(code)
}

type answer struct {
	Count, Left int64
	ID, Env     string
}

func deployed(t *testing.T, fn Function) (*Functions, *bytes.Buffer) {
	t.Helper()
	log := &bytes.Buffer{}
	f := New(t.TempDir())
	fn.Name, fn.Binary, fn.Log = "fn", binary, log
	if err := f.Deploy(fn); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(f.Close)
	return f, log
}

func invoke(t *testing.T, f *Functions, event string) (answer, error) {
	t.Helper()
	var a answer
	out, err := f.Invoke(context.Background(), "fn", []byte(event))
	if err == nil {
		if err := json.Unmarshal(out, &a); err != nil {
			t.Fatal(err)
		}
	}
	return a, err
}

// TestInvoke: one process for many events; a new one after a crash, a panic, a timeout and
// a kill, and not after an error.
func TestInvoke(t *testing.T) {
	t.Setenv("SECRET_OF_THE_TEST", "1")
	f, log := deployed(t, Function{Env: []string{"MINE=yes"}, Timeout: 2 * time.Second})
	for want := range int64(3) {
		a, err := invoke(t, f, `{}`)
		if err != nil || a.Count != want+1 || a.Left < 1000 || a.Left > 2000 {
			t.Fatalf("event %d: %+v, %v", want+1, a, err)
		}
		if strings.Contains(a.Env, "SECRET_OF_THE_TEST") || !strings.Contains(a.Env, "MINE=yes") {
			t.Errorf("its environment: %s", a.Env)
		}
	}
	var answered *FunctionError
	if _, err := invoke(t, f, `{"do":"error"}`); !errors.As(err, &answered) || !strings.Contains(err.Error(), "as was asked") {
		t.Errorf("an error: %v", err)
	}
	if a, err := invoke(t, f, `{}`); err != nil || a.Count != 5 {
		t.Errorf("after an error: %+v, %v", a, err)
	}
	if _, err := invoke(t, f, `{"do":"large"}`); !errors.As(err, &answered) {
		t.Errorf("too large an answer: %v", err)
	}
	for event, want := range map[string]error{`{"do":"crash"}`: ErrCrash, `{"do":"sleep"}`: ErrTimeout} {
		if _, err := invoke(t, f, event); !errors.Is(err, want) {
			t.Errorf("%s: %v, want %v", event, err, want)
		}
		if a, err := invoke(t, f, `{}`); err != nil || a.Count != 1 {
			t.Errorf("after %s: %+v, %v", event, a, err)
		}
	}
	if _, err := invoke(t, f, `{"do":"panic"}`); err == nil {
		t.Error("a panic is no error")
	}
	f.Kill("fn")
	if a, err := invoke(t, f, `{}`); err != nil || a.Count != 1 {
		t.Errorf("after a kill: %+v, %v", a, err)
	}
	cold := 0
	for _, r := range f.Reports("fn") {
		if r.Cold {
			cold++
			if r.InitCPU <= 0 || r.InitCPU > r.Init*4 || r.Err == nil && r.MaxRSS < 1<<20 {
				t.Errorf("report %+v", r)
			}
		}
	}
	if cold != 4 {
		t.Errorf("%d cold starts", cold)
	}
	if !strings.Contains(log.String(), "REPORT fn cold=true") {
		t.Errorf("log: %s", log)
	}
}

func TestBroken(t *testing.T) {
	f, _ := deployed(t, Function{Env: []string{"FAIL=1"}})
	if _, err := invoke(t, f, `{}`); !errors.Is(err, ErrCrash) {
		t.Errorf("a function that does not start: %v", err)
	}
	if _, err := f.Invoke(context.Background(), "other", nil); err == nil {
		t.Error("a function that is not there is invoked")
	}
	if err := f.Deploy(Function{Name: "x", Binary: "/no/such/file"}); err == nil {
		t.Error("a function without a program is deployed")
	}
}

// TestConcurrency: as many at a time as there may be, and no more.
func TestConcurrency(t *testing.T) {
	f, _ := deployed(t, Function{Concurrency: 2, Timeout: time.Second})
	var group sync.WaitGroup
	errs := make([]error, 3)
	for i := range 2 {
		group.Go(func() { _, errs[i] = f.Invoke(context.Background(), "fn", []byte(`{"do":"sleep"}`)) })
	}
	time.Sleep(300 * time.Millisecond)
	if _, err := f.Invoke(context.Background(), "fn", []byte(`{}`)); !errors.Is(err, ErrThrottled) {
		t.Errorf("a third: %v", err)
	}
	group.Wait()
	if !errors.Is(errs[0], ErrTimeout) || !errors.Is(errs[1], ErrTimeout) {
		t.Errorf("the first two: %v", errs)
	}
}

// TestPump: what a function names as failed comes back, the rest is gone.
func TestPump(t *testing.T) {
	f, _ := deployed(t, Function{})
	q := &fakeaws.Queues{}
	q.Add(fakeaws.Queue{Name: "q", Visibility: 300 * time.Millisecond, MaxReceive: 2, Dead: "dead"}, fakeaws.Queue{Name: "dead"})
	for _, body := range []string{"good", "bad", "good"} {
		if _, err := q.Send("q", body, 0, nil); err != nil {
			t.Fatal(err)
		}
	}
	ctx, cancel := context.WithCancel(context.Background())
	var mu sync.Mutex
	var failed []error
	wait := f.Pump(ctx, q, func(_ Mapping, err error) {
		mu.Lock()
		defer mu.Unlock()
		failed = append(failed, err)
	}, Mapping{Queue: "q", Function: "fn"})
	deadline := time.Now().Add(10 * time.Second)
	for len(q.Messages("dead")) == 0 && time.Now().Before(deadline) {
		time.Sleep(10 * time.Millisecond)
	}
	cancel()
	wait()
	if got := q.Waiting("dead"); !slices.Equal(got, []string{"bad"}) || len(q.Waiting("q")) != 0 {
		t.Errorf("dead letters %q, left %q", got, q.Waiting("q"))
	}
	if len(failed) != 2 || !strings.Contains(failed[0].Error(), "1 of 3 messages failed") {
		t.Errorf("told of %v", failed)
	}
	if _, err := failures([]byte(`{"batchItemFailures":[{"itemIdentifier":"x"}]}`), nil); err == nil {
		t.Error("a message that was not given is named, and that is no error")
	}
}
