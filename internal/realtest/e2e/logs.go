package e2e

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"time"
)

// Request is one that somebody made of the API server, as its audit log has it.
type Request struct {
	At, Done time.Time
	// User is "kerf-" and the name of the function, or a component's.
	User, Verb, URI string
	Code            int
}

// auditStage is the entry of a request that has its outcome.
const auditStage = "ResponseComplete"

// Requests are the requests of functions, and kube-scheduler's about pods, in the order of
// the log.
func (r *Rig) Requests() ([]Request, error) {
	raw, err := os.ReadFile(r.auditLog())
	if err != nil {
		return nil, err
	}
	// The last line may be half written.
	raw = raw[:bytes.LastIndexByte(raw, '\n')+1]
	var out []Request
	s := bufio.NewScanner(bytes.NewReader(raw))
	s.Buffer(nil, 4<<20)
	for s.Scan() {
		var e struct {
			Stage, Verb, RequestURI                  string
			User                                     struct{ Username string }
			ResponseStatus                           struct{ Code int }
			RequestReceivedTimestamp, StageTimestamp time.Time
		}
		if err := json.Unmarshal(s.Bytes(), &e); err != nil {
			return nil, fmt.Errorf("read the audit log: %w", err)
		}
		if e.Stage == auditStage {
			out = append(out, Request{At: e.RequestReceivedTimestamp, Done: e.StageTimestamp, User: e.User.Username, Verb: e.Verb, URI: e.RequestURI, Code: e.ResponseStatus.Code})
		}
	}
	return out, s.Err()
}

// Refused are the requests of functions that the API server refused for want of a
// permission.
func (r *Rig) Refused() ([]string, error) {
	all, err := r.Requests()
	var out []string
	for _, q := range all {
		if strings.HasPrefix(q.User, "kerf-") && (q.Code == 401 || q.Code == 403) {
			out = append(out, fmt.Sprintf("%s may not %s %s", q.User, q.Verb, q.URI))
		}
	}
	return out, err
}

// LogOf are the last lines that a function wrote.
func (r *Rig) LogOf(function string, lines int) string {
	raw, err := os.ReadFile(filepath.Join(r.Dir, function+".log"))
	if err != nil {
		return err.Error()
	}
	all := strings.Split(strings.TrimSpace(string(raw)), "\n")
	return strings.Join(all[max(0, len(all)-lines):], "\n")
}

// Keep copies all logs to a folder.
func (r *Rig) Keep(dir string) error {
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return err
	}
	logs, err := filepath.Glob(filepath.Join(r.Dir, "*.log"))
	if err != nil {
		return err
	}
	more, err := filepath.Glob(filepath.Join(r.Dir, "cluster", "*.log"))
	if err != nil {
		return err
	}
	for _, from := range append(logs, more...) {
		if err := copyFile(from, filepath.Join(dir, filepath.Base(from))); err != nil {
			return err
		}
	}
	return nil
}

func copyFile(from, to string) error {
	in, err := os.Open(from)
	if err != nil {
		return err
	}
	defer in.Close()
	out, err := os.Create(to)
	if err != nil {
		return err
	}
	_, err = io.Copy(out, in)
	return errors.Join(err, out.Close())
}
