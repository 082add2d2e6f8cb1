// Command echo is a function that does what its event says: the tests of runtimeapi run it.
package main

import (
	"context"
	"encoding/json"
	"errors"
	"os"
	"slices"
	"time"

	"github.com/aws/aws-lambda-go/lambda"
	"github.com/aws/aws-lambda-go/lambdacontext"
)

type event struct {
	Do      string
	Records []struct{ MessageID, Body string }
}

type failure struct {
	ItemIdentifier string `json:"itemIdentifier"`
}

func main() {
	if os.Getenv("FAIL") != "" {
		os.Exit(3)
	}
	count := 0
	lambda.Start(func(ctx context.Context, in event) (any, error) {
		count++
		switch in.Do {
		case "crash":
			os.Exit(2)
		case "error":
			return nil, errors.New("as was asked")
		case "panic":
			panic("as was asked")
		case "sleep":
			time.Sleep(time.Minute)
		case "large":
			return string(make([]byte, 7<<20)), nil
		}
		deadline, _ := ctx.Deadline()
		lc, _ := lambdacontext.FromContext(ctx)
		var failed []failure
		for _, r := range in.Records {
			if r.Body == "bad" {
				failed = append(failed, failure{r.MessageID})
			}
		}
		env := os.Environ()
		slices.Sort(env)
		text, err := json.Marshal(env)
		return map[string]any{"count": count, "left": time.Until(deadline).Milliseconds(), "id": lc.AwsRequestID, "env": string(text), "batchItemFailures": failed}, err
	})
}
