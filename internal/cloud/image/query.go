package image

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"kerf.sh/kerf/internal/catalog"
	"kerf.sh/kerf/internal/cloud/nodeclass"
	"kerf.sh/kerf/internal/snapshot"
)

// Query is one parameter that names the image of one variant.
type Query struct {
	Parameter string
	// Requirements are what the variant asks of a type: one image may serve several
	// kinds of type, each with an entry of its own.
	Requirements [][]snapshot.SelectorRequirement
}

// Version is a version of Kubernetes.
type Version struct{ Major, Minor int }

// ParseVersion reads "1.34", "v1.34.2" or "1.34+".
func ParseVersion(s string) (Version, error) {
	parts := strings.SplitN(strings.TrimPrefix(s, "v"), ".", 3)
	if len(parts) < 2 {
		return Version{}, fmt.Errorf("read Kubernetes version %q: write it like 1.34", s)
	}
	major, err1 := strconv.Atoi(parts[0])
	minor, err2 := strconv.Atoi(strings.TrimSuffix(parts[1], "+"))
	if err1 != nil || err2 != nil {
		return Version{}, fmt.Errorf("read Kubernetes version %q: write it like 1.34", s)
	}
	return Version{major, minor}, nil
}

func (v Version) String() string { return fmt.Sprintf("%d.%d", v.Major, v.Minor) }

func (v Version) before(major, minor int) bool {
	return v.Major < major || v.Major == major && v.Minor < minor
}

// latest is the version of an alias that follows what AWS publishes.
const latest = "latest"

// Operators of requirements.
const (
	in           = "In"
	exists       = "Exists"
	doesNotExist = "DoesNotExist"
)

// needs builds the requirements of a variant: an architecture, and what it says about GPUs
// and accelerators ("" = nothing).
func needs(arch, gpu, accelerator string) []snapshot.SelectorRequirement {
	out := []snapshot.SelectorRequirement{{Key: catalog.LabelArch, Operator: in, Values: []string{arch}}}
	if gpu != "" {
		out = append(out, snapshot.SelectorRequirement{Key: catalog.LabelGPUCount, Operator: gpu})
	}
	if accelerator != "" {
		out = append(out, snapshot.SelectorRequirement{Key: catalog.LabelAcceleratorCount, Operator: accelerator})
	}
	return out
}

func one(rs []snapshot.SelectorRequirement) [][]snapshot.SelectorRequirement {
	return [][]snapshot.SelectorRequirement{rs}
}

// Queries are the parameters of an alias ("al2023@latest") under a version of Kubernetes.
// The error is a refusal: the alias is unknown, or AWS publishes nothing for it.
func Queries(alias string, k8s Version) ([]Query, error) {
	family, version, ok := strings.Cut(alias, "@")
	if !ok || version == "" {
		return nil, nodeclass.Refuse(nodeclass.UnsupportedAlias, "spec.amiSelectorTerms[0].alias: %q has no version; write it like %s@latest", alias, family)
	}
	switch family {
	case "al2023":
		return al2023(version, k8s), nil
	case "al2":
		if !k8s.before(1, 33) {
			return nil, nodeclass.Refuse(nodeclass.UnsupportedAlias,
				"spec.amiSelectorTerms[0].alias: %q has no images for Kubernetes %s (the last is 1.32); use al2023@latest", alias, k8s)
		}
		return al2(version, k8s), nil
	case "bottlerocket":
		return bottlerocket(version, k8s), nil
	case "windows2019", "windows2022", "windows2025":
		return windows(alias, strings.TrimPrefix(family, "windows"), version, k8s)
	}
	return nil, nodeclass.Refuse(nodeclass.UnsupportedAlias,
		"spec.amiSelectorTerms[0].alias: %q names no family; use al2023, al2, bottlerocket, windows2019, windows2022 or windows2025", alias)
}

func al2023(version string, k8s Version) []Query {
	path := func(arch, variant string) string {
		name := "recommended"
		if version != latest {
			name = fmt.Sprintf("amazon-eks-node-al2023-%s-%s-%s-%s", arch, variant, k8s, version)
		}
		return fmt.Sprintf("/aws/service/eks/optimized-ami/%s/amazon-linux-2023/%s/%s/%s/image_id", k8s, arch, variant, name)
	}
	return []Query{
		{path("x86_64", "standard"), one(needs(catalog.AMD64, doesNotExist, doesNotExist))},
		{path("arm64", "standard"), one(needs(catalog.ARM64, doesNotExist, doesNotExist))},
		{path("x86_64", "nvidia"), one(needs(catalog.AMD64, exists, ""))},
		{path("arm64", "nvidia"), one(needs(catalog.ARM64, exists, ""))},
		{path("x86_64", "neuron"), one(needs(catalog.AMD64, "", exists))},
	}
}

func al2(version string, k8s Version) []Query {
	path := func(suffix string) string {
		name := "recommended"
		if version != latest {
			name = fmt.Sprintf("amazon-eks%s-node-%s-%s", suffix, k8s, version)
		}
		return fmt.Sprintf("/aws/service/eks/optimized-ami/%s/amazon-linux-2%s/%s/image_id", k8s, suffix, name)
	}
	return []Query{
		{path(""), one(needs(catalog.AMD64, doesNotExist, doesNotExist))},
		{path("-arm64"), one(needs(catalog.ARM64, doesNotExist, doesNotExist))},
		// The gpu image serves NVIDIA and Neuron.
		{path("-gpu"), [][]snapshot.SelectorRequirement{needs(catalog.AMD64, exists, ""), needs(catalog.AMD64, "", exists)}},
	}
}

func bottlerocket(version string, k8s Version) []Query {
	path := func(suffix, arch string) string {
		return fmt.Sprintf("/aws/service/bottlerocket/aws-k8s-%s%s/%s/%s/image_id", k8s, suffix, arch, strings.TrimPrefix(version, "v"))
	}
	return []Query{
		// Neuron runs on the standard image of x86.
		{path("", "x86_64"), one(needs(catalog.AMD64, doesNotExist, ""))},
		{path("", "arm64"), one(needs(catalog.ARM64, doesNotExist, doesNotExist))},
		{path("-nvidia", "x86_64"), one(needs(catalog.AMD64, exists, ""))},
		{path("-nvidia", "arm64"), one(needs(catalog.ARM64, exists, ""))},
	}
}

// windowsBuilds are the builds of the years.
var windowsBuilds = map[string]string{"2019": "10.0.17763", "2022": "10.0.20348", "2025": "10.0.26100"}

func windows(alias, year, version string, k8s Version) ([]Query, error) {
	if version != latest {
		return nil, nodeclass.Refuse(nodeclass.UnsupportedAlias, "spec.amiSelectorTerms[0].alias: %q: Windows has no version but latest; use windows%s@latest", alias, year)
	}
	if year == "2025" && k8s.before(1, 35) {
		return nil, nodeclass.Refuse(nodeclass.UnsupportedAlias, "spec.amiSelectorTerms[0].alias: %q has images from Kubernetes 1.35 on, and this is %s; use windows2022@latest", alias, k8s)
	}
	rs := append(needs(catalog.AMD64, "", ""),
		snapshot.SelectorRequirement{Key: catalog.LabelOS, Operator: in, Values: []string{catalog.Windows}},
		snapshot.SelectorRequirement{Key: catalog.LabelWindowsBuild, Operator: in, Values: []string{windowsBuilds[year]}})
	return []Query{{fmt.Sprintf("/aws/service/ami-windows-latest/Windows_Server-%s-English-Core-EKS_Optimized-%s/image_id", year, k8s), one(rs)}}, nil
}

// Newest keeps, of images with the same requirements, the newest that is not deprecated,
// or the newest at all when all are; newest first (Karpenter: status.amis).
func Newest(images []nodeclass.Image) []nodeclass.Image {
	best := map[string]nodeclass.Image{}
	for _, i := range images {
		key := nodeclass.RequirementsKey(i.Requirements)
		was, ok := best[key]
		if !ok || better(&i, &was) {
			best[key] = i
		}
	}
	var out []nodeclass.Image
	for _, i := range images {
		key := nodeclass.RequirementsKey(i.Requirements)
		if b, ok := best[key]; ok {
			out = append(out, b)
			delete(best, key)
		}
	}
	nodeclass.SortImages(out)
	return slices.Clip(out)
}

func better(a, b *nodeclass.Image) bool {
	if a.Deprecated != b.Deprecated {
		return !a.Deprecated
	}
	if c := a.Created.Compare(b.Created); c != 0 {
		return c > 0
	}
	return a.ID < b.ID
}
