package fakeaws

import (
	"fmt"
	"maps"
	"net/url"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"time"
)

// dialect is one of the two forms of AWS's query protocol.
type dialect struct {
	// member stands between the name of a list and the index: "member" in IAM's form.
	member string
	// capital begins the names of elements of answers.
	capital bool
	// item is the element of a list's entries.
	item string
}

var (
	ec2Query = dialect{item: "item"}
	awsQuery = dialect{member: "member", capital: true, item: "member"}
)

// inputNames are the parameters that are not named as the SDK names their field; of lists
// the singular is known besides.
var inputNames = map[string]string{
	"CreateTagsInput.Resources":                                         "ResourceId",
	"DescribeImagesInput.ExecutableUsers":                               "ExecutableBy",
	"InstanceNetworkInterfaceSpecification.Groups":                      "SecurityGroupId",
	"LaunchTemplateInstanceNetworkInterfaceSpecificationRequest.Groups": "SecurityGroupId",
}

// node is a parameter with what stands below it: Filter.1.Name is Filter, 1, Name.
type node struct {
	value string
	leaf  bool
	below map[string]*node
}

func tree(form url.Values) *node {
	root := &node{below: map[string]*node{}}
	for key, values := range form {
		n := root
		for part := range strings.SplitSeq(key, ".") {
			if n.below == nil {
				n.below = map[string]*node{}
			}
			next := n.below[part]
			if next == nil {
				next = &node{}
				n.below[part] = next
			}
			n = next
		}
		n.value, n.leaf = values[0], true
	}
	return root
}

// decode reads the parameters of a request into the SDK's input. A parameter without a
// field is an error, as is a value that a field does not take.
func (d dialect) decode(form url.Values, into any) error {
	form = maps.Clone(form)
	form.Del("Action")
	form.Del("Version")
	return d.structure(tree(form), reflect.ValueOf(into).Elem(), "")
}

func (d dialect) structure(n *node, v reflect.Value, path string) error {
	if n.leaf && n.value != "" {
		return fmt.Errorf("parameter %s: a value where a structure is expected", path)
	}
	for _, name := range slices.Sorted(maps.Keys(n.below)) {
		field, ok := d.field(v.Type(), name)
		if !ok {
			return fmt.Errorf("the parameter %s is not recognized", join(path, name))
		}
		if err := d.value(n.below[name], v.FieldByIndex(field), join(path, name)); err != nil {
			return err
		}
	}
	return nil
}

func join(path, name string) string {
	if path == "" {
		return name
	}
	return path + "." + name
}

// field finds the field of a parameter.
func (d dialect) field(t reflect.Type, name string) ([]int, bool) {
	if f, ok := t.FieldByName(name); ok && f.IsExported() {
		return f.Index, true
	}
	if d.member != "" {
		return nil, false
	}
	for _, f := range reflect.VisibleFields(t) {
		if f.Type.Kind() != reflect.Slice {
			continue
		}
		if special, ok := inputNames[t.Name()+"."+f.Name]; ok {
			if special == name {
				return f.Index, true
			}
			continue
		}
		if f.Name == name+"s" || f.Name == name+"es" {
			return f.Index, true
		}
	}
	return nil, false
}

var timeType = reflect.TypeFor[time.Time]()

func (d dialect) value(n *node, v reflect.Value, path string) error {
	switch {
	case v.Kind() == reflect.Pointer:
		v.Set(reflect.New(v.Type().Elem()))
		return d.value(n, v.Elem(), path)
	case v.Type() == timeType:
		at, err := time.Parse(time.RFC3339, n.value)
		if err != nil {
			return fmt.Errorf("parameter %s: %q is no time", path, n.value)
		}
		v.Set(reflect.ValueOf(at.UTC()))
		return nil
	case v.Kind() == reflect.Struct:
		return d.structure(n, v, path)
	case v.Kind() == reflect.Slice:
		return d.list(n, v, path)
	}
	if !n.leaf || n.below != nil {
		return fmt.Errorf("parameter %s: a structure where a value is expected", path)
	}
	return scalar(n.value, v, path)
}

func scalar(text string, v reflect.Value, path string) error {
	var err error
	switch v.Kind() {
	case reflect.String:
		v.SetString(text)
	case reflect.Bool:
		var b bool
		b, err = strconv.ParseBool(text)
		v.SetBool(b)
	case reflect.Int32, reflect.Int64:
		var i int64
		i, err = strconv.ParseInt(text, 10, v.Type().Bits())
		v.SetInt(i)
	case reflect.Float32, reflect.Float64:
		var f float64
		f, err = strconv.ParseFloat(text, v.Type().Bits())
		v.SetFloat(f)
	default:
		return fmt.Errorf("parameter %s: this AWS cannot read a %s", path, v.Type())
	}
	if err != nil {
		return fmt.Errorf("parameter %s: %q is no %s", path, text, v.Kind())
	}
	return nil
}

// list reads entries 1 to n, with no gap.
func (d dialect) list(n *node, v reflect.Value, path string) error {
	if d.member != "" {
		below := n.below[d.member]
		if len(n.below) > 1 || below == nil && !(n.leaf && n.value == "") {
			return fmt.Errorf("parameter %s: a list is written %s.%s.1", path, path, d.member)
		}
		if below == nil {
			return nil
		}
		n, path = below, path+"."+d.member
	}
	if n.leaf && n.value != "" {
		return fmt.Errorf("parameter %s: a value where a list is expected", path)
	}
	v.Set(reflect.MakeSlice(v.Type(), len(n.below), len(n.below)))
	for i := range len(n.below) {
		at := path + "." + strconv.Itoa(i+1)
		entry := n.below[strconv.Itoa(i+1)]
		if entry == nil {
			return fmt.Errorf("parameter %s: it is missing, and there are %d entries", at, len(n.below))
		}
		if err := d.value(entry, v.Index(i), at); err != nil {
			return err
		}
	}
	return nil
}
