// Package kube turns Kubernetes objects into a snapshot.Snapshot: today objects
// in files (YAML, JSON, Lists, gzip), with the same conversion that a live
// reading uses.
//
// It owns the wire: which kinds are read, how documents are told apart, which
// fields decide and in which unit they are kept, what the API server would have
// added on admission, and a message that names file, document, object, field and
// value for whatever cannot be read. It decides nothing: what a field means for a
// node is the core's business.
//
//	sources, err := kube.Files([]string{"cluster/", "-"}, os.Stdin)
//	snap, report, err := kube.Read(sources, kube.Options{Now: now})
//
//	before, after, err := kube.ReadWhatIf(sources, kube.Overlay{Sources: changed, Remove: refs}, kube.Options{Now: now})
//
// err: nothing can be planned on this input (a person must fix it).
// report.Left: objects that were left out; a plan without them is possible.
//
// Core kinds are read leniently, as kubectl does: a field this package does not
// know is none of its business. Karpenter's kinds are read strictly: an unknown
// field in a spec is a typo that would silently change what is launched.
//
// Memory: sources are streamed; one document, or one item of a List, is held at a
// time. The order of files and documents never changes the result.
package kube
