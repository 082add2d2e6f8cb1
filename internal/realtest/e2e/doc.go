// Package e2e runs the built functions end to end: a real kube-apiserver, etcd,
// kube-scheduler and kube-controller-manager with Karpenter's CRDs; AWS over HTTP (the
// strict fakes, and an emulator for DynamoDB); the functions as Lambda runs them, fed from
// queues and ticks; machines that join. Nothing of Kerf is called in process: what is tested
// is what is deployed.
//
// make e2e builds what it needs and runs it. The functions are deployed as the
// stack's template says (time, memory, batches, what their roles may do), and let into the
// cluster with the permissions that package kube/live lists for each, and no more: a request that is refused for a
// missing permission fails the test.
package e2e
