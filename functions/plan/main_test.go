package main

import (
	"errors"
	"go/build"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"slices"
	"strings"
	"testing"
)

// TestMain lets the test binary be the program: what is tested is main itself.
func TestMain(m *testing.M) {
	if os.Getenv("BE_THE_PROGRAM") != "" {
		main()
		return
	}
	os.Exit(m.Run())
}

// program is this test binary as the plan program.
func program(t *testing.T, args []string, env ...string) *exec.Cmd {
	t.Helper()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.CommandContext(t.Context(), self, args...)
	cmd.Env = append([]string{"BE_THE_PROGRAM=1"}, env...)
	return cmd
}

// TestLambda speaks the Lambda runtime API: one event is handed out, its answer
// taken, and the program is then told to stop.
func TestLambda(t *testing.T) {
	payload, err := os.ReadFile("../../events/plan/text.json")
	if err != nil {
		t.Fatal(err)
	}
	answers := make(chan string, 1)
	asked := 0
	mux := http.NewServeMux()
	mux.HandleFunc("GET /2018-06-01/runtime/invocation/next", func(w http.ResponseWriter, r *http.Request) {
		if asked++; asked > 1 {
			w.WriteHeader(http.StatusGone)
			return
		}
		w.Header().Set("Lambda-Runtime-Aws-Request-Id", "one")
		w.Header().Set("Lambda-Runtime-Deadline-Ms", "99999999999999")
		w.Write(payload)
	})
	mux.HandleFunc("POST /2018-06-01/runtime/invocation/one/{outcome}", func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		answers <- r.PathValue("outcome") + " " + string(body)
		w.WriteHeader(http.StatusAccepted)
	})
	server := httptest.NewServer(mux)
	defer server.Close()

	cmd := program(t, nil, "AWS_LAMBDA_RUNTIME_API="+strings.TrimPrefix(server.URL, "http://"), "AWS_REGION=us-east-1")
	out, err := cmd.CombinedOutput()
	if err == nil {
		t.Error("the runtime is gone and the program goes on")
	}
	select {
	case got := <-answers:
		if !strings.HasPrefix(got, `response {"text":"Plan for cluster small`) {
			t.Errorf("answer: %.300s", got)
		}
	default:
		t.Fatalf("no answer; the program said %s", out)
	}
}

func TestLambdaRefusesItsSettings(t *testing.T) {
	out, err := program(t, nil, "AWS_LAMBDA_RUNTIME_API=127.0.0.1:1", "KERF_WROK=1").CombinedOutput()
	if status(err) != 1 || !strings.Contains(string(out), "did you mean KERF_WORK?") {
		t.Errorf("%v: %s", err, out)
	}
}

func TestCommandLine(t *testing.T) {
	for _, tc := range []struct {
		args []string
		want int
		says string
	}{
		{[]string{"-h"}, 0, "Exit status"},
		{nil, 2, "nothing to plan on"},
		{[]string{"-f", "../../events/worlds/small", "--now", "2026-03-04T12:00:00Z"}, 0, "3 pods pending"},
		{[]string{"-f", "../../events/worlds/small", "-f", "../../events/worlds/small/world.yaml"}, 3, "left out"},
	} {
		out, err := program(t, tc.args).CombinedOutput()
		if status(err) != tc.want || !strings.Contains(string(out), tc.says) {
			t.Errorf("%v: exit %d, want %d and %q in\n%s", tc.args, status(err), tc.want, tc.says, out)
		}
	}
}

func status(err error) int {
	var exit *exec.ExitError
	switch {
	case err == nil:
		return 0
	case errors.As(err, &exit):
		return exit.ExitCode()
	}
	return -1
}

// TestManifests: the program on a command line checks manifests, and as it is built for Lambda it
// does not link what that takes.
func TestManifests(t *testing.T) {
	cmd := program(t, []string{"--validate", "-f", "-"})
	cmd.Stdin = strings.NewReader("{apiVersion: karpenter.sh/v1, kind: NodePool, metadata: {name: x}, spec: {weight: 0}}")
	out, err := cmd.Output()
	var status *exec.ExitError
	if !errors.As(err, &status) || status.ExitCode() != 3 || !strings.Contains(string(out), "spec.template: Required value") {
		t.Errorf("%v: %s", err, out)
	}
	const heavy = "kerf.sh/kerf/internal/app/validate"
	for _, tags := range [][]string{nil, {"lambda.norpc"}} {
		c := build.Default
		c.BuildTags = tags
		p, err := c.ImportDir(".", 0)
		if err != nil {
			t.Fatal(err)
		}
		if want := tags == nil; slices.Contains(p.Imports, heavy) != want {
			t.Errorf("with the tags %v: %s is imported: %t", tags, heavy, !want)
		}
	}
}
