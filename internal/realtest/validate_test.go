package realtest

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/rest"

	"kerf.sh/kerf/internal/app/validate"
	"kerf.sh/kerf/internal/kube"
	"kerf.sh/kerf/internal/kube/schema"
	"kerf.sh/kerf/internal/kube/setup"
)

// manifests are those that plan --validate has verdicts on, as transcripts.
const manifests = "../app/validate/testdata"

// TestValidateAgrees: a real API server with the same definitions says of each manifest what plan
// --validate says without one: taken or refused, the same fields, reasons and messages. Nothing is
// stored but what stands before a change.
func TestValidateAgrees(t *testing.T) {
	ctx, c := start(t, Options{NoCRDs: true})
	definitions := install(ctx, t, c, true)
	changes, err := filepath.Glob(filepath.Join(manifests, "changes", "*", "old.yaml"))
	if err != nil || len(changes) < 5 {
		t.Fatalf("%d changes, %v", len(changes), err)
	}
	// What was wrong already could be stored under definitions without rules only.
	for _, f := range changes {
		text, err := os.ReadFile(f)
		if err == nil {
			err = c.Create(ctx, renamed(string(text), f))
		}
		if err != nil {
			t.Fatalf("%s: %v", f, err)
		}
	}
	install(ctx, t, c, false)
	if err := c.Create(ctx, "{apiVersion: v1, kind: Namespace, metadata: {name: shop}}"); err != nil {
		t.Fatal(err)
	}
	s, err := schema.New(definitions)
	if err != nil {
		t.Fatal(err)
	}
	var n counts
	files, err := filepath.Glob(filepath.Join(manifests, "manifests", "*.yaml"))
	if err != nil || len(files) < 30 {
		t.Fatalf("%d manifests, %v", len(files), err)
	}
	for _, f := range files {
		for _, one := range read(t, f, "") {
			n.add(agree(ctx, t, c, s, one, nil))
		}
		for _, raw := range convertedOf(t, f) {
			one := read(t, filepath.Base(f)+" converted", string(raw))[0]
			n.add(agree(ctx, t, c, s, one, nil))
		}
	}
	for _, f := range changes {
		text, err := os.ReadFile(filepath.Join(filepath.Dir(f), "new.yaml"))
		if err != nil {
			t.Fatal(err)
		}
		one := read(t, f, renamed(string(text), f))[0]
		n.add(agree(ctx, t, c, s, one, current(ctx, t, c, one)))
	}
	t.Logf("%d objects: %d taken, %d refused with causes, %d not decoded, %d of no kind", n.all, n.taken, n.refused, n.undecoded, n.unknown)
	if n.taken < 10 || n.refused < 20 || n.undecoded < 3 || n.unknown < 10 {
		t.Errorf("too few of a sort: %+v", n)
	}
}

// renamed gives the object of a change the name of the change, so that all can stand at once.
func renamed(text, file string) string {
	name := filepath.Base(filepath.Dir(file))
	return strings.NewReplacer("{name: p}", "{name: "+name+"}", "{name: c,", "{name: "+name+",").Replace(text)
}

type counts struct{ all, taken, refused, undecoded, unknown int }

func (n *counts) add(one counts) {
	n.all++
	n.taken += one.taken
	n.refused += one.refused
	n.undecoded += one.undecoded
	n.unknown += one.unknown
}

// read finds the objects of a file, or of text; those of other groups than Karpenter's are none.
func read(t *testing.T, name, text string) []kube.Found {
	t.Helper()
	paths := []string{name}
	if text != "" {
		paths = []string{kube.Stdin}
	}
	sources, err := kube.Files(paths, strings.NewReader(text))
	if err != nil {
		t.Fatal(err)
	}
	all, err := kube.Each(sources)
	if err != nil {
		t.Fatalf("%s: %v", name, err)
	}
	return slices.DeleteFunc(all, func(f kube.Found) bool { return f.Group() == "apps" })
}

// convertedOf are the manifests that --convert writes for a file.
func convertedOf(t *testing.T, file string) []json.RawMessage {
	t.Helper()
	var out, stderr bytes.Buffer
	validate.Main([]string{"--validate", "-f", file, "--convert", "-o", "json"}, nil, &out, &stderr)
	var answer struct{ Converted []json.RawMessage }
	if err := json.Unmarshal(out.Bytes(), &answer); err != nil {
		t.Fatalf("%s: %v: %s", file, err, stderr.String())
	}
	return answer.Converted
}

// agree asks both about an object; old is what it takes the place of, nil when it is new.
func agree(ctx context.Context, t *testing.T, c *Cluster, s *schema.Schemas, f kube.Found, old []byte) (n counts) {
	t.Helper()
	place := f.Problem("", "").Error()
	v, err := s.Check(f.Raw, old)
	if errors.Is(err, schema.ErrKind) {
		n.unknown++
		if _, err := ask(ctx, c, f, nil, "Strict"); !apierrors.IsNotFound(err) {
			t.Errorf("%s: not defined, and the API server says %v", place, err)
		}
		return n
	}
	if err != nil {
		t.Fatalf("%s: %v", place, err)
	}
	stored, err := ask(ctx, c, f, old, "Strict")
	if v.Undecodable != "" || len(v.Unknown) > 0 {
		n.undecoded++
		want := v.Undecodable
		if want == "" {
			want = "strict decoding error: " + strings.Join(v.Unknown, ", ")
		}
		if !apierrors.IsBadRequest(err) || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: want %q, the API server says %v", place, want, err)
		}
		if v.Undecodable != "" {
			return n
		}
		stored, err = ask(ctx, c, f, old, "Ignore")
	}
	if len(v.Causes) == 0 {
		if n.taken++; err != nil {
			t.Errorf("%s: valid, and the API server refuses it: %v", place, err)
			return n
		}
		if d := cmp.Diff(spec(t, stored), v.Object["spec"]); d != "" {
			t.Errorf("%s: what is stored differs (- API server, + ours):\n%s", place, d)
		}
		return n
	}
	n.refused++
	var status *apierrors.StatusError
	if !errors.As(err, &status) || !apierrors.IsInvalid(err) {
		t.Errorf("%s: refused with %v, and the API server says %v", place, v.Causes, err)
		return n
	}
	if d := cmp.Diff(causes(status.ErrStatus.Details.Causes), causes(ours(v.Causes))); d != "" {
		t.Errorf("%s: causes (- API server, + ours):\n%s", place, d)
	}
	return n
}

func ours(in []schema.Cause) (out []metav1.StatusCause) {
	for _, c := range in {
		out = append(out, metav1.StatusCause{Field: c.Field, Type: metav1.CauseType(c.Reason), Message: c.Message})
	}
	return out
}

// causes are lines of causes, sorted: the API server's order is that of a map.
func causes(in []metav1.StatusCause) (out []string) {
	for _, c := range in {
		out = append(out, fmt.Sprintf("%s: %s: %s", c.Field, c.Type, c.Message))
	}
	slices.Sort(out)
	return out
}

func spec(t *testing.T, raw []byte) any {
	t.Helper()
	var u unstructured.Unstructured
	if err := u.UnmarshalJSON(raw); err != nil {
		t.Fatal(err)
	}
	return u.Object["spec"]
}

// ask sends an object with dry run, as a new one or in place of old.
func ask(ctx context.Context, c *Cluster, f kube.Found, old []byte, validation string) ([]byte, error) {
	path := Path(f.APIVersion, f.Kind, f.Namespace)
	r, body := c.Clientset.RESTClient().Post(), f.Raw
	if old != nil {
		var was, now unstructured.Unstructured
		if err := errors.Join(was.UnmarshalJSON(old), now.UnmarshalJSON(f.Raw)); err != nil {
			return nil, err
		}
		now.SetResourceVersion(was.GetResourceVersion())
		var err error
		if body, err = now.MarshalJSON(); err != nil {
			return nil, err
		}
		r, path = c.Clientset.RESTClient().Put(), path+"/"+f.Name
	}
	raw, err := r.AbsPath(path).Param("dryRun", "All").Param("fieldValidation", validation).
		SetHeader("Content-Type", "application/json").SetHeader("Accept", "application/json").Body(body).Do(ctx).Raw()
	var status metav1.Status
	if err != nil && json.Unmarshal(raw, &status) == nil && status.Kind == "Status" {
		err = &apierrors.StatusError{ErrStatus: status} // the client's own error has no causes
	}
	return raw, err
}

// current is the object that stands there.
func current(ctx context.Context, t *testing.T, c *Cluster, f kube.Found) []byte {
	t.Helper()
	raw, err := c.Clientset.RESTClient().Get().AbsPath(Path(f.APIVersion, f.Kind, f.Namespace) + "/" + f.Name).DoRaw(ctx)
	if err != nil {
		t.Fatal(err)
	}
	return raw
}

// install puts Karpenter's definitions there, as Kerf has them, or without any rule, and waits
// until they hold.
func install(ctx context.Context, t *testing.T, c *Cluster, loose bool) (definitions []json.RawMessage) {
	t.Helper()
	crds, err := setup.CRDs()
	if err != nil {
		t.Fatal(err)
	}
	client := c.Clientset.RESTClient()
	for i := range crds {
		definitions = append(definitions, crds[i].Object)
		var u unstructured.Unstructured
		if err := u.UnmarshalJSON(crds[i].Object); err != nil {
			t.Fatal(err)
		}
		if loose {
			versions, _, _ := unstructured.NestedSlice(u.Object, "spec", "versions")
			for _, v := range versions {
				delete(v.(map[string]any)["subresources"].(map[string]any), "scale")
				v.(map[string]any)["schema"] = map[string]any{"openAPIV3Schema": map[string]any{"type": "object", "x-kubernetes-preserve-unknown-fields": true}}
			}
			if err := unstructured.SetNestedSlice(u.Object, versions, "spec", "versions"); err != nil {
				t.Fatal(err)
			}
		}
		if err := put(ctx, client, &u); err != nil {
			t.Fatalf("install %s: %v", u.GetName(), err)
		}
	}
	for apiVersion, kinds := range map[string][]string{"karpenter.sh/v1": {"NodePool", "NodeClaim"}, "karpenter.k8s.aws/v1": {"EC2NodeClass"},
		"karpenter.sh/v1alpha1": {"NodeOverlay"}, "autoscaling.x-k8s.io/v1beta1": {"CapacityBuffer"}} {
		for _, kind := range kinds {
			probe := kube.Found{APIVersion: apiVersion, Kind: kind, Name: "probe",
				Raw: fmt.Appendf(nil, `{"apiVersion":%q,"kind":%q,"metadata":{"name":"probe"},"spec":"none"}`, apiVersion, kind)}
			err := Eventually(ctx, time.Minute, func() error {
				_, err := ask(ctx, c, probe, nil, "Ignore")
				switch {
				case loose:
					return err
				case apierrors.IsInvalid(err):
					return nil
				}
				return fmt.Errorf("the rules of %s do not hold yet: %w", kind, err)
			})
			if err != nil {
				t.Fatal(err)
			}
		}
	}
	return definitions
}

// put creates a definition, or puts it in the place of the one that is there.
func put(ctx context.Context, client rest.Interface, u *unstructured.Unstructured) error {
	const path = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"
	raw, err := u.MarshalJSON()
	if err != nil {
		return err
	}
	_, err = client.Post().AbsPath(path).SetHeader("Content-Type", "application/json").Body(raw).DoRaw(ctx)
	if !apierrors.IsAlreadyExists(err) {
		return err
	}
	there, err := client.Get().AbsPath(path + "/" + u.GetName()).DoRaw(ctx)
	if err != nil {
		return err
	}
	var was unstructured.Unstructured
	if err := was.UnmarshalJSON(there); err != nil {
		return err
	}
	u.SetResourceVersion(was.GetResourceVersion())
	if raw, err = u.MarshalJSON(); err != nil {
		return err
	}
	_, err = client.Put().AbsPath(path+"/"+u.GetName()).SetHeader("Content-Type", "application/json").Body(raw).DoRaw(ctx)
	return err
}
