package workload

import (
	stdcmp "cmp"
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"kerf.sh/kerf/internal/snapshot"
)

// published are the checksums of the JSON form of the named workloads. Published
// figures refer to these contents: a change here is a change of the benchmark.
var published = map[string]string{
	"uniform-100":        "a062b4ca87a247b53e0842a65fa4e240b64602c2018f28039e015c63e5e2f2bc",
	"uniform-1000":       "464c841eba4c9bfc98c8cd556722e51b3ac021863e2f3c020fdecf27077abd64",
	"uniform-5000":       "4c2cf6e9c4f5a2b021df740e3a1a265baad9d0e663666b06119f013111f85f07",
	"uniform-10000":      "d15003d5958b5f81412ac1c460a20fd0eb3ab557257eee236fa30dba864e5fc9",
	"uniform-50000":      "0ee08ff851b292815d7ef4cbd1ce8c8ad687871b3694ad04abdbd12def958098",
	"mixedweb-100":       "1c323aecc226bb2d2c50374dff010e11c34635a4336860c6309620ae095192ac",
	"mixedweb-1000":      "28963466927bc4da63bd56e075487f7615c33c3e9a9eb5f0b0f540e9a1f47f70",
	"mixedweb-5000":      "91cfb21c1a60db6f912fbccb0078db2ca95f9a8035258438f50efefcecc77c00",
	"mixedweb-10000":     "be2bedad3639d2a1dd456406dce13c85fe240a9fef5d360e2d8f733125537634",
	"mixedweb-50000":     "6428d30eb7bb4fb845d2edc183202a1849565153abb4b4c22a28ab9f9ea10679",
	"memcpu-100":         "3641a8e4f0bccac65376cae24af22f93d0930919709c3e22a25a1b54f434507f",
	"memcpu-1000":        "85fdd5a3d18decd237530f3bd8388ef3b9cabdd01c922ab53d179a35aefa5cc3",
	"memcpu-5000":        "eb1ddb500e89e7e77e15b2146d45b6ae29dbcbb4a72b413054ec0cd32df17ab9",
	"memcpu-10000":       "43aa59bc713304cb7d743888a6e6ea4cc34aed8091cf183980e14d97c138521c",
	"memcpu-50000":       "e86058cc4042417c4d3ec3b4f2e3629f22d246bf7044dd8d5453192449e1066b",
	"diverse-100":        "791da159bb8f0009a203baa252c610a114e871930277a583e91565113488b2a9",
	"diverse-1000":       "14d9561b438115074a8e1f45728d9480cdcddb302e7d21bbc2575da2488fce8b",
	"diverse-5000":       "42c5d294a0a7a8b3344aca169bf5076b59a737745599e47639ee05f12f789ce8",
	"diverse-10000":      "830b841b74d5a0352d71c6f192b818dcab786b7f2444db487bff73d2cc95fddc",
	"diverse-50000":      "6e52cf5ee9dbf61c702d290c4ff1cef4f37eae0a1d9933de80808d7d1aa9e56a",
	"zonal-100":          "555f869e13c2fc9854411a64e42c8ab3508961f90e76a7a270893491fa7dd83a",
	"zonal-1000":         "a96a9d2d97d5d02e94121d95beb93b13b9e5d5817f75dc10b450cec51f06a67e",
	"zonal-5000":         "f348ae4e5c191c19eadc627109c350b8390d0e5f483cd5f9403153ad228c329f",
	"zonal-10000":        "95ce005e5f71a392efa6fd71581d1d5d755bbec92ff7d16fc8e7f0a0172bb1fc",
	"zonal-50000":        "68550a124d00cdaa2aca9708d968c811ea3dd77a796f1e3c661e00214962cc39",
	"antiaffinity-100":   "874a91d8b43916635dcd44444c27d6657a0c7d2a6ae492579c5ac433b049c5c0",
	"antiaffinity-1000":  "c6416cd74e79e2d6e944b7ed60d6cc93b35b87363545c6acc5e50efef76a3f7b",
	"antiaffinity-5000":  "b6ebcc0dd6e3799fb4e3adb4f975bc2d691d458c96004adb4ba4d474c4d2a6ac",
	"antiaffinity-10000": "fa1327598a4a3bfe97f5d38bed8c05fbf5109de370481b23b7cd1db75e9233a6",
	"antiaffinity-50000": "19b15d14802e68047dae2e8216bd81eeda32b342efaf971ffc2b382af5e60faa",
	"hostname-100":       "fea0658dde670d326ab22dff273d8daf6c42dc83ffe47333471964635d1536a8",
	"hostname-1000":      "7235ed39d7bf36cbf073143e649eba8aa167d1eae67edf7e267513ad32b8f9c9",
	"hostname-5000":      "4915e1f0ea9bfe3b9f228c3aacbf42c9fffa96562c6a3f30843635bbdcd25e21",
	"hostname-10000":     "882570e0a65db4d14ce2e1a9d4c39ccce6c3646451aa5cf2ca28e90871dd8caa",
	"hostname-50000":     "3ac51c53db3c34b87683339014ef8c2ca0dc4531eaf9a56deb19029ba7daec6a",
}

func sum(t testing.TB, w Workload) string {
	t.Helper()
	b, err := json.Marshal(w)
	if err != nil {
		t.Fatal(err)
	}
	return fmt.Sprintf("%x", sha256.Sum256(b))
}

func TestNamedWorkloadsNeverChange(t *testing.T) {
	seen := 0
	for _, kind := range Kinds() {
		for _, n := range Sizes() {
			w := Named(kind, n)
			want, ok := published[w.Name]
			if !ok {
				t.Errorf("%s has no published checksum", w.Name)
				continue
			}
			seen++
			if got := sum(t, w); got != want {
				t.Errorf("%s: sha256 of the content is %s, published as %s", w.Name, got, want)
			}
		}
	}
	if seen != len(published) {
		t.Errorf("%d workloads were compared, %d are published", seen, len(published))
	}
}

func drawWorkload(t *rapid.T) Workload {
	kind := rapid.SampledFrom(Kinds()).Draw(t, "kind")
	n := rapid.IntRange(1, 700).Draw(t, "n")
	if rapid.Bool().Draw(t, "named") {
		return Named(kind, n)
	}
	return Random(kind, n, rapid.Int64().Draw(t, "seed"))
}

// Every workload has exactly the pods it was asked for, with positive requests, and
// the rules that its kind stands for.
func TestEveryWorkloadIsWhole(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		w := drawWorkload(t)
		total, distinct := 0, map[shape]bool{}
		for i, d := range w.Deployments {
			if d.Replicas < 1 || d.CPUMilli < 10 || d.MemoryMiB < 16 || d.MemoryMiB > 20<<10 || d.CPUMilli > 5000 {
				t.Fatalf("%s: deployment %+v is out of range", w.Name, d)
			}
			if want := fmt.Sprintf("%s-%d", w.Kind, i); d.Name != want {
				t.Fatalf("%s: deployment %d is called %s, want %s", w.Name, i, d.Name, want)
			}
			if got, want := d.ZoneMaxSkew > 0 && d.HostMaxSkew > 0, w.Kind == Zonal; got != want {
				t.Fatalf("%s: spread is %v, want %v", w.Name, got, want)
			}
			if got, want := d.HostMaxSkew > 0, w.Kind == Zonal || w.Kind == Hostname; got != want || (w.Kind == Hostname && d.HostMaxSkew > 3) {
				t.Fatalf("%s: spread over hosts is %d", w.Name, d.HostMaxSkew)
			}
			if got, want := d.HostAntiAffinity, w.Kind == AntiAffinity; got != want {
				t.Fatalf("%s: anti-affinity is %v, want %v", w.Name, got, want)
			}
			total += d.Replicas
			distinct[shape{d.CPUMilli, d.MemoryMiB}] = true
		}
		if total != w.N {
			t.Fatalf("%s has %d pods, want %d", w.Name, total, w.N)
		}
		if w.Kind == Diverse && len(distinct) != w.N {
			t.Fatalf("%s has %d shapes, want one for each of %d pods", w.Name, len(distinct), w.N)
		}
		if got, want := w.Constrained(), w.Kind == Zonal || w.Kind == AntiAffinity || w.Kind == Hostname; got != want {
			t.Fatalf("%s: Constrained is %v, want %v", w.Name, got, want)
		}
	})
}

// Shapes lose no pod and no unit of any resource.
func TestShapesAddUpToThePods(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		w := drawWorkload(t)
		var want, got snapshot.Resources
		for _, p := range w.Pods() {
			want = want.Add(p.Spec.Requests)
		}
		shapes := Shapes(w)
		for _, s := range shapes {
			n := int64(s.Count)
			got = got.Add(snapshot.Resources{CPU: s.CPUMilli * n, Memory: s.MemoryMiB * mib * n, Pods: n})
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Fatalf("%s: sums of pods (-) and shapes (+) differ:\n%s", w.Name, diff)
		}
		// Equal neighbours count as out of order, so this asks for distinct ones too.
		strictly := func(a, b Shape) int {
			return stdcmp.Or(stdcmp.Compare(b.CPUMilli, a.CPUMilli), stdcmp.Compare(b.MemoryMiB, a.MemoryMiB), -1)
		}
		if !slices.IsSortedFunc(shapes, strictly) {
			t.Fatalf("%s: shapes are not sorted or not distinct: %v", w.Name, shapes)
		}
	})
}

func TestRandomDependsOnItsSeedAlone(t *testing.T) {
	for _, kind := range Kinds() {
		a, again, b := Random(kind, 500, 1), Random(kind, 500, 1), Random(kind, 500, 2)
		if diff := cmp.Diff(a, again); diff != "" {
			t.Errorf("%s: the same seed gave two workloads:\n%s", kind, diff)
		}
		if cmp.Equal(Shapes(a), Shapes(b)) {
			t.Errorf("%s: seeds 1 and 2 gave the same shapes", kind)
		}
		if cmp.Equal(Shapes(a), Shapes(Named(kind, 500))) {
			t.Errorf("%s: seed 1 gave the shapes of the named workload", kind)
		}
	}
}

func TestALargerDiverseBeginsWithTheSmallerOne(t *testing.T) {
	small, large := Named(Diverse, 100), Named(Diverse, 1000)
	if diff := cmp.Diff(small.Deployments, large.Deployments[:100]); diff != "" {
		t.Error(diff)
	}
}

func TestPodsAreSortedPendingAndShareNothing(t *testing.T) {
	for _, kind := range Kinds() {
		pods := Named(kind, 100).Pods()
		if len(pods) != 100 {
			t.Fatalf("%s: %d pods, want 100", kind, len(pods))
		}
		byName := func(a, b snapshot.Pod) int { return stdcmp.Or(stdcmp.Compare(a.Name, b.Name), -1) }
		if !slices.IsSortedFunc(pods, byName) {
			t.Errorf("%s: pods are not sorted by name, or a name comes twice", kind)
		}
		owners := map[*snapshot.Owner]bool{}
		for i := range pods {
			p := &pods[i]
			if p.NodeName != "" || p.Phase != "Pending" || p.Scheduled.Status != "False" || p.Scheduled.Reason != "Unschedulable" {
				t.Errorf("%s: pod %s is not pending and unschedulable: %+v", kind, p.Name, p)
			}
			if !strings.HasPrefix(p.Name, p.Labels["app"]+"-") {
				t.Errorf("%s: pod %s carries the label of %s", kind, p.Name, p.Labels["app"])
			}
			p.Labels["pod"] = p.Name
			for _, s := range p.Spec.Spread {
				s.Selector.MatchLabels["pod"] = p.Name
			}
			for _, a := range p.Spec.Anti {
				a.Selector.MatchLabels["pod"] = p.Name
			}
			if owners[p.Owner] {
				t.Errorf("%s: two pods share an owner value", kind)
			}
			owners[p.Owner] = true
		}
		for _, p := range pods {
			maps := []map[string]string{p.Labels}
			for _, s := range p.Spec.Spread {
				maps = append(maps, s.Selector.MatchLabels)
			}
			for _, a := range p.Spec.Anti {
				maps = append(maps, a.Selector.MatchLabels)
			}
			for _, m := range maps {
				if m["pod"] != p.Name {
					t.Fatalf("%s: pods %s and %s share a map", kind, p.Name, m["pod"])
				}
			}
		}
	}
}

func TestPoolVariants(t *testing.T) {
	find := func(p snapshot.NodePool, key string) *snapshot.SelectorRequirement {
		i := slices.IndexFunc(p.Requirements, func(r snapshot.SelectorRequirement) bool { return r.Key == key })
		if i < 0 {
			return nil
		}
		return &p.Requirements[i]
	}
	open, capped := Pool(false, 0), Pool(true, 32)
	if r := find(open, "karpenter.k8s.aws/instance-cpu"); r != nil {
		t.Errorf("the open pool limits the size of a node: %+v", r)
	}
	want := &snapshot.SelectorRequirement{Key: "karpenter.k8s.aws/instance-cpu", Operator: "Lt", Values: []string{"33"}}
	if diff := cmp.Diff(want, find(capped, "karpenter.k8s.aws/instance-cpu")); diff != "" {
		t.Error(diff)
	}
	for _, c := range []struct {
		pool snapshot.NodePool
		want []string
	}{{open, []string{"on-demand"}}, {capped, []string{"on-demand", "spot"}}} {
		if diff := cmp.Diff(c.want, find(c.pool, "karpenter.sh/capacity-type").Values); diff != "" {
			t.Error(diff)
		}
	}
}

func TestUnknownKindsAndSizesPanicWithWhatIsWrong(t *testing.T) {
	for _, c := range []struct {
		kind string
		n    int
		want string
	}{{"webby", 10, `"webby" is not known`}, {Uniform, 0, "at least 1"}} {
		func() {
			defer func() {
				if got := fmt.Sprint(recover()); !strings.Contains(got, c.want) {
					t.Errorf("Named(%q, %d) panics with %q, want it to say %q", c.kind, c.n, got, c.want)
				}
			}()
			Named(c.kind, c.n)
		}()
	}
}

func TestSpotPricesAreFixedAndWithinTheirBand(t *testing.T) {
	// From the definition of FNV-1a: the hash modulo 10,001 is 8,033.
	if got := SpotPrice("m7g.xlarge", "us-east-1a", 163_200); got != 70_230 {
		t.Errorf("spot price of m7g.xlarge in us-east-1a is %d, want %d", got, 70_230)
	}
	rapid.Check(t, func(t *rapid.T) {
		onDemand := rapid.Int64Range(1_000, 500_000_000).Draw(t, "on-demand")
		p := SpotPrice(rapid.String().Draw(t, "type"), rapid.String().Draw(t, "zone"), onDemand)
		if p*100 < onDemand*35-50 || p*100 > onDemand*45+50 {
			t.Fatalf("spot price %d is not 35 to 45 %% of %d", p, onDemand)
		}
	})
}
