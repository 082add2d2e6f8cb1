package local

import (
	"archive/zip"
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
)

// template is what is deployed.
type template struct {
	// text is the template as CloudFormation gets it; assets are the files that it names, by
	// their key in the bucket of assets.
	text   []byte
	assets map[string][]byte
	// cluster is the EKS cluster that it is for.
	cluster string
	// actions are what the role of a function may do, by the function's logical id.
	actions map[string][]string
	// types counts the resources of each type.
	types map[string]int
}

// object is a part of a template.
type object = map[string]any

// readTemplate reads a template and what it deploys: the assets beside it, if the CDK has left
// a list of them (NAME.assets.json), else the programs of build, by the names of functions.
func readTemplate(file, build string) (*template, error) {
	raw, err := os.ReadFile(file)
	if err != nil {
		return nil, err
	}
	t := &template{text: raw, assets: map[string][]byte{}, actions: map[string][]string{}, types: map[string]int{}}
	var all struct{ Resources map[string]object }
	if err := json.Unmarshal(raw, &all); err != nil {
		return nil, fmt.Errorf("read %s: %w", file, err)
	}
	for id, r := range all.Resources {
		t.types[fmt.Sprint(r["Type"])]++
		if r["Type"] != "AWS::Lambda::Function" {
			continue
		}
		p, _ := r["Properties"].(object)
		env, _ := p["Environment"].(object)
		variables, _ := env["Variables"].(object)
		if t.cluster, _ = variables["CLUSTER_NAME"].(string); t.cluster == "" {
			return nil, fmt.Errorf("read %s: function %s has no CLUSTER_NAME", file, id)
		}
		if t.actions[id], err = actionsOf(p["Role"], all.Resources); err != nil {
			return nil, fmt.Errorf("read %s: function %s: %w", file, id, err)
		}
	}
	if list := strings.TrimSuffix(file, ".template.json") + ".assets.json"; exists(list) {
		return t, t.listed(list, filepath.Base(file))
	}
	return t, t.built(build)
}

func exists(file string) bool { _, err := os.Stat(file); return err == nil }

// actionsOf are the actions that a role's own policies allow.
func actionsOf(role any, all map[string]object) (out []string, err error) {
	ref, _ := role.(object)
	get, _ := ref["Fn::GetAtt"].([]any)
	if len(get) == 0 {
		return nil, fmt.Errorf("its role is %v, no resource of the stack", role)
	}
	raw, err := json.Marshal(all[fmt.Sprint(get[0])])
	if err != nil {
		return nil, err
	}
	var r struct {
		Properties struct {
			Policies []struct {
				PolicyDocument struct{ Statement []struct{ Action any } }
			}
		}
	}
	if err := json.Unmarshal(raw, &r); err != nil {
		return nil, err
	}
	for _, p := range r.Properties.Policies {
		for _, s := range p.PolicyDocument.Statement {
			list, ok := s.Action.([]any)
			if !ok {
				list = []any{s.Action}
			}
			for _, a := range list {
				out = append(out, fmt.Sprint(a))
			}
		}
	}
	return out, nil
}

// listed are the assets that the CDK lists.
func (t *template) listed(file, self string) error {
	raw, err := os.ReadFile(file)
	if err != nil {
		return err
	}
	var list struct {
		Files map[string]struct {
			Source       struct{ Path, Packaging string }
			Destinations map[string]struct{ ObjectKey string }
		}
	}
	if err := json.Unmarshal(raw, &list); err != nil {
		return fmt.Errorf("read %s: %w", file, err)
	}
	for _, f := range list.Files {
		if f.Source.Path == self {
			continue
		}
		if f.Source.Packaging != "zip" {
			return fmt.Errorf("read %s: asset %s is a %s, want a zip", file, f.Source.Path, f.Source.Packaging)
		}
		packed, err := zipped(filepath.Join(filepath.Dir(file), f.Source.Path, "bootstrap"))
		if err != nil {
			return err
		}
		for _, d := range f.Destinations {
			t.assets[d.ObjectKey] = packed
		}
	}
	return nil
}

// built puts the programs of a folder in the place of the template's assets.
func (t *template) built(build string) error {
	var whole object
	if err := json.Unmarshal(t.text, &whole); err != nil {
		return err
	}
	programs, err := filepath.Glob(filepath.Join(build, "*", "bootstrap"))
	if err != nil {
		return err
	}
	resources, _ := whole["Resources"].(object)
	for id := range t.actions {
		i := slices.IndexFunc(programs, func(p string) bool {
			return strings.HasPrefix(strings.ToLower(id), "kerf"+filepath.Base(filepath.Dir(p)))
		})
		if i < 0 {
			return fmt.Errorf("%s has no program for function %s: make build BUILD=%s", build, id, build)
		}
		key := filepath.Base(filepath.Dir(programs[i])) + ".zip"
		if t.assets[key], err = zipped(programs[i]); err != nil {
			return err
		}
		resources[id].(object)["Properties"].(object)["Code"].(object)["S3Key"] = key
	}
	t.text, err = json.Marshal(whole)
	return err
}

// zipped is a program as Lambda takes it.
func zipped(program string) ([]byte, error) {
	body, err := os.ReadFile(program)
	if err != nil {
		return nil, err
	}
	var out bytes.Buffer
	z := zip.NewWriter(&out)
	h := &zip.FileHeader{Name: "bootstrap", Method: zip.Store}
	h.SetMode(0o755)
	w, err := z.CreateHeader(h)
	if err != nil {
		return nil, err
	}
	if _, err := w.Write(body); err != nil {
		return nil, err
	}
	err = z.Close()
	return out.Bytes(), err
}
