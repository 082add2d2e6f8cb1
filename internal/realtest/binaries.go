package realtest

import (
	"fmt"
	"os"
	"path/filepath"
)

// Version is the release of Kubernetes that is run: that of go.mod.
const Version = "v1.36.3"

// Binaries is the folder with the binaries. The error says how to build those that are
// missing.
func Binaries() (string, error) {
	dir := os.Getenv("KERF_KUBERNETES")
	if dir == "" {
		cache, err := os.UserCacheDir()
		if err != nil {
			return "", fmt.Errorf("find the binaries of Kubernetes: %w", err)
		}
		dir = filepath.Join(cache, "kerf-tools", "kubernetes-"+Version)
	}
	for _, name := range []string{"etcd", "kube-apiserver", "kube-scheduler", "kube-controller-manager"} {
		if _, err := os.Stat(filepath.Join(dir, name)); err != nil {
			return "", fmt.Errorf("find the binaries of Kubernetes: no %s in %s: make kube-binaries builds them, once", name, dir)
		}
	}
	return dir, nil
}
