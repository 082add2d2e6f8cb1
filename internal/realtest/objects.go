package realtest

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	yamlutil "k8s.io/apimachinery/pkg/util/yaml"
	"sigs.k8s.io/yaml"
)

// crdModules hold the CRDs of Karpenter, in pkg/apis/crds.
var crdModules = []string{"sigs.k8s.io/karpenter@v1.14.1", "github.com/aws/karpenter-provider-aws@v1.14.1"}

// InstallCRDs installs Karpenter's CRDs and waits until they are served.
func (c *Cluster) InstallCRDs(ctx context.Context) error {
	for _, m := range crdModules {
		dir, err := moduleDir(ctx, m)
		if err != nil {
			return err
		}
		files, err := filepath.Glob(filepath.Join(dir, "pkg", "apis", "crds", "*.yaml"))
		if err != nil || len(files) == 0 {
			return fmt.Errorf("install CRDs: none in %s", dir)
		}
		for _, f := range files {
			raw, err := os.ReadFile(f)
			if err != nil {
				return err
			}
			if err := c.Create(ctx, string(raw)); err != nil {
				return fmt.Errorf("install %s: %w", filepath.Base(f), err)
			}
		}
	}
	for _, path := range []string{"/apis/karpenter.sh/v1/nodepools", "/apis/karpenter.sh/v1/nodeclaims", "/apis/karpenter.sh/v1alpha1/nodeoverlays",
		"/apis/karpenter.k8s.aws/v1/ec2nodeclasses", "/apis/autoscaling.x-k8s.io/v1beta1/capacitybuffers"} {
		err := Eventually(ctx, time.Minute, func() error {
			_, err := c.Clientset.RESTClient().Get().AbsPath(path).DoRaw(ctx)
			return err
		})
		if err != nil {
			return fmt.Errorf("wait for %s: %w", path, err)
		}
	}
	return nil
}

// moduleDir is where the module cache has a module; it is fetched if it is not there.
func moduleDir(ctx context.Context, module string) (string, error) {
	out, err := exec.CommandContext(ctx, "go", "mod", "download", "-json", module).Output()
	if err != nil {
		return "", fmt.Errorf("download %s: %w", module, err)
	}
	var m struct{ Dir string }
	err = json.Unmarshal(out, &m)
	return m.Dir, err
}

// Create creates the objects of a YAML text, in their order. One that is there already is
// left as it is. A status that an object has is written too.
func (c *Cluster) Create(ctx context.Context, text string) error {
	r := yamlutil.NewYAMLReader(bufio.NewReader(strings.NewReader(text)))
	for {
		doc, err := r.Read()
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return err
		}
		var u unstructured.Unstructured
		if err := yaml.Unmarshal(doc, &u.Object); err != nil {
			return fmt.Errorf("read a manifest: %w", err)
		}
		if len(u.Object) == 0 {
			continue
		}
		if err := c.create(ctx, &u); err != nil {
			return fmt.Errorf("create %s %s: %w", u.GetKind(), u.GetName(), err)
		}
	}
}

func (c *Cluster) create(ctx context.Context, u *unstructured.Unstructured) error {
	path := Path(u.GetAPIVersion(), u.GetKind(), u.GetNamespace())
	raw, err := u.MarshalJSON()
	if err != nil {
		return err
	}
	made, err := c.Clientset.RESTClient().Post().AbsPath(path).SetHeader("Content-Type", "application/json").SetHeader("Accept", "application/json").Body(raw).DoRaw(ctx)
	if apierrors.IsAlreadyExists(err) {
		return nil
	}
	if err != nil || u.Object["status"] == nil || u.GetKind() == "CustomResourceDefinition" {
		return err
	}
	var there unstructured.Unstructured
	if err := there.UnmarshalJSON(made); err != nil {
		return err
	}
	there.Object["status"] = u.Object["status"]
	if raw, err = there.MarshalJSON(); err != nil {
		return err
	}
	_, err = c.Clientset.RESTClient().Put().AbsPath(path+"/"+u.GetName()+"/status").SetHeader("Content-Type", "application/json").Body(raw).DoRaw(ctx)
	return err
}

// namespaced are the kinds that live in a namespace, of those that tests create.
var namespaced = map[string]bool{
	"Pod": true, "LimitRange": true, "PersistentVolumeClaim": true, "DaemonSet": true, "Deployment": true, "ReplicaSet": true, "StatefulSet": true, "Job": true,
	"PodDisruptionBudget": true, "PodTemplate": true, "CapacityBuffer": true, "Lease": true, "ServiceAccount": true, "Role": true, "RoleBinding": true, "ConfigMap": true, "Service": true,
}

// Path is the path of a kind's collection.
func Path(apiVersion, kind, namespace string) string {
	p := "/api/" + apiVersion
	if strings.Contains(apiVersion, "/") {
		p = "/apis/" + apiVersion
	}
	if namespaced[kind] {
		if namespace == "" {
			namespace = "default"
		}
		p += "/namespaces/" + namespace
	}
	plural := strings.ToLower(kind) + "s"
	switch {
	case strings.HasSuffix(kind, "ss"):
		plural = strings.ToLower(kind) + "es"
	case strings.HasSuffix(kind, "y") && !strings.HasSuffix(kind, "ay"):
		plural = strings.TrimSuffix(strings.ToLower(kind), "y") + "ies"
	}
	return p + "/" + plural
}

// Eventually repeats a check until it is nil, for at most the time given.
func Eventually(ctx context.Context, most time.Duration, check func() error) error {
	ctx, cancel := context.WithTimeout(ctx, most)
	defer cancel()
	for {
		err := check()
		if err == nil {
			return nil
		}
		select {
		case <-ctx.Done():
			return fmt.Errorf("not within %v: %w", most, err)
		case <-time.After(50 * time.Millisecond):
		}
	}
}
