package plan_test

import (
	"go/ast"
	"go/parser"
	"go/token"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"kerf.sh/kerf/internal/plan"
)

// declared reads the constants of type Code from the source.
func declared(t *testing.T) []string {
	t.Helper()
	f, err := parser.ParseFile(token.NewFileSet(), "code.go", nil, 0)
	if err != nil {
		t.Fatal(err)
	}
	var out []string
	for _, d := range f.Decls {
		g, ok := d.(*ast.GenDecl)
		if !ok || g.Tok != token.CONST {
			continue
		}
		for _, s := range g.Specs {
			v := s.(*ast.ValueSpec)
			if id, ok := v.Type.(*ast.Ident); !ok || id.Name != "Code" {
				t.Errorf("constant %s of code.go is not a Code", v.Names[0].Name)
				continue
			}
			text, err := strconv.Unquote(v.Values[0].(*ast.BasicLit).Value)
			if err != nil {
				t.Fatal(err)
			}
			out = append(out, text)
		}
	}
	slices.Sort(out)
	return out
}

func TestEveryCodeHasOneRow(t *testing.T) {
	var rows []string
	for _, r := range plan.Codes() {
		rows = append(rows, string(r.Code))
	}
	slices.Sort(rows)
	want := declared(t)
	if len(want) < 30 {
		t.Fatalf("only %d constants were found: the test reads the wrong thing", len(want))
	}
	if diff := cmp.Diff(want, rows); diff != "" {
		t.Errorf("constants and rows differ (-constants +rows)\n%s", diff)
	}
}

func TestRowsAreSentences(t *testing.T) {
	for _, r := range plan.Codes() {
		for _, s := range []string{r.Meaning, r.Do} {
			if !strings.HasSuffix(s, ".") || strings.ContainsAny(s, "|\n") || s[:1] != strings.ToUpper(s[:1]) {
				t.Errorf("%s: %q is no sentence that fits a table", r.Code, s)
			}
		}
		if got := plan.Info(r.Code); got != r {
			t.Errorf("Info(%s) = %+v", r.Code, got)
		}
	}
	if got := plan.Info("Nonsense"); got.Kind != "" {
		t.Errorf("an unknown code has kind %q", got.Kind)
	}
}
