//go:build !lambda.norpc

package main

import (
	"os"

	"kerf.sh/kerf/internal/app/validate"
)

// manifests answers plan --validate, on a command line only: the tag is that with which make build
// builds functions, and what checks manifests is heavy (docs/adr/0012-manifests.md).
func manifests(args []string) (status int, wanted bool) {
	if !validate.Wanted(args) {
		return 0, false
	}
	return validate.Main(args, os.Stdin, os.Stdout, os.Stderr), true
}
