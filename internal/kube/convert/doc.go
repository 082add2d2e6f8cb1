// Package convert knows the older generations of Karpenter's API: Provisioner and AWSNodeTemplate
// (karpenter.sh/v1alpha5, karpenter.k8s.aws/v1alpha1), and NodePool, EC2NodeClass and NodeClaim of
// v1beta1. It makes today's objects of them, and says of each field what it became, or that it is
// gone and what to do instead.
//
// A converted object does what the old one did as far as today's API can say it: where a default
// has changed, the old one is written down, with a note. Sources of these facts are Karpenter's own
// migration guides (v0.32 and v1.0).
//
// It is pure: objects in, objects and notes out. Whether a result is valid is package schema's to
// say.
package convert
