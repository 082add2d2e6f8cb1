package kube

import (
	"fmt"
	"io"
	"runtime"
	"strings"
	"testing"
)

func BenchmarkReadYAML(b *testing.B) { benchmarkRead(b, podList(2000)) }
func BenchmarkReadJSON(b *testing.B) { benchmarkRead(b, jsonList(2000)) }

func benchmarkRead(b *testing.B, text []byte) {
	b.SetBytes(int64(len(text)))
	b.ReportAllocs()
	for b.Loop() {
		s, _, err := Read([]Source{from("pods", string(text))}, Options{Now: now})
		if err != nil || len(s.Pods) != 2000 {
			b.Fatal(err)
		}
	}
}

// BenchmarkReadCluster reads 50,000 pods and 5,000 nodes as kubectl writes them
// (some 200 MB) and reports what the process holds at most.
func BenchmarkReadCluster(b *testing.B) {
	const pods, nodes = 50_000, 5_000
	one := string(podList(1))
	one = one[strings.Index(one, "\n- ")+1 : strings.Index(one, "kind: List")]
	for b.Loop() {
		source := func(name string, n int, object func(i int) string) Source {
			return Source{Name: name, Open: func() (io.ReadCloser, error) {
				return io.NopCloser(&generated{n: n, object: object}), nil
			}}
		}
		s, _, err := Read([]Source{
			source("pods.yaml", pods, func(i int) string {
				return strings.NewReplacer("app-307", fmt.Sprintf("app-%d", i%400), "c6b5-00000", fmt.Sprintf("c6b5-%05d", i)).Replace(one)
			}),
			source("nodes.yaml", nodes, func(i int) string {
				return fmt.Sprintf("- apiVersion: v1\n  kind: Node\n  metadata:\n    name: ip-10-0-%d.ec2.internal\n    labels:\n      topology.kubernetes.io/zone: us-east-1a\n  status:\n    allocatable:\n      cpu: 3920m\n      memory: 14162Mi\n      pods: \"58\"\n", i)
			}),
		}, Options{Now: now})
		if err != nil || len(s.Pods) != pods || len(s.Nodes) != nodes {
			b.Fatal(err)
		}
		var m runtime.MemStats
		runtime.ReadMemStats(&m)
		b.ReportMetric(float64(m.HeapSys-m.HeapReleased)/(1<<20), "heap-MiB")
		b.ReportMetric(float64(m.Sys)/(1<<20), "sys-MiB")
		runtime.GC()
		runtime.ReadMemStats(&m)
		b.ReportMetric(float64(m.HeapAlloc)/(1<<20), "live-MiB")
		runtime.KeepAlive(s)
	}
}

// generated is a List whose items are made while it is read.
type generated struct {
	n, i   int
	object func(i int) string
	rest   string
	state  int
}

func (g *generated) Read(p []byte) (int, error) {
	for g.rest == "" {
		switch {
		case g.state == 0:
			g.rest, g.state = "apiVersion: v1\nitems:\n", 1
		case g.i < g.n:
			g.rest = g.object(g.i)
			g.i++
		case g.state == 1:
			g.rest, g.state = "kind: List\n", 2
		default:
			return 0, io.EOF
		}
	}
	n := copy(p, g.rest)
	g.rest = g.rest[n:]
	return n, nil
}
