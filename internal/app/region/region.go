package region

import (
	"github.com/aws/aws-sdk-go-v2/service/iam"
	awspricing "github.com/aws/aws-sdk-go-v2/service/pricing"
	"github.com/aws/aws-sdk-go-v2/service/ssm"

	"kerf.sh/kerf/internal/app"
	"kerf.sh/kerf/internal/cloud/fleet"
	"kerf.sh/kerf/internal/cloud/image"
	"kerf.sh/kerf/internal/cloud/pricing"
	"kerf.sh/kerf/internal/cloud/profile"
	"kerf.sh/kerf/internal/cloud/resolve"
	"kerf.sh/kerf/internal/cloud/userdata"
	"kerf.sh/kerf/internal/handler"
)

// Region asks AWS about a region.
type Region struct{ app.Region }

var _ app.Asked = (*Region)(nil)

// Ask is what app.CatalogFunction wants.
func Ask(r app.Region) app.Asked { return &Region{r} }

// Market is what the region sells.
func (r *Region) Market() handler.Market {
	m := &Market{EC2: r.EC2, Region: r.Name, Now: r.Now}
	if !r.Isolated {
		m.Products = awspricing.NewFromConfig(r.AWS, func(o *awspricing.Options) { o.Region = pricing.Endpoint(r.Name) })
	}
	return m
}

// Profiles are the instance profiles that are made for the cluster's classes.
func (r *Region) Profiles() *profile.Profiles {
	p := &profile.Profiles{Cluster: r.Cluster, Region: r.Name, Sleep: r.Sleep}
	if !r.Isolated {
		p.Client = iam.NewFromConfig(r.AWS)
	}
	return p
}

// Resolver asks for what classes select; version is that of Kubernetes.
func (r *Region) Resolver(node userdata.Cluster, version string) (handler.Resolver, error) {
	k8s, err := image.ParseVersion(version)
	if err != nil {
		return nil, err
	}
	out := &resolve.Resolver{
		Network: r.EC2, Images: &image.Resolver{EC2: r.EC2, SSM: ssm.NewFromConfig(r.AWS), Now: r.Now}, Profiles: r.Profiles(),
		Cluster: node, Region: r.Name, Kubernetes: k8s, Now: r.Now,
	}
	if r.Reservations {
		out.Reserved = r.EC2
	}
	return out, nil
}

// Leftovers are what was made for the cluster's classes.
func (r *Region) Leftovers() handler.Leftovers {
	return &Leftovers{Cluster: r.Cluster, Instances: &fleet.Fleet{Client: r.EC2}, Templates: r.Templates, Made: r.Profiles()}
}
