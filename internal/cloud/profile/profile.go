package profile

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/iam"
	"github.com/aws/aws-sdk-go-v2/service/iam/types"

	"kerf.sh/kerf/internal/cloud/awserr"
	"kerf.sh/kerf/internal/cloud/nodeclass"
)

// Client are the calls of IAM that profiles need.
type Client interface {
	GetInstanceProfile(ctx context.Context, in *iam.GetInstanceProfileInput, opts ...func(*iam.Options)) (*iam.GetInstanceProfileOutput, error)
	CreateInstanceProfile(ctx context.Context, in *iam.CreateInstanceProfileInput, opts ...func(*iam.Options)) (*iam.CreateInstanceProfileOutput, error)
	TagInstanceProfile(ctx context.Context, in *iam.TagInstanceProfileInput, opts ...func(*iam.Options)) (*iam.TagInstanceProfileOutput, error)
	AddRoleToInstanceProfile(ctx context.Context, in *iam.AddRoleToInstanceProfileInput, opts ...func(*iam.Options)) (*iam.AddRoleToInstanceProfileOutput, error)
	RemoveRoleFromInstanceProfile(ctx context.Context, in *iam.RemoveRoleFromInstanceProfileInput, opts ...func(*iam.Options)) (*iam.RemoveRoleFromInstanceProfileOutput, error)
	DeleteInstanceProfile(ctx context.Context, in *iam.DeleteInstanceProfileInput, opts ...func(*iam.Options)) (*iam.DeleteInstanceProfileOutput, error)
	ListInstanceProfiles(ctx context.Context, in *iam.ListInstanceProfilesInput, opts ...func(*iam.Options)) (*iam.ListInstanceProfilesOutput, error)
}

// Profiles makes and collects instance profiles.
type Profiles struct {
	Client          Client // nil: IAM cannot be reached (a VPC without a way out)
	Cluster, Region string
	// Sleep waits between reads of a new profile; it ends early with the context.
	Sleep func(ctx context.Context, d time.Duration) error
}

// How long a new profile is waited for: IAM shows it to others with a delay.
const (
	waits    = 10
	waitTime = time.Second
)

// Resolve returns the name of the profile of a class. A class with spec.instanceProfile is
// taken at its word: EC2 will say if it does not exist.
func (p *Profiles) Resolve(ctx context.Context, c *nodeclass.Class) (string, error) {
	switch {
	case c.Spec.InstanceProfile != "":
		return c.Spec.InstanceProfile, nil
	case c.Spec.Role == "":
		return "", nodeclass.Refuse(nodeclass.InstanceProfileNotFound, "spec.role: neither it nor spec.instanceProfile is set; set one of them")
	case p.Client == nil:
		return "", nodeclass.Refuse(nodeclass.RoleNotUsable,
			"spec.role: %q needs IAM, which has no endpoint in an isolated VPC; make an instance profile with the role and set spec.instanceProfile", c.Spec.Role)
	}
	return p.ensure(ctx, c)
}

// Name is the name of the profile of a class and role.
func Name(cluster, region string, c *nodeclass.Class) string {
	sum := sha256.Sum256([]byte(strings.Join([]string{cluster, region, c.Name, c.UID, role(c.Spec.Role)}, "\x00")))
	short := cluster
	if len(short) > 100 {
		short = short[:100]
	}
	return short + "_" + hex.EncodeToString(sum[:10])
}

// role is a role without its path: IAM takes the bare name.
func role(name string) string { return name[strings.LastIndexByte(name, '/')+1:] }

// pathPrefix is where the profiles of a cluster are.
func (p *Profiles) pathPrefix() string { return "/kerf/" + p.Region + "/" + p.Cluster + "/" }

// tags are what policies for instance profiles ask for (Karpenter:
// AllowScopedInstanceProfileCreationActions), and those of the class.
func (p *Profiles) tags(c *nodeclass.Class) []types.Tag {
	all := maps.Clone(c.Spec.Tags)
	if all == nil {
		all = map[string]string{}
	}
	all[nodeclass.TagClusterPrefix+p.Cluster] = "owned"
	all[nodeclass.TagClusterName] = p.Cluster
	all[nodeclass.TagNodeClass] = c.Name
	all[nodeclass.TagRegion] = p.Region
	out := make([]types.Tag, 0, len(all))
	for _, k := range slices.Sorted(maps.Keys(all)) {
		out = append(out, types.Tag{Key: aws.String(k), Value: aws.String(all[k])})
	}
	return out
}

// ensure makes the profile, puts the role into it and waits until others can see it. Every
// step may have been done before.
func (p *Profiles) ensure(ctx context.Context, c *nodeclass.Class) (string, error) {
	name, want := Name(p.Cluster, p.Region, c), role(c.Spec.Role)
	have, err := p.get(ctx, name)
	if err != nil {
		return "", err
	}
	if have == nil {
		_, err := p.Client.CreateInstanceProfile(ctx, &iam.CreateInstanceProfileInput{
			InstanceProfileName: aws.String(name), Path: aws.String(p.pathPrefix() + c.UID + "/"), Tags: p.tags(c),
		})
		if e := awserr.From(err); e != nil && e.Code != "EntityAlreadyExists" {
			return "", p.problem("create instance profile "+name, e)
		}
	} else if len(have.Roles) == 1 && aws.ToString(have.Roles[0].RoleName) == want {
		return name, p.retag(ctx, have, c)
	} else if len(have.Roles) > 0 {
		// Somebody put another role into it: a node with it would be a stranger.
		other := aws.ToString(have.Roles[0].RoleName)
		if _, err := p.Client.RemoveRoleFromInstanceProfile(ctx, &iam.RemoveRoleFromInstanceProfileInput{InstanceProfileName: aws.String(name), RoleName: aws.String(other)}); err != nil {
			return "", p.problem("remove role "+other+" from instance profile "+name, awserr.From(err))
		}
	}
	_, err = p.Client.AddRoleToInstanceProfile(ctx, &iam.AddRoleToInstanceProfileInput{InstanceProfileName: aws.String(name), RoleName: aws.String(want)})
	switch e := awserr.From(err); {
	case e == nil, e.Code == "LimitExceeded": // another pass was quicker; the wait below sees which role it is
	case e.Kind == awserr.NotFound && strings.Contains(strings.ToLower(e.Message), "role"):
		return "", nodeclass.Refuse(nodeclass.RoleNotUsable, "spec.role: there is no role %q in this account; create it or correct the name", c.Spec.Role)
	default:
		return "", p.problem("add role "+want+" to instance profile "+name, e)
	}
	return name, p.wait(ctx, name, want)
}

func (p *Profiles) wait(ctx context.Context, name, want string) error {
	for range waits {
		have, err := p.get(ctx, name)
		if err != nil {
			return err
		}
		if have != nil && len(have.Roles) == 1 && aws.ToString(have.Roles[0].RoleName) == want {
			return nil
		}
		if err := p.Sleep(ctx, waitTime); err != nil {
			return fmt.Errorf("wait for instance profile %s: %w", name, err)
		}
	}
	return fmt.Errorf("wait for instance profile %s: IAM does not show it with role %s after %d s", name, want, waits)
}

// retag adds the tags that are missing: the class may have got more.
func (p *Profiles) retag(ctx context.Context, have *types.InstanceProfile, c *nodeclass.Class) error {
	old := map[string]string{}
	for _, t := range have.Tags {
		old[aws.ToString(t.Key)] = aws.ToString(t.Value)
	}
	var missing []types.Tag
	for _, t := range p.tags(c) {
		if v, ok := old[*t.Key]; !ok || v != *t.Value {
			missing = append(missing, t)
		}
	}
	if len(missing) == 0 {
		return nil
	}
	name := aws.ToString(have.InstanceProfileName)
	if _, err := p.Client.TagInstanceProfile(ctx, &iam.TagInstanceProfileInput{InstanceProfileName: aws.String(name), Tags: missing}); err != nil {
		return p.problem("tag instance profile "+name, awserr.From(err))
	}
	return nil
}

// get returns a profile, nil when there is none.
func (p *Profiles) get(ctx context.Context, name string) (*types.InstanceProfile, error) {
	out, err := p.Client.GetInstanceProfile(ctx, &iam.GetInstanceProfileInput{InstanceProfileName: aws.String(name)})
	switch e := awserr.From(err); {
	case e == nil:
		return out.InstanceProfile, nil
	case e.Kind == awserr.NotFound:
		return nil, nil
	default:
		return nil, p.problem("read instance profile "+name, e)
	}
}

// problem is a refusal for a denial, which stays until somebody changes a policy, and an
// error for what may pass.
func (p *Profiles) problem(what string, e *awserr.Error) error {
	if e.Kind == awserr.Unauthorized {
		return nodeclass.Refuse(nodeclass.RoleNotUsable, "spec.role: %s: %v", what, e)
	}
	return fmt.Errorf("%s: %w", what, e)
}

// Found is a profile that we made.
type Found struct {
	Name    string
	Role    string
	Created time.Time
}

// unusedFor is how long a profile is kept although nothing names it: nodes may still be
// launched with what a pass resolved before (Karpenter: 1 h).
const unusedFor = time.Hour

// Unused are the profiles that may go: named by no class, record or instance, and made an
// hour ago. The order is that of found.
func Unused(found []Found, named map[string]bool, now time.Time) []Found {
	return slices.DeleteFunc(slices.Clone(found), func(f Found) bool {
		return named[f.Name] || f.Created.IsZero() || now.Sub(f.Created) < unusedFor
	})
}

// List are the profiles that we made for the cluster, by name.
func (p *Profiles) List(ctx context.Context) ([]Found, error) { return p.list(ctx, p.pathPrefix()) }

// Of are those that we made for one class, by its UID.
func (p *Profiles) Of(ctx context.Context, uid string) ([]Found, error) {
	if uid == "" || strings.Contains(uid, "/") {
		return nil, fmt.Errorf("list instance profiles: %q is the UID of no class", uid)
	}
	return p.list(ctx, p.pathPrefix()+uid+"/")
}

func (p *Profiles) list(ctx context.Context, path string) ([]Found, error) {
	if p.Client == nil {
		return nil, nil
	}
	var out []Found
	in := &iam.ListInstanceProfilesInput{PathPrefix: aws.String(path)}
	for {
		page, err := p.Client.ListInstanceProfiles(ctx, in)
		if err != nil {
			return nil, fmt.Errorf("list instance profiles: %w", awserr.From(err))
		}
		for _, i := range page.InstanceProfiles {
			f := Found{Name: aws.ToString(i.InstanceProfileName), Created: aws.ToTime(i.CreateDate)}
			if len(i.Roles) > 0 {
				f.Role = aws.ToString(i.Roles[0].RoleName)
			}
			out = append(out, f)
		}
		if !page.IsTruncated {
			break
		}
		in.Marker = page.Marker
	}
	slices.SortFunc(out, func(a, b Found) int { return strings.Compare(a.Name, b.Name) })
	return out, nil
}

// Delete removes profiles. One that is gone already is fine.
func (p *Profiles) Delete(ctx context.Context, profiles []Found) error {
	for _, f := range profiles {
		if f.Role != "" {
			_, err := p.Client.RemoveRoleFromInstanceProfile(ctx, &iam.RemoveRoleFromInstanceProfileInput{InstanceProfileName: aws.String(f.Name), RoleName: aws.String(f.Role)})
			if e := awserr.From(err); e != nil && e.Kind != awserr.NotFound {
				return fmt.Errorf("remove role from instance profile %s: %w", f.Name, e)
			}
		}
		_, err := p.Client.DeleteInstanceProfile(ctx, &iam.DeleteInstanceProfileInput{InstanceProfileName: aws.String(f.Name)})
		if e := awserr.From(err); e != nil && e.Kind != awserr.NotFound {
			return fmt.Errorf("delete instance profile %s: %w", f.Name, e)
		}
	}
	return nil
}
