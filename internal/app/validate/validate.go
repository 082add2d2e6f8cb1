package validate

import (
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"strings"

	"sigs.k8s.io/yaml"

	"kerf.sh/kerf/internal/kube"
	"kerf.sh/kerf/internal/kube/convert"
)

// Main runs the command: the answer goes to stdout. It returns the exit status, as usage says.
func Main(args []string, stdin io.Reader, stdout, stderr io.Writer) int {
	status, err := run(args, stdin, stdout, stderr)
	if errors.Is(err, flag.ErrHelp) {
		if _, err = io.WriteString(stdout, usage); err == nil {
			return exitFine
		}
	}
	if err != nil {
		for line := range strings.Lines(strings.TrimRight(err.Error(), "\n") + "\n") {
			fmt.Fprintf(stderr, "plan: %s", line)
		}
		return exitNothing
	}
	return status
}

func run(args []string, stdin io.Reader, stdout, stderr io.Writer) (int, error) {
	o, err := parse(args)
	if err != nil {
		return 0, err
	}
	found, err := find(o.files, stdin)
	if err != nil {
		return 0, err
	}
	var before []kube.Found
	if len(o.old) > 0 {
		if before, err = find(o.old, stdin); err != nil {
			return 0, fmt.Errorf("--old: %w", err)
		}
	}
	j, err := newJudge(before)
	if err != nil {
		return 0, err
	}
	r, err := j.all(found)
	if err != nil {
		return 0, err
	}
	if len(r.Objects) == 0 {
		return 0, fmt.Errorf("no object of Karpenter among %d: nothing to validate", len(found))
	}
	if !o.convert {
		r.Converted = nil
	}
	if err := o.write(r, stdout, stderr); err != nil {
		return 0, fmt.Errorf("write the answer: %w", err)
	}
	return o.status(r), nil
}

func find(paths []string, stdin io.Reader) ([]kube.Found, error) {
	sources, err := kube.Files(paths, stdin)
	if err != nil {
		return nil, err
	}
	return kube.Each(sources)
}

// status is the exit status: with --convert that of what was written in place of the old ones.
func (o *options) status(r *report) int {
	if r.Refused > 0 || r.Old > 0 && !o.convert {
		return exitRefused
	}
	for i := range r.Objects {
		for k := range r.Objects[i].Converted {
			if r.Objects[i].Converted[k].Verdict != valid {
				return exitRefused
			}
		}
	}
	return exitFine
}

func (o *options) write(r *report, stdout, stderr io.Writer) error {
	if o.format == "json" {
		e := json.NewEncoder(stdout)
		e.SetEscapeHTML(false)
		e.SetIndent("", "  ")
		return e.Encode(r)
	}
	if !o.convert {
		_, err := io.WriteString(stdout, r.text(o.verbose))
		return err
	}
	if _, err := io.WriteString(stderr, r.text(o.verbose)); err != nil {
		return err
	}
	text, err := manifests(r.Converted)
	if err == nil {
		_, err = stdout.Write(text)
	}
	return err
}

// manifests writes objects as one file of YAML.
func manifests(objects []convert.Object) ([]byte, error) {
	var out []byte
	for i, o := range objects {
		text, err := yaml.Marshal(o)
		if err != nil {
			return nil, err
		}
		if i > 0 {
			out = append(out, "---\n"...)
		}
		out = append(out, text...)
	}
	return out, nil
}
