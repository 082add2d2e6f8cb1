package validate

import (
	"errors"
	"flag"
	"fmt"
	"io"
	"slices"
)

// Exit statuses of the command.
const (
	exitFine    = 0
	exitNothing = 2
	exitRefused = 3
)

// usage is what -h prints.
const usage = `plan --validate says of Karpenter's manifests, without a cluster, what the API server and Kerf would
say of them: NodePool, EC2NodeClass, NodeClaim, NodeOverlay, CapacityBuffer. Older generations
(Provisioner, AWSNodeTemplate, v1beta1) are recognised: what became of each field, and with
--convert the manifests of today. It changes nothing.

  plan --validate -f pools/
  plan --validate -f old-pools/ --convert > pools.yaml

  -f FILE|DIR|-      manifests, YAML or JSON, many documents or Lists; a directory is read with all
                     below it, - is standard input; may be repeated
  --old FILE|DIR     what stands in the cluster now: an object of the same kind and name is the one
                     that is changed, and the rules about changes apply; may be repeated
  --convert          write the manifests that take the place of the old ones to standard output; what
                     was read of them, and what has to be done by hand, goes to standard error
  -v                 also fields that only moved, and defaults
  -o text|json       form of the answer (default text)

Exit status
  0  all are valid; with --convert: all that was written is
  2  there is no answer: the arguments cannot be used, something is no YAML or no object, or there is
     no object of Karpenter in it
  3  something would be refused, or is of a generation that is not served any more
`

// Wanted reports whether arguments of the plan program ask for this mode.
func Wanted(args []string) bool {
	return slices.ContainsFunc(args, func(a string) bool { return a == "--validate" || a == "-validate" })
}

type options struct {
	files, old       []string
	convert, verbose bool
	format           string
}

func parse(args []string) (*options, error) {
	o := &options{format: "text"}
	fs := flag.NewFlagSet("plan --validate", flag.ContinueOnError)
	fs.SetOutput(io.Discard)
	fs.Usage = func() {}
	fs.Bool("validate", true, "")
	for _, f := range []struct {
		name string
		into *[]string
	}{{"f", &o.files}, {"old", &o.old}} {
		fs.Func(f.name, "", func(v string) error {
			if v == "" {
				return errors.New("want a file, a directory or -")
			}
			*f.into = append(*f.into, v)
			return nil
		})
	}
	fs.BoolVar(&o.convert, "convert", false, "")
	fs.BoolVar(&o.verbose, "v", false, "")
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
		return nil, fmt.Errorf("argument %q: files are given with -f", fs.Arg(0))
	case len(o.files) == 0:
		return nil, errors.New("nothing to validate: give manifests with -f FILE, -f DIR or -f - (plan --validate -h says more)")
	case slices.Contains(o.files, "-") && slices.Contains(o.old, "-"):
		return nil, errors.New("-f - and --old -: standard input can be read once; give one of them as a file")
	}
	return o, nil
}
