package app_test

import (
	"context"
	"encoding/json"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/cockroachdb/datadriven"

	"kerf.sh/kerf/internal/app"
)

// TestPlanFunction sends every payload of events/plan to the function as it is
// built for Lambda. In testdata/function.txt, "invoke NAME" answers one of them
// (texts as they read, a page by its size and title), and every payload is there.
func TestPlanFunction(t *testing.T) {
	fn, err := app.PlanFunction([]string{"AWS_REGION=us-east-1", "CLUSTER_NAME=from-environment"})
	if err != nil {
		t.Fatal(err)
	}
	dir := filepath.Join("..", "..", "events", "plan")
	seen := map[string]bool{}
	datadriven.RunTest(t, "testdata/function.txt", func(t *testing.T, d *datadriven.TestData) string {
		name := d.CmdArgs[0].Key
		seen[name+".json"] = true
		payload, err := os.ReadFile(filepath.Join(dir, name+".json"))
		if err != nil {
			t.Fatal(err)
		}
		out, err := fn.Handle(context.Background(), payload)
		if err != nil {
			t.Fatal(err)
		}
		again, _ := fn.Handle(context.Background(), payload)
		if string(out) != string(again) {
			t.Errorf("%s: two answers differ", name)
		}
		return grep(t, d, readable(t, out))
	})
	files, err := os.ReadDir(dir)
	if err != nil || len(files) == 0 {
		t.Fatalf("no payloads: %v", err)
	}
	for _, f := range files {
		if !seen[f.Name()] {
			t.Errorf("events/plan/%s is not in testdata/function.txt", f.Name())
		}
	}
}

// grep keeps the lines that match the argument grep, if there is one.
func grep(t *testing.T, d *datadriven.TestData, text string) string {
	t.Helper()
	if !d.HasArg("grep") {
		return text
	}
	arg, _ := d.Arg("grep")
	re := regexp.MustCompile(strings.Join(arg.Vals, ","))
	var out strings.Builder
	for line := range strings.Lines(text) {
		if re.MatchString(line) {
			out.WriteString(line)
		}
	}
	return out.String()
}

func readable(t *testing.T, out json.RawMessage) string {
	t.Helper()
	var answer struct {
		Text, HTML string
		Error      *struct{ Code, Message string }
	}
	if err := json.Unmarshal(out, &answer); err != nil {
		t.Fatalf("the answer is no JSON: %v\n%s", err, out)
	}
	switch {
	case answer.Error != nil:
		return answer.Error.Code + ": " + answer.Error.Message
	case answer.Text != "":
		return answer.Text
	case answer.HTML != "":
		_, rest, _ := strings.Cut(answer.HTML, "<h1>")
		title, _, _ := strings.Cut(rest, "</h1>")
		return "page: " + title
	}
	var v any
	if err := json.Unmarshal(out, &v); err != nil {
		t.Fatal(err)
	}
	pretty, err := json.MarshalIndent(v, "", "  ")
	if err != nil {
		t.Fatal(err)
	}
	return string(pretty)
}

func TestPlanFunctionRefusesItsEnvironment(t *testing.T) {
	_, err := app.PlanFunction([]string{"KERF_WROK=5", "RESERVED_ENIS=many"})
	if err == nil || !strings.Contains(err.Error(), "KERF_WORK") || !strings.Contains(err.Error(), "RESERVED_ENIS") {
		t.Errorf("both problems should be named: %v", err)
	}
}

func TestPlanFunctionTakesTheEnvironment(t *testing.T) {
	fn, err := app.PlanFunction([]string{"CLUSTER_NAME=prod", "RESERVED_ENIS=1"})
	if err != nil {
		t.Fatal(err)
	}
	out, err := fn.Handle(context.Background(), json.RawMessage(`{"objects":["kind: Namespace\napiVersion: v1\nmetadata: {name: a}\n"]}`))
	if err != nil || !strings.Contains(string(out), `"cluster":"prod"`) {
		t.Errorf("%s %v", out, err)
	}
}

func TestEmptyPayloads(t *testing.T) {
	fn, err := app.PlanFunction(nil)
	if err != nil {
		t.Fatal(err)
	}
	for payload, want := range map[string]string{
		"":                     `"code":"NotSupported"`,
		"{}":                   `"code":"NotSupported"`,
		"null":                 `"code":"NotSupported"`,
		"[]":                   `"code":"InvalidRequest"`,
		`{"mode":1}`:           `"code":"InvalidRequest"`,
		`{"now":"noon"}`:       `"code":"InvalidRequest"`,
		`{"objects":[1]}`:      `"code":"InvalidInput"`,
		`{"objects":[""]}`:     `"code":"InvalidInput"`,
		`{"explain":"x"}`:      `"code":"InvalidRequest"`,
		`{"mode":"explain"}`:   `"code":"InvalidRequest"`,
		`{"format":"pdf"}`:     `"code":"InvalidRequest"`,
		`{"objects":[]} trail`: `"code":"InvalidRequest"`,
		`{`:                    `"code":"InvalidRequest"`,
	} {
		out, err := fn.Handle(context.Background(), json.RawMessage(payload))
		if err != nil || !strings.Contains(string(out), want) {
			t.Errorf("%s: %s %v, want %s", payload, out, err, want)
		}
	}
}
