//go:build lambda.norpc

package main

// manifests is nothing that a function does; the flag is not known there.
func manifests([]string) (status int, wanted bool) { return 0, false }
