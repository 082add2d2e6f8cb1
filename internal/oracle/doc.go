// Package oracle holds tests only. They hold the core against the code whose
// behaviour it promises: Karpenter's requirements and NodePool validation,
// Kubernetes' node affinity, pod requests and quantities. It is a module of its
// own so that none of that code comes near the functions.
//
// Where Kerf differs on purpose, the test names the difference in its list of
// departures; one that no longer occurs fails the test as well.
package oracle
