package packing

import (
	"fmt"
	"pgregory.net/rapid"
	"testing"
	"time"
)

func TestStress(t *testing.T) {
	worst := time.Duration(0)
	rapid.Check(t, func(t *rapid.T) {
		p := draw(t, size{types: 40, classes: 40, perClass: 100, nodes: 10, templates: 4, limits: true, conflicts: true, minValues: true, weights: true, counted: true})
		p.Work = 4_000_000
		t0 := time.Now()
		r := Solve(p)
		if e := time.Since(t0); e > worst {
			worst = e
			fmt.Println(e, len(r.Launches), len(r.Unplaced), r.Exhausted)
		}
		if err := verify(p, r); err != nil {
			t.Fatalf("%v\n%+v\n", err, r.Bounds)
		}
	})
}
