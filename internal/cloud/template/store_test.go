package template_test

import (
	"context"
	"slices"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/ec2"

	"kerf.sh/kerf/internal/cloud/awserr"
	"kerf.sh/kerf/internal/cloud/ec2fake"
	"kerf.sh/kerf/internal/cloud/launch"
	"kerf.sh/kerf/internal/cloud/nodeclass"
	"kerf.sh/kerf/internal/cloud/template"
)

var ctx = context.Background()

func world() (*ec2fake.EC2, *template.Store) {
	clock := func() time.Time { return time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC) }
	e := ec2fake.New(clock)
	return e, template.New(e, clock)
}

func made(names ...string) []launch.Template {
	var out []launch.Template
	for _, n := range names {
		out = append(out, launch.Template{Name: launch.TemplatePrefix + n, ImageID: "ami-1", Tags: map[string]string{nodeclass.TagClusterName: "prod"}})
	}
	return out
}

// blind does not see templates yet, as EC2 at times.
type blind struct{ *ec2fake.EC2 }

func (blind) DescribeLaunchTemplates(context.Context, *ec2.DescribeLaunchTemplatesInput, ...func(*ec2.Options)) (*ec2.DescribeLaunchTemplatesOutput, error) {
	return &ec2.DescribeLaunchTemplatesOutput{}, nil
}

// TestTwoPasses: a template that another pass made first, and that cannot be seen yet, is
// as good as made.
func TestTwoPasses(t *testing.T) {
	e, s := world()
	if err := s.Ensure(ctx, made("a")); err != nil {
		t.Fatal(err)
	}
	other := template.New(blind{e}, e.Now)
	if err := other.Ensure(ctx, made("a", "b")); err != nil {
		t.Fatal(err)
	}
	if got := e.Templates(); !slices.Equal(got, []string{"kerf.sh/a", "kerf.sh/b"}) {
		t.Errorf("templates %v", got)
	}
}

// TestCutOff: what was made before an error stays known, and the rest is made later.
func TestCutOff(t *testing.T) {
	e, s := world()
	e.Hook = func(c ec2fake.Call) ec2fake.Fault {
		if c.N == 3 {
			return ec2fake.Fault{Before: ec2fake.Error("RequestLimitExceeded", "x")}
		}
		return ec2fake.Fault{}
	}
	if err := s.Ensure(ctx, made("b", "a")); !awserr.Is(err, awserr.Throttled) || !slices.Equal(e.Templates(), []string{"kerf.sh/a"}) {
		t.Fatalf("%v, %v", err, e.Templates())
	}
	if err := s.Ensure(ctx, made("b", "a")); err != nil || len(e.Calls("CreateLaunchTemplate")) != 3 {
		t.Errorf("%v, %d calls", err, len(e.Calls("CreateLaunchTemplate")))
	}
}

// TestMadeAgain: a template that was collected can be made again under its name.
func TestMadeAgain(t *testing.T) {
	e, s := world()
	for range 2 {
		if err := s.Ensure(ctx, made("a")); err != nil {
			t.Fatal(err)
		}
		list, err := s.List(ctx, "prod")
		if err != nil || len(list) != 1 || list[0].ID == "" || list[0].Created.IsZero() {
			t.Fatalf("%+v, %v", list, err)
		}
		if gone, err := s.Delete(ctx, list); err != nil || !slices.Equal(gone, []string{"kerf.sh/a"}) {
			t.Fatalf("%v, %v", gone, err)
		}
	}
	if len(e.Templates()) != 0 {
		t.Errorf("left: %v", e.Templates())
	}
}

func TestPages(t *testing.T) {
	e, s := world()
	e.PageSize = 1
	if err := s.Ensure(ctx, made("c", "a", "b")); err != nil {
		t.Fatal(err)
	}
	if list, err := s.List(ctx, "prod"); err != nil || len(list) != 3 || list[0].Name != "kerf.sh/a" {
		t.Errorf("%+v, %v", list, err)
	}
	if list, err := s.List(ctx, "other"); err != nil || len(list) != 0 {
		t.Errorf("another cluster's: %+v, %v", list, err)
	}
}
