// Package local brings the stack up on one machine, as it is deployed: a real control plane,
// and an emulator of AWS that takes the synthesised template and runs the functions from its
// own triggers: rule to queue to function, schedule to queue to function, and direct calls.
// Every function has the credentials of its role, and the emulator evaluates the role's
// policies on each of its requests.
//
// What is not the emulator's: EC2, prices and AWS's public parameters, which the strict fakes
// of internal/cloud/ec2fake serve, with events about instances sent to the emulator's bus; and
// machines, which join as their user data says. What the emulator lacks of AWS is added to it
// by emulator.py, and docs/local.md names it.
//
// make local runs the story of it (tag local), and make local KEEP=1 leaves it up.
package local
