package examine

import (
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
	"slices"
	"strings"

	"kerf.sh/kerf/internal/config"
	"kerf.sh/kerf/internal/doctor"
	"kerf.sh/kerf/internal/kube/kubeconfig"
)

// Exit statuses of the command.
const (
	exitFine    = 0
	exitBroken  = 1
	exitNothing = 2
	exitUnseen  = 3
)

// usage is what -h prints.
const usage = `plan --doctor walks the way from a pending pod to a ready node and names the first step that is
broken, with what shows it and the command that mends it. It changes nothing.

  plan --doctor --cluster prod --region eu-west-1
  plan --doctor --context prod

  --cluster NAME     the EKS cluster, by your AWS credentials
  --region REGION    its region (default: that of your AWS configuration)
  --context NAME     the context of a kubeconfig: the API server is asked with its credentials, and
                     cluster and region are taken from it where it names them
  --kubeconfig FILE  the kubeconfig (default: $KUBECONFIG, else ~/.kube/config)
  --stack NAME       the CloudFormation stack (default kerf-CLUSTER)
  --set KEY=VALUE    a setting to plan with; may be repeated
  -o text|json       form of the answer (default text)

What cannot be looked at is told, with the permission that is missing; docs/doctor.md lists all.

Exit status
  0  nothing is broken
  1  something is: the report names the first broken step
  2  there is no report: the arguments cannot be used
  3  nothing that could be looked at is broken, and not everything could be
`

// Wanted reports whether arguments of the plan program ask for the doctor.
func Wanted(args []string) bool {
	return slices.ContainsFunc(args, func(a string) bool { return a == "--doctor" || a == "-doctor" })
}

// options are the arguments.
type options struct {
	cluster, region, context, kubeconfig, stack, format string
	pairs                                               []config.Pair
}

func parse(args []string) (*options, error) {
	o := &options{format: "text"}
	fs := flag.NewFlagSet("plan --doctor", flag.ContinueOnError)
	fs.SetOutput(io.Discard)
	fs.Usage = func() {}
	fs.Bool("doctor", true, "")
	for _, f := range []struct {
		name string
		at   *string
	}{{"cluster", &o.cluster}, {"region", &o.region}, {"context", &o.context}, {"kubeconfig", &o.kubeconfig}, {"stack", &o.stack}} {
		fs.StringVar(f.at, f.name, "", "")
	}
	fs.Func("set", "", func(v string) error {
		p, err := config.ParseSet(v)
		o.pairs = append(o.pairs, p)
		return err
	})
	fs.Func("o", "", func(v string) error {
		if v != "text" && v != "json" {
			return errors.New("want text or json")
		}
		o.format = v
		return nil
	})
	if err := fs.Parse(args); err != nil {
		return nil, err
	}
	switch {
	case fs.NArg() > 0:
		return nil, fmt.Errorf("argument %q: the doctor takes none but flags", fs.Arg(0))
	case o.cluster == "" && o.context == "" && o.kubeconfig == "":
		return nil, errors.New("which cluster? give --cluster NAME, or --context NAME (plan --doctor -h says more)")
	}
	return o, nil
}

// Main is the doctor on the command line: the report goes to stdout, and why there is none to
// stderr. It returns the exit status.
func Main(args []string, stdout, stderr io.Writer) int {
	o, err := parse(args)
	if errors.Is(err, flag.ErrHelp) {
		fmt.Fprint(stdout, usage)
		return exitFine
	}
	var r *doctor.Report
	if err == nil {
		ctx, done := signal.NotifyContext(context.Background(), os.Interrupt)
		defer done()
		r, err = o.report(ctx)
	}
	if err == nil {
		err = write(stdout, r, o.format)
	}
	if err != nil {
		for line := range strings.Lines(err.Error() + "\n") {
			fmt.Fprintf(stderr, "plan: %s", line)
		}
		return exitNothing
	}
	switch {
	case r.Broken != "":
		return exitBroken
	case !r.Complete:
		return exitUnseen
	}
	return exitFine
}

func write(w io.Writer, r *doctor.Report, format string) error {
	if format == "text" {
		_, err := io.WriteString(w, r.Text())
		return err
	}
	e := json.NewEncoder(w)
	e.SetIndent("", "  ")
	e.SetEscapeHTML(false)
	return e.Encode(r)
}

func (o *options) report(ctx context.Context) (*doctor.Report, error) {
	conf, err := config.Apply(config.Default(), o.pairs)
	if err != nil {
		return nil, err
	}
	to := target{cluster: o.cluster, region: o.region, stack: o.stack, settings: conf.Settings}
	if o.context != "" || o.kubeconfig != "" {
		if to.kube, err = kubeconfig.Load(o.kubeconfig, o.context); err != nil {
			return nil, err
		}
		if to.cluster == "" {
			to.cluster = to.kube.Cluster
		}
		if to.region == "" {
			to.region = to.kube.Region
		}
	}
	x, err := to.examiner(ctx)
	if err != nil {
		return nil, err
	}
	return doctor.Examine(x.Facts(ctx)), nil
}
