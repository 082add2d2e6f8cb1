package image

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/ec2"
	"github.com/aws/aws-sdk-go-v2/service/ec2/types"
	"github.com/aws/aws-sdk-go-v2/service/ssm"

	"kerf.sh/kerf/internal/catalog"
	"kerf.sh/kerf/internal/cloud/awserr"
	"kerf.sh/kerf/internal/cloud/network"
	"kerf.sh/kerf/internal/cloud/nodeclass"
	"kerf.sh/kerf/internal/snapshot"
)

// EC2 is the call of EC2 that images need.
type EC2 interface {
	DescribeImages(ctx context.Context, in *ec2.DescribeImagesInput, opts ...func(*ec2.Options)) (*ec2.DescribeImagesOutput, error)
}

// SSM is the call of SSM that images need.
type SSM interface {
	GetParameter(ctx context.Context, in *ssm.GetParameterInput, opts ...func(*ssm.Options)) (*ssm.GetParameterOutput, error)
}

// Resolver finds images.
type Resolver struct {
	EC2 EC2
	SSM SSM
	Now func() time.Time
}

// Resolve finds the images of a class, newest first. None found is no error. A refusal is
// definite; any other error means that an answer is missing, and then nothing is said at
// all: half of the variants would drift the nodes of the other half.
func (r *Resolver) Resolve(ctx context.Context, c *nodeclass.Class, k8s Version) ([]nodeclass.Image, error) {
	if c.Alias != "" {
		return r.byAlias(ctx, c.Alias, k8s)
	}
	return r.byTerms(ctx, c.Spec.AMISelectorTerms)
}

func (r *Resolver) byAlias(ctx context.Context, alias string, k8s Version) ([]nodeclass.Image, error) {
	queries, err := Queries(alias, k8s)
	if err != nil {
		return nil, err
	}
	of := map[string][][]snapshot.SelectorRequirement{}
	var ids []string
	for _, q := range queries {
		id, err := r.parameter(ctx, q.Parameter)
		if err != nil {
			return nil, err
		}
		if id == "" {
			continue // this variant is not published for this version
		}
		if of[id] == nil {
			ids = append(ids, id)
		}
		of[id] = append(of[id], q.Requirements...)
	}
	if len(ids) == 0 {
		return nil, nodeclass.Refuse(nodeclass.AMINotFound, "spec.amiSelectorTerms[0].alias: AWS publishes no image for %q under Kubernetes %s; check the version", alias, k8s)
	}
	found, err := r.describe(ctx, &ec2.DescribeImagesInput{Filters: []types.Filter{{Name: aws.String("image-id"), Values: ids}}})
	if err != nil {
		return nil, err
	}
	var out []nodeclass.Image
	for i := range found {
		for _, rs := range of[aws.ToString(found[i].ImageId)] {
			out = append(out, r.image(&found[i], rs))
		}
	}
	return Newest(out), nil
}

// parameter is the value of a parameter, "" when there is none of the name.
func (r *Resolver) parameter(ctx context.Context, name string) (string, error) {
	out, err := r.SSM.GetParameter(ctx, &ssm.GetParameterInput{Name: aws.String(name)})
	switch e := awserr.From(err); {
	case e == nil:
		return strings.TrimSpace(aws.ToString(out.Parameter.Value)), nil
	case e.Kind == awserr.NotFound:
		return "", nil
	case e.Kind == awserr.Invalid:
		return "", nodeclass.Refuse(nodeclass.AMINotFound, "spec.amiSelectorTerms: %q is no name of an SSM parameter: %s", name, e.Message)
	default:
		return "", fmt.Errorf("read SSM parameter %s: %w", name, e)
	}
}

// byTerms finds images by tags, name, id, owner and SSM parameter. The only requirement
// of such an image is its architecture.
func (r *Resolver) byTerms(ctx context.Context, terms []nodeclass.AMITerm) ([]nodeclass.Image, error) {
	inputs, err := r.inputs(ctx, terms)
	if err != nil {
		return nil, err
	}
	seen := map[string]bool{}
	var out []nodeclass.Image
	for _, in := range inputs {
		found, err := r.describe(ctx, in)
		if err != nil {
			return nil, err
		}
		for i := range found {
			arch := map[types.ArchitectureValues]string{types.ArchitectureValuesX8664: catalog.AMD64, types.ArchitectureValuesArm64: catalog.ARM64}[found[i].Architecture]
			if id := aws.ToString(found[i].ImageId); arch == "" || seen[id] {
				continue
			}
			seen[aws.ToString(found[i].ImageId)] = true
			out = append(out, r.image(&found[i], needs(arch, "", "")))
		}
	}
	return Newest(out), nil
}

// inputs are the calls for terms: one for all ids (those of parameters included), one for
// each other term. Terms with a name and no owner look at our own images and Amazon's;
// terms with tags alone have no owner (Karpenter: same).
func (r *Resolver) inputs(ctx context.Context, terms []nodeclass.AMITerm) ([]*ec2.DescribeImagesInput, error) {
	var ids []string
	var out []*ec2.DescribeImagesInput
	for _, t := range terms {
		switch {
		case t.ID != "":
			ids = append(ids, t.ID)
			continue
		case t.SSMParameter != "":
			id, err := r.parameter(ctx, t.SSMParameter)
			if err != nil {
				return nil, err
			}
			if id != "" {
				ids = append(ids, id)
			}
			continue
		case t.Name == "" && t.Owner == "" && len(t.Tags) == 0:
			continue
		}
		in := &ec2.DescribeImagesInput{Filters: network.TagFilters(t.Tags)}
		if t.Name != "" {
			in.Filters = append(in.Filters, types.Filter{Name: aws.String("name"), Values: []string{t.Name}})
			in.Owners = []string{"self", "amazon"}
		}
		if t.Owner != "" {
			in.Owners = []string{t.Owner}
		}
		out = append(out, in)
	}
	if len(ids) > 0 {
		// A filter, not the list of ids: one that does not exist is left out, and does not
		// take the others with it.
		out = append(out, &ec2.DescribeImagesInput{Filters: []types.Filter{{Name: aws.String("image-id"), Values: ids}}})
	}
	return out, nil
}

func (r *Resolver) describe(ctx context.Context, in *ec2.DescribeImagesInput) ([]types.Image, error) {
	in.IncludeDeprecated = aws.Bool(true)
	in.MaxResults = aws.Int32(1000)
	in.Filters = append(slices.Clone(in.Filters), types.Filter{Name: aws.String("state"), Values: []string{string(types.ImageStateAvailable)}})
	var out []types.Image
	for {
		page, err := r.EC2.DescribeImages(ctx, in)
		if err != nil {
			return nil, fmt.Errorf("resolve spec.amiSelectorTerms: %w", awserr.From(err))
		}
		out = append(out, page.Images...)
		if in.NextToken = page.NextToken; aws.ToString(in.NextToken) == "" {
			return out, nil
		}
	}
}

func (r *Resolver) image(i *types.Image, rs []snapshot.SelectorRequirement) nodeclass.Image {
	out := nodeclass.Image{ID: aws.ToString(i.ImageId), Name: aws.ToString(i.Name), Created: instant(i.CreationDate), Requirements: rs}
	if d := instant(i.DeprecationTime); !d.IsZero() && !r.Now().Before(d) {
		out.Deprecated = true
	}
	return out
}

// instant reads a time of EC2; zero when there is none.
func instant(s *string) time.Time {
	t, err := time.Parse(time.RFC3339, aws.ToString(s))
	if err != nil {
		return time.Time{}
	}
	return t
}
