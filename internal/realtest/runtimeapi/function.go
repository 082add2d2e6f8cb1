package runtimeapi

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strconv"
	"sync"
	"time"
)

// Function is a built program and how it is run.
type Function struct {
	Name   string
	Binary string // the bootstrap
	// Env are the variables of its own ("KEY=value"), credentials included.
	Env []string
	// Timeout bounds one invocation; 0 = 60 s. MemoryMB is told to it, not enforced.
	Timeout  time.Duration
	MemoryMB int
	// Concurrency is how many environments there may be; 0 = 1.
	Concurrency int
	// Log is where its output goes, and a line for every invocation.
	Log io.Writer
}

// ErrTimeout is the error of an invocation that was not done at its deadline, ErrCrash of
// one whose process ended, ErrThrottled of one that found all environments busy.
var (
	ErrTimeout   = errors.New("task timed out")
	ErrCrash     = errors.New("the process ended")
	ErrThrottled = errors.New("rate exceeded: all environments are busy")
)

// FunctionError is an error that a function answered.
type FunctionError struct{ Payload []byte }

func (e *FunctionError) Error() string { return "the function answered an error: " + string(e.Payload) }

// Report is what one invocation took.
type Report struct {
	Function string
	At       time.Time
	Took     time.Duration
	// Cold: the process was started for it; Init and InitCPU are from its start until it
	// asked for the event, in time and in CPU time.
	Cold          bool
	Init, InitCPU time.Duration
	// MaxRSS is the most memory that the process has had, in bytes.
	MaxRSS int64
	Err    error
}

// Functions are the functions of an account.
type Functions struct {
	dir string

	mu      sync.Mutex
	list    map[string]*function
	reports []Report
	closed  bool
	group   sync.WaitGroup
}

type function struct {
	Function
	idle []*environment
	// busy is how many environments are at work.
	busy, counter int
}

// New makes an account without functions. Files of processes go to dir.
func New(dir string) *Functions {
	return &Functions{dir: dir, list: map[string]*function{}}
}

// Deploy makes a function known, in place of an older one of the name.
func (f *Functions) Deploy(fn Function) error {
	if _, err := os.Stat(fn.Binary); err != nil {
		return fmt.Errorf("deploy %s: %w", fn.Name, err)
	}
	if fn.Timeout == 0 {
		fn.Timeout = time.Minute
	}
	if fn.Concurrency == 0 {
		fn.Concurrency = 1
	}
	if fn.MemoryMB == 0 {
		fn.MemoryMB = 512
	}
	if fn.Log == nil {
		fn.Log = io.Discard
	}
	fn.Log = &lines{w: fn.Log}
	f.mu.Lock()
	old := f.list[fn.Name]
	f.list[fn.Name] = &function{Function: fn}
	f.mu.Unlock()
	if old != nil {
		for _, e := range old.idle {
			e.stop()
		}
	}
	return nil
}

// lines keeps writes of several processes apart.
type lines struct {
	mu sync.Mutex
	w  io.Writer
}

func (l *lines) Write(b []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.w.Write(b)
}

// Has reports whether there is a function of the name.
func (f *Functions) Has(name string) bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.list[name] != nil
}

// Invoke runs a function on an event and returns its answer.
func (f *Functions) Invoke(ctx context.Context, name string, event []byte) ([]byte, error) {
	f.mu.Lock()
	fn := f.list[name]
	switch {
	case f.closed || fn == nil:
		f.mu.Unlock()
		return nil, fmt.Errorf("invoke %s: there is no such function", name)
	case fn.busy >= fn.Concurrency:
		f.mu.Unlock()
		return nil, fmt.Errorf("invoke %s: %w", name, ErrThrottled)
	}
	fn.busy++
	f.group.Add(1)
	defer f.group.Done()
	var e *environment
	if n := len(fn.idle); n > 0 {
		e, fn.idle = fn.idle[n-1], fn.idle[:n-1]
	}
	f.mu.Unlock()

	r := Report{Function: name, At: time.Now(), Cold: e == nil}
	out, e, err := f.invoke(ctx, fn, e, event, &r)
	r.Err = err
	f.mu.Lock()
	f.reports = append(f.reports, r)
	fn.busy--
	keep := e != nil && !f.closed && f.list[name] == fn
	if keep {
		fn.idle = append(fn.idle, e)
	}
	f.mu.Unlock()
	if e != nil && !keep {
		e.stop()
	}
	if err != nil {
		return out, fmt.Errorf("invoke %s: %w", name, err)
	}
	return out, nil
}

// invoke runs one event, in an environment that is there or a new one. The environment that
// it returns can be used again.
func (f *Functions) invoke(ctx context.Context, fn *function, e *environment, event []byte, r *Report) ([]byte, *environment, error) {
	if e == nil {
		f.mu.Lock()
		fn.counter++
		n := fn.counter
		f.mu.Unlock()
		var err error
		if e, err = start(ctx, &fn.Function, filepath.Join(f.dir, fn.Name+"-"+strconv.Itoa(n))); err != nil {
			return nil, nil, err
		}
		r.Init, r.InitCPU = e.init, e.initCPU
	}
	began := time.Now()
	out, err := e.run(ctx, event)
	r.Took, r.MaxRSS = time.Since(began), e.maxRSS()
	fmt.Fprintf(fn.Log, "REPORT %s cold=%t init=%v init-cpu=%v took=%v rss=%dMB error=%v\n", fn.Name, r.Cold, r.Init.Round(time.Millisecond), r.InitCPU.Round(time.Millisecond), r.Took.Round(time.Millisecond), r.MaxRSS>>20, err)
	var answered *FunctionError
	if err != nil && !errors.As(err, &answered) {
		e.stop()
		return nil, nil, err
	}
	return out, e, err
}

// Reports are the invocations so far, of a function or, for "", of all.
func (f *Functions) Reports(name string) []Report {
	f.mu.Lock()
	defer f.mu.Unlock()
	var out []Report
	for _, r := range f.reports {
		if name == "" || r.Function == name {
			out = append(out, r)
		}
	}
	return out
}

// Kill ends the processes of a function that wait for an event, as Lambda does now and then.
func (f *Functions) Kill(name string) {
	f.mu.Lock()
	var idle []*environment
	if fn := f.list[name]; fn != nil {
		idle, fn.idle = fn.idle, nil
	}
	f.mu.Unlock()
	for _, e := range idle {
		e.stop()
	}
}

// Close ends all processes, after the invocations that run.
func (f *Functions) Close() {
	f.mu.Lock()
	f.closed = true
	names := make([]string, 0, len(f.list))
	for name := range f.list {
		names = append(names, name)
	}
	f.mu.Unlock()
	f.group.Wait()
	for _, name := range names {
		f.Kill(name)
	}
}
