// Package snapshot holds the plain data that every decision is made on: pods,
// nodes, pools, classes, prices' surroundings and the clock, all at one instant.
//
// It owns the types, their arithmetic (resources, effective pod requests) and
// nothing else: it reads no file, no network and no clock, and it does not
// decide. Whoever builds a Snapshot (package kube, a transcript, a test) gives
// it away: the core never changes one, and the same Snapshot always gives the
// same plan, byte for byte.
//
// Units: CPU in millicores, memory and storage in bytes, every other resource in
// whole units, prices in micro-dollars per hour.
package snapshot
