package kube

import (
	"bytes"
	"compress/gzip"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestFiles(t *testing.T) {
	dir := t.TempDir()
	write := func(path, text string) {
		t.Helper()
		path = filepath.Join(dir, path)
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	write("b.yaml", "b")
	write("a/z.json", "z")
	write("a/y.yml", "y")
	write("a/x.yaml.gz", "x")
	write("a/notes.txt", "no")
	write(".git/config.yaml", "no")
	write("a/.hidden.yaml", "no")
	write("odd/named.txt", "named")
	if err := os.Symlink("b.yaml", filepath.Join(dir, "link.yaml")); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink("a", filepath.Join(dir, "linkdir.yaml")); err != nil {
		t.Fatal(err)
	}
	if err := os.Mkdir(filepath.Join(dir, "empty"), 0o755); err != nil {
		t.Fatal(err)
	}
	tests := map[string]struct {
		paths []string
		want  []string // name=content
		err   string
	}{
		"directory":        {paths: []string{"."}, want: []string{"a/x.yaml.gz=x", "a/y.yml=y", "a/z.json=z", "b.yaml=b", "link.yaml=b"}},
		"file of any name": {paths: []string{"odd/named.txt"}, want: []string{"odd/named.txt=named"}},
		"order as given":   {paths: []string{"b.yaml", "a"}, want: []string{"b.yaml=b", "a/x.yaml.gz=x", "a/y.yml=y", "a/z.json=z"}},
		"stdin":            {paths: []string{"-", "b.yaml"}, want: []string{"standard input=typed", "b.yaml=b"}},
		"stdin twice":      {paths: []string{"-", "-"}, err: "read -: standard input is given twice"},
		"missing":          {paths: []string{"gone.yaml"}, err: "read gone.yaml: no such file or directory"},
		"empty directory":  {paths: []string{"empty"}, err: "read empty: no .yaml, .yml or .json file in this directory"},
		"none":             {},
	}
	t.Chdir(dir)
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			sources, err := Files(tt.paths, strings.NewReader("typed"))
			if got := message(err); got != tt.err {
				t.Fatalf("error %q, want %q", got, tt.err)
			}
			var got []string
			for _, s := range sources {
				r, err := s.Open()
				if err != nil {
					t.Fatal(err)
				}
				text, err := io.ReadAll(r)
				if err != nil {
					t.Fatal(err)
				}
				r.Close()
				got = append(got, s.Name+"="+string(text))
			}
			if d := cmp.Diff(tt.want, got); d != "" {
				t.Errorf("(-want +got)\n%s", d)
			}
		})
	}
}

func message(err error) string {
	if err == nil {
		return ""
	}
	return err.Error()
}

func TestNoSources(t *testing.T) {
	_, _, err := Read(nil, Options{})
	if got, want := message(err), "read objects: no files were given"; got != want {
		t.Errorf("error %q, want %q", got, want)
	}
}

func TestUnreadableSource(t *testing.T) {
	dir := t.TempDir()
	_, _, err := Read([]Source{file(filepath.Join(dir, "gone"))}, Options{})
	if got, want := message(err), filepath.Join(dir, "gone")+": no such file or directory"; got != want {
		t.Errorf("error %q, want %q", got, want)
	}
	broken := Source{Name: "broken", Open: func() (io.ReadCloser, error) {
		return io.NopCloser(io.MultiReader(strings.NewReader("apiVersion: v1\n"), failing{})), nil
	}}
	_, _, err = Read([]Source{broken}, Options{})
	if got, want := message(err), "broken: document 1 (line 2): read: io: read/write on closed pipe"; got != want {
		t.Errorf("error %q, want %q", got, want)
	}
}

type failing struct{}

func (failing) Read([]byte) (int, error) { return 0, io.ErrClosedPipe }

// TestEncodings: the same objects in every wrapping are the same snapshot.
func TestEncodings(t *testing.T) {
	plain := "apiVersion: v1\nkind: Namespace\nmetadata:\n  name: a\n  annotations:\n    note: |\n      two\n      lines\n---\napiVersion: v1\nkind: Namespace\nmetadata: {name: b, labels: {ü: ö}}\n"
	zip := func(s string) string {
		var b bytes.Buffer
		w := gzip.NewWriter(&b)
		if _, err := w.Write([]byte(s)); err != nil {
			t.Fatal(err)
		}
		if err := w.Close(); err != nil {
			t.Fatal(err)
		}
		return b.String()
	}
	bom := "\xef\xbb\xbf"
	want := outcome(t, []Source{from("x", plain)}, Options{})
	for name, text := range map[string]string{
		"BOM":                    bom + plain,
		"CRLF":                   strings.ReplaceAll(plain, "\n", "\r\n"),
		"gzip":                   zip(plain),
		"gzip twice":             zip(zip(plain)),
		"gzip, BOM":              zip(bom + plain),
		"members":                zip(plain[:20]) + zip(plain[20:]),
		"no end of line":         strings.TrimSuffix(plain, "\n"),
		"blank lines":            "\n\n  \n" + plain + "\n\n",
		"leading mark":           "---\n" + plain,
		"indented":               "  " + strings.ReplaceAll(strings.ReplaceAll(plain, "\n", "\n  "), "  ---", "---"),
		"JSON":                   `{"apiVersion":"v1","kind":"Namespace","metadata":{"name":"a"}}{"apiVersion":"v1","kind":"Namespace","metadata":{"name":"b","labels":{"ü":"ö"}}}`,
		"BOM, JSON lines":        bom + `{"apiVersion":"v1","kind":"Namespace","metadata":{"name":"a"}}` + "\r\n" + `{"apiVersion":"v1","kind":"Namespace","metadata":{"name":"b","labels":{"ü":"ö"}}}` + "\r\n",
		"JSON array, with white": " [ \n" + `{"apiVersion":"v1","kind":"Namespace","metadata":{"name":"a"}} ,` + "\n" + `{"apiVersion":"v1","kind":"Namespace","metadata":{"name":"b","labels":{"\u00fc":"ö"}}}` + "\n]\n",
	} {
		t.Run(name, func(t *testing.T) {
			if d := cmp.Diff(want, outcome(t, []Source{from("x", text)}, Options{})); d != "" {
				t.Errorf("(-plain +this)\n%s", d)
			}
		})
	}
	for name, tt := range map[string][2]string{
		"UTF-16":           {"\xff\xfea\x00", "error: x: UTF-16 text: save it as UTF-8\n"},
		"UTF-16 big":       {"\xfe\xff\x00a", "error: x: UTF-16 text: save it as UTF-8\n"},
		"gzip three times": {zip(zip(zip(plain))), "error: x: compressed more than twice\n"},
		"broken gzip":      {zip(plain)[:30], "error: x (line 1): read: unexpected EOF\n"},
		"no gzip":          {"\x1f\x8bxxxxxxxxxxxxxx", "error: x: uncompress: gzip: invalid header\n"},
		"binary":           {"\x00\x01\x02", "error: x: document 1 (line 1): no valid YAML: control characters are not allowed\n"},
	} {
		t.Run(name, func(t *testing.T) {
			if d := cmp.Diff(tt[1], outcome(t, []Source{from("x", tt[0])}, Options{})); d != "" {
				t.Errorf("(-want +got)\n%s", d)
			}
		})
	}
}
