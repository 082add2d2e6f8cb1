// Command infra is the CDK app: one stack for one cluster. The CDK CLI runs it with
// context from cdk.json and -c; it also runs by itself, without the CLI:
//
//	go run . -o ../build/cdk.out -c cluster=prod -c architecture=arm64
package main

import (
	"errors"
	"flag"
	"fmt"
	"os"
	"strings"

	"github.com/aws/aws-cdk-go/awscdk/v2"
	"github.com/aws/jsii-runtime-go"

	"kerf.sh/kerf/infra/autoscaler"
)

func main() {
	defer jsii.Close()
	context := map[string]any{}
	out := flag.String("o", "", "folder for the template and the assets; default: what the CDK CLI asks for")
	flag.Func("c", "context, key=value; may be repeated", func(s string) error {
		k, v, ok := strings.Cut(s, "=")
		if !ok || k == "" {
			return fmt.Errorf("want key=value")
		}
		context[k] = v
		return nil
	})
	flag.Parse()

	props := &awscdk.AppProps{Context: &context, AnalyticsReporting: jsii.Bool(false)}
	if *out != "" {
		props.Outdir = out
	}
	if err := synth(awscdk.NewApp(props)); err != nil {
		fmt.Fprintf(os.Stderr, "infra: the stack cannot be made:\n%s\n", indent(err.Error()))
		jsii.Close()
		os.Exit(1)
	}
}

func synth(app awscdk.App) error {
	all, ok := app.Node().GetAllContext(nil).(map[string]any)
	if !ok {
		return fmt.Errorf("the CDK gave no context")
	}
	props, err := autoscaler.FromContext(all)
	if err != nil {
		return errors.Join(err, props.Check()) // all that is wrong, at once
	}
	if _, err := autoscaler.NewStack(app, props); err != nil {
		return err
	}
	app.Synth(nil)
	return nil
}

func indent(s string) string { return "  " + strings.ReplaceAll(s, "\n", "\n  ") }
