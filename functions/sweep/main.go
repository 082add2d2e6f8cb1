// Command sweep launches nodes for pods that wait: on ticks from its queue, or at once when it is invoked.
package main

import (
	"context"
	"fmt"
	"os"

	"github.com/aws/aws-lambda-go/lambda"

	"kerf.sh/kerf/internal/app"
)

func main() {
	f, err := app.SweepFunction(context.Background(), os.Environ())
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	lambda.StartHandlerFunc(f)
}
