package region

import (
	"context"
	"fmt"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	awsconfig "github.com/aws/aws-sdk-go-v2/config"
	"github.com/aws/aws-sdk-go-v2/service/ec2"
	"github.com/aws/aws-sdk-go-v2/service/savingsplans"

	"kerf.sh/kerf/internal/app"
	"kerf.sh/kerf/internal/catalog"
	"kerf.sh/kerf/internal/cloud/commitment"
	"kerf.sh/kerf/internal/cloud/instancetype"
	"kerf.sh/kerf/internal/handler"
	"kerf.sh/kerf/internal/plan"
)

const (
	// credentialsTime is how long credentials are looked for: a machine without any asks for
	// those of an instance, which do not answer.
	credentialsTime = 5 * time.Second
	// attempts is how often a request is made before it is given up. A person waits longer
	// than a function.
	attempts = 8
)

// Facts is an app.Facts.
func Facts(ctx context.Context, q app.Asking) (*catalog.Catalog, []plan.Warning, error) {
	conf, err := Configuration(ctx, q.Region)
	if err != nil {
		return nil, nil, err
	}
	return Present(ctx, conf, q)
}

// Configuration is how AWS is asked in a region, "" = that of the environment. The error is
// app.ErrNoCredentials where there is nobody to ask as.
func Configuration(ctx context.Context, region string) (aws.Config, error) {
	with := []func(*awsconfig.LoadOptions) error{awsconfig.WithRetryMaxAttempts(attempts)}
	if region != "" {
		with = append(with, awsconfig.WithRegion(region))
	}
	conf, err := awsconfig.LoadDefaultConfig(ctx, with...)
	if err != nil {
		return conf, fmt.Errorf("read the configuration of AWS: %w", err)
	}
	if conf.Region == "" {
		return conf, fmt.Errorf("%w: no region is known either; give it with --region", app.ErrNoCredentials)
	}
	short, done := context.WithTimeout(ctx, credentialsTime)
	defer done()
	if _, err := conf.Credentials.Retrieve(short); err != nil {
		return conf, app.ErrNoCredentials // what the SDK tried is many lines, and none says more
	}
	return conf, nil
}

// Present is what a region sells now. What could not be read is a warning; nil: nothing
// could.
func Present(ctx context.Context, conf aws.Config, q app.Asking) (*catalog.Catalog, []plan.Warning, error) {
	client := ec2.NewFromConfig(conf)
	market := (&Region{app.Region{AWS: conf, EC2: client, Name: conf.Region, Now: q.Now}}).Market()
	// The names of zones mean other zones in every account; where they cannot be asked for,
	// classes know those of their subnets.
	ids, _ := instancetype.ZoneIDs(ctx, client)
	c, warnings := handler.Present(ctx, market, conf.Region, ids, q.Now())
	if q.Commitments && c != nil {
		account := commitment.Account{EC2: client, Region: conf.Region, Types: c.Types,
			Plans: savingsplans.NewFromConfig(conf, func(o *savingsplans.Options) { o.Region = plansRegion })}
		found, problems := account.Read(ctx)
		out := *c
		out.Commitments, c = found, &out
		for _, p := range problems {
			warnings = append(warnings, plan.Warning{Code: plan.FactsNotRead, Detail: p})
		}
	}
	return c, warnings, nil
}

// plansRegion is where Savings Plans are asked about; they are of no region.
const plansRegion = "us-east-1"
