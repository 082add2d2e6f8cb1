package catalog

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"kerf.sh/kerf/internal/snapshot"
)

const (
	notQuantity     = `is not a quantity such as "500m", "1.5Gi" or "2e9"`
	memoryAvailable = "memory.available"
	nodefsAvailable = "nodefs.available"
)

// Keys that the kubelet knows; a key with a typing error would reserve nothing.
var (
	reservedKeys = []string{"cpu", "ephemeral-storage", "memory", "pid"}
	evictionKeys = []string{"containerfs.available", "containerfs.inodesFree", "imagefs.available", "imagefs.inodesFree",
		memoryAvailable, nodefsAvailable, "nodefs.inodesFree", "pid.available"}
)

// setKubelet reads spec.kubelet. evictionSoft has no effect on allocatable.
func (m *classModel) setKubelet(k snapshot.Kubelet) []Problem {
	var problems []Problem
	bad := func(field, value, detail string) {
		problems = append(problems, Problem{"spec.kubelet." + field, value, detail})
	}
	if k.MaxPods != nil {
		if m.maxPods = *k.MaxPods; m.maxPods <= 0 {
			bad("maxPods", fmt.Sprint(m.maxPods), "leaves no room for pods; use 1 or more, or leave it out")
		}
	}
	if k.PodsPerCore != nil {
		if *k.PodsPerCore < 0 {
			bad("podsPerCore", fmt.Sprint(*k.PodsPerCore), "is negative; use 0 for no limit")
		} else if m.family.podsPerCore {
			m.podsPerCore = *k.PodsPerCore
		}
	}
	m.kube = readReservation("kubeReserved", k.KubeReserved, bad)
	m.system = readReservation("systemReserved", k.SystemReserved, bad)

	m.evictMemory = threshold{amount: 100 << 20}
	m.evictStorage = threshold{share: 10 * percentScale}
	for _, key := range slices.Sorted(maps.Keys(k.EvictionHard)) {
		value := k.EvictionHard[key]
		field := "evictionHard[" + key + "]"
		if !slices.Contains(evictionKeys, key) {
			bad(field, value, "is for a signal that the kubelet does not know; use one of "+strings.Join(evictionKeys, ", "))
			continue
		}
		t, err := readThreshold(value)
		switch {
		case err != nil:
			bad(field, value, err.Error())
		case t.amount < 0:
			bad(field, value, "is negative; use 0 or more")
		case key == memoryAvailable:
			m.evictMemory = t
		case key == nodefsAvailable:
			m.evictStorage = t
		}
	}
	return problems
}

// readThreshold reads an amount or a percentage; 100 % switches the threshold off
// (kubelet: eviction signals).
func readThreshold(value string) (threshold, error) {
	t := threshold{written: value}
	var err error
	if !strings.HasSuffix(value, "%") {
		if t.amount, err = snapshot.ParseQuantity(snapshot.Memory, value); err != nil {
			err = errors.New(notQuantity + ` or a percentage such as "5%"`)
		}
		return t, err
	}
	if t.share, err = percent(value); t.share == 100*percentScale {
		t.share = 0
	}
	return t, err
}

func readReservation(field string, given map[string]string, bad func(field, value, detail string)) reservation {
	r := reservation{written: given}
	for _, key := range slices.Sorted(maps.Keys(given)) {
		value := given[key]
		name := field + "[" + key + "]"
		v, err := snapshot.ParseQuantity(key, value)
		switch {
		case !slices.Contains(reservedKeys, key):
			bad(name, value, "reserves a resource that the kubelet does not know; use one of "+strings.Join(reservedKeys, ", "))
		case err != nil:
			bad(name, value, notQuantity)
		case v < 0:
			bad(name, value, "is negative; a reservation is 0 or more")
		case key != "pid":
			r.amount = r.amount.With(key, v)
		}
	}
	return r
}
