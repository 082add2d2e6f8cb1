package app

import (
	"context"

	"github.com/aws/aws-sdk-go-v2/service/sts"

	"kerf.sh/kerf/internal/cloud/fleet"
	"kerf.sh/kerf/internal/cloud/launch"
	"kerf.sh/kerf/internal/cloud/template"
	"kerf.sh/kerf/internal/execute"
)

// Cloud is EC2 as it is launched from: instances and launch templates.
type Cloud struct {
	*fleet.Fleet
	*template.Store
}

var _ execute.Cloud = Cloud{}

// List implements execute.Cloud: instances, not templates.
func (c Cloud) List(ctx context.Context, cluster string) ([]launch.Described, error) {
	return c.Fleet.List(ctx, cluster)
}

// Templates implements execute.Cloud.
func (c Cloud) Templates(ctx context.Context, cluster string) ([]launch.Stored, error) {
	return c.Store.List(ctx, cluster)
}

// DeleteTemplates implements execute.Cloud.
func (c Cloud) DeleteTemplates(ctx context.Context, templates []launch.Stored) ([]string, error) {
	return c.Store.Delete(ctx, templates)
}

// cloud is EC2 of the function's region. Why something is denied is decoded where that is
// permitted.
func (b *base) cloud(templates *template.Store) Cloud {
	f := &fleet.Fleet{Client: b.ec2()}
	if !b.conf.Functions.Isolated {
		f.Decoder = sts.NewFromConfig(b.aws)
	}
	return Cloud{f, templates}
}
