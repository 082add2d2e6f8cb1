package setup

import (
	"bytes"
	"compress/gzip"
	_ "embed"
	"encoding/json"
	"fmt"
	"io"
	"slices"
	"strings"

	"sigs.k8s.io/yaml"

	"kerf.sh/kerf/internal/kube/live"
)

// KarpenterVersion is the version of Karpenter that the definitions are of. They are taken
// from its module by go run ./scripts/crds, unchanged, under its licence (karpenter/LICENSE).
const KarpenterVersion = "v1.14.1"

//go:embed karpenter/crds.yaml.gz
var compressed []byte

//go:embed karpenter/NOTICE
var notice string

//go:embed karpenter/LICENSE
var licence string

// Licence is what goes with the definitions: notice and licence of Karpenter.
func Licence() string { return notice + "\n" + licence }

// CRD is a CustomResourceDefinition, as far as it is looked at.
type CRD struct {
	Metadata struct {
		Name          string
		Labels        map[string]string
		Annotations   map[string]string
		ManagedFields []struct{ Manager string }
	}
	Spec struct {
		Group    string
		Versions []struct {
			Name   string
			Served bool
		}
	}
	Status struct {
		StoredVersions []string
		Conditions     []struct{ Type, Status, Message string }
	}

	// Object is all of it, as JSON.
	Object json.RawMessage `json:"-"`
}

// CRDs are Karpenter's, in the order of their names.
func CRDs() ([]CRD, error) {
	z, err := gzip.NewReader(bytes.NewReader(compressed))
	if err != nil {
		return nil, fmt.Errorf("open Karpenter's CRDs: %w", err)
	}
	text, err := io.ReadAll(z)
	if err != nil {
		return nil, fmt.Errorf("open Karpenter's CRDs: %w", err)
	}
	var out []CRD
	for doc := range strings.SplitSeq(string(text), "\n---\n") {
		raw, err := yaml.YAMLToJSON([]byte(strings.TrimPrefix(doc, "---\n")))
		if err != nil {
			return nil, fmt.Errorf("read Karpenter's CRDs: %w", err)
		}
		c, err := parseCRD(raw)
		if err != nil {
			return nil, err
		}
		out = append(out, *c)
	}
	slices.SortFunc(out, func(a, b CRD) int { return strings.Compare(a.Metadata.Name, b.Metadata.Name) })
	return out, nil
}

func parseCRD(raw json.RawMessage) (*CRD, error) {
	c := &CRD{Object: raw}
	if err := json.Unmarshal(raw, c); err != nil {
		return nil, fmt.Errorf("read a CRD: %w", err)
	}
	if c.Metadata.Name == "" {
		return nil, fmt.Errorf("read a CRD: it has no name: %.80s", raw)
	}
	return c, nil
}

func (c *CRD) target() live.Target { return crdNamed(c.Metadata.Name) }

func crdNamed(name string) live.Target {
	return live.Target{Group: ext, Version: "v1", Resource: "customresourcedefinitions", Name: name}
}

// serves are the versions that clients can ask for.
func (c *CRD) serves() []string {
	var out []string
	for _, v := range c.Spec.Versions {
		if v.Served {
			out = append(out, v.Name)
		}
	}
	return out
}

// established reports whether the API server serves the kind.
func (c *CRD) established() bool {
	for _, x := range c.Status.Conditions {
		if x.Type == "Established" {
			return x.Status == "True"
		}
	}
	return false
}

// owner says whose a definition is that is there: "" = ours.
func (c *CRD) owner() string {
	if r := c.Metadata.Annotations["meta.helm.sh/release-name"]; r != "" {
		return "Helm release " + c.Metadata.Annotations["meta.helm.sh/release-namespace"] + "/" + r
	}
	var others []string
	for _, m := range c.Metadata.ManagedFields {
		switch m.Manager {
		case manager:
			return ""
		case "kube-apiserver", "": // its conditions
		default:
			others = append(others, m.Manager)
		}
	}
	if len(others) == 0 {
		return "somebody else"
	}
	slices.Sort(others)
	return strings.Join(slices.Compact(others), ", ")
}
