package app

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/iam"
	awspricing "github.com/aws/aws-sdk-go-v2/service/pricing"
	"github.com/aws/aws-sdk-go-v2/service/ssm"
	"github.com/aws/aws-sdk-go-v2/service/sts"

	"kerf.sh/kerf/internal/catalog"
	"kerf.sh/kerf/internal/cloud/fleet"
	"kerf.sh/kerf/internal/cloud/image"
	"kerf.sh/kerf/internal/cloud/instancetype"
	"kerf.sh/kerf/internal/cloud/launch"
	"kerf.sh/kerf/internal/cloud/nodeclass"
	"kerf.sh/kerf/internal/cloud/pricing"
	"kerf.sh/kerf/internal/cloud/profile"
	"kerf.sh/kerf/internal/cloud/resolve"
	"kerf.sh/kerf/internal/cloud/template"
	"kerf.sh/kerf/internal/execute"
	"kerf.sh/kerf/internal/handler"
	"kerf.sh/kerf/internal/kube/eks"
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

// Market is what a region sells.
type Market struct {
	EC2 interface {
		pricing.EC2
		instancetype.Client
	}
	// Products is the price list; nil: it cannot be reached.
	Products pricing.Products
	Region   string
	Now      func() time.Time
}

var _ handler.Market = (*Market)(nil)

// Offered implements handler.Market.
func (m *Market) Offered(ctx context.Context, table *catalog.Catalog, zoneIDs map[string]string) (*catalog.Catalog, error) {
	found, err := instancetype.Types(ctx, m.EC2)
	if err != nil {
		return nil, err
	}
	zones, err := instancetype.Zones(ctx, m.EC2)
	if err != nil {
		return nil, err
	}
	if len(found) == 0 || len(zones) == 0 {
		return nil, fmt.Errorf("EC2 knows %d instance types in %s, and zones of %d: that cannot be", len(found), m.Region, len(zones))
	}
	return instancetype.Merge(table, found, zones, zoneIDs), nil
}

// OnDemand implements handler.Market.
func (m *Market) OnDemand(ctx context.Context) (map[string]int64, error) {
	if m.Products == nil {
		return nil, nil
	}
	got, err := pricing.OnDemand(ctx, m.Products, m.Region)
	if err == nil && len(got) == 0 {
		err = fmt.Errorf("the price list has nothing for %s", m.Region)
	}
	return got, err
}

// Spot implements handler.Market.
func (m *Market) Spot(ctx context.Context) (map[string]map[string]int64, error) {
	return pricing.Spot(ctx, m.EC2, m.Now())
}

// Priced implements handler.Market.
func (m *Market) Priced(c *catalog.Catalog, onDemand map[string]int64, spot map[string]map[string]int64) *catalog.Catalog {
	return pricing.Apply(c, onDemand, spot)
}

// market is that of the function's region.
func (b *base) market() *Market {
	m := &Market{EC2: b.ec2(), Region: b.region, Now: b.now}
	if !b.conf.Functions.Isolated {
		m.Products = awspricing.NewFromConfig(b.aws, func(o *awspricing.Options) { o.Region = pricing.Endpoint(b.region) })
	}
	return m
}

// profiles are the instance profiles of the cluster's classes.
func (b *base) profiles() *profile.Profiles {
	p := &profile.Profiles{Cluster: b.conf.Cluster, Region: b.region, Sleep: pause}
	if !b.conf.Functions.Isolated {
		p.Client = iam.NewFromConfig(b.aws)
	}
	return p
}

// resolver asks AWS for what classes select.
func (b *base) resolver(c *eks.Cluster, profiles *profile.Profiles) (*resolve.Resolver, error) {
	version, err := image.ParseVersion(c.Version)
	if err != nil {
		return nil, err
	}
	r := &resolve.Resolver{
		Network: b.ec2(), Images: &image.Resolver{EC2: b.ec2(), SSM: ssm.NewFromConfig(b.aws), Now: b.now}, Profiles: profiles,
		Cluster: nodeFacts(c), Region: b.region, Kubernetes: version, Now: b.now,
	}
	if b.conf.Settings.ReservedCapacity {
		r.Reserved = b.ec2()
	}
	return r, nil
}

// Leftovers are the launch templates and instance profiles of a cluster's classes.
type Leftovers struct {
	Cluster  string
	Cloud    Cloud
	Profiler *profile.Profiles
}

var _ handler.Leftovers = (*Leftovers)(nil)

// RemoveOf implements handler.Leftovers.
func (l *Leftovers) RemoveOf(ctx context.Context, class, uid string) error {
	templates, err := l.Cloud.Templates(ctx, l.Cluster)
	if err != nil {
		return err
	}
	templates = slices.DeleteFunc(templates, func(t launch.Stored) bool { return t.Tags[nodeclass.TagNodeClass] != class })
	if _, err := l.Cloud.DeleteTemplates(ctx, templates); err != nil {
		return err
	}
	made, err := l.Profiler.Of(ctx, uid)
	if err != nil {
		return err
	}
	return l.Profiler.Delete(ctx, made)
}

// Profiles implements handler.Leftovers.
func (l *Leftovers) Profiles(ctx context.Context) ([]string, error) {
	made, err := l.Profiler.List(ctx)
	if err != nil {
		return nil, err
	}
	names := make([]string, len(made))
	for i, p := range made {
		names[i] = p.Name
	}
	return names, nil
}

// InUse implements handler.Leftovers.
func (l *Leftovers) InUse(ctx context.Context) (map[string]bool, error) {
	instances, err := l.Cloud.List(ctx, l.Cluster)
	if err != nil {
		return nil, err
	}
	used := map[string]bool{}
	for i := range instances {
		arn := instances[i].Profile
		used[arn[strings.LastIndexByte(arn, '/')+1:]] = true
	}
	return used, nil
}

// RemoveProfiles implements handler.Leftovers.
func (l *Leftovers) RemoveProfiles(ctx context.Context, names []string) error {
	made, err := l.Profiler.List(ctx)
	if err != nil {
		return err
	}
	return l.Profiler.Delete(ctx, slices.DeleteFunc(made, func(f profile.Found) bool { return !slices.Contains(names, f.Name) }))
}
