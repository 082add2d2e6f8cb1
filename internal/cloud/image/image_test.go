package image_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/ec2"
	"github.com/google/go-cmp/cmp"

	"kerf.sh/kerf/internal/catalog"
	"kerf.sh/kerf/internal/cloud/awserr"
	"kerf.sh/kerf/internal/cloud/ec2fake"
	"kerf.sh/kerf/internal/cloud/image"
	"kerf.sh/kerf/internal/cloud/nodeclass"
	"kerf.sh/kerf/internal/snapshot"
)

var (
	now = time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)
	ctx = context.Background()
	v   = image.Version{Major: 1, Minor: 34}
)

// text is requirements as "arch gpu accelerator".
func text(rs []snapshot.SelectorRequirement) string {
	short := map[string]string{catalog.LabelArch: "arch", catalog.LabelGPUCount: "gpu", catalog.LabelAcceleratorCount: "acc", catalog.LabelOS: "os", catalog.LabelWindowsBuild: "build"}
	var out []string
	for _, r := range rs {
		out = append(out, strings.TrimSuffix(short[r.Key]+":"+r.Operator+"="+strings.Join(r.Values, "|"), "="))
	}
	return strings.NewReplacer(":In=", "=", ":Exists", "+", ":DoesNotExist", "-").Replace(strings.Join(out, " "))
}

func TestQueries(t *testing.T) {
	tests := []struct {
		alias string
		k8s   image.Version
		want  []string
	}{
		{"al2023@latest", v, []string{
			"/aws/service/eks/optimized-ami/1.34/amazon-linux-2023/x86_64/standard/recommended/image_id arch=amd64 gpu- acc-",
			"/aws/service/eks/optimized-ami/1.34/amazon-linux-2023/arm64/standard/recommended/image_id arch=arm64 gpu- acc-",
			"/aws/service/eks/optimized-ami/1.34/amazon-linux-2023/x86_64/nvidia/recommended/image_id arch=amd64 gpu+",
			"/aws/service/eks/optimized-ami/1.34/amazon-linux-2023/arm64/nvidia/recommended/image_id arch=arm64 gpu+",
			"/aws/service/eks/optimized-ami/1.34/amazon-linux-2023/x86_64/neuron/recommended/image_id arch=amd64 acc+"}},
		{"al2023@v20260101", v, []string{
			"/aws/service/eks/optimized-ami/1.34/amazon-linux-2023/x86_64/standard/amazon-eks-node-al2023-x86_64-standard-1.34-v20260101/image_id arch=amd64 gpu- acc-",
			"/aws/service/eks/optimized-ami/1.34/amazon-linux-2023/arm64/standard/amazon-eks-node-al2023-arm64-standard-1.34-v20260101/image_id arch=arm64 gpu- acc-",
			"/aws/service/eks/optimized-ami/1.34/amazon-linux-2023/x86_64/nvidia/amazon-eks-node-al2023-x86_64-nvidia-1.34-v20260101/image_id arch=amd64 gpu+",
			"/aws/service/eks/optimized-ami/1.34/amazon-linux-2023/arm64/nvidia/amazon-eks-node-al2023-arm64-nvidia-1.34-v20260101/image_id arch=arm64 gpu+",
			"/aws/service/eks/optimized-ami/1.34/amazon-linux-2023/x86_64/neuron/amazon-eks-node-al2023-x86_64-neuron-1.34-v20260101/image_id arch=amd64 acc+"}},
		{"al2@latest", image.Version{Major: 1, Minor: 32}, []string{
			"/aws/service/eks/optimized-ami/1.32/amazon-linux-2/recommended/image_id arch=amd64 gpu- acc-",
			"/aws/service/eks/optimized-ami/1.32/amazon-linux-2-arm64/recommended/image_id arch=arm64 gpu- acc-",
			"/aws/service/eks/optimized-ami/1.32/amazon-linux-2-gpu/recommended/image_id arch=amd64 gpu+, arch=amd64 acc+"}},
		{"al2@v2", image.Version{Major: 1, Minor: 32}, []string{
			"/aws/service/eks/optimized-ami/1.32/amazon-linux-2/amazon-eks-node-1.32-v2/image_id arch=amd64 gpu- acc-",
			"/aws/service/eks/optimized-ami/1.32/amazon-linux-2-arm64/amazon-eks-arm64-node-1.32-v2/image_id arch=arm64 gpu- acc-",
			"/aws/service/eks/optimized-ami/1.32/amazon-linux-2-gpu/amazon-eks-gpu-node-1.32-v2/image_id arch=amd64 gpu+, arch=amd64 acc+"}},
		{"bottlerocket@v1.40.0", v, []string{
			"/aws/service/bottlerocket/aws-k8s-1.34/x86_64/1.40.0/image_id arch=amd64 gpu-",
			"/aws/service/bottlerocket/aws-k8s-1.34/arm64/1.40.0/image_id arch=arm64 gpu- acc-",
			"/aws/service/bottlerocket/aws-k8s-1.34-nvidia/x86_64/1.40.0/image_id arch=amd64 gpu+",
			"/aws/service/bottlerocket/aws-k8s-1.34-nvidia/arm64/1.40.0/image_id arch=arm64 gpu+"}},
		{"windows2022@latest", v, []string{"/aws/service/ami-windows-latest/Windows_Server-2022-English-Core-EKS_Optimized-1.34/image_id arch=amd64 os=windows build=10.0.20348"}},
		{"windows2025@latest", image.Version{Major: 1, Minor: 35}, []string{"/aws/service/ami-windows-latest/Windows_Server-2025-English-Core-EKS_Optimized-1.35/image_id arch=amd64 os=windows build=10.0.26100"}},
	}
	for _, tt := range tests {
		queries, err := image.Queries(tt.alias, tt.k8s)
		if err != nil {
			t.Errorf("%s: %v", tt.alias, err)
			continue
		}
		var got []string
		for _, q := range queries {
			var rs []string
			for _, r := range q.Requirements {
				rs = append(rs, text(r))
			}
			got = append(got, q.Parameter+" "+strings.Join(rs, ", "))
		}
		if d := cmp.Diff(tt.want, got); d != "" {
			t.Errorf("%s (-want +got):\n%s", tt.alias, d)
		}
	}
}

func TestRefusedAliases(t *testing.T) {
	for alias, k8s := range map[string]image.Version{
		"al2@latest": {Major: 1, Minor: 33}, "windows2025@latest": v, "windows2022@v1": v, "al2023": v, "al2023@": v, "ubuntu@latest": v,
	} {
		_, err := image.Queries(alias, k8s)
		var no *nodeclass.Refusal
		if !errors.As(err, &no) || no.Reason != nodeclass.UnsupportedAlias {
			t.Errorf("%s under %s: %v; want %s", alias, k8s, err, nodeclass.UnsupportedAlias)
		}
	}
	for _, s := range []string{"", "1", "x.y", "1.x"} {
		if got, err := image.ParseVersion(s); err == nil {
			t.Errorf("version %q is %v", s, got)
		}
	}
	if got, err := image.ParseVersion("v1.34+"); err != nil || got != v {
		t.Errorf("v1.34+ is %v, %v", got, err)
	}
}

func world() (*ec2fake.EC2, *ec2fake.SSM, *image.Resolver) {
	clock := func() time.Time { return now }
	e, s := ec2fake.New(clock), &ec2fake.SSM{Parameters: map[string]string{}}
	return e, s, &image.Resolver{EC2: e, SSM: s, Now: clock}
}

func class(t *testing.T, spec string) *nodeclass.Class {
	t.Helper()
	c, err := nodeclass.Parse(&snapshot.NodeClass{Name: "default", Spec: []byte(spec)})
	if err != nil {
		t.Fatal(err)
	}
	return c
}

func ids(images []nodeclass.Image) []string {
	var out []string
	for _, i := range images {
		s := i.ID + " " + text(i.Requirements)
		if i.Deprecated {
			s += " deprecated"
		}
		out = append(out, s)
	}
	return out
}

// TestAliasS16 is S-16: one alias, an image for each architecture and device.
func TestAliasS16(t *testing.T) {
	e, s, r := world()
	e.AddImage("ami-amd", "amd", "x86_64", now.Add(-time.Hour))
	e.AddImage("ami-arm", "arm", "arm64", now)
	const path = "/aws/service/eks/optimized-ami/1.34/amazon-linux-2023/"
	s.Parameters[path+"x86_64/standard/recommended/image_id"] = "ami-amd"
	s.Parameters[path+"arm64/standard/recommended/image_id"] = "ami-arm\n"
	c := class(t, `{"amiSelectorTerms":[{"alias":"al2023@latest"}]}`)
	got, err := r.Resolve(ctx, c, v)
	if err != nil {
		t.Fatal(err)
	}
	if d := cmp.Diff([]string{"ami-arm arch=arm64 gpu- acc-", "ami-amd arch=amd64 gpu- acc-"}, ids(got)); d != "" {
		t.Errorf("images (-want +got):\n%s", d)
	}
	s.Fault = func(name string) error {
		if strings.Contains(name, "nvidia") {
			return ec2fake.Error("ThrottlingException", "slow down")
		}
		return nil
	}
	if got, err := r.Resolve(ctx, c, v); !awserr.Is(err, awserr.Throttled) || got != nil {
		t.Errorf("half of an answer: %v, %v; want nothing", got, err)
	}
	s.Fault, s.Parameters = nil, map[string]string{}
	var no *nodeclass.Refusal
	if _, err := r.Resolve(ctx, c, v); !errors.As(err, &no) || no.Reason != nodeclass.AMINotFound {
		t.Errorf("nothing published: %v", err)
	}
}

// TestOneImageForTwoDevices: the gpu image of AL2 serves NVIDIA and Neuron.
func TestOneImageForTwoDevices(t *testing.T) {
	e, s, r := world()
	e.AddImage("ami-gpu", "gpu", "x86_64", now)
	s.Parameters["/aws/service/eks/optimized-ami/1.32/amazon-linux-2-gpu/recommended/image_id"] = "ami-gpu"
	got, err := r.Resolve(ctx, class(t, `{"amiSelectorTerms":[{"alias":"al2@latest"}]}`), image.Version{Major: 1, Minor: 32})
	if err != nil || len(got) != 2 || got[0].ID != "ami-gpu" || got[1].ID != "ami-gpu" {
		t.Errorf("images %v, %v", ids(got), err)
	}
}

func TestTerms(t *testing.T) {
	e, s, r := world()
	e.AddImage("ami-old", "mine-1", "x86_64", now.Add(-48*time.Hour), "team", "blue")
	e.AddImage("ami-new", "mine-2", "x86_64", now.Add(-24*time.Hour), "team", "blue")
	e.AddImage("ami-dep", "mine-3", "x86_64", now.Add(-time.Hour), "team", "blue")
	e.Images[2].DeprecationTime = aws.String(now.Add(-time.Minute).Format(time.RFC3339))
	e.AddImage("ami-arm", "mine-4", "arm64", now.Add(-time.Hour), "team", "red")
	e.AddImage("ami-shared", "theirs", "x86_64", now, "team", "green")
	e.Images[4].OwnerId = aws.String("999999999999")
	e.AddImage("ami-pending", "mine-5", "x86_64", now, "team", "blue")
	e.Images[5].State = "pending"
	s.Parameters["/mine"] = "ami-old"
	for terms, want := range map[string][]string{
		`{"tags":{"team":"blue"}}`:                  {"ami-new arch=amd64"}, // the newest that is not deprecated
		`{"tags":{"team":"*"}}`:                     {"ami-shared arch=amd64", "ami-arm arch=arm64"},
		`{"id":"ami-dep"}`:                          {"ami-dep arch=amd64 deprecated"}, // better than none
		`{"id":"ami-old"},{"id":"ami-missing"}`:     {"ami-old arch=amd64"},
		`{"name":"mine-*"}`:                         {"ami-arm arch=arm64", "ami-new arch=amd64"},
		`{"name":"theirs"}`:                         nil, // not ours, not Amazon's
		`{"name":"theirs","owner":"999999999999"}`:  {"ami-shared arch=amd64"},
		`{"owner":"999999999999"}`:                  {"ami-shared arch=amd64"},
		`{"ssmParameter":"/mine"}`:                  {"ami-old arch=amd64"},
		`{"ssmParameter":"/missing"}`:               nil,
		`{"name":"mine-1"},{"tags":{"team":"red"}}`: {"ami-arm arch=arm64", "ami-old arch=amd64"},
		`{"tags":{"team":"blue"},"name":"mine-1"}`:  {"ami-old arch=amd64"},
	} {
		got, err := r.Resolve(ctx, class(t, `{"amiFamily":"AL2023","amiSelectorTerms":[`+terms+`]}`), v)
		if err != nil {
			t.Errorf("%s: %v", terms, err)
		}
		if d := cmp.Diff(want, ids(got)); d != "" {
			t.Errorf("%s (-want +got):\n%s", terms, d)
		}
	}
}

// TestAllPages: images beyond the first page count.
func TestAllPages(t *testing.T) {
	e, _, r := world()
	e.PageSize = 2
	for i := range 7 {
		e.AddImage(fmt.Sprintf("ami-%d", i), "x", "x86_64", now.Add(time.Duration(i)*time.Minute))
	}
	got, err := r.Resolve(ctx, class(t, `{"amiFamily":"Custom","amiSelectorTerms":[{"name":"x"}]}`), v)
	if err != nil || len(got) != 1 || got[0].ID != "ami-6" {
		t.Errorf("images %v, %v", ids(got), err)
	}
	for _, c := range e.Calls() {
		if !aws.ToBool(c.In.(*ec2.DescribeImagesInput).IncludeDeprecated) {
			t.Error("deprecated images are not asked for")
		}
	}
}
