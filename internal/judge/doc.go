// Package judge lets kube-scheduler itself judge plans. Its tests draw clusters
// (package worldtest), plan them, and put every pod of the plan, one after the other,
// before the scheduler's real filters, with the nodes of the plan in place:
//
//   - pinned: every placement must be accepted in some order of the pods, and pods
//     without a place must really be refused (Pinned, Missed);
//   - free: the scheduler runs with its default profile, nodes join in any order, and
//     nobody holds pods to the plan but the hints that Kerf gives (Settle);
//   - for every rule, a planner that does not know it must be found out.
//
// The scheduler is that of Kubernetes, in process, with all plugins of its default
// profile; so are the admission of pods and the choice of nodes for daemonset pods.
// What stands in for the rest of the control plane is small: objects keeps objects and
// tells the scheduler's informers of changes at once, react answers its requests.
//
// It is a module of its own so that none of that code comes near the functions. Nothing
// imports it.
package judge
