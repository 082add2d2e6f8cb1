// Package validate is the plan program's other mode: it says of Karpenter's manifests, without a
// cluster, whether an API server would take them and what Kerf would say of them, and what became
// of the fields of older generations of the API.
//
// It joins kube (files, and what a plan objects to), kube/convert (older generations) and
// kube/schema (what the API server says, heavy). The functions do not import it: the plan program
// leaves it out where it is built as a function (docs/adr/0012-manifests.md).
package validate
