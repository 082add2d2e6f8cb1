package kube

import (
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
)

// Source is a named stream of objects: text that is opened, or a feed. One of the two is
// called, once; what Open returns is closed by Read.
type Source struct {
	Name string
	Open func() (io.ReadCloser, error)
	// Feed hands over objects that need not be parsed as files are (package live reads a
	// cluster so). Its error ends the reading: no snapshot is made.
	Feed func(*Feed) error
}

// Stdin is the path that stands for standard input, and its name in messages.
const (
	Stdin     = "-"
	stdinName = "standard input"
)

// suffixes are the files that are read when a directory is given.
var suffixes = []string{".yaml", ".yml", ".json", ".yaml.gz", ".yml.gz", ".json.gz"}

// Files turns paths into sources. A directory stands for the .yaml, .yml and
// .json files (and their .gz) under it, recursively, sorted by path, without
// hidden ones; a file is read whatever its name; "-" is stdin, at most once.
func Files(paths []string, stdin io.Reader) ([]Source, error) {
	var out []Source
	seenStdin := false
	for _, p := range paths {
		if p == Stdin {
			if seenStdin {
				return nil, fmt.Errorf("read -: standard input is given twice")
			}
			seenStdin = true
			out = append(out, Source{Name: stdinName, Open: func() (io.ReadCloser, error) {
				return io.NopCloser(stdin), nil
			}})
			continue
		}
		info, err := os.Stat(p)
		if err != nil {
			return nil, fmt.Errorf("read %s: %w", p, reason(err))
		}
		if !info.IsDir() {
			out = append(out, file(p))
			continue
		}
		found, err := directory(p)
		if err != nil {
			return nil, err
		}
		if len(found) == 0 {
			return nil, fmt.Errorf("read %s: no .yaml, .yml or .json file in this directory", p)
		}
		for _, f := range found {
			out = append(out, file(f))
		}
	}
	return out, nil
}

func file(path string) Source {
	return Source{Name: path, Open: func() (io.ReadCloser, error) {
		f, err := os.Open(path)
		if err != nil {
			return nil, reason(err)
		}
		return f, nil
	}}
}

// reason takes the path out of an *fs.PathError: messages name it already.
func reason(err error) error {
	if pe, ok := err.(*fs.PathError); ok {
		return pe.Err
	}
	return err
}

func directory(root string) ([]string, error) {
	var found []string
	err := filepath.WalkDir(root, func(p string, d fs.DirEntry, err error) error {
		if err != nil {
			return fmt.Errorf("read %s: %w", p, reason(err))
		}
		if p != root && strings.HasPrefix(d.Name(), ".") {
			if d.IsDir() {
				return fs.SkipDir
			}
			return nil
		}
		if d.IsDir() || !slices.ContainsFunc(suffixes, func(s string) bool { return strings.HasSuffix(p, s) }) {
			return nil
		}
		info, err := os.Stat(p) // follows links
		if err != nil {
			return fmt.Errorf("read %s: %w", p, reason(err))
		}
		if info.Mode().IsRegular() {
			found = append(found, p)
		}
		return nil
	})
	slices.Sort(found)
	return found, err
}
