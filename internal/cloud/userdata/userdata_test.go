package userdata_test

import (
	"encoding/json"
	"errors"
	"strings"
	"testing"

	"github.com/cockroachdb/datadriven"
	"pgregory.net/rapid"
	"sigs.k8s.io/yaml"

	"kerf.sh/kerf/internal/cloud/nodeclass"
	"kerf.sh/kerf/internal/cloud/userdata"
	"kerf.sh/kerf/internal/snapshot"
)

// in is userdata.Input as the transcripts write it.
type in struct {
	Family       string
	Cluster      userdata.Cluster
	Kubelet      json.RawMessage
	MaxPods      int64
	KubeReserved map[string]string
	Labels       map[string]string
	Taints       []snapshot.Taint
	RAID0        bool
	User         string
}

func read(t testing.TB, text string) userdata.Input {
	t.Helper()
	var v in
	if err := yaml.UnmarshalStrict([]byte(text), &v); err != nil {
		t.Fatal(err)
	}
	out := userdata.Input{Family: v.Family, Cluster: v.Cluster, MaxPods: v.MaxPods, KubeReserved: v.KubeReserved, Labels: v.Labels, Taints: v.Taints, RAID0: v.RAID0, User: v.User}
	if len(v.Kubelet) > 0 {
		if err := json.Unmarshal(v.Kubelet, &out.Kubelet); err != nil {
			t.Fatal(err)
		}
		if err := json.Unmarshal(v.Kubelet, &out.Kubelet.Raw); err != nil {
			t.Fatal(err)
		}
	}
	return out
}

// TestTranscripts renders the user data of testdata/transcripts: render (an input in YAML; base: laid
// over the one that was defined before).
func TestTranscripts(t *testing.T) {
	datadriven.Walk(t, "testdata/transcripts", func(t *testing.T, path string) {
		base := ""
		datadriven.RunTest(t, path, func(t *testing.T, d *datadriven.TestData) string {
			switch d.Cmd {
			case "base":
				base = d.Input + "\n"
				return "ok"
			case "render":
				out, err := userdata.Render(read(t, base+d.Input))
				if err != nil {
					return "error: " + err.Error()
				}
				return out
			}
			t.Fatalf("unknown command %q", d.Cmd)
			return ""
		})
	})
}

func TestLimit(t *testing.T) {
	base := read(t, "Family: AL2023\nCluster: {Name: c, Endpoint: https://x, CA: Yg==, ServiceCIDR: 10.0.0.0/16}")
	plain, err := userdata.Render(base)
	if err != nil {
		t.Fatal(err)
	}
	// A part of its own costs what the multi-part writes around it.
	base.User = "#!/bin/sh\n"
	one, err := userdata.Render(base)
	if err != nil {
		t.Fatal(err)
	}
	around := len(one) - len(plain) - len(base.User)
	room := userdata.Limit - len(plain) - around
	base.User = "#!/bin/sh\n" + strings.Repeat("#", room-len("#!/bin/sh\n")-1) + "\n"
	full, err := userdata.Render(base)
	if err != nil || len(full) != userdata.Limit {
		t.Fatalf("user data of %d bytes: %v; want %d and no error", len(full), err, userdata.Limit)
	}
	base.User += "\n"
	_, err = userdata.Render(base)
	var no *nodeclass.Refusal
	if !errors.As(err, &no) || no.Reason != nodeclass.UserDataSizeLimitExceeded {
		t.Fatalf("one byte more: %v; want %s", err, nodeclass.UserDataSizeLimitExceeded)
	}
	if !strings.Contains(no.Message, "by 1 bytes") {
		t.Errorf("message %q does not say by how much", no.Message)
	}
}

// TestPure: equal input gives equal bytes, whatever the order of maps and taints.
func TestPure(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		family := rapid.SampledFrom([]string{"AL2023", "AL2", "Bottlerocket", "Windows2022"}).Draw(t, "family")
		labels := rapid.MapOf(rapid.StringMatching(`[a-z]{1,4}(\.io/[a-z]{1,3})?`), rapid.StringMatching(`[a-z0-9]{0,4}`)).Draw(t, "labels")
		taints := rapid.SliceOfN(rapid.Custom(func(t *rapid.T) snapshot.Taint {
			return snapshot.Taint{Key: rapid.StringMatching(`[a-z]{1,2}`).Draw(t, "k"), Effect: rapid.SampledFrom([]string{"NoSchedule", "NoExecute"}).Draw(t, "e")}
		}), 0, 6).Draw(t, "taints")
		i := userdata.Input{Family: family, Cluster: userdata.Cluster{Name: "c", Endpoint: "e", CA: "Yg==", DNS: "10.0.0.10", ServiceCIDR: "10.0.0.0/16"}, Labels: labels, Taints: taints, MaxPods: 29}
		a, err := userdata.Render(i)
		if err != nil {
			t.Fatal(err)
		}
		copied := map[string]string{}
		for k, v := range labels {
			copied[k] = v
		}
		i.Labels = copied
		i.Taints = rapid.Permutation(taints).Draw(t, "order")
		b, err := userdata.Render(i)
		if err != nil {
			t.Fatal(err)
		}
		if a != b {
			t.Fatalf("equal inputs, different user data:\n%s\n%s", a, b)
		}
		for k := range labels {
			if !strings.Contains(a, k) {
				t.Fatalf("label %s is missing:\n%s", k, a)
			}
		}
	})
}
