package region

import (
	"context"
	"slices"
	"strings"

	"kerf.sh/kerf/internal/cloud/launch"
	"kerf.sh/kerf/internal/cloud/nodeclass"
	"kerf.sh/kerf/internal/cloud/profile"
	"kerf.sh/kerf/internal/handler"
)

// Leftovers are the launch templates and instance profiles of a cluster's classes.
type Leftovers struct {
	Cluster   string
	Instances interface {
		List(ctx context.Context, cluster string) ([]launch.Described, error)
	}
	Templates interface {
		List(ctx context.Context, cluster string) ([]launch.Stored, error)
		Delete(ctx context.Context, templates []launch.Stored) ([]string, error)
	}
	Made *profile.Profiles
}

var _ handler.Leftovers = (*Leftovers)(nil)

// RemoveOf implements handler.Leftovers.
func (l *Leftovers) RemoveOf(ctx context.Context, class, uid string) error {
	templates, err := l.Templates.List(ctx, l.Cluster)
	if err != nil {
		return err
	}
	templates = slices.DeleteFunc(templates, func(t launch.Stored) bool { return t.Tags[nodeclass.TagNodeClass] != class })
	if _, err := l.Templates.Delete(ctx, templates); err != nil {
		return err
	}
	made, err := l.Made.Of(ctx, uid)
	if err != nil {
		return err
	}
	return l.Made.Delete(ctx, made)
}

// Profiles implements handler.Leftovers.
func (l *Leftovers) Profiles(ctx context.Context) ([]string, error) {
	made, err := l.Made.List(ctx)
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
	instances, err := l.Instances.List(ctx, l.Cluster)
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
	made, err := l.Made.List(ctx)
	if err != nil {
		return err
	}
	return l.Made.Delete(ctx, slices.DeleteFunc(made, func(f profile.Found) bool { return !slices.Contains(names, f.Name) }))
}
