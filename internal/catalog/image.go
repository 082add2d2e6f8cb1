package catalog

import (
	"fmt"
	"strings"

	"kerf.sh/kerf/internal/requirements"
	"kerf.sh/kerf/internal/snapshot"
)

// imageModel is an image and what it asks of a type.
type imageModel struct {
	id    string
	needs requirements.Set
}

// newImages parses the images of a class; newest first (Karpenter: status.amis).
func newImages(class *snapshot.NodeClass) ([]imageModel, []Problem) {
	images := impliedImages(class)
	out := make([]imageModel, len(images))
	var problems []Problem
	for i, image := range images {
		needs, err := requirements.Parse(image.Requirements)
		if err != nil {
			problems = append(problems, Problem{fmt.Sprintf("status.amis[%d].requirements", i), image.ID, "can not be understood: " + err.Error()})
		}
		out[i] = imageModel{image.ID, needs}
	}
	return out, problems
}

// plainImages are the images of types without devices, by architecture: as a rule no
// image asks for more.
type plainImages struct {
	decide bool // no image asks for anything that differs between such types
	known  []plainImage
}

type plainImage struct{ arch, id, unusable string }

func newPlainImages(images []imageModel) plainImages {
	for i := range images {
		for r := range images[i].needs.All() {
			switch r.Key() {
			case LabelArch, LabelOS, LabelGPUName, LabelGPUManufacturer, LabelGPUCount, LabelGPUMemory,
				LabelAcceleratorName, LabelAcceleratorManufacturer, LabelAcceleratorCount:
			default:
				return plainImages{}
			}
		}
	}
	return plainImages{decide: true}
}

// image returns the first image that a type can boot. A class that has images but none
// for a type rules the type out.
func (m *classModel) image(t *Resolved) (id, unusable string) {
	if len(m.images) == 0 {
		return "", ""
	}
	if !m.plain.decide || len(t.Type.GPUs)+len(t.Type.Accelerators)+len(t.Type.Labels) > 0 {
		return m.firstImage(t)
	}
	for i := range m.plain.known {
		if k := &m.plain.known[i]; k.arch == t.Type.Arch {
			return k.id, k.unusable
		}
	}
	id, unusable = m.firstImage(t)
	m.plain.known = append(m.plain.known, plainImage{t.Type.Arch, id, unusable})
	return id, unusable
}

// boots is requirements.Set.MatchesLabels without its explanation, which costs
// more than everything else that is done for a type.
func (m *imageModel) boots(t *Resolved) bool {
	for r := range m.needs.All() {
		if v, ok := t.Label(r.Key()); ok && !r.Has(v) || !ok && !r.AllowsAbsent() {
			return false
		}
	}
	return true
}

func (m *classModel) firstImage(t *Resolved) (id, unusable string) {
	for i := range m.images {
		if m.images[i].boots(t) {
			return m.images[i].id, ""
		}
	}
	what, _ := t.Label(LabelArch)
	if gpu, _ := t.Label(LabelGPUName); gpu != "" {
		what += ", " + LabelGPUName + " " + gpu
	}
	if accelerator, _ := t.Label(LabelAcceleratorName); accelerator != "" {
		what += ", " + LabelAcceleratorName + " " + accelerator
	}
	return "", "no image of the class is for it (" + what + ")"
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
