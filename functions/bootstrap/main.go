// Command bootstrap sets a cluster up for the other functions: as a custom resource of the stack, or at once when it is invoked.
package main

import (
	"context"
	"fmt"
	"os"

	"github.com/aws/aws-lambda-go/lambda"

	"kerf.sh/kerf/internal/app"
)

func main() {
	f, err := app.BootstrapFunction(context.Background(), os.Environ())
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	lambda.StartHandlerFunc(f)
}
