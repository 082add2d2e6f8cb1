package snapshot

import (
	"math/big"
	"strings"
	"testing"

	"pgregory.net/rapid"
)

func TestParseQuantity(t *testing.T) {
	const gi, max = int64(1 << 30), MaxQuantity
	for _, c := range []struct {
		resource, text string
		want           int64
	}{
		{CPU, "3", 3000}, {CPU, "250m", 250}, {CPU, "1.5", 1500}, {CPU, ".5", 500}, {CPU, "1.", 1000}, {CPU, "0.0001", 1},
		{CPU, "100u", 1}, {CPU, "1500000n", 2}, {CPU, "1e-9", 1}, {CPU, "2e3", 2_000_000}, {CPU, "1k", 1_000_000}, {CPU, "0", 0},
		{CPU, "-1", -1000}, {CPU, "-0.5m", -1}, {CPU, "+2", 2000}, {CPU, "0.1", 100}, {CPU, "1Ki", 1_024_000},
		{Memory, "4Gi", 4 * gi}, {Memory, "1.5Gi", 3 * gi / 2}, {Memory, "1536Mi", 3 * gi / 2}, {Memory, "1G", 1_000_000_000},
		{Memory, "128974848", 128974848}, {Memory, "129e6", 129_000_000}, {Memory, "129E6", 129_000_000}, {Memory, "1E", 1_000_000_000_000_000_000},
		{Memory, "128974848000m", 128974848}, {Memory, "100m", 1}, {Memory, "1001m", 2}, {Memory, "1Ti", 1024 * gi}, {Memory, "1Pi", 1 << 50},
		{Memory, "1Ei", 1 << 60}, {Memory, "2Ei", max}, {Memory, "9E", max}, {Memory, "-9E", -max}, {Memory, "0.1Ki", 103},
		{Memory, "1e999999999", max}, {Memory, "1e99999999999999999999", max}, {Memory, "1e-99999999999999999999", 1}, {Memory, "0e999", 0},
		{Memory, "000000000000000000000001", 1}, {Memory, "99999999999999999999", max}, {Memory, "0.0000000000000000000001Ei", 1},
		{CPU, "99999999999999999", max}, {CPU, "999999999999999", 999_999_999_999_999_000},
		{EphemeralStorage, "20Gi", 20 * gi}, {Pods, "110", 110}, {"nvidia.com/gpu", "8", 8}, {"nvidia.com/gpu", "500m", 1},
		{"hugepages-2Mi", "64Mi", 64 << 20}, {Nodes, "10", 10},
	} {
		got, err := ParseQuantity(c.resource, c.text)
		if err != nil || got != c.want {
			t.Errorf("%s %q: %d, %v; want %d", c.resource, c.text, got, err, c.want)
		}
		if Saturated(got) != (got == max || got == -max) {
			t.Errorf("%s %q: saturated is %v", c.resource, c.text, Saturated(got))
		}
	}
}

func TestParseQuantityErrors(t *testing.T) {
	for _, text := range []string{
		"", " ", "1 Gi", "Gi", "-", "+", ".", "-.", "1.2.3", "1gi", "1GI", "1K", "1mi", "1g", "1e", "1E+", "1e1.5", "e5", "0x10", "1_000", "1,5",
		"1Kim", "--1", "+-1", "1-", "½", "1٣", "∞", "NaN", strings.Repeat("1", 300), "1\n", "cpu",
	} {
		_, err := ParseQuantity(Memory, text)
		if err == nil {
			t.Errorf("%q: no error", text)
			continue
		}
		if !strings.Contains(err.Error(), "memory: quantity") || len(err.Error()) > 400 {
			t.Errorf("%q: %v", text, err)
		}
	}
}

func TestFormatQuantity(t *testing.T) {
	for _, c := range []struct {
		resource string
		v        int64
		want     string
	}{
		{CPU, 3000, "3"}, {CPU, 250, "250m"}, {CPU, 1500, "1500m"}, {CPU, 0, "0"}, {CPU, -250, "-250m"},
		{Memory, 4 << 30, "4Gi"}, {Memory, 3 << 29, "1536Mi"}, {Memory, 5_000_000_000, "5G"}, {Memory, 1_000_000_000_000, "1T"},
		{Memory, 128974848, "123Mi"}, {Memory, 1000, "1k"}, {Memory, 1001, "1001"}, {Memory, -(1 << 20), "-1Mi"}, {Memory, 0, "0"},
		{EphemeralStorage, 20 << 30, "20Gi"}, {"hugepages-1Gi", 2 << 30, "2Gi"}, {Pods, 110, "110"}, {"nvidia.com/gpu", 1024, "1024"}, {Pods, 1000, "1000"},
	} {
		if got := FormatQuantity(c.resource, c.v); got != c.want {
			t.Errorf("%s %d: %q, want %q", c.resource, c.v, got, c.want)
		}
	}
	got := Resources{CPU: 1500, Memory: 2 << 30, Pods: 3, Extended: map[string]int64{"nvidia.com/gpu": 1, "a.b/c": 0}}.String()
	if want := "cpu 1500m, memory 2Gi, nvidia.com/gpu 1, pods 3"; got != want {
		t.Errorf("%q, want %q", got, want)
	}
}

// quantityText draws what people and machines write.
var quantityText = rapid.Custom(func(t *rapid.T) string {
	return rapid.StringMatching(`[-+]?[0-9]{0,22}(\.[0-9]{0,12})?`).Draw(t, "number") +
		rapid.SampledFrom([]string{"", "n", "u", "m", "k", "M", "G", "T", "P", "E", "Ki", "Mi", "Gi", "Ti", "Pi", "Ei", "e3", "E-4", "e+12", "e30"}).Draw(t, "suffix")
})

var quantityResource = rapid.SampledFrom([]string{CPU, Memory, "nvidia.com/gpu", "hugepages-2Mi"})

// What ParseQuantity returns, FormatQuantity writes so that it is read back.
func TestQuantityRoundTrip(t *testing.T) {
	roundTrip := func(format func(string, int64) string, resource string, v int64) bool {
		back, err := ParseQuantity(resource, format(resource, v))
		return err == nil && back == v
	}
	values := rapid.OneOf(
		rapid.Int64Range(-MaxQuantity, MaxQuantity),
		rapid.Int64Range(0, 5000),
		rapid.Map(rapid.Int64Range(0, 1<<20), func(v int64) int64 { return v << 20 }),
		rapid.Map(rapid.Int64Range(0, 1<<20), func(v int64) int64 { return v * 1_000_000 }),
	)
	rapid.Check(t, func(t *rapid.T) {
		resource, v := quantityResource.Draw(t, "resource"), values.Draw(t, "value")
		if !roundTrip(FormatQuantity, resource, v) {
			t.Fatalf("%s %d: written %q", resource, v, FormatQuantity(resource, v))
		}
	})
	mutant := func(resource string, v int64) string { // rounds to Mi, as many tools do
		if InBytes(resource) && v > 1<<20 {
			return FormatQuantity(resource, v>>20<<20)
		}
		return FormatQuantity(resource, v)
	}
	for i := range 1000 {
		if !roundTrip(mutant, Memory, values.Example(i)) {
			return
		}
	}
	t.Error("a rounding format is read back all the same")
}

// twin reads a quantity the slow way, as an exact fraction.
func twin(resource, text string) (int64, bool) {
	factors := map[string]string{"n": "1e-9", "u": "1e-6", "m": "1e-3", "k": "1e3", "M": "1e6", "G": "1e9", "T": "1e12", "P": "1e15", "E": "1e18"}
	factor := new(big.Rat).SetInt64(1)
	if i := strings.IndexAny(text, "numkMGTPEKi"); i >= 0 && !strings.ContainsAny(text[i:], "0123456789") {
		switch suffix := text[i:]; {
		case strings.HasSuffix(suffix, "i"):
			factor.SetInt64(1 << (10 * (1 + strings.Index("KMGTPE", suffix[:1]))))
		default:
			factor.SetString(factors[suffix])
		}
		text = text[:i]
	}
	text = strings.TrimPrefix(text, "+")
	if strings.Trim(text, "+-.") == "" || !strings.ContainsAny(strings.Split(strings.ToLower(text), "e")[0], "0123456789") {
		return 0, false
	}
	r, ok := new(big.Rat).SetString(text)
	if !ok {
		return 0, false
	}
	r.Mul(r, factor)
	if resource == CPU {
		r.Mul(r, big.NewRat(1000, 1))
	}
	q, rest := new(big.Int).QuoRem(r.Num(), r.Denom(), new(big.Int))
	q.Add(q, big.NewInt(int64(rest.Sign())))
	switch {
	case q.Cmp(big.NewInt(MaxQuantity)) > 0:
		return MaxQuantity, true
	case q.Cmp(big.NewInt(-MaxQuantity)) < 0:
		return -MaxQuantity, true
	}
	return q.Int64(), true
}

func TestParseQuantityAgainstFractions(t *testing.T) {
	agrees := func(parse func(string, string) (int64, error), resource, text string) bool {
		want, ok := twin(resource, text)
		got, err := parse(resource, text)
		return (err == nil) == ok && (!ok || got == want)
	}
	rapid.Check(t, func(t *rapid.T) {
		resource, text := quantityResource.Draw(t, "resource"), quantityText.Draw(t, "text")
		if !agrees(ParseQuantity, resource, text) {
			got, err := ParseQuantity(resource, text)
			want, ok := twin(resource, text)
			t.Fatalf("%s %q: %d, %v; want %d, %v", resource, text, got, err, want, ok)
		}
	})
	mutants := map[string]func(string, string) (int64, error){
		"kilo is binary": func(r, s string) (int64, error) { return ParseQuantity(r, strings.Replace(s, "k", "Ki", 1)) },
		"rounds down": func(r, s string) (int64, error) {
			v, err := ParseQuantity(r, s)
			if strings.ContainsAny(s, "num.") && v > 0 {
				v--
			}
			return v, err
		},
		"does not saturate": func(r, s string) (int64, error) {
			v, err := ParseQuantity(r, s)
			if Saturated(v) {
				v *= 2
			}
			return v, err
		},
	}
	for name, mutant := range mutants {
		found := false
		for i := range 1000 {
			found = found || !agrees(mutant, CPU, quantityText.Example(i))
		}
		if !found {
			t.Errorf("%s: not noticed", name)
		}
	}
}

func FuzzParseQuantity(f *testing.F) {
	for _, s := range []string{"1", "250m", "1.5Gi", "-1e9", "1e99999999999", "9E", "..", "0.0000000000001n"} {
		f.Add(CPU, s)
		f.Add(Memory, s)
	}
	f.Fuzz(func(t *testing.T, resource, text string) {
		v, err := ParseQuantity(resource, text)
		if err != nil && v != 0 || v > MaxQuantity || v < -MaxQuantity {
			t.Errorf("%s %q: %d, %v", resource, text, v, err)
		}
	})
}

func BenchmarkParseQuantity(b *testing.B) {
	for _, text := range []string{"250m", "512Mi", "1.5Gi"} {
		b.Run(text, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				if _, err := ParseQuantity(Memory, text); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}
