package ec2fake

import (
	"context"
	"maps"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/iam"
	"github.com/aws/aws-sdk-go-v2/service/iam/types"
)

// IAM keeps instance profiles and roles. What it made shows up after VisibleAfter reads.
type IAM struct {
	Now   func() time.Time
	Roles map[string]bool
	// VisibleAfter is how many reads of a new profile still find nothing.
	VisibleAfter int
	// Fault, when set, is asked before every call.
	Fault func(op string) error

	mu       sync.Mutex
	profiles map[string]*profile
	Ops      []string
}

type profile struct {
	path    string
	roles   []string
	tags    map[string]string
	created time.Time
	hidden  int
}

func (f *IAM) begin(op string) error {
	f.Ops = append(f.Ops, op)
	if f.profiles == nil {
		f.profiles = map[string]*profile{}
	}
	if f.Fault != nil {
		return f.Fault(op)
	}
	return nil
}

func noProfile(name string) error {
	return Error("NoSuchEntity", "Instance Profile %s cannot be found.", name)
}

func (f *IAM) describe(name string, p *profile) *types.InstanceProfile {
	out := &types.InstanceProfile{InstanceProfileName: aws.String(name), Path: aws.String(p.path), CreateDate: aws.Time(p.created)}
	for _, r := range p.roles {
		out.Roles = append(out.Roles, types.Role{RoleName: aws.String(r)})
	}
	for _, k := range slices.Sorted(maps.Keys(p.tags)) {
		out.Tags = append(out.Tags, types.Tag{Key: aws.String(k), Value: aws.String(p.tags[k])})
	}
	return out
}

// GetInstanceProfile finds one profile.
func (f *IAM) GetInstanceProfile(_ context.Context, in *iam.GetInstanceProfileInput, _ ...func(*iam.Options)) (*iam.GetInstanceProfileOutput, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if err := f.begin("GetInstanceProfile"); err != nil {
		return nil, err
	}
	name := aws.ToString(in.InstanceProfileName)
	p := f.profiles[name]
	if p == nil {
		return nil, noProfile(name)
	}
	if p.hidden > 0 {
		p.hidden--
		return nil, noProfile(name)
	}
	return &iam.GetInstanceProfileOutput{InstanceProfile: f.describe(name, p)}, nil
}

// CreateInstanceProfile makes a profile; names are unique.
func (f *IAM) CreateInstanceProfile(_ context.Context, in *iam.CreateInstanceProfileInput, _ ...func(*iam.Options)) (*iam.CreateInstanceProfileOutput, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if err := f.begin("CreateInstanceProfile"); err != nil {
		return nil, err
	}
	name := aws.ToString(in.InstanceProfileName)
	if len(name) < 1 || len(name) > 128 {
		return nil, Error("ValidationError", "instance profile name %q must have 1 to 128 characters", name)
	}
	if f.profiles[name] != nil {
		return nil, Error("EntityAlreadyExists", "Instance Profile %s already exists.", name)
	}
	p := &profile{path: aws.ToString(in.Path), tags: map[string]string{}, created: f.Now(), hidden: f.VisibleAfter}
	for _, t := range in.Tags {
		p.tags[*t.Key] = *t.Value
	}
	f.profiles[name] = p
	return &iam.CreateInstanceProfileOutput{InstanceProfile: f.describe(name, p)}, nil
}

// TagInstanceProfile tags a profile.
func (f *IAM) TagInstanceProfile(_ context.Context, in *iam.TagInstanceProfileInput, _ ...func(*iam.Options)) (*iam.TagInstanceProfileOutput, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if err := f.begin("TagInstanceProfile"); err != nil {
		return nil, err
	}
	p := f.profiles[aws.ToString(in.InstanceProfileName)]
	if p == nil {
		return nil, noProfile(aws.ToString(in.InstanceProfileName))
	}
	for _, t := range in.Tags {
		p.tags[*t.Key] = *t.Value
	}
	return &iam.TagInstanceProfileOutput{}, nil
}

// AddRoleToInstanceProfile adds a role; a profile has at most one.
func (f *IAM) AddRoleToInstanceProfile(_ context.Context, in *iam.AddRoleToInstanceProfileInput, _ ...func(*iam.Options)) (*iam.AddRoleToInstanceProfileOutput, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if err := f.begin("AddRoleToInstanceProfile"); err != nil {
		return nil, err
	}
	p, role := f.profiles[aws.ToString(in.InstanceProfileName)], aws.ToString(in.RoleName)
	switch {
	case p == nil:
		return nil, noProfile(aws.ToString(in.InstanceProfileName))
	case strings.Contains(role, "/"):
		return nil, Error("ValidationError", "role name %q holds characters that are not allowed", role)
	case !f.Roles[role]:
		return nil, Error("NoSuchEntity", "The role with name %s cannot be found.", role)
	case len(p.roles) > 0:
		return nil, Error("LimitExceeded", "Cannot exceed quota for InstanceSessionsPerInstanceProfile: 1")
	}
	p.roles = []string{role}
	return &iam.AddRoleToInstanceProfileOutput{}, nil
}

// RemoveRoleFromInstanceProfile removes a role.
func (f *IAM) RemoveRoleFromInstanceProfile(_ context.Context, in *iam.RemoveRoleFromInstanceProfileInput, _ ...func(*iam.Options)) (*iam.RemoveRoleFromInstanceProfileOutput, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if err := f.begin("RemoveRoleFromInstanceProfile"); err != nil {
		return nil, err
	}
	p := f.profiles[aws.ToString(in.InstanceProfileName)]
	if p == nil || !slices.Contains(p.roles, aws.ToString(in.RoleName)) {
		return nil, noProfile(aws.ToString(in.InstanceProfileName))
	}
	p.roles = nil
	return &iam.RemoveRoleFromInstanceProfileOutput{}, nil
}

// DeleteInstanceProfile deletes a profile that has no role.
func (f *IAM) DeleteInstanceProfile(_ context.Context, in *iam.DeleteInstanceProfileInput, _ ...func(*iam.Options)) (*iam.DeleteInstanceProfileOutput, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if err := f.begin("DeleteInstanceProfile"); err != nil {
		return nil, err
	}
	name := aws.ToString(in.InstanceProfileName)
	switch p := f.profiles[name]; {
	case p == nil:
		return nil, noProfile(name)
	case len(p.roles) > 0:
		return nil, Error("DeleteConflict", "Cannot delete entity, must remove roles from instance profile first.")
	}
	delete(f.profiles, name)
	return &iam.DeleteInstanceProfileOutput{}, nil
}

// ListInstanceProfiles lists profiles by a prefix of their path. Tags are not in it.
func (f *IAM) ListInstanceProfiles(_ context.Context, in *iam.ListInstanceProfilesInput, _ ...func(*iam.Options)) (*iam.ListInstanceProfilesOutput, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if err := f.begin("ListInstanceProfiles"); err != nil {
		return nil, err
	}
	out := &iam.ListInstanceProfilesOutput{}
	for _, name := range slices.Sorted(maps.Keys(f.profiles)) {
		if p := f.profiles[name]; strings.HasPrefix(p.path, aws.ToString(in.PathPrefix)) {
			one := f.describe(name, p)
			one.Tags = nil
			out.InstanceProfiles = append(out.InstanceProfiles, *one)
		}
	}
	return out, nil
}

// Profiles are the names of the profiles there are, with their role, sorted.
func (f *IAM) Profiles() []string {
	f.mu.Lock()
	defer f.mu.Unlock()
	var out []string
	for _, name := range slices.Sorted(maps.Keys(f.profiles)) {
		out = append(out, name+" "+strings.Join(f.profiles[name].roles, ","))
	}
	return out
}
