package packing

import (
	"fmt"
	"kerf.sh/kerf/internal/workload"
	"os"
	"strconv"
	"strings"
	"testing"
)

func TestRnd(t *testing.T) {
	cat := tuneCatalog(t)
	for _, spec := range strings.Fields(os.Getenv("TUNE")) {
		f := strings.Split(spec, ":")
		n, _ := strconv.Atoi(f[1])
		seed, _ := strconv.ParseInt(f[2], 10, 64)
		w := workload.Random(f[0], n, seed)
		var deps []tuneDep
		for _, s := range workload.Shapes(w) {
			deps = append(deps, tuneDep{s.Count, s.CPUMilli, s.MemoryMiB})
		}
		for _, spot := range []bool{false, true} {
			for _, capV := range []int{0, 32} {
				p := tuneBuild(cat, deps, spot, capV)
				c := cpuNow()
				r := Solve(p)
				e := cpuNow() - c
				b, lin := int64(0), int64(0)
				for _, x := range r.Bounds {
					b += x.Total
					lin += x.Linear
				}
				worst := int64(0)
				for _, l := range r.Launches {
					worst += l.Worst
				}
				flag := ""
				lim := 1.01
				if n < 1000 {
					lim = 1.03
				}
				if f[0] == "diverse" {
					lim = 1.02
				}
				if float64(r.Price)/float64(b) > lim || float64(worst)/float64(b) > 1.2 {
					flag = "  <====="
				}
				fmt.Printf("%-26s spot=%-5v cap=%-2d cpu=%.1fms ratio=%.4f worst=%.3f n=%d classes=%d exh=%v%s\n", spec, spot, capV, e*1e3, float64(r.Price)/float64(b), float64(worst)/float64(b), len(r.Launches), len(p.Classes), r.Exhausted, flag)
			}
		}
	}
}
