package sim

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"kerf.sh/kerf/internal/kube/api"
)

func must(t *testing.T, what string, rep *Report) {
	t.Helper()
	for _, b := range rep.Broken {
		t.Errorf("%s: %s", what, b)
	}
}

// sound is a calm profile that comes to rest soon.
func sound(loads ...Load) *Profile {
	p := calm(loads...)
	p.Trouble, p.Settle, p.Quiet = 4*time.Minute, 40*time.Minute, 3*time.Minute
	return p
}

var some = Load{After: 12 * time.Second, Kind: "plain", Pods: 6, CPU: 1500, Mem: 1024}

// TestSameTrace: everything follows from the seed.
func TestSameTrace(t *testing.T) {
	for seed := range uint64(3) {
		a, b := inBubble(t, seed, Options{Verbose: true}), inBubble(t, seed, Options{Verbose: true})
		if a.Trace != b.Trace || a.Hash != b.Hash {
			t.Errorf("seed %d: two traces, %s and %s", seed, a.Hash, b.Hash)
			as, bs := strings.Split(a.Trace, "\n"), strings.Split(b.Trace, "\n")
			for i := range min(len(as), len(bs)) {
				if as[i] != bs[i] {
					t.Fatalf("they part at line %d:\n%s\n%s", i+1, as[i], bs[i])
				}
			}
		}
	}
}

// TestCutOffAnywhere: a sweep that launches may end at any call, before or after its effect;
// what comes of it is the same number of nodes.
func TestCutOffAnywhere(t *testing.T) {
	whole := inBubble(t, 7, Options{Profile: sound(some)})
	must(t, "nothing is cut off", whole)
	for _, what := range []troubleKind{crashBefore, crashAfter} {
		for n := 0; ; n++ {
			hit := ""
			script := func(*World) func(bound) (trouble, bool) {
				at := 0
				return func(b bound) (trouble, bool) {
					if hit != "" || !strings.HasPrefix(b.Proc, "sweep") || b.Service == "kube" && b.Op == "list" || b.Op == "Query" {
						return trouble{}, false
					}
					if at++; at-1 != n {
						return trouble{}, false
					}
					hit = fmt.Sprintf("%s %s.%s %s", what, b.Service, b.Op, b.Object)
					return trouble{what: what}, true
				}
			}
			rep := inBubble(t, 7, Options{Profile: sound(some), Script: script})
			must(t, hit, rep)
			if rep.Stats.Instances-rep.Stats.Terminated != whole.Stats.Instances {
				t.Errorf("%s: %d instances, %d ended; %d are wanted", hit, rep.Stats.Instances, rep.Stats.Terminated, whole.Stats.Instances)
			}
			if hit == "" || n > 60 {
				if n < 25 {
					t.Errorf("only %d places to cut off", n)
				}
				break
			}
		}
	}
}

// TestFrozenHolder: the holder of the lease sleeps at CreateFleet until others have taken its
// place, and goes on.
func TestFrozenHolder(t *testing.T) {
	for _, what := range []troubleKind{freezeBefore, freezeAfter} {
		for _, wait := range []time.Duration{45 * time.Second, 2 * time.Minute, 4 * time.Minute, 7 * time.Minute, 11 * time.Minute} {
			for _, op := range []string{"CreateFleet", "TransactWriteItems", "CreateLaunchTemplate"} {
				done := false
				script := func(*World) func(bound) (trouble, bool) {
					return func(b bound) (trouble, bool) {
						if done || b.Op != op || !strings.HasPrefix(b.Proc, "sweep") {
							return trouble{}, false
						}
						done = true
						return trouble{what: what, wait: wait}, true
					}
				}
				p := sound(some)
				p.Trouble = 14 * time.Minute
				rep := inBubble(t, 3, Options{Profile: p, Script: script})
				must(t, fmt.Sprintf("%s %s for %s", what, op, wait), rep)
				if !done {
					t.Errorf("nobody was frozen at %s", op)
				}
			}
		}
	}
}

// TestTwice: every message is delivered twice, and two people ask for a sweep at once.
func TestTwice(t *testing.T) {
	once := inBubble(t, 5, Options{Profile: sound(some)})
	p := sound(some)
	p.Faults.Duplicate = 1_000_000
	rep := inBubble(t, 5, Options{Profile: p, Before: func(w *World) {
		for range 2 {
			w.after(14500*time.Millisecond, func() { w.lambdas["sweep"].invoke(nil, func(any, error, bool) {}) })
		}
	}})
	must(t, "twice", rep)
	if rep.Stats.Instances != once.Stats.Instances {
		t.Errorf("%d instances, once it is %d", rep.Stats.Instances, once.Stats.Instances)
	}
}

// TestThousandApart: 1,000 pods that keep away from one another get exactly 1,000 nodes.
func TestThousandApart(t *testing.T) {
	p := sound(Load{After: 12 * time.Second, Kind: "anti", Pods: thousand, CPU: 300, Mem: 512})
	p.Free, p.Trouble = 4000, 8*time.Minute
	rep := inBubble(t, 1, Options{Profile: p})
	must(t, "apart", rep)
	if rep.Stats.Instances != thousand {
		t.Errorf("%d instances", rep.Stats.Instances)
	}
}

// TestRestored: a table that is replaced by an older copy is filled again, and nothing is
// launched twice or lost.
func TestRestored(t *testing.T) {
	for seed := range uint64(25) {
		p := sound(some, Load{After: 70 * time.Second, Kind: "spread", Pods: 6, CPU: 1500, Mem: 1024}, Load{After: 150 * time.Second, Kind: "arm", Pods: 3, CPU: 900, Mem: 1024})
		p.Trouble = 6 * time.Minute
		p.Faults.Restore = true
		rep := inBubble(t, seed, Options{Profile: p})
		must(t, fmt.Sprintf("restored with seed %d", seed), rep)
	}
}

// TestFirstNode: from zero nodes, with an admission webhook that needs a node to run.
func TestFirstNode(t *testing.T) {
	rep := inBubble(t, 2, Options{Profile: sound(some), Before: func(w *World) {
		w.cluster.webhook = epoch.Add(3 * time.Minute)
	}})
	must(t, "webhook", rep)
	if rep.Stats.PodsBound < 6 {
		t.Errorf("%d pods are bound", rep.Stats.PodsBound)
	}
}

// TestLearns: nodes that turn out smaller than thought are not bought again and again.
func TestLearns(t *testing.T) {
	p := sound(Load{After: 12 * time.Second, Kind: "plain", Pods: 4, CPU: 1000, Mem: 13_500})
	p.Faults.Small = 1_000_000
	p.Trouble = 12 * time.Minute
	rep := inBubble(t, 4, Options{Profile: p})
	must(t, "small", rep)
	if rep.Stats.Instances > 12 {
		t.Errorf("%d instances for 4 pods", rep.Stats.Instances)
	}
}

const thousand = 1000

// TestKarpenterRuns: while Karpenter leads, nothing is changed; when it stops, nodes come.
func TestKarpenterRuns(t *testing.T) {
	before := -1
	p := sound(some)
	p.Trouble = 8 * time.Minute
	rep := inBubble(t, 6, Options{Profile: p, Before: func(w *World) {
		for at := time.Duration(0); at < 4*time.Minute; at += 10 * time.Second {
			w.after(at, func() {
				w.cluster.leader = api.LeaseState{Namespace: "kube-system", Name: "karpenter-leader-election", Holder: "karpenter-0", Renewed: w.now()}
			})
		}
		w.after(4*time.Minute+30*time.Second, func() { before = w.stats.Instances + len(w.cluster.claims.by) })
	}})
	must(t, "Karpenter runs", rep)
	if before != 0 || rep.Stats.Instances == 0 {
		t.Errorf("%d instances and NodeClaims while Karpenter ran, %d instances in the end", before, rep.Stats.Instances)
	}
}
