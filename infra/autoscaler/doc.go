// Package autoscaler is the CDK construct that installs Kerf for one EKS cluster.
//
//	schedule, each minute -> Ticks -> Sweep --------> Work -> Lifecycle ---.
//	                           ^_______/ \ invokes     ^ \______/         | sends urgent ticks
//	                           ^          v            |                  |
//	schedule, 5 minutes ------ | ----> Catalog      DeadWork              |
//	                           |__________________________________________|
//
//	Plan    answers whoever may invoke it
//	Ledger  the table that Sweep, Lifecycle and Catalog share
//
// Each function has a role of its own. Those that act are not allowed into the cluster by
// this: their roles (outputs of the stack) have to be let in there.
//
//	props, err := autoscaler.FromContext(context)   // or fill Props by hand
//	a, err := autoscaler.New(stack, "Kerf", props)
//	a.Plan.Lambda.GrantInvoke(somebody)
//
// It owns resources, permissions and the checks on what a person may set. It decides
// nothing at run time: settings are passed on to the functions as they are.
package autoscaler
