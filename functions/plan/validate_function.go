//go:build lambda.norpc

package main

import (
	"fmt"
	"os"
	"slices"
)

// manifests is nothing that a function does.
func manifests(args []string) (status int, wanted bool) {
	if !slices.Contains(args, "--validate") {
		return 0, false
	}
	fmt.Fprintln(os.Stderr, "plan: NotSupported: --validate is not in the program as it is built for Lambda; make validate builds the one for command lines")
	return 2, true
}
