package arch

import (
	"os"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/google/go-cmp/cmp"
)

// TestModule holds the module to its rules.
func TestModule(t *testing.T) {
	got, err := Check(os.DirFS("../.."))
	if err != nil {
		t.Fatal(err)
	}
	for _, v := range got {
		t.Error(v)
	}
}

// TestModuleIsRead keeps TestModule from passing because it read nothing: every
// package that exists and is classed must have been entered.
func TestModuleIsRead(t *testing.T) {
	root := os.DirFS("../..")
	for _, name := range []string{"internal/snapshot/doc.go", "internal/plan/doc.go", "internal/arch/doc.go"} {
		if _, err := root.Open(name); err != nil {
			t.Errorf("the root of the module is not where the test looks: %v", err)
		}
	}
	if _, err := os.Stat("../../go.mod"); err != nil {
		t.Error(err)
	}
}

// TestRules proves of each rule that it can fail, and where it does not apply.
func TestRules(t *testing.T) {
	const doc = "// Package p.\npackage p\n"
	tests := []struct {
		name string
		file string
		src  string
		want []string // "line: start of the text"; nil = allowed
	}{
		{"core imports the standard library and the core", "internal/packing/a.go",
			`import ("slices"; "time"; "kerf.sh/kerf/internal/snapshot"); var _ = time.Duration(0); var _ = slices.Sort[[]int]; var _ snapshot.Pod`, nil},
		{"core imports os", "internal/packing/a.go", `import "os"; var _ = os.Args`, []string{"imports os: the core does no I/O"}},
		{"core imports net", "internal/catalog/a.go", `import "net"`, []string{"imports net: "}},
		{"core imports net/http", "internal/catalog/a.go", `import "net/http"`, []string{"imports net/http: "}},
		{"core imports os/exec", "internal/catalog/a.go", `import "os/exec"`, []string{"imports os/exec: "}},
		{"core imports log", "internal/plan/a.go", `import "log"`, []string{"imports log: the core does not log"}},
		{"core imports log/slog", "internal/plan/a.go", `import "log/slog"`, []string{"imports log/slog: "}},
		{"core imports math/rand", "internal/plan/a.go", `import "math/rand"`, []string{"imports math/rand: the core has no randomness"}},
		{"core imports math/rand/v2", "internal/plan/a.go", `import "math/rand/v2"`, []string{"imports math/rand/v2: "}},
		{"core imports crypto/rand", "internal/plan/a.go", `import "crypto/rand"`, []string{"imports crypto/rand: "}},
		{"core imports context", "internal/provision/a.go", `import "context"`, []string{"imports context: "}},
		{"math alone is allowed", "internal/packing/a.go", `import ("math"; "math/bits"; "crypto/sha256")`, nil},
		{"core imports a third party", "internal/snapshot/a.go", `import "k8s.io/api/core/v1"`, []string{"imports k8s.io/api/core/v1: the core imports the standard library and the core only"}},
		{"core imports an adapter", "internal/provision/a.go", `import "kerf.sh/kerf/internal/kube"`, []string{"imports kerf.sh/kerf/internal/kube: the core imports"}},
		{"core imports the wiring", "internal/provision/a.go", `import "kerf.sh/kerf/internal/app"`, []string{"imports kerf.sh/kerf/internal/app: the core imports"}},
		{"core imports what is for tests", "internal/provision/a.go", `import "kerf.sh/kerf/internal/workload"`, []string{"imports kerf.sh/kerf/internal/workload: internal/workload is for tests"}},
		{"a pure part of an adapter imports the SDK", "internal/cloud/launch/a.go", `import "github.com/aws/aws-sdk-go-v2/service/ec2"`, []string{"imports github.com/aws/aws-sdk-go-v2/service/ec2: internal/cloud/launch does no call"}},
		{"its tests may, and so may the part that calls", "internal/cloud/fleet/a.go", `import "github.com/aws/aws-sdk-go-v2/service/ec2"`, nil},
		{"a pure part reads the clock", "internal/cloud/nodeclass/a.go", "import \"time\"\nvar now = time.Now()", []string{"uses time.Now: time is an argument here"}},
		{"an adapter imports its fake", "internal/cloud/fleet/a.go", `import "kerf.sh/kerf/internal/cloud/ec2fake"`, []string{"imports kerf.sh/kerf/internal/cloud/ec2fake: internal/cloud/ec2fake is for tests"}},
		{"a test imports a fake", "internal/cloud/fleet/a_test.go", `import "kerf.sh/kerf/internal/cloud/ec2fake"`, nil},
		{"the simulator imports a fake", "internal/sim/a.go", `import "kerf.sh/kerf/internal/cloud/ec2fake"`, nil},
		{"core reads the clock", "internal/provision/a.go", "import \"time\"\nvar now = time.Now()", []string{"uses time.Now: the core has no clock"}},
		{"core passes the clock on", "internal/provision/a.go", "import \"time\"\nvar now = time.Now", []string{"uses time.Now: "}},
		{"core reads the clock under another name", "internal/provision/a.go", "import clk \"time\"\nvar d = clk.Since(clk.Time{})", []string{"uses time.Since: "}},
		{"core waits", "internal/lifecycle/a.go", "import \"time\"\nfunc f() { time.Sleep(1); <-time.After(1) }", []string{"uses time.After: ", "uses time.Sleep: "}},
		{"core hides the clock", "internal/lifecycle/a.go", "import . \"time\"\nvar d = Now()", []string{"imports time with a dot: "}},
		{"a field called Now is not the clock", "internal/plan/a.go", "import \"time\"\ntype s struct{ Now time.Time }\nfunc f(x s) time.Time { return x.Now }", nil},
		{"core starts a goroutine", "internal/packing/a.go", "func f() { go f() }", []string{"starts a goroutine: "}},
		{"core prints", "internal/packing/a.go", "import \"fmt\"\nfunc f() { fmt.Println(1) }", []string{"uses fmt.Println: "}},
		{"core prints with the builtin", "internal/packing/a.go", "func f() { println(1) }", []string{"calls println: "}},
		{"core formats", "internal/packing/a.go", "import \"fmt\"\nvar s = fmt.Sprint(1)", nil},
		{"a core file is too long", "internal/packing/a.go", strings.Repeat("\n", MaxLines+1), []string{"has 452 lines"}},
		{"a test of the core may do what it needs", "internal/packing/a_test.go", `import ("os"; "math/rand"; "kerf.sh/kerf/internal/workload"; "pgregory.net/rapid"); var _ = os.Args`, nil},

		{"an adapter imports data and libraries", "internal/kube/a.go", `import ("net/http"; "k8s.io/api/core/v1"; "kerf.sh/kerf/internal/snapshot"; "kerf.sh/kerf/internal/plan")`, nil},
		{"an adapter imports another", "internal/kube/a.go", `import "kerf.sh/kerf/internal/config"`, []string{"imports kerf.sh/kerf/internal/config: adapters do not import each other"}},
		{"an adapter imports a part of another", "internal/ledger/a.go", `import "kerf.sh/kerf/internal/cloud/fleet"`, []string{"imports kerf.sh/kerf/internal/cloud/fleet: adapters do not import each other"}},
		{"parts of one adapter", "internal/cloud/fleet/a.go", `import "kerf.sh/kerf/internal/cloud/image"`, nil},
		{"an adapter imports what decides", "internal/kube/a.go", `import "kerf.sh/kerf/internal/provision"`, []string{"imports kerf.sh/kerf/internal/provision: an adapter does not see what decides"}},
		{"an adapter imports the middle", "internal/queue/a.go", `import "kerf.sh/kerf/internal/handler"`, []string{"imports kerf.sh/kerf/internal/handler: an adapter does not know who uses it"}},
		{"an adapter starts a goroutine and reads the clock", "internal/queue/a.go", "import \"time\"\nfunc f() { go f(); _ = time.Now() }", nil},
		{"an adapter reads the environment", "internal/cloud/a.go", "import \"os\"\nvar r = os.Getenv(\"AWS_REGION\")", []string{"uses os.Getenv: only internal/config"}},
		{"config reads the environment", "internal/config/a.go", "import \"os\"\nvar r = os.Getenv(\"AWS_REGION\")", nil},

		{"the middle imports an adapter", "internal/execute/a.go", `import "kerf.sh/kerf/internal/ledger"`, []string{"imports kerf.sh/kerf/internal/ledger: what applies a plan"}},
		{"the middle imports the core", "internal/handler/a.go", `import "kerf.sh/kerf/internal/provision"`, nil},
		{"the wiring imports all of it", "internal/app/a.go", `import ("kerf.sh/kerf/internal/kube"; "kerf.sh/kerf/internal/provision"; "kerf.sh/kerf/internal/handler")`, nil},
		{"the wiring imports what is for tests", "internal/app/a.go", `import "kerf.sh/kerf/internal/sim"`, []string{"imports kerf.sh/kerf/internal/sim: internal/sim is for tests"}},

		{"a function imports app and Lambda", "functions/plan/main.go", `import ("os"; "kerf.sh/kerf/internal/app"; "github.com/aws/aws-lambda-go/lambda")`, nil},
		{"a function imports more of internal", "functions/plan/main.go", `import "kerf.sh/kerf/internal/kube"`, []string{"imports kerf.sh/kerf/internal/kube: a function imports"}},
		{"a function imports a library", "functions/plan/main.go", `import "sigs.k8s.io/yaml"`, []string{"imports sigs.k8s.io/yaml: a function imports"}},

		{"the API server's validation is one package's", "internal/kube/schema/a.go", `import "k8s.io/apiserver/pkg/apis/cel"`, nil},
		{"the API server's validation elsewhere", "internal/kube/live/a.go", `import "k8s.io/apiserver/pkg/apis/cel"`, []string{"imports k8s.io/apiserver/pkg/apis/cel: k8s.io/apiserver is for internal/kube/schema alone"}},
		{"CEL elsewhere", "internal/app/validate/a.go", `import "github.com/google/cel-go/cel"`, []string{"imports github.com/google/cel-go/cel: github.com/google/cel-go is for"}},
		{"the wiring of functions imports the heavy package", "internal/app/a.go", `import "kerf.sh/kerf/internal/kube/schema"`, []string{"imports kerf.sh/kerf/internal/kube/schema: internal/kube/schema is for internal/app/validate alone"}},
		{"the plan program validates", "functions/plan/validate.go", `import "kerf.sh/kerf/internal/app/validate"`, nil},
		{"another function validates", "functions/sweep/main.go", `import "kerf.sh/kerf/internal/app/validate"`, []string{"imports kerf.sh/kerf/internal/app/validate: internal/app/validate is for functions/plan alone"}},

		{"internal imports functions", "internal/app/a.go", `import "kerf.sh/kerf/functions/plan"`, []string{"imports kerf.sh/kerf/functions/plan: nothing in internal imports functions"}},
		{"a test in internal imports infra", "internal/app/a_test.go", `import "kerf.sh/kerf/infra/autoscaler"`, []string{"imports kerf.sh/kerf/infra/autoscaler: nothing in internal imports infra"}},
		{"a package that nobody classed", "internal/helper/a.go", `import "os"`, []string{"internal/helper is not classed"}},
		{"scripts may import internal", "scripts/lint/main.go", `import ("os"; "kerf.sh/kerf/internal/arch"; "kerf.sh/kerf/internal/packing")`, nil},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			dir := tt.file[:strings.LastIndexByte(tt.file, '/')]
			got, err := Check(fstest.MapFS{
				tt.file:         {Data: []byte("package p\n" + tt.src)},
				dir + "/doc.go": {Data: []byte(doc)},
			})
			if err != nil {
				t.Fatal(err)
			}
			var texts []string
			for _, v := range got {
				if strings.HasSuffix(v.File, "/doc.go") {
					continue // a folder that is not classed: said once for each file
				}
				if v.File != tt.file {
					t.Errorf("blames %s", v.File)
				}
				texts = append(texts, v.Text)
			}
			if len(texts) != len(tt.want) {
				t.Fatalf("got %q, want %q", texts, tt.want)
			}
			for i := range texts {
				if !strings.HasPrefix(texts[i], tt.want[i]) {
					t.Errorf("got %q, want %q", texts[i], tt.want[i])
				}
			}
		})
	}
}

func TestDocIsAsked(t *testing.T) {
	got, err := Check(fstest.MapFS{"internal/cloud/fleet/a.go": {Data: []byte("package fleet\n")}})
	if err != nil {
		t.Fatal(err)
	}
	want := []Violation{{File: "internal/cloud/fleet", Text: "has no doc.go that says what the package owns"}}
	if d := cmp.Diff(want, got); d != "" {
		t.Error(d)
	}
}

// TestLeftOut: what is not part of the module is not read, even if it would not parse.
func TestLeftOut(t *testing.T) {
	broken := &fstest.MapFile{Data: []byte("not Go")}
	got, err := Check(fstest.MapFS{
		"internal/oracle/go.mod":        {Data: []byte("module x\n")},
		"internal/oracle/a.go":          broken,
		"internal/kube/testdata/a.go":   broken,
		"infra/node_modules/x/a.go":     broken,
		".git/a.go":                     broken,
		"build/a.go":                    broken,
		"internal/kube/doc.go":          {Data: []byte("package kube\n")},
		"internal/kube/events/notes.md": {Data: []byte("text")},
	})
	if err != nil || len(got) != 0 {
		t.Errorf("got %v, %v", got, err)
	}
	if _, err := Check(fstest.MapFS{"internal/kube/a.go": broken}); err == nil {
		t.Error("a file that does not parse went unnoticed")
	}
}

// TestTable keeps the table of packages from naming what a rule would never reach.
func TestTable(t *testing.T) {
	for _, name := range append(append([]string{}, deciding...), environment...) {
		if _, ok := packages[name]; !ok {
			t.Errorf("%s has a rule of its own and no class", name)
		}
	}
	for _, name := range deciding {
		if packages[name] != core {
			t.Errorf("%s decides and is not core", name)
		}
	}
}
