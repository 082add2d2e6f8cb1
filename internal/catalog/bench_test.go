package catalog

import (
	"testing"

	"kerf.sh/kerf/internal/snapshot"
)

// BenchmarkDecodeTable counts in every cold start.
func BenchmarkDecodeTable(b *testing.B) {
	b.ReportAllocs()
	data, err := tables.ReadFile(defaultTable + ".table")
	if err != nil {
		b.Fatal(err)
	}
	for b.Loop() {
		if _, err := decodeTable(data); err != nil {
			b.Fatal(err)
		}
	}
}

// BenchmarkResolve counts in every plan, once for each NodeClass.
func BenchmarkResolve(b *testing.B) {
	c := Default()
	class := &snapshot.NodeClass{Name: "default", AMIAlias: "al2023@latest"}
	b.ReportAllocs()
	for b.Loop() {
		if _, err := c.Resolve(class, snapshot.DefaultSettings()); err != nil {
			b.Fatal(err)
		}
	}
}

// BenchmarkParse reads a catalogue file of every type.
func BenchmarkParse(b *testing.B) {
	data, err := Default().Format()
	if err != nil {
		b.Fatal(err)
	}
	b.ReportAllocs()
	b.SetBytes(int64(len(data)))
	for b.Loop() {
		if _, err := Parse(data); err != nil {
			b.Fatal(err)
		}
	}
}
