// Command crds takes Karpenter's CustomResourceDefinitions, unchanged, from its module into the
// compressed file that the function bootstrap carries, with its licence and notice beside it.
//
//	go run ./scripts/crds [-check]
package main

import (
	"bytes"
	"compress/gzip"
	"encoding/json"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"

	"kerf.sh/kerf/internal/kube/setup"
)

// module has the CRDs as they are for AWS: its copies of Karpenter's own have more checks.
const module = "github.com/aws/karpenter-provider-aws"

func main() {
	check := flag.Bool("check", false, "compare instead of writing")
	dir := flag.String("dir", filepath.Join("internal", "kube", "setup", "karpenter"), "folder to write to")
	flag.Parse()
	if err := run(*dir, *check); err != nil {
		fmt.Fprintln(os.Stderr, "crds:", err)
		os.Exit(1)
	}
}

func run(dir string, check bool) error {
	out, err := exec.Command("go", "mod", "download", "-json", module+"@"+setup.KarpenterVersion).Output()
	if err != nil {
		return fmt.Errorf("download %s@%s: %w", module, setup.KarpenterVersion, err)
	}
	var m struct{ Dir string }
	if err := json.Unmarshal(out, &m); err != nil {
		return err
	}
	files, err := collect(m.Dir)
	if err != nil {
		return err
	}
	for name, content := range files {
		file := filepath.Join(dir, name)
		if check {
			have, err := os.ReadFile(file)
			if err != nil || !bytes.Equal(have, content) {
				return fmt.Errorf("%s is not what %s@%s has: go run ./scripts/crds (%v)", file, module, setup.KarpenterVersion, err)
			}
			continue
		}
		if err := os.WriteFile(file, content, 0o644); err != nil {
			return err
		}
	}
	return nil
}

// collect makes the files from a module's folder: the same bytes each time.
func collect(module string) (map[string][]byte, error) {
	paths, err := filepath.Glob(filepath.Join(module, "pkg", "apis", "crds", "*.yaml"))
	if err != nil || len(paths) == 0 {
		return nil, fmt.Errorf("no CRDs in %s (%v)", module, err)
	}
	var buf bytes.Buffer
	z, err := gzip.NewWriterLevel(&buf, gzip.BestCompression)
	if err != nil {
		return nil, err
	}
	for _, p := range paths {
		text, err := os.ReadFile(p)
		if err != nil {
			return nil, err
		}
		if !bytes.HasPrefix(text, []byte("---\n")) {
			text = append([]byte("---\n"), text...)
		}
		if _, err := z.Write(text); err != nil {
			return nil, err
		}
	}
	if err := z.Close(); err != nil {
		return nil, err
	}
	out := map[string][]byte{"crds.yaml.gz": buf.Bytes()}
	for from, to := range map[string]string{"LICENSE": "LICENSE", "NOTICE": "NOTICE"} {
		if out[to], err = os.ReadFile(filepath.Join(module, from)); err != nil {
			return nil, err
		}
	}
	return out, nil
}
