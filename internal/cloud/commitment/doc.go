// Package commitment reads what an account has committed itself to pay: reserved instances
// and Savings Plans, and what is unused of them.
//
// What is unused is counted against the on-demand instances that run in the account and the
// region. Other accounts of an organisation, other regions, Fargate and Lambda may use a
// commitment too, and are not seen: what remains is at most what is said here.
package commitment
