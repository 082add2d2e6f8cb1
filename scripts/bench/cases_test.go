package main

import (
	"bytes"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"kerf.sh/kerf/scripts/bench/market"
)

func TestCasesDependOnTheirSeedAlone(t *testing.T) {
	opts := cmp.AllowUnexported(testCase{})
	for _, m := range []mode{smoke, normal, full} {
		a := m.cases(20, 1, m.karpenterLimits())
		if diff := cmp.Diff(a, m.cases(20, 1, m.karpenterLimits()), opts); diff != "" {
			t.Errorf("%s: the same seed gave two lists:\n%s", m, diff)
		}
		b := m.cases(20, 2, m.karpenterLimits())
		if cmp.Equal(a, b, opts) {
			t.Errorf("%s: seeds 1 and 2 gave the same list", m)
		}
		drawn := map[int64]bool{}
		kinds := map[string]int{}
		for _, c := range a {
			if c.drawn && !drawn[c.seed] {
				drawn[c.seed] = true
				kinds[c.kind]++
			}
		}
		if diff := cmp.Diff(map[string]int{"uniform": 5, "mixedweb": 5, "memcpu": 5, "diverse": 5}, kinds); diff != "" {
			t.Errorf("%s: drawn workloads by kind (-want +got):\n%s", m, diff)
		}
	}
}

func TestWhereKarpenterRuns(t *testing.T) {
	open, capped, spot := market.Variant{}, market.Variant{CapVCPU: 32}, market.Variant{Spot: true}
	for _, c := range []struct {
		mode mode
		c    testCase
		want bool
	}{
		{normal, testCase{kind: "mixedweb", pods: 1000, pool: open}, true},
		{normal, testCase{kind: "mixedweb", pods: 1000, pool: spot}, true},
		{normal, testCase{kind: "mixedweb", pods: 5000, pool: open}, false},
		{normal, testCase{kind: "zonal", pods: 1000, pool: open}, true},
		{normal, testCase{kind: "zonal", pods: 1000, pool: capped}, false},
		{normal, testCase{kind: "antiaffinity", pods: 5000, pool: open}, false},
		{full, testCase{kind: "mixedweb", pods: 10000, pool: open}, true},
		{full, testCase{kind: "mixedweb", pods: 10000, pool: capped}, false},
		{full, testCase{kind: "mixedweb", pods: 5000, pool: capped}, true},
		{full, testCase{kind: "diverse", pods: 5000, pool: open}, true},
		{full, testCase{kind: "diverse", pods: 10000, pool: open}, false},
		{full, testCase{kind: "memcpu", pods: 5000, pool: open, drawn: true}, false},
		{smoke, testCase{kind: "memcpu", pods: 1000, pool: capped}, true},
		{smoke, testCase{kind: "uniform", pods: 1000, pool: open}, false},
	} {
		if got := c.mode.karpenterLimits().allows(c.c, c.mode); got != c.want {
			t.Errorf("%s, %+v: Karpenter runs: %v, want %v", c.mode, c.c, got, c.want)
		}
	}
}

func TestFlags(t *testing.T) {
	for _, c := range []struct{ args, want string }{
		{"-smoke -full", "exclude each other"},
		{"extra", `argument "extra" is not understood`},
		{"-drawn -1", "must not be negative"},
		{"-only [", "-only:"},
		{"-karpenter webby=5", `"webby" is not a kind`},
		{"-karpenter mixedweb=many", `"many" is not a number`},
	} {
		_, err := parse(strings.Fields(c.args), &bytes.Buffer{})
		if err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: error %v, want it to say %q", c.args, err, c.want)
		}
	}
	cfg, err := parse([]string{"-full", "-seed", "42", "-karpenter", "uniform=7,diverse=8"}, &bytes.Buffer{})
	if err != nil || cfg.mode != full || cfg.seed != 42 || cfg.karpenter["uniform"] != 7 || cfg.karpenter["mixedweb"] != 10000 {
		t.Errorf("%+v, %v", cfg, err)
	}
	if cfg, err = parse([]string{"-karpenter", "0"}, &bytes.Buffer{}); err != nil || cfg.karpenter.String() != "antiaffinity=0,diverse=0,hostname=0,memcpu=0,mixedweb=0,uniform=0,zonal=0" || cfg.seed == 0 {
		t.Errorf("%+v, %v", cfg, err)
	}
}
