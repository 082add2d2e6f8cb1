package catalog

import (
	"strings"

	"kerf.sh/kerf/internal/snapshot"
)

// image returns the first image whose requirements a type's labels satisfy
// (Karpenter: status.amis, newest first); with images and none that does, the
// type is unusable.
func (m *classModel) image(labels map[string]string) (id, unusable string) {
	if len(m.images) == 0 {
		return "", ""
	}
	for i := range m.images {
		if satisfies(labels, m.images[i].Requirements) {
			return m.images[i].ID, ""
		}
	}
	return "", "no image of the class is for it (" + labels[LabelArch] + ")"
}

// satisfies: image requirements use In, NotIn, Exists and DoesNotExist.
func satisfies(labels map[string]string, requirements []snapshot.SelectorRequirement) bool {
	for _, r := range requirements {
		value, present := labels[r.Key]
		ok := false
		switch r.Operator {
		case "In", "NotIn":
			for _, v := range r.Values {
				ok = ok || present && v == value
			}
			ok = ok == (r.Operator == "In")
		case "Exists":
			ok = present
		case "DoesNotExist":
			ok = !present
		}
		if !ok {
			return false
		}
	}
	return true
}

// impliedImages are the images of a class. A manifest has no status yet: then the
// variants that its alias will resolve to stand in for them, without ids.
func impliedImages(class *snapshot.NodeClass) []snapshot.Image {
	if len(class.Images) > 0 || class.HasStatus || class.AMIAlias == "" {
		return class.Images
	}
	image := func(arch, gpu, accelerator string) snapshot.Image {
		rs := []snapshot.SelectorRequirement{{Key: LabelArch, Operator: "In", Values: []string{arch}}}
		if gpu != "" {
			rs = append(rs, snapshot.SelectorRequirement{Key: LabelGPUCount, Operator: gpu})
		}
		if accelerator != "" {
			rs = append(rs, snapshot.SelectorRequirement{Key: LabelAcceleratorCount, Operator: accelerator})
		}
		return snapshot.Image{Requirements: rs}
	}
	const yes, no = "Exists", "DoesNotExist"
	alias, _, _ := strings.Cut(class.AMIAlias, "@")
	switch alias {
	case "al2": // one image for both kinds of device, amd64 only
		return []snapshot.Image{image(AMD64, no, no), image(ARM64, no, no), image(AMD64, yes, ""), image(AMD64, "", yes)}
	case "al2023":
		return []snapshot.Image{image(AMD64, no, no), image(ARM64, no, no), image(AMD64, yes, ""), image(ARM64, yes, ""), image(AMD64, "", yes)}
	case "bottlerocket": // Neuron runs on the standard image
		return []snapshot.Image{image(AMD64, no, ""), image(ARM64, no, no), image(AMD64, yes, ""), image(ARM64, yes, "")}
	}
	return nil
}
