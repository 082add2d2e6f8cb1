// Command lifecycle looks after nodes that are coming and nodes that are going, step by step, as its queue says.
package main

import (
	"context"
	"fmt"
	"os"

	"github.com/aws/aws-lambda-go/lambda"

	"kerf.sh/kerf/internal/app"
)

func main() {
	f, err := app.LifecycleFunction(context.Background(), os.Environ())
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	lambda.StartHandlerFunc(f)
}
