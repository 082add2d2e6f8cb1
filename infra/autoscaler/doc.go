// Package autoscaler is the CDK construct that installs Kerf for one EKS cluster.
//
//	schedule, each minute -> Ticks -> Sweep --------> Work -> Lifecycle ---.
//	                           ^_______/ \ invokes     ^ \______/         | sends urgent ticks
//	                           ^          v            |                  |
//	schedule, 5 minutes ------ | ----> Catalog      DeadWork              |
//	                           |__________________________________________|
//
//	five rules -> Notices -> Interruption --> Ticks, Work
//	schedule, each minute -> Consolidation -> Ticks, Work
//	CloudFormation -> Bootstrap, before any of these starts
//
//	Plan    answers whoever may invoke it
//	Ledger  the table that all but Bootstrap share; Plan reads it
//
// Each function has a role of its own, and a group of its own in the cluster.
//
//	props, err := autoscaler.FromContext(context)   // or fill Props by hand
//	a, err := autoscaler.New(stack, "Kerf", props)
//	a.Plan.Lambda.GrantInvoke(somebody)
//
// It owns resources, permissions and the checks on what a person may set. It decides
// nothing at run time: settings are passed on to the functions as they are.
package autoscaler
