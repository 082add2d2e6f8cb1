// Command interruption acts on what AWS says about instances that will go: it keeps pods off their nodes and wakes those who plan and drain.
package main

import (
	"context"
	"fmt"
	"os"

	"github.com/aws/aws-lambda-go/lambda"

	"kerf.sh/kerf/internal/app"
)

func main() {
	f, err := app.InterruptionFunction(context.Background(), os.Environ())
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	lambda.StartHandlerFunc(f)
}
