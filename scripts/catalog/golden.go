package main

import (
	"bytes"
	"compress/gzip"
	"fmt"
	"maps"
	"slices"
	"strings"
)

// goldenFile packs what is published about each type, for the proof that our
// maths gives the same: tab-separated, first line the columns, then one line a
// type: name, cpu (millicores), memory (MiB), pods, ephemeral storage, extended
// resources (name=count, comma-separated) and one column for each label, "-" when
// the type does not have it.
func goldenFile(f *facts) ([]byte, error) {
	keys := map[string]bool{}
	for _, t := range f.InstanceTypes {
		for k := range t.Labels {
			keys[k] = true
		}
	}
	labels := slices.Sorted(maps.Keys(keys))
	types := slices.SortedFunc(slices.Values(f.InstanceTypes), func(a, b factType) int { return strings.Compare(a.Name, b.Name) })

	var out bytes.Buffer
	z, err := gzip.NewWriterLevel(&out, gzip.BestCompression)
	if err != nil {
		return nil, err
	}
	columns := append([]string{"name", "cpu", "memory", "pods", "ephemeral-storage", "extended"}, labels...)
	fmt.Fprintln(z, strings.Join(columns, "\t"))
	for _, t := range types {
		a := t.Allocatable
		var extended []string
		for _, name := range slices.Sorted(maps.Keys(a.Extended)) {
			extended = append(extended, name+"="+a.Extended[name])
		}
		row := []string{t.Name, fmt.Sprint(a.CPUMilli), fmt.Sprint(a.MemoryMiB), fmt.Sprint(a.Pods), a.Ephemeral, strings.Join(extended, ",")}
		for _, k := range labels {
			v, ok := t.Labels[k]
			if !ok {
				v = "-"
			}
			row = append(row, v)
		}
		fmt.Fprintln(z, strings.Join(row, "\t"))
	}
	if err := z.Close(); err != nil {
		return nil, err
	}
	return out.Bytes(), nil
}
