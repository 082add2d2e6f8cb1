package config_test

import (
	"errors"
	"log/slog"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"kerf.sh/kerf/internal/config"
	"kerf.sh/kerf/internal/snapshot"
)

func settings(change func(*snapshot.Settings)) config.Config {
	c := config.Default()
	change(&c.Settings)
	return c
}

func cluster(name string) config.Config {
	c := config.Default()
	c.Cluster = name
	return c
}

func functions(change func(*config.Functions)) config.Config {
	c := config.Default()
	change(&c.Functions)
	return c
}

func TestLoad(t *testing.T) {
	for _, tc := range []struct {
		name string
		env  []string
		want config.Config
	}{
		{"nothing set", nil, config.Default()},
		{"other people's variables", []string{"PATH=/bin", "METRICS_PORT=8080", "AWS_REGION=eu-west-1", "_=x", "broken"}, config.Default()},
		{"an empty variable is not set", []string{"RESERVED_ENIS=", "KERF_WORK= "}, config.Default()},
		{"cluster", []string{"CLUSTER_NAME=prod"}, cluster("prod")},
		{"reserved ENIs", []string{"RESERVED_ENIS=1"}, settings(func(s *snapshot.Settings) { s.ReservedENIs = 1 })},
		{"overhead is exact", []string{"VM_MEMORY_OVERHEAD_PERCENT=0.0625"}, settings(func(s *snapshot.Settings) { s.VMMemoryOverhead = 62_500 })},
		{"no overhead", []string{"VM_MEMORY_OVERHEAD_PERCENT=0"}, settings(func(s *snapshot.Settings) { s.VMMemoryOverhead = 0 })},
		{"policies", []string{"MIN_VALUES_POLICY=BestEffort", "PREFERENCE_POLICY=Ignore"},
			settings(func(s *snapshot.Settings) { s.MinValuesBestEffort, s.IgnorePreferences = true, true })},
		{"gates, a partial list", []string{"FEATURE_GATES=ReservedCapacity=false, NodeRepair=false"},
			settings(func(s *snapshot.Settings) { s.ReservedCapacity = false })},
		{"ours", []string{"KERF_COST_PER_NODE=0.01", "KERF_OPTION_PRICE_CAP=120", "KERF_WORK=1000"},
			settings(func(s *snapshot.Settings) { s.CostPerNode, s.OptionPriceCap, s.Work = 10_000, 120, 1000 })},
		{"functions", []string{"KERF_SWEEP_INTERVAL=1m", "KERF_REGISTER_INTERVAL=2s", "BATCH_IDLE_DURATION=1500ms", "BATCH_MAX_DURATION=1m30s", "LOG_LEVEL=debug"},
			functions(func(f *config.Functions) {
				*f = config.Functions{MassRemovalPercent: 50, SweepInterval: time.Minute, RegisterInterval: 2 * time.Second, BatchIdle: 1500 * time.Millisecond, BatchMax: 90 * time.Second, LogLevel: slog.LevelDebug}
			})},
		{"what the stack made", []string{"KERF_TABLE=kerf-prod", "KERF_TICK_QUEUE=https://sqs.us-east-1.amazonaws.com/1/ticks", "KERF_WORK_QUEUE=http://localhost:4566/000000000000/work", "KERF_CATALOG_FUNCTION=arn:aws:lambda:x"},
			config.Config{Settings: config.Default().Settings, Functions: config.Default().Functions, Stack: config.Stack{Table: "kerf-prod",
				TickQueue: "https://sqs.us-east-1.amazonaws.com/1/ticks", WorkQueue: "http://localhost:4566/000000000000/work", CatalogFunction: "arn:aws:lambda:x"}}},
	} {
		t.Run(tc.name, func(t *testing.T) {
			got, err := config.Load(tc.env)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("(-want +got)\n%s", diff)
			}
		})
	}
}

func TestLoadReportsEverythingAtOnce(t *testing.T) {
	_, err := config.Load([]string{
		"RESERVED_ENIS=-1", "VM_MEMORY_OVERHEAD_PERCENT=7.5", "MIN_VALUES_POLICY=strict", "KERF_WRK=1",
		"KERF_COST_PER_NODE=0.0000001", "KERF_OPTION_PRICE_CAP=99", "KERF_WORK=1e6", "KERF_SWEEP_INTERVAL=5s", "KERF_REGISTER_INTERVAL=2500ms", "BATCH_MAX_DURATION=10", "LOG_LEVEL=INFO", "KERF_TICK_QUEUE=ticks", "FEATURE_GATES=Nope=true,ReservedCapacity=maybe",
	})
	want := []string{
		`environment: BATCH_MAX_DURATION="10": want a duration from 0s to 5m0s, like 10s`,
		`environment: FEATURE_GATES="Nope=true,ReservedCapacity=maybe": gate "Nope" is not known; known are CapacityBuffer, NodeOverlay, NodeRepair, ReservedCapacity, SpotToSpotConsolidation, StaticCapacity`,
		`gate "ReservedCapacity=maybe": want Gate=true or Gate=false`,
		`environment: KERF_COST_PER_NODE="0.0000001": has more than 6 decimals`,
		`environment: KERF_OPTION_PRICE_CAP="99": is out of bounds: want 100 to 1000`,
		`environment: KERF_REGISTER_INTERVAL="2500ms": want a multiple of 1s`,
		`environment: KERF_SWEEP_INTERVAL="5s": is out of bounds: want 6s to 1m0s`,
		`environment: KERF_TICK_QUEUE="ticks": want the URL of a queue`,
		`environment: KERF_WORK="1e6": want a whole number from 1000 to 1000000000`,
		`environment: setting "KERF_WRK" is not known; did you mean KERF_WORK?`,
		`environment: LOG_LEVEL="INFO": want debug, info, warn or error`,
		`environment: MIN_VALUES_POLICY="strict": want Strict or BestEffort`,
		`environment: RESERVED_ENIS="-1": is out of bounds: want 0 to 50`,
		`environment: VM_MEMORY_OVERHEAD_PERCENT="7.5": is out of bounds: want 0 to 0.999999`,
	}
	if err == nil {
		t.Fatal("no error")
	}
	if diff := cmp.Diff(want, strings.Split(err.Error(), "\n")); diff != "" {
		t.Errorf("(-want +got)\n%s", diff)
	}
}

func TestNotSupportedIsToldApart(t *testing.T) {
	for value, want := range map[string]bool{"SpotToSpotConsolidation=false": false, "NodeRepair=true": false, "SpotToSpotConsolidation=true": false, "NodeOverlay=true": false, "ReservedCapacity=x": false} {
		_, err := config.Load([]string{"FEATURE_GATES=" + value})
		if got := errors.Is(err, config.ErrNotSupported); got != want {
			t.Errorf("FEATURE_GATES=%s: not supported = %v (%v), want %v", value, got, err, want)
		}
	}
	_, err := config.Apply(config.Default(), []config.Pair{{Key: "INTERRUPTION_QUEUE", Value: "q", From: "--set"}})
	if !errors.Is(err, config.ErrNotSupported) || !strings.Contains(err.Error(), "INTERRUPTION_QUEUE") {
		t.Errorf("a setting of Karpenter that is not there: %v", err)
	}
}

// TestTable: what the table says is the default is what happens when nothing is
// set, and every row can be set.
func TestTable(t *testing.T) {
	for _, s := range config.Table() {
		got, err := config.Load([]string{s.Key + "=" + s.Default})
		if err != nil {
			t.Errorf("%s: the default %q is refused: %v", s.Key, s.Default, err)
		}
		if diff := cmp.Diff(config.Default(), got); diff != "" {
			t.Errorf("%s: %q is not the default (-default +set)\n%s", s.Key, s.Default, diff)
		}
		if s.Meaning == "" || s.Values == "" {
			t.Errorf("%s has no meaning or no values", s.Key)
		}
	}
	other := map[string]string{
		"CLUSTER_NAME": "x", "RESERVED_ENIS": "3", "VM_MEMORY_OVERHEAD_PERCENT": "0.1", "MIN_VALUES_POLICY": "BestEffort",
		"PREFERENCE_POLICY": "Ignore", "FEATURE_GATES": "ReservedCapacity=false", "KERF_COST_PER_NODE": "1",
		"KERF_OPTION_PRICE_CAP": "150", "KERF_WORK": "2000", "KERF_MIN_SAVING": "0.5", "KERF_MIN_SAVING_PERCENT": "7",
		"KERF_MASS_REMOVAL_PERCENT": "9", "KERF_CONSOLIDATION_DRY_RUN": "true",
		"KERF_SWEEP_INTERVAL": "20s", "KERF_REGISTER_INTERVAL": "3s", "BATCH_IDLE_DURATION": "1s", "BATCH_MAX_DURATION": "20s", "LOG_LEVEL": "error", "ISOLATED_VPC": "true",
		"KERF_NOTICE_BUS": "people", "KERF_CONSOLIDATION_METRICS": "true",
		"KERF_TABLE": "t", "KERF_TICK_QUEUE": "https://q/t", "KERF_WORK_QUEUE": "https://q/w", "KERF_CATALOG_FUNCTION": "f",
		"KERF_INTERRUPTION_QUEUE": "https://q/i", "KERF_INTERRUPTION_DEAD_LETTERS": "https://q/d",
	}
	for _, s := range config.Table() {
		got, err := config.Load([]string{s.Key + "=" + other[s.Key]})
		if err != nil || got == config.Default() {
			t.Errorf("%s=%q changes nothing (%v)", s.Key, other[s.Key], err)
		}
	}
}

// TestScopes: a person sets what is a person's to set, where it does something.
func TestScopes(t *testing.T) {
	for _, s := range config.Table() {
		pairs := []config.Pair{{Key: s.Key, Value: s.Default, From: "f"}}
		_, plan := config.Apply(config.Default(), pairs)
		_, deploy := config.Deploy(config.Default(), pairs)
		if (plan == nil) != (s.Scope == config.Planner) || (deploy == nil) != (s.Scope != config.Made) {
			t.Errorf("%s: for a plan: %v; for a deployment: %v", s.Key, plan, deploy)
		}
	}
	_, err := config.Apply(config.Default(), []config.Pair{{Key: "LOG_LEVEL", Value: "debug", From: "--set"}, {Key: "KERF_TABLE", Value: "x", From: "--set"}})
	want := "--set: LOG_LEVEL: it changes no plan; set it for the functions, as context when the stack is deployed\n--set: KERF_TABLE: the stack sets it itself; leave it out"
	if diff := cmp.Diff(want, errText(err)); diff != "" {
		t.Error(diff)
	}
	got, err := config.Environment([]string{"LOG_LEVEL=debug", "KERF_TABLE=x", "RESERVED_ENIS=1"})
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff([]config.Pair{{Key: "RESERVED_ENIS", Value: "1", From: "environment"}}, got); diff != "" {
		t.Error(diff)
	}
	if _, err := config.Environment([]string{"LOG_LEVEL=x"}); err == nil {
		t.Error("a mistake in what is no plan's goes unseen")
	}
}

func TestParseFile(t *testing.T) {
	pairs := func(kv ...string) (out []config.Pair) {
		for i := 0; i < len(kv); i += 3 {
			out = append(out, config.Pair{Key: kv[i], Value: kv[i+1], From: "f line " + kv[i+2]})
		}
		return out
	}
	for _, tc := range []struct {
		name, text, err string
		want            []config.Pair
	}{
		{"lines", "# ours\nRESERVED_ENIS=1\n\nexport PREFERENCE_POLICY = \"Ignore\"\nCLUSTER_NAME='a=b'\r\n", "", pairs("RESERVED_ENIS", "1", "2", "PREFERENCE_POLICY", "Ignore", "4", "CLUSTER_NAME", "a=b", "5")},
		{"yaml keeps what is written", "RESERVED_ENIS: 1\nVM_MEMORY_OVERHEAD_PERCENT: 0.070\nFEATURE_GATES:\n  ReservedCapacity: false\n  NodeRepair: false\nCLUSTER_NAME: null\n", "",
			pairs("RESERVED_ENIS", "1", "1", "VM_MEMORY_OVERHEAD_PERCENT", "0.070", "2", "FEATURE_GATES", "ReservedCapacity=false,NodeRepair=false", "3", "CLUSTER_NAME", "", "6")},
		{"json", `{"RESERVED_ENIS": 1, "MIN_VALUES_POLICY": "BestEffort"}`, "", pairs("RESERVED_ENIS", "1", "1", "MIN_VALUES_POLICY", "BestEffort", "1")},
		{"empty", "", "", nil},
		{"only comments", "# nothing\n", "", nil},
		{"yaml comment first", "---\n# x\n", "", nil},
		{"a list", "- a\n- b\n", "read settings f: line 1: want KEY=VALUE lines or a map of KEY: value", nil},
		{"no yaml", "a: [\n", "read settings f: yaml: line 1: did not find expected node content", nil},
		{"nested", "KERF_WORK: [1]\n", "f line 1: KERF_WORK: want one value, or a map of Gate: true for FEATURE_GATES", nil},
		{"twice in yaml", "A: 1\nA: 2\n", "f line 2: A is already set in line 1", nil},
		{"twice in lines", "A=1\nA=2\n", "f line 2: A is already set in line 1", nil},
		{"a line that is none", "A=1\nB 2\n", `f line 2: "B 2": want KEY=VALUE`, nil},
	} {
		t.Run(tc.name, func(t *testing.T) {
			got, err := config.ParseFile("f", []byte(tc.text))
			if msg := errText(err); !strings.HasPrefix(msg, tc.err) || (tc.err == "") != (msg == "") {
				t.Fatalf("error %q, want %q", msg, tc.err)
			}
			if diff := cmp.Diff(tc.want, got); tc.err == "" && diff != "" {
				t.Errorf("(-want +got)\n%s", diff)
			}
		})
	}
}

func errText(err error) string {
	if err == nil {
		return ""
	}
	return err.Error()
}

func TestParseSet(t *testing.T) {
	got, err := config.ParseSet("FEATURE_GATES=A=true,B=false")
	if want := (config.Pair{Key: "FEATURE_GATES", Value: "A=true,B=false", From: "--set"}); err != nil || got != want {
		t.Errorf("got %+v, %v", got, err)
	}
	for _, bad := range []string{"", "KERF_WORK", "=1"} {
		if _, err := config.ParseSet(bad); err == nil || !strings.Contains(err.Error(), "want KEY=VALUE") {
			t.Errorf("--set %q: %v", bad, err)
		}
	}
}

// TestNothingPanics: whatever is written, the answer is a configuration within
// bounds or an error that names the key.
func TestNothingPanics(t *testing.T) {
	var keys []string
	for _, s := range config.Table() {
		keys = append(keys, s.Key)
	}
	rapid.Check(t, func(t *rapid.T) {
		key := rapid.OneOf(rapid.SampledFrom(keys), rapid.String()).Draw(t, "key")
		value := rapid.OneOf(rapid.String(), rapid.StringMatching(`[-+]?[0-9.]{0,30}`), rapid.StringMatching(`([A-Za-z]+=(true|false|x),?)*`)).Draw(t, "value")
		c, err := config.Apply(config.Default(), []config.Pair{{Key: key, Value: value, From: "x"}})
		if err != nil {
			if !strings.HasPrefix(err.Error(), "x: ") {
				t.Fatalf("the message does not say where: %v", err)
			}
			return
		}
		if !slices.Contains(keys, key) {
			t.Fatalf("unknown key %q was taken", key)
		}
		s := c.Settings
		if s.ReservedENIs < 0 || s.VMMemoryOverhead < 0 || s.VMMemoryOverhead >= 1_000_000 || s.CostPerNode < 0 || s.OptionPriceCap < 100 || s.Work < 1 {
			t.Fatalf("%s=%q gives %+v", key, value, s)
		}
	})
	rapid.Check(t, func(t *rapid.T) {
		text := rapid.OneOf(rapid.String(), rapid.StringMatching(`([A-Z_]{1,4}[:=] ?[a-z0-9"{}\[\],]{0,6}\n){0,5}`)).Draw(t, "file")
		if _, err := config.ParseFile("name", []byte(text)); err != nil && !strings.Contains(err.Error(), "name") {
			t.Fatalf("the message does not name the file: %v", err)
		}
	})
}
