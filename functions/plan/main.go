// Command plan answers what Kerf would launch, at what price, and why: as a Lambda
// function where the Lambda runtime is present, else as a command-line program.
package main

import (
	"fmt"
	"os"

	"github.com/aws/aws-lambda-go/lambda"

	"kerf.sh/kerf/internal/app"
)

func main() {
	defer app.Recover(os.Stderr, os.Exit)
	if os.Getenv("AWS_LAMBDA_RUNTIME_API") == "" {
		os.Exit(app.Main(os.Args[1:], os.Stdin, os.Stdout, os.Stderr, os.Environ()))
	}
	h, err := app.PlanFunction(os.Environ())
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	lambda.StartHandlerFunc(h.Handle)
}
