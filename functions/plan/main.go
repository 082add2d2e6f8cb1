// Command plan answers what Kerf would launch, at what price, and why, with --doctor what is in
// the way of a pending pod, and with --validate what is wrong with manifests: as a Lambda function
// where the Lambda runtime is present, else as a command-line program.
package main

import (
	"fmt"
	"os"

	"github.com/aws/aws-lambda-go/lambda"

	"kerf.sh/kerf/internal/app"
	"kerf.sh/kerf/internal/app/examine"
	"kerf.sh/kerf/internal/app/region"
)

func main() {
	defer app.Recover(os.Stderr, os.Exit)
	if os.Getenv("AWS_LAMBDA_RUNTIME_API") == "" {
		if examine.Wanted(os.Args[1:]) {
			os.Exit(examine.Main(os.Args[1:], os.Stdout, os.Stderr))
		}
		if status, wanted := manifests(os.Args[1:]); wanted {
			os.Exit(status)
		}
		c := app.Command{Stdin: os.Stdin, Stdout: os.Stdout, Stderr: os.Stderr, Environ: os.Environ(), Facts: region.Facts}
		os.Exit(c.Main(os.Args[1:]))
	}
	h, err := app.PlanFunction(os.Environ())
	if err == nil {
		h.Doctor, err = examine.Function(os.Environ())
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	lambda.StartHandlerFunc(h.Handle)
}
