package setup

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"kerf.sh/kerf/internal/kube/live"
)

// fake is an API server that keeps what is applied.
type fake struct {
	objects map[live.Target]map[string]any
	calls   []string
	// refuse is asked before each call.
	refuse func(n int, verb string, t live.Target) error
	// slow: definitions are not served at once, never: not at all.
	slow, never bool
	reads       map[live.Target]int
}

func newFake() *fake {
	return &fake{objects: map[live.Target]map[string]any{}, reads: map[live.Target]int{}}
}

func (f *fake) call(verb string, t live.Target) error {
	f.calls = append(f.calls, verb+" "+name(t))
	if f.refuse != nil {
		return f.refuse(len(f.calls), verb, t)
	}
	return nil
}

func (f *fake) Get(_ context.Context, t live.Target) (json.RawMessage, error) {
	if err := f.call("get", t); err != nil {
		return nil, err
	}
	o, ok := f.objects[t]
	if !ok {
		return nil, &live.Error{Is: live.ErrNotFound}
	}
	f.reads[t]++
	if o["status"] == nil && !f.never && (!f.slow || f.reads[t] > 3) {
		o["status"] = map[string]any{"conditions": []any{map[string]any{"type": "Established", "status": "True"}}, "storedVersions": stored(o)}
	}
	return json.Marshal(o)
}

// stored are the versions of a definition that objects may be of.
func stored(o map[string]any) []string {
	var out []string
	spec, _ := o["spec"].(map[string]any)
	versions, _ := spec["versions"].([]any)
	for _, v := range versions {
		out = append(out, v.(map[string]any)["name"].(string))
	}
	return out
}

func (f *fake) Apply(_ context.Context, t live.Target, manager string, raw json.RawMessage) (json.RawMessage, error) {
	if err := f.call("apply", t); err != nil {
		return nil, err
	}
	var o map[string]any
	if err := json.Unmarshal(raw, &o); err != nil {
		return nil, err
	}
	meta := o["metadata"].(map[string]any)
	if meta["name"] != t.Name || !strings.HasPrefix(o["apiVersion"].(string), t.Group+"/"+t.Version) {
		return nil, fmt.Errorf("%v at %v", meta, t)
	}
	meta["managedFields"] = []any{map[string]any{"manager": manager}}
	f.objects[t] = o
	return raw, nil
}

func (f *fake) Remove(_ context.Context, t live.Target) error {
	if err := f.call("remove", t); err != nil {
		return err
	}
	delete(f.objects, t)
	return nil
}

// there puts a definition into the cluster that somebody else made.
func (f *fake) there(crd, who string, versions ...string) {
	var vs []any
	for _, v := range versions {
		vs = append(vs, map[string]any{"name": v, "served": true})
	}
	meta := map[string]any{"name": crd, "managedFields": []any{map[string]any{"manager": who}, map[string]any{"manager": "kube-apiserver"}}}
	if release, ok := strings.CutPrefix(who, "helm:"); ok {
		meta["annotations"] = map[string]any{"meta.helm.sh/release-name": release, "meta.helm.sh/release-namespace": "kube-system"}
	}
	f.objects[crdNamed(crd)] = map[string]any{"metadata": meta, "spec": map[string]any{"versions": vs}, "status": map[string]any{"storedVersions": versions}}
}

func installer(f *fake) (*Installer, *time.Time) {
	now := time.Date(2026, 11, 30, 12, 0, 0, 0, time.UTC)
	return &Installer{
		API: f, Version: "1.33", Mode: Apply, Karpenter: func(context.Context) (string, error) { return "", nil },
		Now: func() time.Time { return now }, Wait: func(_ context.Context, d time.Duration) error { now = now.Add(d); return nil },
	}, &now
}

var names = []string{"capacitybuffers.autoscaling.x-k8s.io", "ec2nodeclasses.karpenter.k8s.aws", "nodeclaims.karpenter.sh", "nodeoverlays.karpenter.sh", "nodepools.karpenter.sh"}

// TestCRDs: the definitions are whole, with their licence.
func TestCRDs(t *testing.T) {
	crds, err := CRDs()
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, c := range crds {
		got = append(got, c.Metadata.Name)
		if len(c.Object) < 5000 || len(c.serves()) == 0 {
			t.Errorf("%s: %d bytes, serves %v", c.Metadata.Name, len(c.Object), c.serves())
		}
	}
	if d := cmp.Diff(names, got); d != "" {
		t.Error(d)
	}
	if l := Licence(); !strings.Contains(l, "Apache License") || !strings.Contains(l, "Amazon.com") {
		t.Errorf("licence: %.200s", l)
	}
}

// TestFresh: everything is made, in a second run nothing but the same again, and what goes
// with the stack is exactly what came with it, but for the definitions.
func TestFresh(t *testing.T) {
	f := newFake()
	f.slow = true
	x, _ := installer(f)
	rep, err := x.Install(t.Context())
	if err != nil || len(rep.Left)+len(rep.Notes) > 0 || len(rep.Applied) != 2*len(Functions)+2+len(names) {
		t.Fatalf("%+v, %v", rep, err)
	}
	before := maps.Clone(f.objects)
	again, err := x.Install(t.Context())
	if err != nil || !cmp.Equal(rep, again) || len(before) != len(f.objects) {
		t.Errorf("again: %+v, %v", again, err)
	}
	f.calls = nil
	gone, err := x.Uninstall(t.Context())
	if err != nil || len(gone.Removed) != 2*len(Functions)+2 || len(gone.Left) != 1 {
		t.Errorf("%+v, %v", gone, err)
	}
	left := []string{}
	for o := range f.objects {
		left = append(left, o.Name)
	}
	slices.Sort(left)
	if d := cmp.Diff(names, left); d != "" {
		t.Errorf("what stays: %s", d)
	}
	if slices.ContainsFunc(f.calls, func(c string) bool { return strings.Contains(c, "customresourcedefinition") }) {
		t.Errorf("definitions were touched: %v", f.calls)
	}
}

// TestAccess: every function has a role of exactly what live.Access lists, bound to its own
// group; the stack has the same groups.
func TestAccess(t *testing.T) {
	f := newFake()
	x, _ := installer(f)
	if _, err := x.Install(t.Context()); err != nil {
		t.Fatal(err)
	}
	for _, fn := range Functions {
		if len(live.Access(fn)) == 0 {
			t.Errorf("%s may nothing", fn)
		}
		role := f.objects[live.Target{Group: rbac, Version: "v1", Resource: "clusterroles", Name: "kerf-" + fn}]
		var got []live.Rule
		for _, r := range role["rules"].([]any) {
			m := r.(map[string]any)
			var rule live.Rule
			rule.Group = m["apiGroups"].([]any)[0].(string)
			for _, v := range m["resources"].([]any) {
				rule.Resources = append(rule.Resources, v.(string))
			}
			for _, v := range m["verbs"].([]any) {
				rule.Verbs = append(rule.Verbs, v.(string))
				if v == "*" || v == "escalate" || v == "bind" || v == "impersonate" {
					t.Errorf("%s may %s", fn, v)
				}
				if fn == "plan" && v != "list" && v != "get" {
					t.Errorf("the plan function may %s %v", v, rule.Resources)
				}
			}
			names, _ := m["resourceNames"].([]any)
			for _, n := range names {
				rule.Names = append(rule.Names, n.(string))
			}
			got = append(got, rule)
		}
		if d := cmp.Diff(live.Access(fn), got); d != "" {
			t.Errorf("%s: %s", fn, d)
		}
		bound := f.objects[live.Target{Group: rbac, Version: "v1", Resource: "clusterrolebindings", Name: "kerf-" + fn}]
		want := []any{map[string]any{"apiGroup": rbac, "kind": "Group", "name": "kerf:" + fn}}
		if d := cmp.Diff(want, bound["subjects"]); d != "" {
			t.Errorf("%s: %s", fn, d)
		}
	}
	if live.Access("bootstrap") != nil {
		t.Error("bootstrap has a role of its own: it is an administrator while the stack is deployed")
	}
	// Every function that is deployed is known here.
	dirs, err := os.ReadDir(filepath.Join("..", "..", "..", "functions"))
	if err != nil {
		t.Fatal(err)
	}
	for _, d := range dirs {
		if d.Name() != "bootstrap" && !slices.Contains(Functions, d.Name()) {
			t.Errorf("function %s has no group", d.Name())
		}
	}
}

// TestSafety: what is somebody else's stays, and what cannot work is refused with what to
// do about it.
func TestSafety(t *testing.T) {
	const pools, claims, classes = "nodepools.karpenter.sh", "nodeclaims.karpenter.sh", "ec2nodeclasses.karpenter.k8s.aws"
	for _, tt := range []struct {
		name    string
		prepare func(x *Installer, f *fake)
		err     string
		applied []string // definitions
		left    string
		note    string
	}{
		{"fresh", func(*Installer, *fake) {}, "", names, "", ""},
		{"Helm's", func(_ *Installer, f *fake) { f.there(pools, "helm:karpenter-crd", "v1") }, "", without(pools), "it belongs to Helm release kube-system/karpenter-crd; crds=force takes it over", ""},
		{"kubectl's", func(_ *Installer, f *fake) { f.there(pools, "kubectl-create", "v1") }, "", without(pools), "it belongs to kubectl-create", ""},
		{"by force", func(x *Installer, f *fake) { f.there(pools, "helm:karpenter-crd", "v1"); x.Mode = Force }, "", names, "", ""},
		{"old", func(_ *Installer, f *fake) { f.there(pools, "helm:karpenter-crd", "v1beta1") }, "nodepools.karpenter.sh serves v1beta1 and not v1", nil, "", ""},
		{"newer", func(x *Installer, f *fake) { f.there(claims, "helm:x", "v1", "v2"); x.Mode = Force }, "objects of version v2, which Karpenter v1.14.1 does not have", nil, "", ""},
		{"to be left", func(x *Installer, f *fake) {
			x.Mode = Leave
			for _, n := range names {
				f.there(n, "argocd", "v1")
			}
		}, "", nil, "crds=leave", ""},
		{"to be left, and not there", func(x *Installer, _ *fake) { x.Mode = Leave }, "is not there, and is not made because: crds=leave", nil, "crds=leave", ""},
		{"Karpenter runs", func(x *Installer, f *fake) {
			x.Karpenter = func(context.Context) (string, error) { return "kube-system/karpenter-1", nil }
			f.there(pools, "helm:k", "v1")
			f.there(claims, "helm:k", "v1")
			f.there(classes, "kerf", "v1")
		}, "", []string{names[0], names[3]}, "Karpenter runs and uses it", "Karpenter runs in this cluster (kube-system/karpenter-1)"},
		{"Auto Mode", func(x *Installer, f *fake) {
			x.AutoMode = true
			f.there(pools, "eks", "v1")
			f.there(claims, "eks", "v1")
		}, "",
			[]string{names[0], classes}, "it is EKS Auto Mode's", "EKS Auto Mode is on"},
		{"Auto Mode by force", func(x *Installer, f *fake) {
			x.AutoMode, x.Mode = true, Force
			f.there(pools, "eks", "v1")
			f.there(claims, "eks", "v1")
		}, "",
			[]string{names[0], classes}, "it is EKS Auto Mode's", ""},
		{"Auto Mode that was turned off", func(_ *Installer, f *fake) {
			f.there("nodeclasses.eks.amazonaws.com", "eks", "v1")
			f.there(pools, "eks", "v1")
			f.there(claims, "eks", "v1")
		}, "", []string{names[0], classes}, "it is EKS Auto Mode's", ""},
		{"an old cluster", func(x *Installer, _ *fake) { x.Version = "1.28" }, "Kubernetes 1.28: want 1.29 or newer", nil, "", ""},
		{"an odd version", func(x *Installer, _ *fake) { x.Version = "" }, `Kubernetes ""`, nil, "", ""},
		{"never served", func(_ *Installer, f *fake) { f.never = true }, "is not served after 1m0s", names, "", ""},
	} {
		t.Run(tt.name, func(t *testing.T) {
			f := newFake()
			x, _ := installer(f)
			tt.prepare(x, f)
			rep, err := x.Install(t.Context())
			if tt.err == "" && err != nil || tt.err != "" && (err == nil || !strings.Contains(err.Error(), tt.err)) {
				t.Fatalf("error %v, want %q", err, tt.err)
			}
			var applied []string
			for _, c := range f.calls {
				if n, ok := strings.CutPrefix(c, "apply customresourcedefinition/"); ok {
					applied = append(applied, n)
				}
			}
			if tt.err == "" || tt.applied != nil {
				slices.Sort(applied)
				if d := cmp.Diff(tt.applied, applied); d != "" {
					t.Errorf("applied: %s", d)
				}
			}
			if all := strings.Join(rep.Left, "\n"); !strings.Contains(all, tt.left) || tt.left == "" && all != "" {
				t.Errorf("left: %s", all)
			}
			if all := strings.Join(rep.Notes, "\n"); !strings.Contains(all, tt.note) {
				t.Errorf("notes: %s", all)
			}
		})
	}
}

func without(name string) []string {
	return slices.DeleteFunc(slices.Clone(names), func(n string) bool { return n == name })
}

// TestPatience: a 401 or 403 is asked again for two minutes, an invalid object is not.
func TestPatience(t *testing.T) {
	for _, is := range []error{live.ErrUnauthorized, live.ErrForbidden, live.ErrUnavailable} {
		f := newFake()
		x, now := installer(f)
		start := *now
		f.refuse = func(n int, _ string, _ live.Target) error {
			if now.Sub(start) < 100*time.Second {
				return &live.Error{Is: is, Detail: "not yet"}
			}
			return nil
		}
		if rep, err := x.Install(t.Context()); err != nil || len(rep.Applied) == 0 {
			t.Errorf("%v, for 100 seconds: %v", is, err)
		}
		f.refuse = func(int, string, live.Target) error { return &live.Error{Is: is, Detail: "never"} }
		start = *now
		_, err := x.Install(t.Context())
		if took := now.Sub(start); !errors.Is(err, is) || took != patience {
			t.Errorf("%v: given up after %s: %v", is, took, err)
		}
		if !regexp.MustCompile("access entry|vpcId").MatchString(err.Error()) {
			t.Errorf("what to do is not said: %v", err)
		}
	}
	f := newFake()
	x, now := installer(f)
	start := *now
	f.refuse = func(int, string, live.Target) error {
		return &live.Error{Is: live.ErrInvalid, Detail: "a webhook says no"}
	}
	if _, err := x.Install(t.Context()); !errors.Is(err, live.ErrInvalid) || now.After(start) {
		t.Errorf("an object that is refused: %v after %s", err, now.Sub(start))
	}
}
