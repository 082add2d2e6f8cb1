package template

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"sync"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/ec2"
	"github.com/aws/aws-sdk-go-v2/service/ec2/types"

	"kerf.sh/kerf/internal/cloud/awserr"
	"kerf.sh/kerf/internal/cloud/launch"
	"kerf.sh/kerf/internal/cloud/nodeclass"
)

// Client are the calls of EC2 that templates need.
type Client interface {
	CreateLaunchTemplate(ctx context.Context, in *ec2.CreateLaunchTemplateInput, opts ...func(*ec2.Options)) (*ec2.CreateLaunchTemplateOutput, error)
	DescribeLaunchTemplates(ctx context.Context, in *ec2.DescribeLaunchTemplatesInput, opts ...func(*ec2.Options)) (*ec2.DescribeLaunchTemplatesOutput, error)
	DeleteLaunchTemplate(ctx context.Context, in *ec2.DeleteLaunchTemplateInput, opts ...func(*ec2.Options)) (*ec2.DeleteLaunchTemplateOutput, error)
}

// Store makes, lists and deletes templates. It remembers for a while which exist, so that
// a warm function does not ask again: shorter than any template is kept after its last use.
type Store struct {
	client Client
	now    func() time.Time
	mu     sync.Mutex
	seen   map[string]time.Time
}

// rememberFor is how long a template that was seen counts as there.
const rememberFor = 10 * time.Minute

// namesPerCall is how many values a filter of EC2 takes.
const namesPerCall = 200

// New returns a store.
func New(client Client, now func() time.Time) *Store {
	return &Store{client: client, now: now, seen: map[string]time.Time{}}
}

// Ensure makes the templates that do not exist. The error is an *awserr.Error.
func (s *Store) Ensure(ctx context.Context, templates []launch.Template) error {
	missing := map[string]*launch.Template{}
	s.mu.Lock()
	for i := range templates {
		t := &templates[i]
		if at, ok := s.seen[t.Name]; !ok || s.now().Sub(at) > rememberFor {
			missing[t.Name] = t
		}
	}
	s.mu.Unlock()
	names := slices.Sorted(maps.Keys(missing))
	for chunk := range slices.Chunk(names, namesPerCall) {
		found, err := s.describe(ctx, types.Filter{Name: aws.String("launch-template-name"), Values: chunk})
		if err != nil {
			return err
		}
		for _, f := range found {
			s.saw(f.Name)
			delete(missing, f.Name)
		}
	}
	for _, name := range slices.Sorted(maps.Keys(missing)) {
		if err := s.create(ctx, missing[name]); err != nil {
			return err
		}
		s.saw(name)
	}
	return nil
}

// Forget drops names from what is remembered: EC2 said that one of them is not there.
func (s *Store) Forget(names ...string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, n := range names {
		delete(s.seen, n)
	}
}

func (s *Store) saw(name string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.seen[name] = s.now()
}

func (s *Store) create(ctx context.Context, t *launch.Template) error {
	_, err := s.client.CreateLaunchTemplate(ctx, Input(t))
	e := awserr.From(err)
	if e == nil || e.Code == "InvalidLaunchTemplateName.AlreadyExistsException" {
		return nil // made by another pass: the name says that it is the same
	}
	return fmt.Errorf("create launch template %s: %w", t.Name, e)
}

// List are the templates of a cluster, by name.
func (s *Store) List(ctx context.Context, cluster string) ([]launch.Stored, error) {
	return s.describe(ctx, types.Filter{Name: aws.String("tag:" + nodeclass.TagClusterName), Values: []string{cluster}})
}

func (s *Store) describe(ctx context.Context, filter types.Filter) ([]launch.Stored, error) {
	var out []launch.Stored
	in := &ec2.DescribeLaunchTemplatesInput{Filters: []types.Filter{filter}}
	for {
		page, err := s.client.DescribeLaunchTemplates(ctx, in)
		if err != nil {
			return nil, fmt.Errorf("describe launch templates: %w", awserr.From(err))
		}
		for _, t := range page.LaunchTemplates {
			one := launch.Stored{ID: aws.ToString(t.LaunchTemplateId), Name: aws.ToString(t.LaunchTemplateName), Created: aws.ToTime(t.CreateTime), Tags: map[string]string{}}
			for _, tag := range t.Tags {
				one.Tags[aws.ToString(tag.Key)] = aws.ToString(tag.Value)
			}
			out = append(out, one)
		}
		if aws.ToString(page.NextToken) == "" {
			break
		}
		in.NextToken = page.NextToken
	}
	slices.SortFunc(out, compareStored)
	return out, nil
}

func compareStored(a, b launch.Stored) int {
	switch {
	case a.Name < b.Name:
		return -1
	case a.Name > b.Name:
		return 1
	}
	return 0
}

// Delete removes templates (launch.Unused says which). One that is gone already is fine;
// the first other error ends it, and the names that are gone are returned with it.
func (s *Store) Delete(ctx context.Context, templates []launch.Stored) ([]string, error) {
	var gone []string
	for _, t := range templates {
		s.Forget(t.Name)
		_, err := s.client.DeleteLaunchTemplate(ctx, &ec2.DeleteLaunchTemplateInput{LaunchTemplateId: aws.String(t.ID)})
		if e := awserr.From(err); e != nil && e.Kind != awserr.TemplateNotFound {
			return gone, fmt.Errorf("delete launch template %s: %w", t.Name, e)
		}
		gone = append(gone, t.Name)
	}
	return gone, nil
}
