package workload

import (
	"fmt"
	"math"
	"math/rand"
)

// shape is requests: CPU in millicores, memory in MiB.
type shape struct{ cpu, mem int64 }

// weighted is a value and how often it comes up.
type weighted struct {
	value  int64
	weight int
}

// webCPU are the CPU requests of web services, small ones most often.
var webCPU = []weighted{{50, 10}, {100, 24}, {200, 14}, {250, 16}, {500, 16}, {1000, 11}, {2000, 6}, {4000, 3}}

// memorySteps are the memory requests that people write, in MiB.
var memorySteps = []int64{64, 128, 256, 384, 512, 768, 1024, 1536, 2048, 3072, 4096, 6144, 8192, 12288, 16384}

// memCPUShapes are short of memory (first half) and full of it (second half), so
// that a good plan pairs them.
var memCPUShapes = []shape{
	{500, 512}, {1000, 1024}, {2000, 2048}, {4000, 3072},
	{250, 2048}, {250, 4096}, {500, 8192}, {1000, 12288},
}

// Least and most of what diverse pods ask for, and of the memory per CPU.
const (
	minCPU, maxCPU       = 50.0, 4000.0
	minMemory, maxMemory = 64, 16384
	minRatio, maxRatio   = 0.5, 8.0 // GiB per core
)

// generate fills in the deployments. The order of draws is part of the contract of
// a named workload. redraw replaces the fixed shapes of uniform and memcpu.
func generate(w Workload, redraw bool) Workload {
	if w.N < 1 {
		panic(fmt.Sprintf("workload %s: %d pods; at least 1 is needed", w.Name, w.N))
	}
	r := rand.New(rand.NewSource(w.Seed))
	switch w.Kind {
	case Uniform:
		s := shape{1000, 2048}
		if redraw {
			s = diverseShape(r)
		}
		w.add(s, Deployment{Replicas: w.N})
	case MixedWeb:
		shapes := webShapes(r, 60)
		for i, k := range split(r, w.N, len(shapes), 0.8) {
			w.add(shapes[i], Deployment{Replicas: k})
		}
	case MemCPU:
		shapes := append([]shape(nil), memCPUShapes...)
		if redraw {
			jitter(r, shapes)
		}
		for i, k := range split(r, w.N, len(shapes), 0.3) {
			w.add(shapes[i], Deployment{Replicas: k})
		}
	case Diverse:
		seen := make(map[shape]bool, w.N)
		for range w.N {
			s := diverseShape(r)
			for seen[s] {
				s = diverseShape(r)
			}
			seen[s] = true
			w.add(s, Deployment{Replicas: 1})
		}
	case Zonal:
		shapes := webShapes(r, 20)
		for i, k := range split(r, w.N, len(shapes), 0.5) {
			// At most a fiftieth of a deployment on one host.
			w.add(shapes[i], Deployment{Replicas: k, ZoneMaxSkew: 1, HostMaxSkew: max(1, (k+49)/50)})
		}
	case AntiAffinity:
		shapes := webShapes(r, 10)
		for i, k := range split(r, w.N, len(shapes), 0) {
			w.add(shapes[i], Deployment{Replicas: k, HostAntiAffinity: true})
		}
	case Hostname:
		shapes := webShapes(r, 30)
		for i, k := range split(r, w.N, len(shapes), 0.5) {
			w.add(shapes[i], Deployment{Replicas: k, HostMaxSkew: 1 + r.Intn(3)})
		}
	default:
		panic(fmt.Sprintf("workload kind %q is not known; use one of %q", w.Kind, Kinds()))
	}
	return w
}

// add appends a deployment of a shape, unless it has no pods.
func (w *Workload) add(s shape, d Deployment) {
	if d.Replicas == 0 {
		return
	}
	d.Name = fmt.Sprintf("%s-%d", w.Kind, len(w.Deployments))
	d.CPUMilli, d.MemoryMiB = s.cpu, s.mem
	w.Deployments = append(w.Deployments, d)
}

func pick(r *rand.Rand, choices []weighted) int64 {
	total := 0
	for _, c := range choices {
		total += c.weight
	}
	x := r.Intn(total)
	for _, c := range choices {
		if x < c.weight {
			return c.value
		}
		x -= c.weight
	}
	panic("unreachable: x is below the sum of the weights")
}

// webShapes draws the requests of web services: memory per core is log-normal
// around 2.2 GiB, rounded up to a usual step.
func webShapes(r *rand.Rand, n int) []shape {
	out := make([]shape, n)
	for i := range out {
		cpu := pick(r, webCPU)
		mem := float64(cpu) / 1000 * 2.2 * math.Exp(r.NormFloat64()*0.8) * 1024
		out[i] = shape{cpu, int64(maxMemory)}
		for _, step := range memorySteps {
			if mem <= float64(step) {
				out[i].mem = step
				break
			}
		}
	}
	return out
}

// diverseShape draws CPU and memory per core, both log-uniform.
func diverseShape(r *rand.Rand) shape {
	// The conversions keep compilers from fusing multiplication and addition, which
	// would make the draw depend on the architecture.
	logUniform := func(lo, hi float64) float64 {
		return math.Exp(math.Log(lo) + float64(r.Float64()*(math.Log(hi)-math.Log(lo))))
	}
	cpu := logUniform(minCPU, maxCPU)
	ratio := logUniform(minRatio, maxRatio)
	return shape{int64(cpu), max(minMemory, min(maxMemory, int64(cpu/1000*1024*ratio)))}
}

// jitter moves every request by up to a quarter either way, to full 10 millicores
// and 16 MiB.
func jitter(r *rand.Rand, shapes []shape) {
	move := func(v, step int64) int64 {
		return max(step, int64(float64(v)*(0.75+float64(0.5*r.Float64())))/step*step)
	}
	for i, s := range shapes {
		shapes[i] = shape{move(s.cpu, 10), move(s.mem, 16)}
	}
}

// split divides n pods among k deployments whose sizes follow a Zipf law in random
// order; what rounding leaves goes to the first ones, one each.
func split(r *rand.Rand, n, k int, zipf float64) []int {
	weight := make([]float64, k)
	total := 0.0
	for i, p := range r.Perm(k) {
		weight[i] = 1 / math.Pow(float64(p+1), zipf)
		total += weight[i]
	}
	out := make([]int, k)
	left := n
	for i := range weight {
		out[i] = int(float64(n) * weight[i] / total)
		left -= out[i]
	}
	for i := 0; left > 0; i = (i + 1) % k {
		out[i]++
		left--
	}
	return out
}
