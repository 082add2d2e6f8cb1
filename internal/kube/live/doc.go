// Package live reads and writes a running cluster, through client-go's REST client and
// the plain API types: no generated clientsets, no informers, because a function starts
// for one pass and has to start quickly.
//
// It owns the requests: paginated lists that are whole or an error, the identity that
// they are made with (package eks, or a kubeconfig: package kubeconfig), what an answer
// of the API server means, and writes that can be repeated. What an object means is
// converted by package kube, in the same way as for files; what is to be done is decided
// elsewhere.
//
//	client, err := live.New(config, live.Options{})
//	snap, report, err := kube.Read([]kube.Source{client.Source(ctx)}, kube.Options{Now: now})
//
// Absence is a fact only in a complete reading. A list is taken whole or not at all; one
// that failed, or is empty where it cannot be, marks the snapshot incomplete and is named
// there. When the API server does not accept who we are, or what everything rests on
// (pods, nodes) cannot be read, there is no snapshot.
//
// Every write is idempotent: done twice it has the effect of once, and the answer to the
// second tells that it was done. Writes that change what someone else may have changed
// carry a precondition. Errors are *Error and compare with the Err values of this package.
package live
