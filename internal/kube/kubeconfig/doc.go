// Package kubeconfig finds the cluster that a person means, as kubectl does: --kubeconfig,
// else the environment's KUBECONFIG, else ~/.kube/config; --context, else the current one.
// Programs that mint credentials (aws eks get-token) are run.
//
// It is a package of its own because only the command line needs it, and functions should
// not carry it.
package kubeconfig
