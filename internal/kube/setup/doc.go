// Package setup owns what has to stand in a cluster before functions can work in it: the
// CustomResourceDefinitions (Karpenter's, unchanged), what each function may do (live.Access,
// as ClusterRoles for groups), and the place that their requests have among all others. It
// refuses to own who is in those groups: access entries are the stack's.
package setup
