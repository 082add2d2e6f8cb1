// Package eksauth lets IAM identities into a test's API server as EKS does: a token is a
// signed request to STS, bound to the cluster by a header, and taken for fifteen minutes
// from its signing. It is a token webhook (authentication.k8s.io/v1).
package eksauth
