package runtimeapi

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"sync/atomic"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// environment is one process with the runtime API that it talks to.
type environment struct {
	fn   *Function
	cmd  *exec.Cmd
	http *http.Server
	done chan struct{} // closed when the process has ended

	// next is asked for by the process, and answered with an event; results are what it
	// sends back.
	asked   chan struct{}
	events  chan invocation
	results chan result

	init, initCPU time.Duration
}

type invocation struct {
	id       string
	payload  []byte
	deadline time.Time
}

type result struct {
	id      string
	payload []byte
	failed  bool
}

// start starts a process and waits until it asks for an event. Lambda gives ten seconds for
// that.
func start(ctx context.Context, fn *Function, dir string) (*environment, error) {
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return nil, err
	}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return nil, err
	}
	e := &environment{fn: fn, done: make(chan struct{}), asked: make(chan struct{}, 1), events: make(chan invocation), results: make(chan result, 1)}
	e.http = &http.Server{Handler: e}
	go e.http.Serve(l) //nolint:errcheck // it ends with stop
	e.cmd = exec.Command(fn.Binary)
	e.cmd.Dir = dir
	e.cmd.Env = append([]string{
		"AWS_LAMBDA_RUNTIME_API=" + l.Addr().String(), "AWS_LAMBDA_FUNCTION_NAME=" + fn.Name, "AWS_LAMBDA_FUNCTION_VERSION=$LATEST",
		"AWS_LAMBDA_FUNCTION_MEMORY_SIZE=" + strconv.Itoa(fn.MemoryMB), "AWS_LAMBDA_LOG_GROUP_NAME=/aws/lambda/" + fn.Name, "AWS_LAMBDA_LOG_STREAM_NAME=stream",
		"AWS_EXECUTION_ENV=AWS_Lambda_provided.al2023", "AWS_LAMBDA_INITIALIZATION_TYPE=on-demand", "_HANDLER=bootstrap", "LAMBDA_TASK_ROOT=" + dir,
		"PATH=/usr/bin:/bin", "TZ=:UTC", "LANG=en_US.UTF-8",
	}, fn.Env...)
	e.cmd.Stdout, e.cmd.Stderr = fn.Log, fn.Log
	// With the test it ends too, even if that is killed.
	e.cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	began := time.Now()
	if err := e.cmd.Start(); err != nil {
		e.http.Close()
		return nil, err
	}
	go func() {
		e.cmd.Wait() //nolint:errcheck // its state says all
		close(e.done)
	}()
	select {
	case <-e.asked:
		e.init, e.initCPU = time.Since(began), e.cpu()
		return e, nil
	case <-e.done:
		e.http.Close()
		return nil, fmt.Errorf("%w before it asked for an event: %v", ErrCrash, e.cmd.ProcessState)
	case <-time.After(10 * time.Second):
		e.stop()
		return nil, fmt.Errorf("%w before it asked for an event", ErrTimeout)
	case <-ctx.Done():
		e.stop()
		return nil, ctx.Err()
	}
}

// requests counts invocations: no two have the same id, in whichever environment they run.
var requests atomic.Int64

// run gives the process an event and waits for its answer. When ctx ends, or the time of
// the function is over, the environment is of no use any more.
func (e *environment) run(ctx context.Context, payload []byte) ([]byte, error) {
	inv := invocation{id: fmt.Sprintf("%08d-0000-4000-8000-000000000000", requests.Add(1)), payload: payload, deadline: time.Now().Add(e.fn.Timeout)}
	timer := time.NewTimer(e.fn.Timeout)
	defer timer.Stop()
	give := e.events
	for {
		select {
		case give <- inv:
			give = nil
		case r := <-e.results:
			if r.id != inv.id {
				continue // of an invocation that was given up
			}
			if r.failed {
				return nil, &FunctionError{r.payload}
			}
			return r.payload, nil
		case <-e.done:
			return nil, fmt.Errorf("%w: %v", ErrCrash, e.cmd.ProcessState)
		case <-timer.C:
			return nil, fmt.Errorf("%w after %v", ErrTimeout, e.fn.Timeout)
		case <-ctx.Done():
			return nil, ctx.Err()
		}
	}
}

// ServeHTTP is the runtime API.
func (e *environment) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	path, ok := strings.CutPrefix(r.URL.Path, "/2018-06-01/runtime/")
	switch {
	case ok && r.Method == http.MethodGet && path == "invocation/next":
		e.next(w, r)
	case ok && r.Method == http.MethodPost && path == "init/error":
		body, _ := io.ReadAll(r.Body)
		fmt.Fprintf(e.fn.Log, "INIT ERROR %s: %s\n", e.fn.Name, body)
		w.WriteHeader(http.StatusAccepted)
	case ok && r.Method == http.MethodPost && strings.HasPrefix(path, "invocation/"):
		e.answer(w, r, strings.TrimPrefix(path, "invocation/"))
	default:
		http.NotFound(w, r)
	}
}

func (e *environment) next(w http.ResponseWriter, r *http.Request) {
	select {
	case e.asked <- struct{}{}:
	default:
	}
	select {
	case inv := <-e.events:
		h := w.Header()
		h.Set("Lambda-Runtime-Aws-Request-Id", inv.id)
		h.Set("Lambda-Runtime-Deadline-Ms", strconv.FormatInt(inv.deadline.UnixMilli(), 10))
		h.Set("Lambda-Runtime-Invoked-Function-Arn", "arn:aws:lambda:us-east-1:111122223333:function:"+e.fn.Name)
		h.Set("Lambda-Runtime-Trace-Id", "Root=1-00000000-000000000000000000000000;Parent=0000000000000000;Sampled=0")
		h.Set("Content-Type", "application/json")
		w.Write(inv.payload)
	case <-r.Context().Done():
	}
}

// maxAnswer is the most that a function may answer.
const maxAnswer = 6 << 20

func (e *environment) answer(w http.ResponseWriter, r *http.Request, path string) {
	id, kind, _ := strings.Cut(path, "/")
	body, err := io.ReadAll(io.LimitReader(r.Body, maxAnswer+1))
	if err != nil || kind != "response" && kind != "error" {
		http.NotFound(w, r)
		return
	}
	out := result{id: id, payload: body, failed: kind == "error"}
	if len(body) > maxAnswer {
		w.WriteHeader(http.StatusRequestEntityTooLarge)
		out.payload, out.failed = []byte(`{"errorType":"Function.ResponseSizeTooLarge"}`), true
	} else {
		w.WriteHeader(http.StatusAccepted)
	}
	select {
	case e.results <- out:
	case <-e.done:
	}
}

// stop ends the process.
func (e *environment) stop() {
	e.cmd.Process.Kill() //nolint:errcheck // it may have ended
	<-e.done
	e.http.Close()
}

// cpu is the CPU time that the process has used, with all its threads.
func (e *environment) cpu() time.Duration {
	// The kernel's name for the clock of another process: CPUCLOCK_SCHED of its id.
	clock := int32(^e.cmd.Process.Pid<<3 | 2)
	var ts unix.Timespec
	if err := unix.ClockGettime(clock, &ts); err != nil {
		return 0
	}
	return time.Duration(ts.Nano())
}

// maxRSS is the most memory that the process has had.
func (e *environment) maxRSS() int64 {
	raw, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", e.cmd.Process.Pid))
	if err != nil {
		return 0
	}
	for line := range bytes.Lines(raw) {
		if rest, ok := bytes.CutPrefix(line, []byte("VmHWM:")); ok {
			n, _ := strconv.ParseInt(strings.Fields(string(rest))[0], 10, 64)
			return n << 10
		}
	}
	return 0
}
