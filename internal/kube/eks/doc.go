// Package eks gives the access of an IAM identity to an EKS cluster: where its API server
// is, and the token that says who asks.
//
// The token is a signed request to STS that the API server makes itself (GetCallerIdentity).
// EKS takes it for 15 minutes from its signing; here it is used for 14, so that it never
// ends under way, and anew after a 401. No secret is kept: whoever can sign is in.
package eks
