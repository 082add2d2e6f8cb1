// Package workload makes the pending pods that Kerf is measured and tested with:
// seven kinds of workload at any size, always the same for the same name or seed,
// and the small cluster around them (one pool, one class, two daemonsets).
//
// It owns the shapes and their draws, nothing else. The draws are part of the
// contract: a named workload never changes, because published figures refer to it.
// Only tests and benchmarks import it.
//
//	uniform       one shape
//	mixedweb      60 deployments of usual web shapes, few of them large
//	memcpu        8 shapes, half short of memory and half full of it
//	diverse       every pod another shape
//	zonal         20 deployments spread over zones and hosts
//	antiaffinity  10 deployments whose pods avoid each other's node
//	hostname      30 deployments spread over hosts, skews of one to three
package workload
