package main

import (
	"strings"
	"testing"

	"kerf.sh/kerf/internal/cloud/nodeclass"
	"kerf.sh/kerf/internal/kube"
	"kerf.sh/kerf/internal/snapshot"
)

// TestInstallManifests: the NodePool and the class that people are told to apply are read
// whole.
func TestInstallManifests(t *testing.T) {
	_, rest, ok := strings.Cut(read(t, "docs/install.md"), "<<END\n")
	text, _, ok2 := strings.Cut(rest, "\nEND\n")
	if !ok || !ok2 {
		t.Fatal("docs/install.md has no manifests between <<END and END")
	}
	sources, err := kube.Files([]string{"-"}, strings.NewReader(strings.ReplaceAll(text, "$CLUSTER", "prod")))
	if err != nil {
		t.Fatal(err)
	}
	s, report, err := kube.Read(sources, kube.Options{Cluster: "prod", Region: "us-east-1", Settings: snapshot.DefaultSettings()})
	if err != nil || len(report.Left) > 0 || len(s.NodePools) != 1 || len(s.NodeClasses) != 1 {
		t.Fatalf("%v %+v", err, report)
	}
	if s.NodePools[0].ClassRef.Name != s.NodeClasses[0].Name {
		t.Errorf("the pool names class %s, and the class is %s", s.NodePools[0].ClassRef.Name, s.NodeClasses[0].Name)
	}
	c, err := nodeclass.Parse(&s.NodeClasses[0])
	if err != nil || c.Spec.Role != "KarpenterNodeRole-prod" || c.Alias != "al2023@latest" || len(c.Spec.SubnetSelectorTerms) != 1 || len(c.Spec.SecurityGroupSelectorTerms) != 1 {
		t.Errorf("%+v, %v", c, err)
	}
}
