package config

import (
	"log/slog"
	"time"

	"kerf.sh/kerf/internal/snapshot"
)

// Config is everything that can be set.
type Config struct {
	// Cluster names the cluster in reports. CLUSTER_NAME.
	Cluster string
	// Settings are the knobs that change a decision.
	Settings snapshot.Settings
	// Functions are those of the functions that act.
	Functions Functions
	// Stack is what the stack made, by the names that AWS gave.
	Stack Stack
}

// Functions are the knobs of the functions that act: when they do, and what they say.
type Functions struct {
	// SweepInterval is the time from one look for pending pods to the next.
	SweepInterval time.Duration
	// RegisterInterval is the time from one look after nodes that are coming to the next.
	RegisterInterval time.Duration
	// BatchIdle and BatchMax are for how long no pod came, and for how long the oldest one
	// waits, when a burst of pods is planned.
	BatchIdle, BatchMax time.Duration
	LogLevel            slog.Level
	// Isolated: IAM and the price list have no endpoint where the functions run.
	Isolated bool
	// MassRemovalPercent and ConsolidationDryRun are those of consolidation.
	MassRemovalPercent  int64
	ConsolidationDryRun bool
	// ConsolidationMetrics makes metrics of what consolidation does.
	ConsolidationMetrics bool
	// NoticeBus is the EventBridge bus, by name or ARN, that is told of decisions; "" = none.
	NoticeBus string
}

// Stack is what the stack made. All of it is empty outside Lambda.
type Stack struct {
	// Table is the name of the ledger's table.
	Table string
	// TickQueue and WorkQueue are the URLs of the queues of the sweep and of lifecycle.
	TickQueue, WorkQueue string
	// InterruptionQueue is the URL of the queue of notices, InterruptionDeadLetters that of
	// those that nothing can be done about.
	InterruptionQueue, InterruptionDeadLetters string
	// CatalogFunction is the function that resolves NodeClasses.
	CatalogFunction string
}

// Default is the configuration when nothing is set.
func Default() Config {
	return Config{Settings: snapshot.DefaultSettings(), Functions: Functions{
		SweepInterval: 10 * time.Second, RegisterInterval: 5 * time.Second, BatchIdle: 2 * time.Second, BatchMax: 10 * time.Second,
		MassRemovalPercent: 50,
	}}
}

// Scope is who takes a setting, and from whom.
type Scope int

const (
	// Planner settings change a plan: a person sets them wherever plans are made.
	Planner Scope = iota
	// Function settings change what the functions that act do: a person sets them when the
	// stack is deployed.
	Function
	// Made are the names of what the stack made: it sets them itself.
	Made
)

// Setting is one row of the table.
type Setting struct {
	Key     string
	Default string // as one would write it
	Values  string // what may be written, for people
	Meaning string
	Scope   Scope
	// Karpenter tells whether Karpenter has the same key with the same meaning.
	Karpenter bool
	parse     func(c *Config, value string) error
}

// Table returns all settings, in the order of the documentation.
func Table() []Setting {
	return append(append(planner(), functions()...), made()...)
}

// functions are the settings of the functions that act.
func functions() []Setting {
	const second = time.Second
	return []Setting{
		{Key: "KERF_SWEEP_INTERVAL", Default: "10s", Values: "duration from 6s to 1m, in whole seconds", Scope: Function,
			Meaning: "How often pending pods are looked for. When nothing is pending, a look is one request to the API server.",
			parse: func(c *Config, v string) (err error) {
				c.Functions.SweepInterval, err = duration(v, 6*second, 60*second, second)
				return err
			}},
		{Key: "KERF_REGISTER_INTERVAL", Default: "5s", Values: "duration from 2s to 1m, in whole seconds", Scope: Function,
			Meaning: "How often nodes that are coming are looked after, while there are any.",
			parse: func(c *Config, v string) (err error) {
				c.Functions.RegisterInterval, err = duration(v, 2*second, 60*second, second)
				return err
			}},
		{Key: "BATCH_IDLE_DURATION", Default: "2s", Values: "duration from 0s to 1m", Scope: Function, Karpenter: true,
			Meaning: "A burst of pods is planned when no new one came for so long. Karpenter's default is 1s.",
			parse: func(c *Config, v string) (err error) {
				c.Functions.BatchIdle, err = duration(v, 0, 60*second, 1)
				return err
			}},
		{Key: "BATCH_MAX_DURATION", Default: "10s", Values: "duration from 0s to 5m", Scope: Function, Karpenter: true,
			Meaning: "A burst of pods is planned at the latest when its oldest one waits for so long.",
			parse: func(c *Config, v string) (err error) {
				c.Functions.BatchMax, err = duration(v, 0, 300*second, 1)
				return err
			}},
		{Key: "LOG_LEVEL", Default: "info", Values: "debug, info, warn, error", Scope: Function, Karpenter: true,
			Meaning: "The least level that is logged. Metrics and the summary of an invocation are written at every level.",
			parse: func(c *Config, v string) (err error) {
				c.Functions.LogLevel, err = level(v)
				return err
			}},
		{Key: "ISOLATED_VPC", Default: "false", Values: "false, true", Scope: Function, Karpenter: true,
			Meaning: "true where the functions cannot reach IAM and the price list: spec.role of an EC2NodeClass is then refused in favour of spec.instanceProfile, and list prices are those of the embedded table.",
			parse: func(c *Config, v string) (err error) {
				c.Functions.Isolated, err = oneOf(v, "false", "true")
				return err
			}},
		{Key: "KERF_NOTICE_BUS", Values: "name or ARN of an event bus", Scope: Function,
			Meaning: `The EventBridge bus that is told of every decision about nodes (source "kerf.sh", detail-type "Node Disruption"); a rule on it brings them to an SNS topic or anywhere else. Empty: nobody is told.`,
			parse: func(c *Config, v string) error {
				c.Functions.NoticeBus = v
				return busName(v)
			}},
		{Key: "KERF_CONSOLIDATION_METRICS", Default: "false", Values: "false, true", Scope: Function,
			Meaning: "What consolidation does and what the cluster costs become metrics in CloudWatch, six more that are billed. They are in the log line in any case.",
			parse: func(c *Config, v string) (err error) {
				c.Functions.ConsolidationMetrics, err = oneOf(v, "false", "true")
				return err
			}},
	}
}

// made are the names of what the stack made.
func made() []Setting {
	name := func(key, values, meaning string, to func(*Config) *string) Setting {
		return Setting{Key: key, Values: values, Meaning: meaning, Scope: Made, parse: func(c *Config, v string) error { *to(c) = v; return nil }}
	}
	url := func(key, meaning string, to func(*Config) *string) Setting {
		return Setting{Key: key, Values: "URL", Meaning: meaning, Scope: Made, parse: func(c *Config, v string) error { *to(c) = v; return queueURL(v) }}
	}
	return []Setting{
		name("KERF_TABLE", "name", "The DynamoDB table of the ledger.", func(c *Config) *string { return &c.Stack.Table }),
		url("KERF_TICK_QUEUE", "The queue of the sweep.", func(c *Config) *string { return &c.Stack.TickQueue }),
		url("KERF_WORK_QUEUE", "The queue of lifecycle.", func(c *Config) *string { return &c.Stack.WorkQueue }),
		url("KERF_INTERRUPTION_QUEUE", "The queue of interruption.", func(c *Config) *string { return &c.Stack.InterruptionQueue }),
		url("KERF_INTERRUPTION_DEAD_LETTERS", "Where interruption puts what it cannot read.", func(c *Config) *string { return &c.Stack.InterruptionDeadLetters }),
		name("KERF_CATALOG_FUNCTION", "name or ARN", "The function that resolves NodeClasses.", func(c *Config) *string { return &c.Stack.CatalogFunction }),
	}
}

// planner are the settings that a plan depends on.
func planner() []Setting {
	return []Setting{
		{Key: "CLUSTER_NAME", Default: "", Values: "text", Karpenter: true,
			Meaning: "Name of the cluster, as reports and tags show it. The command line's --cluster wins.",
			parse:   func(c *Config, v string) error { c.Cluster = v; return nil }},
		{Key: "RESERVED_ENIS", Default: "0", Values: "whole number from 0 to 50", Karpenter: true,
			Meaning: "Network interfaces of a node that carry no pods (custom networking, security groups for pods): fewer pods fit on a node.",
			parse: func(c *Config, v string) (err error) {
				c.Settings.ReservedENIs, err = whole(v, 0, 50)
				return err
			}},
		{Key: "VM_MEMORY_OVERHEAD_PERCENT", Default: "0.075", Values: "decimal from 0 to less than 1, at most 6 decimals", Karpenter: true,
			Meaning: "Share of a type's memory that the hypervisor and the kernel keep (0.075 is 7.5 %).",
			parse: func(c *Config, v string) (err error) {
				c.Settings.VMMemoryOverhead, err = millionths(v, 0, 999_999)
				return err
			}},
		{Key: "MIN_VALUES_POLICY", Default: "Strict", Values: "Strict, BestEffort", Karpenter: true,
			Meaning: "Strict refuses a launch that cannot keep its minValues; BestEffort lowers them and says so.",
			parse: func(c *Config, v string) (err error) {
				c.Settings.MinValuesBestEffort, err = oneOf(v, "Strict", "BestEffort")
				return err
			}},
		{Key: "PREFERENCE_POLICY", Default: "Respect", Values: "Respect, Ignore", Karpenter: true,
			Meaning: "Respect keeps preferences of pods as long as they can be kept; Ignore plans as if they were not there.",
			parse: func(c *Config, v string) (err error) {
				c.Settings.IgnorePreferences, err = oneOf(v, "Respect", "Ignore")
				return err
			}},
		{Key: "FEATURE_GATES", Default: DefaultGates(), Values: "Gate=true,Gate=false,...", Karpenter: true,
			Meaning: "Features to turn on or off. Gates that are left out keep their default.",
			parse:   parseGates},
		{Key: "KERF_COST_PER_NODE", Default: "0", Values: "$/h from 0 to 100, at most 6 decimals",
			Meaning: "What a node costs besides its price (licences, agents). It is added when plans are compared, so that fewer, larger nodes win; reported prices leave it out.",
			parse: func(c *Config, v string) (err error) {
				c.Settings.CostPerNode, err = millionths(v, 0, 100_000_000)
				return err
			}},
		{Key: "KERF_OPTION_PRICE_CAP", Default: "118", Values: "whole number from 100 to 1000",
			Meaning: "The most that an option of a launch may cost, in percent of the chosen offer. More options make a launch likelier to succeed, and its worst price higher.",
			parse: func(c *Config, v string) (err error) {
				c.Settings.OptionPriceCap, err = whole(v, 100, 1000)
				return err
			}},
		{Key: "KERF_MIN_SAVING", Default: "0.002", Values: "$/h from 0 to 100, at most 6 decimals",
			Meaning: "The least that a move which replaces nodes has to save. A move that only removes nodes has to save something.",
			parse: func(c *Config, v string) (err error) {
				c.Settings.MinSaving, err = millionths(v, 0, 100_000_000)
				return err
			}},
		{Key: "KERF_MIN_SAVING_PERCENT", Default: "5", Values: "whole number from 0 to 100",
			Meaning: "The same, in percent of what the removed nodes cost; both have to be reached.",
			parse: func(c *Config, v string) (err error) {
				c.Settings.MinSavingPercent, err = whole(v, 0, 100)
				return err
			}},
		{Key: "KERF_MASS_REMOVAL_PERCENT", Default: "50", Values: "whole number from 0 to 100", Scope: Function,
			Meaning: "The share of a NodePool's nodes above which removals for a reason that is new to it wait for a person; 0 never holds any.",
			parse: func(c *Config, v string) (err error) {
				c.Functions.MassRemovalPercent, err = whole(v, 0, 100)
				return err
			}},
		{Key: "KERF_CONSOLIDATION_DRY_RUN", Default: "false", Values: "true, false", Scope: Function,
			Meaning: "Consolidation says what it would do and changes nothing.",
			parse: func(c *Config, v string) (err error) {
				c.Functions.ConsolidationDryRun, err = oneOf(v, "false", "true")
				return err
			}},
		{Key: "KERF_WORK", Default: "4000000", Values: "whole number from 1000 to 1000000000",
			Meaning: "How long the search for a cheaper plan may go on, in abstract steps. Steps, not seconds: the same input gives the same plan on every machine.",
			parse: func(c *Config, v string) (err error) {
				c.Settings.Work, err = whole(v, 1000, 1_000_000_000)
				return err
			}},
	}
}
