package app

import (
	"errors"
	"flag"
	"fmt"
	"io"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	"kerf.sh/kerf/internal/config"
	"kerf.sh/kerf/internal/handler"
	"kerf.sh/kerf/internal/kube"
	"kerf.sh/kerf/internal/plan"
	"kerf.sh/kerf/internal/snapshot"
)

// usage is what -h prints.
const usage = `plan shows which nodes Kerf would launch for a cluster's pending pods, what they cost, how far
that is from the least possible, and why a pod cannot run. It changes nothing.

  kubectl get pods,nodes,nodepools,nodeclaims,ec2nodeclasses,daemonsets,pvc,pv,sc -A -o yaml | plan -f -
  plan -f cluster/ -f pods.yaml --explain pod/shop/web-1
  plan --context prod
  plan -f cluster/ -o html > plan.html
  plan --doctor --cluster prod        why pods get no nodes (plan --doctor -h)
  plan --validate -f pools/           are manifests right, of any generation (plan --validate -h)

What to plan on
  -f FILE|DIR|-        Kubernetes objects, YAML or JSON, many documents or Lists; a directory is read
                       with all below it, - is standard input; may be repeated
  --context NAME       a running cluster in place of files: the context of a kubeconfig
  --kubeconfig FILE    the kubeconfig (default: $KUBECONFIG, else ~/.kube/config); without --context
                       its current context. Only list permissions are used
  --workloads          plan pods also for Deployments, StatefulSets, Jobs that have none in the input
  --cluster NAME       name of the cluster, for the report
  --catalog FILE       instance types and prices from a file instead of the built-in table
  --region REGION      region of types and prices (default: that of the cluster, else us-east-1)
  --facts auto|live|table  where types and prices come from: AWS, by your credentials (live), or the
                       built-in table. auto: AWS for a running cluster, if there are credentials
  --commitments        count Savings Plans and reserved instances of the account that have hours left,
                       asked of AWS with the prices

What if
  --what-if FILE|DIR|- objects that are added, or take the place of those of the same kind and name;
                       workloads get the pods that they would have; may be repeated
  --remove OBJECT      an object that is taken away after that: node/NAME (would its pods fit?),
                       nodepool/NAME (its nodes go too), pod/NAMESPACE/NAME, KIND/NAME of whatever
                       is read; may be repeated
  --diff               only what differs from the plan without them, and not the plan itself

How to plan
  --ledger TABLE|FILE  what the functions remember: nodes on their way, nominations, shortages,
                       learned sizes; the DynamoDB table (by your AWS credentials; it is only
                       read), or a file that a ledger was exported to. A saved snapshot has it
                       already
  --now TIME           the clock of the plan, as 2026-03-04T12:00:00Z (default: now)
  --seed N             order of choices that are otherwise equal (default 0)
  --set KEY=VALUE      a setting; may be repeated; docs/config.md lists them
  --settings FILE      settings from a file: KEY=VALUE lines, or a map in YAML or JSON; may be repeated

What to show
  -o text|json|html    form of the answer (default text)
  --consolidate        also which nodes could go, what takes their place and what that saves, and
                       why the others stay
  --explain OBJECT     only why one object is treated as it is: pod/NAMESPACE/NAME, node/NAME
                       or nodepool/NAME
  --save-snapshot FILE write what was read as one file, which -f takes
  -v                   name the objects that were ignored because their kind does not matter

Exit status
  0  a plan was made
  2  no plan: the arguments cannot be used, or something cannot be read: a file, a document, a
     value that its field does not take, an unknown field of a Karpenter kind; standard error says
     where and why
  3  a plan was made, but on less than everything: objects that can be read and that no API server
     would take or hold twice are left out, each named on standard error; or nodes are missing
`

// options are the arguments of the command line.
type options struct {
	consolidate bool
	files       []string
	catalog     string
	region      string
	cluster     string
	now         time.Time
	seed        uint64
	explain     string
	pairs       []config.Pair // of --settings and --set, in the order of precedence
	settings    []string
	snapshot    string
	format      string
	verbose     bool
	work        bool // --workloads
	whatIf      []string
	remove      []snapshot.Ref
	diff        bool
	ledger      string
	facts       string
	commitments bool
	// kubeconfig and context name a running cluster to read in place of files.
	kubeconfig, context string
}

// live reports whether a running cluster is to be read.
func (o *options) live() bool { return o.kubeconfig != "" || o.context != "" }

// errHelp asks for the usage text.
var errHelp = flag.ErrHelp

// parseFlags reads the arguments. Errors say which flag and what to write.
func parseFlags(args []string) (*options, error) {
	o := &options{format: "text", facts: factsAuto}
	fs := flag.NewFlagSet("plan", flag.ContinueOnError)
	fs.SetOutput(io.Discard)
	fs.Usage = func() {}
	var set []config.Pair
	fs.Func("f", "", func(v string) error {
		if v == "" {
			return errors.New("want a file, a directory or -")
		}
		o.files = append(o.files, v)
		return nil
	})
	fs.StringVar(&o.catalog, "catalog", "", "")
	fs.StringVar(&o.region, "region", "", "")
	fs.StringVar(&o.cluster, "cluster", "", "")
	fs.Func("facts", "", func(v string) error {
		if v != factsAuto && v != factsLive && v != factsTable {
			return errors.New("want auto, live or table")
		}
		o.facts = v
		return nil
	})
	fs.BoolVar(&o.commitments, "commitments", false, "")
	fs.Func("now", "", func(v string) (err error) {
		if o.now, err = time.Parse(time.RFC3339, v); err != nil || o.now.IsZero() {
			return errors.New("want a time as 2026-03-04T12:00:00Z")
		}
		return nil
	})
	fs.Func("seed", "", func(v string) (err error) {
		if o.seed, err = strconv.ParseUint(v, 10, 64); err != nil {
			return errors.New("want a whole number, 0 or more")
		}
		return nil
	})
	fs.Func("explain", "", func(v string) error { o.explain = v; return handler.CheckObject(v) })
	fs.Func("set", "", func(v string) error {
		p, err := config.ParseSet(v)
		set = append(set, p)
		return err
	})
	fs.Func("settings", "", func(v string) error { o.settings = append(o.settings, v); return nil })
	fs.StringVar(&o.snapshot, "save-snapshot", "", "")
	fs.Func("o", "", func(v string) error {
		switch v {
		case "text", "json", "html":
			o.format = v
			return nil
		}
		return errors.New("want text, json or html")
	})
	fs.BoolVar(&o.verbose, "v", false, "")
	fs.BoolVar(&o.work, "workloads", false, "")
	fs.Func("what-if", "", func(v string) error {
		if v == "" {
			return errors.New("want a file, a directory or -")
		}
		o.whatIf = append(o.whatIf, v)
		return nil
	})
	fs.Func("remove", "", func(v string) error {
		r, err := snapshot.ParseRef(v)
		o.remove = append(o.remove, r)
		return err
	})
	fs.BoolVar(&o.diff, "diff", false, "")
	fs.Func("kubeconfig", "", named(&o.kubeconfig, "want a file"))
	fs.Func("context", "", named(&o.context, "want the name of a context"))
	fs.Func("ledger", "", named(&o.ledger, "want the name of a table, or a file"))
	fs.BoolVar(&o.consolidate, "consolidate", false, "")

	if err := fs.Parse(args); err != nil {
		return nil, flagError(fs, err)
	}
	switch {
	case fs.NArg() > 0:
		return nil, fmt.Errorf("argument %q: files are given with -f", fs.Arg(0))
	case o.diff && len(o.whatIf)+len(o.remove) == 0:
		return nil, errors.New("--diff: nothing to compare with: say what would change with --what-if FILE or --remove OBJECT")
	case o.diff && o.explain != "":
		return nil, errors.New("--diff and --explain: take one of them; --explain with --what-if or --remove explains the object on both sides")
	case slices.Contains(o.files, kube.Stdin) && slices.Contains(o.whatIf, kube.Stdin):
		return nil, errors.New("-f - and --what-if -: standard input can be read once; give one of them as a file")
	case o.catalog != "" && o.facts == factsLive:
		return nil, errors.New("--catalog and --facts live: take one of them; both say what there is to buy")
	case o.commitments && !o.asks():
		return nil, errors.New("--commitments: they are asked of AWS with the prices: add --facts live; a --catalog file lists its own")
	case o.live() && len(o.files) > 0:
		return nil, errors.New("-f and --kubeconfig or --context: plan on files or on a running cluster; --what-if FILE lays files over either")
	case !o.live() && len(o.files) == 0:
		return nil, errors.New("nothing to plan on: give the cluster's objects with -f FILE, -f DIR or -f -, or a running cluster with --context NAME (plan -h says more)")
	}
	o.pairs = set
	return o, nil
}

// named takes the value of a flag that must not be empty.
func named(into *string, want string) func(string) error {
	return func(v string) error {
		if v == "" {
			return errors.New(want)
		}
		*into = v
		return nil
	}
}

// flagError adds near misses to an unknown flag and takes the flag package's
// wording out of the rest.
func flagError(fs *flag.FlagSet, err error) error {
	if errors.Is(err, flag.ErrHelp) {
		return errHelp
	}
	if name, ok := strings.CutPrefix(err.Error(), "flag provided but not defined: -"); ok {
		var names []string
		fs.VisitAll(func(f *flag.Flag) { names = append(names, f.Name) })
		near := plan.Nearest(strings.TrimLeft(name, "-"), names, 2)
		for i := range near {
			near[i] = dashes(near[i])
		}
		if len(near) > 0 {
			return fmt.Errorf("flag %s is not known; did you mean %s?", dashes(name), strings.Join(near, " or "))
		}
		return fmt.Errorf("flag %s is not known; plan -h lists all", dashes(name))
	}
	if name, ok := strings.CutPrefix(err.Error(), "flag needs an argument: -"); ok {
		return fmt.Errorf("flag %s needs a value", dashes(name))
	}
	if m := invalidValue.FindStringSubmatch(err.Error()); m != nil {
		return fmt.Errorf("%s %s: %s", dashes(m[2]), m[1], m[3])
	}
	return err
}

// invalidValue is how package flag says that a value is not right.
var invalidValue = regexp.MustCompile(`(?s)^invalid (?:boolean )?value (".*") for (?:flag )?-([a-z-]+): (.*)$`)

func dashes(name string) string {
	name = strings.TrimLeft(name, "-")
	if len(name) == 1 {
		return "-" + name
	}
	return "--" + name
}
