package lifecycle

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	gocmp "github.com/google/go-cmp/cmp"

	"kerf.sh/kerf/internal/snapshot"
)

var openAt = time.Date(2026, 3, 4, 11, 0, 0, 0, time.UTC)

const zoneKey = "topology.kubernetes.io/zone"

// openingOf writes an opening, one line an object:
//
//	node NAME STATE zone=Z since=SECONDS
//	pod NAME node=NODE zones=SKEW version=N priority=N of=KIND claim=NODE bound=NODE going
//	other NODE zone=Z
//
// A pod named x-1 is the first of the kind x; NODE is the one that lists it.
func openingOf(t *testing.T, text string) *Opening {
	t.Helper()
	o := &Opening{Labels: map[string]map[string]string{}}
	for line := range strings.Lines(text) {
		f := strings.Fields(line)
		if len(f) == 0 {
			continue
		}
		kv := map[string]string{}
		for _, x := range f[2:] {
			k, v, _ := strings.Cut(x, "=")
			kv[k] = v
		}
		num := func(k string) (n int) {
			if kv[k] != "" {
				if _, err := fmt.Sscan(kv[k], &n); err != nil {
					t.Fatalf("%q: %v", line, err)
				}
			}
			return n
		}
		switch f[0] {
		case "node":
			n := OpeningNode{Name: f[1], Since: openAt.Add(time.Duration(num("since")) * time.Second)}
			n.State = OpeningState(slices.Index([]string{"coming", "shut", "open"}, f[2]))
			if kv["zone"] != "" {
				n.Labels = map[string]string{zoneKey: kv["zone"]}
			}
			o.Nodes = append(o.Nodes, n)
		case "other":
			o.Labels[f[1]] = map[string]string{zoneKey: kv["zone"]}
		case "pod":
			kind, _, _ := strings.Cut(f[1], "-")
			p := &snapshot.Pod{
				Namespace: "default", Name: f[1], UID: "uid-" + f[1], Labels: map[string]string{"app": kind}, Owner: &snapshot.Owner{Kind: "ReplicaSet", Name: kind, UID: kind},
				NodeName: kv["bound"], NominatedNode: kv["claim"],
			}
			p.Spec.Priority = int32(num("priority"))
			if s := num("zones"); s > 0 {
				p.Spec.Spread = []snapshot.TopologySpread{{
					MaxSkew: int32(s), TopologyKey: zoneKey, WhenUnsatisfiable: "DoNotSchedule",
					Selector: &snapshot.LabelSelector{MatchLabels: map[string]string{"app": cmp.Or(kv["of"], kind)}},
				}}
			}
			if _, ok := kv["going"]; ok {
				p.Deleting = openAt
			}
			o.Pods = append(o.Pods, OpeningPod{p, uint64(num("version"))})
			for i := range o.Nodes {
				if o.Nodes[i].Name == kv["node"] {
					o.Nodes[i].Pods = append(o.Nodes[i].Pods, Pod{Namespace: "default", Name: p.Name, UID: p.UID})
				}
			}
		default:
			t.Fatalf("line %q is not known", line)
		}
	}
	return o
}

func outlineOf(s OpeningStep) string {
	var out []string
	for _, c := range s.Claims {
		out = append(out, "claim "+c.Pod.Name+" "+c.Node)
	}
	for _, n := range s.Open {
		out = append(out, "open "+n)
	}
	for n, by := range s.Held {
		out = append(out, "held "+n+" by "+by)
	}
	for _, n := range s.Done {
		out = append(out, "done "+n)
	}
	k := len(s.Claims) + len(s.Open)
	for n, pods := range s.Pods {
		line := "list " + n
		for _, p := range pods {
			line += " " + p.Name
		}
		out = append(out, line)
	}
	slices.Sort(out[k:])
	return strings.Join(out, "\n")
}

func TestOpen(t *testing.T) {
	for _, c := range []struct{ name, world, want string }{
		{"a node whose pods need no others opens at once, whatever else is coming", `
			node n1 shut zone=a
			node n2 coming
			pod x-1 node=n1 version=2
			pod x-2 node=n1 version=1
			pod x-3 node=n2 version=3
		`, `claim x-2 n1
claim x-1 n1
open n1`},
		{"pods of a zone spread wait for the node of the other zone, and others on that node with them", `
			node n1 shut zone=a
			node n2 coming zone=b
			node n3 shut zone=a
			pod x-1 node=n1 zones=1
			pod y-1 node=n1
			pod x-2 node=n2 zones=1
			pod z-1 node=n3 zones=1
		`, `claim z-1 n3
open n3
held n1 by n2`},
		{"what a second spread ties waits too", `
			node n1 shut zone=a
			node n2 shut zone=b
			node n3 coming zone=b
			pod x-1 node=n1 zones=1
			pod x-2 node=n2 zones=1
			pod y-1 node=n2 zones=1
			pod y-2 node=n3 zones=1
		`, `held n1 by n3
held n2 by n3`},
		{"a node that was waited for long enough is not waited for", `
			node n1 shut zone=a since=-30
			node n2 coming zone=b since=-90
			pod x-1 node=n1 zones=1
			pod x-2 node=n2 zones=1
		`, `claim x-1 n1
open n1`},
		{"a node that nobody waits for ties nothing", `
			node n1 shut zone=a
			node n2 coming zone=b
			pod x-1 node=n1 zones=1
			pod x-2 node=n2 zones=1 bound=n0
			other n0 zone=b
		`, `claim x-1 n1
open n1`},
		{"zones take turns in the scheduler's order, and pods of a kind change places for that", `
			node n1 shut zone=a
			node n2 shut zone=b
			node n3 shut zone=a
			pod x-1 node=n1 zones=1 version=3
			pod x-2 node=n2 zones=1 version=2
			pod x-3 node=n3 zones=1 version=1
		`, `claim x-3 n1
claim x-2 n2
claim x-1 n3
open n1
open n2
open n3
list n1 x-3
list n3 x-1`},
		{"the zone with the fewest comes first; pods that go do not count", `
			node n1 shut zone=a
			node n2 shut zone=b
			other n0 zone=a
			other n9 zone=b
			pod x-8 bound=n0 zones=1
			pod x-9 bound=n9 zones=1 going
			pod x-1 node=n1 zones=1 version=1
			pod x-2 node=n2 zones=1 version=2
		`, `claim x-1 n2
claim x-2 n1
open n2
open n1
list n1 x-2
list n2 x-1`},
		{"two of a kind on a node refuse each other while zones are level: one is claimed", `
			node n1 shut zone=a
			node n2 shut zone=b
			pod x-1 node=n1 zones=1 version=1
			pod x-2 node=n1 zones=1 version=2
			pod x-3 node=n2 zones=1 version=3
			pod x-4 node=n2 zones=1 version=4
		`, `claim x-1 n1
claim x-2 n2
open n1
open n2
list n1 x-1 x-4
list n2 x-2 x-3`},
		{"a wider spread bears more of them", `
			node n1 shut zone=a
			node n2 shut zone=b
			pod x-1 node=n1 zones=2 version=1
			pod x-2 node=n2 zones=2 version=2
			pod x-3 node=n1 zones=2 version=3
			pod x-4 node=n2 zones=2 version=4
		`, `claim x-1 n1
claim x-2 n2
claim x-3 n1
claim x-4 n2
open n1
open n2`},
		{"a pod that its spread does not count may be one more than the spread bears", `
			node n1 shut zone=a
			node n2 shut zone=b
			other n0 zone=a
			pod y-9 bound=n0
			pod x-1 node=n1 zones=1 of=y
			pod x-2 node=n2 zones=1 of=y
		`, `claim x-1 n2
claim x-2 n1
open n2
open n1
list n1 x-2
list n2 x-1`},
		{"with one zone alone nobody is refused for it", `
			node n1 shut zone=a
			node n2 shut zone=a
			pod x-1 node=n1 zones=1 version=1
			pod x-2 node=n2 zones=1 version=2
		`, `claim x-1 n1
claim x-2 n2
open n1
open n2`},
		{"the second is claimed when the first is bound", `
			node n1 open zone=a
			node n2 open zone=b
			pod x-1 node=n1 zones=1 version=1 bound=n1
			pod x-2 node=n1 zones=1 version=2
			pod x-3 node=n2 zones=1 version=3 claim=n2
			pod x-4 node=n2 zones=1 version=4
		`, `claim x-2 n1`},
		{"a claim that was lost is made again, one that is held is not", `
			node n1 open zone=a
			pod x-1 node=n1 version=1
			pod x-2 node=n1 version=2 claim=n1
			pod x-3 node=n1 version=3 claim=n7
		`, `claim x-1 n1`},
		{"a pod that went to the place of another leaves its own to that one", `
			node n1 open zone=a
			node n2 open zone=b
			pod x-1 node=n1 version=1 bound=n2
			pod x-2 node=n2 version=2
		`, `claim x-2 n1
done n2
list n1 x-2
list n2 x-1`},
		{"a step that was cut short after its claims goes on", `
			node n1 shut zone=a
			pod x-1 node=n1 claim=n1
		`, `open n1`},
		{"an open node is done when its pods are there, or when it was waited long enough", `
			node n1 open zone=a
			node n2 open zone=a since=-60
			node n3 open zone=a since=-59
			pod x-1 node=n1 bound=n1
			pod y-1 node=n2 claim=n2
			pod y-2 node=n3 claim=n3
		`, `done n1
done n2`},
		{"the pod of a higher priority is tried first", `
			node n1 shut zone=a
			pod x-1 node=n1 version=1
			pod y-1 node=n1 version=2 priority=9
		`, `claim y-1 n1
claim x-1 n1
open n1`},
	} {
		t.Run(c.name, func(t *testing.T) {
			o := openingOf(t, c.world)
			if diff := gocmp.Diff(c.want, outlineOf(o.Open(openAt))); diff != "" {
				t.Error(diff)
			}
		})
	}
}
