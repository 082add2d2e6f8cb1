package autoscaler

import (
	"bytes"
	"debug/elf"
	"encoding/json"
	"flag"
	"fmt"
	"maps"
	"os"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/aws/aws-cdk-go/awscdk/v2"
	"github.com/aws/aws-cdk-go/awscdk/v2/assertions"
	"github.com/aws/jsii-runtime-go"
)

var rewrite = flag.Bool("rewrite", false, "rewrite the golden template")

// codeDir has the programs that most tests deploy.
var codeDir string

func TestMain(m *testing.M) {
	flag.Parse()
	dir, err := os.MkdirTemp("", "kerf-infra-")
	if err != nil {
		panic(err)
	}
	codeDir = dir
	buildInto(dir, elf.EM_AARCH64)
	code := m.Run()
	jsii.Close() // the CDK's own process
	os.RemoveAll(dir)
	os.Exit(code)
}

// resource is one resource of a template, as far as the tests look into it.
type resource struct {
	id             string
	Type           string
	DeletionPolicy string
	DependsOn      any
	Properties     map[string]any
}

// template is a template that was made, and the bytes of it.
type template struct {
	Resources map[string]resource
	Outputs   map[string]struct{ Value any }
	text      []byte
}

func synthesise(props Props) (template, error) {
	stack, err := NewStack(awscdk.NewApp(&awscdk.AppProps{AnalyticsReporting: jsii.Bool(false)}), props)
	if err != nil {
		return template{}, err
	}
	var buf bytes.Buffer
	enc := json.NewEncoder(&buf)
	enc.SetEscapeHTML(false)
	enc.SetIndent("", "  ")
	if err := enc.Encode(assertions.Template_FromStack(stack, nil).ToJSON()); err != nil {
		return template{}, err
	}
	out := template{text: buf.Bytes()}
	if err := json.Unmarshal(buf.Bytes(), &out); err != nil {
		return template{}, err
	}
	for id, r := range out.Resources {
		r.id = id
		out.Resources[id] = r
	}
	return out, nil
}

func made(t *testing.T, props Props) template {
	t.Helper()
	tm, err := synthesise(props)
	if err != nil {
		t.Fatal(err)
	}
	return tm
}

func demoProps() Props {
	return Props{ClusterName: "prod", CodeDir: codeDir, Settings: map[string]string{"RESERVED_ENIS": "1"}}
}

// demoTemplate is the stack that most tests look into, made once.
var demoTemplate = sync.OnceValues(func() (template, error) { return synthesise(demoProps()) })

func demo(t *testing.T) template {
	t.Helper()
	tm, err := demoTemplate()
	if err != nil {
		t.Fatal(err)
	}
	return tm
}

// all are the resources of a type, by id.
func (tm template) all(typ string) []resource {
	var out []resource
	for _, id := range slices.Sorted(maps.Keys(tm.Resources)) {
		if tm.Resources[id].Type == typ {
			out = append(out, tm.Resources[id])
		}
	}
	return out
}

// find is the one resource of a type whose id begins so.
func (tm template) find(t *testing.T, typ, prefix string) resource {
	t.Helper()
	var found []resource
	for _, r := range tm.all(typ) {
		if strings.HasPrefix(r.id, prefix) {
			found = append(found, r)
		}
	}
	if len(found) != 1 {
		t.Fatalf("%d resources of type %s begin with %s", len(found), typ, prefix)
	}
	return found[0]
}

// function is the Lambda function of a name ("Sweep").
func (tm template) function(t *testing.T, name string) resource {
	return tm.find(t, "AWS::Lambda::Function", "Kerf"+name+"Function")
}

func (tm template) role(t *testing.T, name string) resource {
	return tm.find(t, "AWS::IAM::Role", "Kerf"+name+"Role")
}

func (tm template) queue(t *testing.T, name string) resource {
	return tm.find(t, "AWS::SQS::Queue", "Kerf"+name)
}

// at follows keys into properties; nil when there is nothing.
func (r resource) at(keys ...string) any {
	var v any = r.Properties
	for _, k := range keys {
		m, ok := v.(map[string]any)
		if !ok {
			return nil
		}
		v = m[k]
	}
	return v
}

// target is the id of the resource that a value refers to, "" for none.
func target(v any) string {
	m, _ := v.(map[string]any)
	if ref, ok := m["Ref"].(string); ok {
		return ref
	}
	if att, ok := m["Fn::GetAtt"].([]any); ok && len(att) == 2 {
		return att[0].(string)
	}
	return ""
}

// render puts values as long as they can get into the place of what only CloudFormation
// knows.
func render(v any) any {
	switch v := v.(type) {
	case []any:
		out := make([]any, len(v))
		for i := range v {
			out[i] = render(v[i])
		}
		return out
	case map[string]any:
		if join, ok := v["Fn::Join"].([]any); ok {
			var parts []string
			for _, p := range render(join[1]).([]any) {
				parts = append(parts, p.(string))
			}
			return strings.Join(parts, join[0].(string))
		}
		switch ref, _ := v["Ref"].(string); {
		case ref == "AWS::Partition":
			return "aws-us-gov"
		case ref == "AWS::Region":
			return "ap-southeast-4"
		case ref == "AWS::AccountId":
			return "123456789012"
		case ref != "":
			return "<" + ref + ">"
		}
		if att, ok := v["Fn::GetAtt"].([]any); ok {
			return fmt.Sprintf("arn:aws-us-gov:service:ap-southeast-4:123456789012:%0100s", att[0])
		}
		out := map[string]any{}
		for k := range v {
			out[k] = render(v[k])
		}
		return out
	}
	return v
}

// list is one string, or some.
func list(v any) []string {
	switch v := render(v).(type) {
	case string:
		return []string{v}
	case []any:
		var out []string
		for _, s := range v {
			out = append(out, s.(string))
		}
		return out
	}
	return nil
}
