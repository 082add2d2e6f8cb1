// Package autoscaler is the CDK construct that installs Kerf for one EKS cluster.
//
// Today it holds the plan function alone: read-only, allowed to write its own logs
// and nothing else. The functions that act are added here as they come (the list is
// in ARCHITECTURE.md).
//
//	props, err := autoscaler.FromContext(context)   // or fill Props by hand
//	a, err := autoscaler.New(stack, "Kerf", props)
//	a.Plan.GrantInvoke(somebody)
//
// It owns resources, permissions and the checks on what a person may set. It decides
// nothing at run time: settings are passed on to the functions as they are.
package autoscaler
