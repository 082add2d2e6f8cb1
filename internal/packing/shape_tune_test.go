package packing

import (
	"fmt"
	"kerf.sh/kerf/internal/workload"
	"testing"
)

func TestShape(t *testing.T) {
	cat := tuneCatalog(t)
	w := workload.Random("mixedweb", 1000, 12)
	var deps []tuneDep
	for _, s := range workload.Shapes(w) {
		deps = append(deps, tuneDep{s.Count, s.CPUMilli, s.MemoryMiB})
		fmt.Print(s.CPUMilli, "m/", s.MemoryMiB, "x", s.Count, "  ")
	}
	fmt.Println()
	p := tuneBuild(cat, deps, false, 32)
	r := Solve(p)
	for _, l := range r.Launches {
		tm := &p.Templates[0]
		ty := tm.Types[tm.Offers[l.Chosen].Type]
		u := make([]int64, 3)
		for _, c := range l.Contents {
			for i := range u {
				u[i] += int64(c.Count) * p.Classes[c.Class].Need[i]
			}
		}
		fmt.Printf("%s %.3f cpu %.3f mem %.3f pods %d/%d\n", ty.Name, float64(tm.Offers[l.Chosen].Price)/1e6, float64(u[0])/float64(ty.Alloc[0]), float64(u[1])/float64(ty.Alloc[1]), u[2], ty.Alloc[2])
	}
	fmt.Printf("%+v\n", r.Bounds)
	s := newSolver(p)
	g := s.groupsAt(0)[0]
	c0 := cpuNow()
	defer func() { fmt.Println("cpu", cpuNow()-c0) }()
	ps, lp := s.packColumns(g, g.count, nil, true)
	fmt.Println("columns", float64(g.price(ps))/1e6, lp/1e6, float64(g.price(ps))/float64(r.Bounds[0].Total))
}
func TestCols(t *testing.T) {
	cat := tuneCatalog(t)
	for _, k := range []string{"mixedweb:1000:12", "mixedweb:1000:15", "mixedweb:1000:11", "mixedweb:100:12"} {
		var n, seed int
		fmt.Sscanf(k[len("mixedweb"):], ":%d:%d", &n, &seed)
		w := workload.Random("mixedweb", n, int64(seed))
		var deps []tuneDep
		for _, s := range workload.Shapes(w) {
			deps = append(deps, tuneDep{s.Count, s.CPUMilli, s.MemoryMiB})
		}
		for _, spot := range []bool{false, true} {
			for _, capV := range []int{0, 32} {
				p := tuneBuild(cat, deps, spot, capV)
				r := Solve(p)
				s := newSolver(p)
				g := s.groupsAt(0)[0]
				c0 := cpuNow()
				ps := s.packSmall(g, g.count, effort{work: 2_000_000, limit: NoLimit})
				var pool [][]int32
				for _, q := range ps {
					a := make([]int32, len(g.count))
					for _, cc := range q.cc {
						a[cc.Class] = int32(cc.Count)
					}
					pool = append(pool, a)
				}
				c1 := cpuNow()
				pc, lp := s.packColumns(g, g.count, pool, true)
				fmt.Printf("%s %v %d solve=%.4f small=%.4f cpu=%.1fms cols=%.4f lp=%.4f cpu %.1fms\n", k, spot, capV, float64(r.Price)/float64(r.Bounds[0].Linear), float64(g.price(ps))/float64(r.Bounds[0].Linear), (c1-c0)*1e3, float64(g.price(pc))/float64(r.Bounds[0].Linear), lp/float64(r.Bounds[0].Linear), (cpuNow()-c1)*1e3)
			}
		}
	}
}
