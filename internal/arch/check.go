package arch

import (
	"bytes"
	"cmp"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"path"
	"slices"
	"strconv"
	"strings"
)

// Violation is one place where a rule is broken.
type Violation struct {
	File string // slash path from the root of the module
	Line int    // 0 when the whole file or folder is meant
	Text string
}

// String is "file:line: text".
func (v Violation) String() string {
	if v.Line == 0 {
		return v.File + ": " + v.Text
	}
	return fmt.Sprintf("%s:%d: %s", v.File, v.Line, v.Text)
}

// Check reads the Go files of a module from its root and returns what breaks a rule,
// sorted by file and line. Nested modules, testdata and build output are left out. An
// error means that a file could not be read or parsed.
func Check(root fs.FS) ([]Violation, error) {
	var out []Violation
	hasDoc := map[string]bool{} // folder under internal -> it has doc.go
	err := fs.WalkDir(root, ".", func(name string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if d.IsDir() {
			return enter(root, name, d.Name())
		}
		if !strings.HasSuffix(name, ".go") {
			return nil
		}
		vs, err := checkFile(root, name)
		if err != nil {
			return err
		}
		out = append(out, vs...)
		if dir := path.Dir(name); strings.HasPrefix(dir, "internal/") && !strings.HasSuffix(name, "_test.go") {
			hasDoc[dir] = hasDoc[dir] || path.Base(name) == "doc.go"
		}
		return nil
	})
	if err != nil {
		return nil, err
	}
	for dir, ok := range hasDoc {
		if !ok {
			out = append(out, Violation{File: dir, Text: "has no doc.go that says what the package owns"})
		}
	}
	slices.SortFunc(out, func(a, b Violation) int {
		return cmp.Or(cmp.Compare(a.File, b.File), cmp.Compare(a.Line, b.Line), cmp.Compare(a.Text, b.Text))
	})
	return out, nil
}

// enter decides whether a folder is part of the module.
func enter(root fs.FS, name, base string) error {
	if name == "." {
		return nil
	}
	if strings.HasPrefix(base, ".") || base == "testdata" || base == "node_modules" || name == "build" {
		return fs.SkipDir
	}
	if _, err := fs.Stat(root, path.Join(name, "go.mod")); err == nil {
		return fs.SkipDir
	}
	return nil
}

// owner is the class of the package that a file belongs to, and the name of its
// folder under internal. known is false for a folder that the table does not class.
func owner(file string) (c class, name string, known bool) {
	parts := strings.Split(file, "/")
	switch {
	case len(parts) > 2 && parts[0] == "internal":
		c, known = packages[parts[1]]
		return c, parts[1], known
	case len(parts) > 2 && parts[0] == "functions":
		return functions, parts[1], true
	default:
		return outside, "", true
	}
}

func checkFile(root fs.FS, name string) ([]Violation, error) {
	src, err := fs.ReadFile(root, name)
	if err != nil {
		return nil, err
	}
	fset := token.NewFileSet()
	file, err := parser.ParseFile(fset, name, src, parser.SkipObjectResolution)
	if err != nil {
		return nil, fmt.Errorf("parse %s: %w", name, err)
	}
	from, pkg, known := owner(name)
	if !known {
		return []Violation{{File: name, Text: "internal/" + pkg + " is not classed: add it to the table in internal/arch/rules.go"}}, nil
	}
	test := strings.HasSuffix(name, "_test.go")

	c := &checker{fset: fset, file: name}
	for _, spec := range file.Imports {
		p, err := strconv.Unquote(spec.Path.Value)
		if err != nil {
			return nil, fmt.Errorf("parse %s: import %s: %w", name, spec.Path.Value, err)
		}
		if why := importRule(from, pkg, p, test); why != "" {
			c.add(spec.Pos(), "imports "+p+": "+why)
		}
		if why := partRule(from, path.Dir(name), p, test); why != "" {
			c.add(spec.Pos(), "imports "+p+": "+why)
		}
	}
	if test {
		return c.out, nil
	}
	if from == core {
		c.pure(file)
		if n := bytes.Count(src, []byte("\n")); n > MaxLines {
			c.out = append(c.out, Violation{File: name, Text: fmt.Sprintf("has %d lines, more than %d: split it where two ideas live together", n, MaxLines)})
		}
	}
	if slices.Contains(pureParts, path.Dir(name)) {
		c.forbid(file, "time", clock, "time is an argument here")
	}
	if strings.HasPrefix(name, "internal/") && from != checking && !slices.Contains(environment, pkg) {
		c.forbid(file, "os", []string{"Getenv", "LookupEnv", "Environ"}, "only internal/config and internal/app read the environment")
	}
	return c.out, nil
}

type checker struct {
	fset *token.FileSet
	file string
	out  []Violation
}

func (c *checker) add(pos token.Pos, text string) {
	c.out = append(c.out, Violation{File: c.file, Line: c.fset.Position(pos).Line, Text: text})
}

// pure checks what imports do not show: the clock, goroutines and standard output.
func (c *checker) pure(file *ast.File) {
	c.forbid(file, "time", clock, "the core has no clock: time is Snapshot.Now")
	c.forbid(file, "fmt", []string{"Print", "Printf", "Println"}, "the core does no I/O")
	ast.Inspect(file, func(n ast.Node) bool {
		switch n := n.(type) {
		case *ast.GoStmt:
			c.add(n.Pos(), "starts a goroutine: the core is sequential")
		case *ast.CallExpr:
			if id, ok := n.Fun.(*ast.Ident); ok && (id.Name == "print" || id.Name == "println") {
				c.add(n.Pos(), "calls "+id.Name+": the core does no I/O")
			}
		}
		return true
	})
}

// forbid reports every use of some names of a package, under whatever name the file
// imports it. A dot import hides the names, so it is reported itself.
func (c *checker) forbid(file *ast.File, pkg string, names []string, why string) {
	local := ""
	for _, spec := range file.Imports {
		if spec.Path.Value != strconv.Quote(pkg) {
			continue
		}
		local = path.Base(pkg)
		if spec.Name != nil {
			local = spec.Name.Name
		}
		if local == "." {
			c.add(spec.Pos(), "imports "+pkg+" with a dot: "+why)
		}
	}
	if local == "" || local == "." || local == "_" {
		return
	}
	ast.Inspect(file, func(n ast.Node) bool {
		sel, ok := n.(*ast.SelectorExpr)
		if !ok {
			return true
		}
		if id, ok := sel.X.(*ast.Ident); ok && id.Name == local && slices.Contains(names, sel.Sel.Name) {
			c.add(sel.Pos(), "uses "+pkg+"."+sel.Sel.Name+": "+why)
		}
		return true
	})
}
