// Package fakeaws serves over HTTP, to the SDK of the built programs, the AWS that they
// use: EC2, SSM, IAM and prices answered by the strict fakes of internal/cloud/ec2fake,
// queues of its own, the cluster of the test as EKS and STS tell of it, and functions that
// call functions.
//
// It serves the operations that the adapters call and refuses all others, and of those
// operations it refuses every parameter that their SDK type does not have. A caller is
// known by its access key: every function has one, as it has a role.
//
// The wire formats are those of the SDK's own serialisers: for every operation a test sends
// a filled request and a filled answer through the SDK's client and compares.
package fakeaws
