// Command lint checks the project's own rules over all files that git knows: the
// import rules of internal/arch, words that mark unfinished work, tests that can skip
// themselves, paths of one machine, and links in Markdown that lead nowhere.
//
//	go run ./scripts/lint
package main

import (
	"bytes"
	"fmt"
	"os"
	"os/exec"
	"slices"

	"kerf.sh/kerf/internal/arch"
)

func main() {
	found, err := run()
	if err != nil {
		fmt.Fprintln(os.Stderr, "lint:", err)
		os.Exit(2)
	}
	for _, f := range found {
		fmt.Println(f)
	}
	if len(found) > 0 {
		fmt.Printf("%d found\n", len(found))
		os.Exit(1)
	}
}

// run returns what is found in the tree around the working directory, sorted by file.
func run() ([]string, error) {
	top, err := exec.Command("git", "rev-parse", "--show-toplevel").Output()
	if err != nil {
		return nil, fmt.Errorf("find the top of the repository: %w", err)
	}
	root := os.DirFS(string(bytes.TrimSpace(top)))
	list := exec.Command("git", "ls-files", "-z", "--cached", "--others", "--exclude-standard")
	list.Dir = string(bytes.TrimSpace(top))
	out, err := list.Output()
	if err != nil {
		return nil, fmt.Errorf("list the files: %w", err)
	}
	files := map[string]bool{}
	for name := range bytes.SplitSeq(out, []byte{0}) {
		if len(name) > 0 {
			files[string(name)] = true
		}
	}
	violations, err := arch.Check(root)
	if err != nil {
		return nil, err
	}
	found, err := checkFiles(root, files)
	if err != nil {
		return nil, err
	}
	for _, v := range violations {
		found = append(found, v.String())
	}
	slices.Sort(found)
	return found, nil
}
