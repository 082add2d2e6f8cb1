package ec2fake

import (
	"cmp"
	"context"
	"encoding/base64"
	"reflect"
	"slices"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/ec2"
	"github.com/aws/aws-sdk-go-v2/service/ec2/types"
)

type storedTemplate struct {
	id, name string
	data     *types.RequestLaunchTemplateData
	tags     map[string]string
	created  time.Time
	token    string
}

// CreateLaunchTemplate makes a template; names are unique.
func (f *EC2) CreateLaunchTemplate(_ context.Context, in *ec2.CreateLaunchTemplateInput, _ ...func(*ec2.Options)) (*ec2.CreateLaunchTemplateOutput, error) {
	return do(f, "CreateLaunchTemplate", in, func() (*ec2.CreateLaunchTemplateOutput, error) {
		name := aws.ToString(in.LaunchTemplateName)
		if len(name) < 3 || len(name) > 128 {
			return nil, Error("InvalidLaunchTemplateName.MalformedException", "The launch template name '%s' must be between 3 and 128 characters", name)
		}
		if old, ok := f.templates[name]; ok {
			if token := aws.ToString(in.ClientToken); token != "" && old.token == token {
				if !reflect.DeepEqual(old.data, in.LaunchTemplateData) {
					return nil, Error("IdempotentParameterMismatch", "The client token was used with other parameters")
				}
				return &ec2.CreateLaunchTemplateOutput{LaunchTemplate: old.describe()}, nil
			}
			return nil, Error("InvalidLaunchTemplateName.AlreadyExistsException", "Launch template name already in use.")
		}
		if raw, err := base64.StdEncoding.DecodeString(aws.ToString(in.LaunchTemplateData.UserData)); err != nil || len(raw) > 16384 {
			return nil, Error("InvalidUserData.Malformed", "User data is limited to 16384 bytes")
		}
		t := &storedTemplate{id: f.id("lt"), name: name, data: in.LaunchTemplateData, created: f.Now(), token: aws.ToString(in.ClientToken)}
		for _, s := range in.TagSpecifications {
			t.tags = tagMap(s.Tags)
		}
		f.templates[name] = t
		return &ec2.CreateLaunchTemplateOutput{LaunchTemplate: t.describe()}, nil
	})
}

func (t *storedTemplate) describe() *types.LaunchTemplate {
	out := &types.LaunchTemplate{LaunchTemplateId: aws.String(t.id), LaunchTemplateName: aws.String(t.name), CreateTime: aws.Time(t.created)}
	for k, v := range t.tags {
		out.Tags = append(out.Tags, types.Tag{Key: aws.String(k), Value: aws.String(v)})
	}
	slices.SortFunc(out.Tags, func(a, b types.Tag) int { return cmp.Compare(*a.Key, *b.Key) })
	return out
}

// DescribeLaunchTemplates finds templates by names or filters. A name that does not exist
// fails the call; a filter just finds nothing.
func (f *EC2) DescribeLaunchTemplates(_ context.Context, in *ec2.DescribeLaunchTemplatesInput, _ ...func(*ec2.Options)) (*ec2.DescribeLaunchTemplatesOutput, error) {
	return do(f, "DescribeLaunchTemplates", in, func() (*ec2.DescribeLaunchTemplatesOutput, error) {
		var found []types.LaunchTemplate
		for _, name := range in.LaunchTemplateNames {
			if f.templates[name] == nil {
				return nil, Error("InvalidLaunchTemplateName.NotFoundException", "At least one of the launch templates specified in the request does not exist.")
			}
		}
		for _, t := range f.templates {
			if len(in.LaunchTemplateNames) > 0 && !slices.Contains(in.LaunchTemplateNames, t.name) {
				continue
			}
			ok, err := match(in.Filters, t.tags, func(name string) ([]string, bool) { return []string{t.name}, name == "launch-template-name" })
			if err != nil {
				return nil, err
			}
			if ok {
				found = append(found, *t.describe())
			}
		}
		slices.SortFunc(found, func(a, b types.LaunchTemplate) int { return cmp.Compare(*a.LaunchTemplateName, *b.LaunchTemplateName) })
		some, next, err := page(f, found, in.NextToken, in.MaxResults)
		return &ec2.DescribeLaunchTemplatesOutput{LaunchTemplates: some, NextToken: next}, err
	})
}

// DeleteLaunchTemplate deletes by id or name.
func (f *EC2) DeleteLaunchTemplate(_ context.Context, in *ec2.DeleteLaunchTemplateInput, _ ...func(*ec2.Options)) (*ec2.DeleteLaunchTemplateOutput, error) {
	return do(f, "DeleteLaunchTemplate", in, func() (*ec2.DeleteLaunchTemplateOutput, error) {
		for name, t := range f.templates {
			if t.id == aws.ToString(in.LaunchTemplateId) || name == aws.ToString(in.LaunchTemplateName) {
				delete(f.templates, name)
				return &ec2.DeleteLaunchTemplateOutput{}, nil
			}
		}
		return nil, Error("InvalidLaunchTemplateId.NotFound", "The specified launch template, with template ID %s, does not exist.", aws.ToString(in.LaunchTemplateId))
	})
}

// Templates are the names of the templates there are, sorted.
func (f *EC2) Templates() []string {
	f.mu.Lock()
	defer f.mu.Unlock()
	out := make([]string, 0, len(f.templates))
	for name := range f.templates {
		out = append(out, name)
	}
	slices.Sort(out)
	return out
}
