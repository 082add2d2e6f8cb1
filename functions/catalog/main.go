// Command catalog finds out what can be launched (EC2NodeClasses, instance types, prices) and writes it
// down for the functions that plan.
package main

import (
	"context"
	"fmt"
	"os"

	"github.com/aws/aws-lambda-go/lambda"

	"kerf.sh/kerf/internal/app"
	"kerf.sh/kerf/internal/app/region"
)

func main() {
	f, err := app.CatalogFunction(context.Background(), os.Environ(), region.Ask)
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	lambda.StartHandlerFunc(f)
}
