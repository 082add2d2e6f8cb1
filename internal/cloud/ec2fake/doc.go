// Package ec2fake is an EC2 (with the SSM and IAM that launching needs) for tests: strict
// where EC2 is strict, and forgiving nowhere. It keeps tokens and refuses a token with
// another request; it runs out of machines, addresses, quotas and reservations; it shows
// what it made with a delay, fails a whole call for one unknown id, refuses duplicate
// overrides, tags where none may be, images of the wrong architecture, and whatever
// permission is taken away; it loses answers after acting. It knows no fence.
//
// It is deterministic: the clock is given, ids follow from a seed and a counter, nothing
// runs by itself. Calls may come from several goroutines.
package ec2fake
