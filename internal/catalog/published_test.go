package catalog

import (
	"bufio"
	"compress/gzip"
	"fmt"
	"maps"
	"os"
	"slices"
	"strconv"
	"strings"
	"testing"

	"kerf.sh/kerf/internal/snapshot"
)

// published is what AWS and Karpenter publish of a type: allocatable under AL2023
// without block device mappings and 7.5 % memory overhead, and the labels.
type published struct {
	resources snapshot.Resources
	labels    map[string]string
}

// readPublished reads the golden file that scripts/catalog writes.
func readPublished(t *testing.T) map[string]published {
	t.Helper()
	f, err := os.Open("testdata/published.tsv.gz")
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	z, err := gzip.NewReader(f)
	if err != nil {
		t.Fatal(err)
	}
	number := func(s string) int64 {
		v, err := strconv.ParseInt(s, 10, 64)
		if err != nil {
			t.Fatal(err)
		}
		return v
	}
	out := map[string]published{}
	lines := bufio.NewScanner(z)
	lines.Scan()
	columns := strings.Split(lines.Text(), "\t")
	for lines.Scan() {
		row := strings.Split(lines.Text(), "\t")
		if len(row) != len(columns) {
			t.Fatalf("%d columns, want %d: %s", len(row), len(columns), lines.Text())
		}
		storage, err := snapshot.ParseQuantity(snapshot.EphemeralStorage, row[4])
		if err != nil {
			t.Fatal(err)
		}
		p := published{labels: map[string]string{}, resources: snapshot.Resources{
			CPU: number(row[1]), Memory: number(row[2]) << 20, Pods: number(row[3]), Ephemeral: storage,
		}}
		for _, e := range strings.Split(row[5], ",") {
			if name, v, ok := strings.Cut(e, "="); ok {
				p.resources = p.resources.With(name, number(v))
			}
		}
		for i, key := range columns[6:] {
			if v := row[6+i]; v != "-" {
				p.labels[key] = v
			}
		}
		out[row[0]] = p
	}
	if err := lines.Err(); err != nil {
		t.Fatal(err)
	}
	return out
}

// differences resolves a catalogue and compares it with what is published.
func differences(t *testing.T, want map[string]published, c *Catalog, class *snapshot.NodeClass, s snapshot.Settings) []string {
	t.Helper()
	want = maps.Clone(want)
	resolved, err := c.Resolve(class, s)
	if err != nil {
		t.Fatal(err)
	}
	var out []string
	for _, r := range resolved {
		name := r.Type.Name
		p, ok := want[name]
		if !ok {
			out = append(out, name+": is not published")
			continue
		}
		delete(want, name)
		for _, resource := range unionOf(r.Allocatable.Names(), p.resources.Names()) {
			if got, want := r.Allocatable.Get(resource), p.resources.Get(resource); got != want {
				out = append(out, fmt.Sprintf("%s: allocatable %s is %d, published %d", name, resource, got, want))
			}
		}
		labels := r.Labels()
		delete(labels, LabelRegion) // not a figure of the type
		for _, key := range unionOf(slices.Collect(maps.Keys(labels)), slices.Collect(maps.Keys(p.labels))) {
			got, have := labels[key]
			want, published := p.labels[key]
			if got != want || have != published {
				out = append(out, fmt.Sprintf("%s: label %s is %q (%v), published %q (%v)", name, key, got, have, want, published))
			}
		}
	}
	for _, name := range slices.Sorted(maps.Keys(want)) {
		out = append(out, name+": is published and not in the table")
	}
	return out
}

func unionOf(a, b []string) []string {
	all := slices.Concat(a, b)
	slices.Sort(all)
	return slices.Compact(all)
}

// TestPublished: allocatable and labels of every type of the embedded table are
// the published ones, to the byte, with no exception.
func TestPublished(t *testing.T) {
	class := &snapshot.NodeClass{Name: "default", AMIFamily: FamilyAL2023}
	diff := differences(t, readPublished(t), Default(), class, snapshot.DefaultSettings())
	if n := len(Default().Types); n != 1363 {
		t.Errorf("the table has %d types, want 1363", n)
	}
	for i, d := range diff {
		if i == 20 {
			t.Fatalf("and %d more", len(diff)-i)
		}
		t.Error(d)
	}
}

// TestPublishedCanFail: maths that is wrong in one place does not pass.
func TestPublishedCanFail(t *testing.T) {
	want := readPublished(t)
	everyType := func(change func(t *InstanceType)) func(*Catalog, *snapshot.NodeClass, *snapshot.Settings) {
		return func(c *Catalog, _ *snapshot.NodeClass, _ *snapshot.Settings) {
			for i := range c.Types {
				change(&c.Types[i])
			}
		}
	}
	for name, mutate := range map[string]func(*Catalog, *snapshot.NodeClass, *snapshot.Settings){
		"arm64 keeps its 64 MiB": everyType(func(t *InstanceType) {
			if t.Arch == ARM64 {
				t.MemoryMiB += armReservedMiB
			}
		}),
		"all network cards count": everyType(func(t *InstanceType) { t.ENI.Interfaces *= max(1, t.ENI.Cards) }),
		"one address too many":    everyType(func(t *InstanceType) { t.ENI.IPv4PerENI++ }),
		"no network figures":      everyType(func(t *InstanceType) { t.ENI.Interfaces = 0 }),
		"no trunk":                everyType(func(t *InstanceType) { t.ENI.Branch = 0 }),
		"no EFA":                  everyType(func(t *InstanceType) { t.ENI.EFAInterfaces = 0 }),
		"no GPU":                  everyType(func(t *InstanceType) { t.GPUs = nil }),
		"no accelerator":          everyType(func(t *InstanceType) { t.Accelerators = nil }),
		"no clock":                everyType(func(t *InstanceType) { t.ClockMHz = 0 }),
		"no encryption":           everyType(func(t *InstanceType) { t.Encryption = "" }),
		"no given labels":         everyType(func(t *InstanceType) { t.Labels = nil }),
		"a little less overhead":  func(_ *Catalog, _ *snapshot.NodeClass, s *snapshot.Settings) { s.VMMemoryOverhead -= 1000 },
		"a reserved interface":    func(_ *Catalog, _ *snapshot.NodeClass, s *snapshot.Settings) { s.ReservedENIs = 1 },
		"Bottlerocket's second device": func(_ *Catalog, k *snapshot.NodeClass, _ *snapshot.Settings) {
			k.BlockDevices = []snapshot.BlockDevice{{DeviceName: "/dev/xvda", Bytes: 4 << 30}}
		},
		"Windows": func(_ *Catalog, k *snapshot.NodeClass, _ *snapshot.Settings) { k.AMIFamily = FamilyWindows2022 },
		"eviction is 101 MiB": func(_ *Catalog, k *snapshot.NodeClass, _ *snapshot.Settings) {
			k.Kubelet.EvictionHard = map[string]string{memoryAvailable: "101Mi"}
		},
		"a type is missing": func(c *Catalog, _ *snapshot.NodeClass, _ *snapshot.Settings) { c.Types = c.Types[1:] },
		"fixed 70m of CPU are reserved": func(_ *Catalog, k *snapshot.NodeClass, _ *snapshot.Settings) {
			k.Kubelet.KubeReserved = map[string]string{"cpu": "70m"}
		},
	} {
		t.Run(name, func(t *testing.T) {
			c := *Default()
			c.Types = slices.Clone(c.Types)
			class := &snapshot.NodeClass{Name: "default", AMIFamily: FamilyAL2023}
			settings := snapshot.DefaultSettings()
			mutate(&c, class, &settings)
			if len(differences(t, want, &c, class, settings)) == 0 {
				t.Error("no difference to what is published")
			}
		})
	}
}
