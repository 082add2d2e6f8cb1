// Package schema says of an object what the API server would say: it holds it against a
// CustomResourceDefinition's OpenAPI schema and CEL rules, with the code that the API server itself
// uses (k8s.io/apiextensions-apiserver), in the same order, without a server.
//
// It owns what happens to an object between its bytes and etcd: unknown fields, pruning, defaults,
// schema, sets and maps in lists, CEL rules, and rules about a change when the object that it
// replaces is given. It does not know what a field means, nor admission by webhooks and policies,
// of which Karpenter has none.
//
// Its dependencies are heavy. Only the plan program on a command line links them
// (docs/adr/0012-manifests.md).
package schema
