package convert

import (
	"fmt"
	"strings"
)

// aliases are the families whose images Karpenter found by itself, with the alias that does so now.
var aliases = map[string]string{
	"AL2": "al2@latest", "AL2023": "al2023@latest", "Bottlerocket": "bottlerocket@latest",
	"Windows2019": "windows2019@latest", "Windows2022": "windows2022@latest",
}

// template: karpenter.k8s.aws/v1alpha1 AWSNodeTemplate.
func (w *work) template() {
	class, spec := w.begin(awsGroup, "EC2NodeClass")
	w.awsFields(class, spec, "spec")
}

// awsFields takes the fields of an AWSNodeTemplate, which a Provisioner could have inline.
func (w *work) awsFields(class Object, spec map[string]any, at string) {
	for _, name := range []string{"apiVersion", "kind"} { // an inline provider names itself
		delete(spec, name)
	}
	for _, s := range []struct{ from, to string }{{"subnetSelector", "subnetSelectorTerms"}, {"securityGroupSelector", "securityGroupSelectorTerms"}} {
		if sel, ok := take[map[string]any](spec, s.from); ok {
			set(class, "spec."+s.to, terms(sel))
			w.moved(at+"."+s.from, "spec."+s.to, "")
		} else {
			w.lost(at+"."+s.from, "there is none: spec.%s must be given", s.to)
		}
	}
	if sel, ok := take[map[string]any](spec, "amiSelector"); ok {
		set(class, "spec.amiSelectorTerms", imageTerms(sel))
		w.moved(at+".amiSelector", "spec.amiSelectorTerms", "")
	}
	if _, ok := spec["amiFamily"]; !ok {
		spec["amiFamily"] = "AL2"
		w.moved("", "spec.amiFamily", "AL2: it was the default, and must be given now")
	}
	for _, name := range []string{"launchTemplate", "launchTemplateName"} {
		if _, ok := spec[name]; ok {
			delete(spec, name)
			w.lost(at+"."+name, "launch templates of your own are not supported any more: say in the EC2NodeClass what the template says (images, user data, security groups, volumes)")
		}
	}
	w.commonFields(class, spec, at)
	if get(class, "spec.role") == nil && get(class, "spec.instanceProfile") == nil {
		w.lost(at+".instanceProfile", "there is none, and the default of the global settings is gone: give spec.role, or spec.instanceProfile")
	}
	w.rest(spec, at)
}

// betaClass: karpenter.k8s.aws/v1beta1 EC2NodeClass.
func (w *work) betaClass() {
	class, spec := w.begin(awsGroup, "EC2NodeClass")
	for _, name := range []string{"subnetSelectorTerms", "securityGroupSelectorTerms", "amiSelectorTerms"} {
		w.move(spec, "spec."+name, class, "spec."+name)
	}
	w.commonFields(class, spec, "spec")
	w.rest(spec, "spec")
}

// commonFields takes what both old kinds have under the same name as today.
func (w *work) commonFields(class Object, spec map[string]any, at string) {
	for _, name := range []string{
		"amiFamily", "role", "instanceProfile", "userData", "tags", "blockDeviceMappings", "instanceStorePolicy",
		"detailedMonitoring", "associatePublicIPAddress", "context", "metadataOptions",
	} {
		if v, ok := spec[name]; ok {
			delete(spec, name)
			set(class, "spec."+name, v)
			if at != "spec" {
				w.moved(at+"."+name, "spec."+name, "")
			}
		}
	}
	w.images(class)
	w.tags(class)
	const hops = "spec.metadataOptions.httpPutResponseHopLimit"
	if get(class, hops) == nil {
		set(class, hops, int64(2))
		w.moved("", hops, "2: it was the default, and today's is 1, with which only pods on the host's network reach the instance metadata")
	}
}

// images: an alias takes the place of a family whose images are found, and Ubuntu is no family.
func (w *work) images(class Object) {
	terms, _ := get(class, "spec.amiSelectorTerms").([]any)
	family, _ := get(class, "spec.amiFamily").(string)
	if family == "Ubuntu" {
		set(class, "spec.amiFamily", "AL2")
		w.moved("spec.amiFamily", "spec.amiFamily", "AL2 in place of Ubuntu, which is no family any more: the user data has the same form")
		if get(class, "spec.blockDeviceMappings") == nil {
			set(class, "spec.blockDeviceMappings", []any{map[string]any{
				"deviceName": "/dev/sda1", "rootVolume": true,
				"ebs": map[string]any{"encrypted": true, "volumeType": "gp3", "volumeSize": "20Gi"},
			}})
			w.moved("", "spec.blockDeviceMappings", "/dev/sda1, 20Gi: the root volume of Ubuntu images")
		}
		if len(terms) == 0 {
			w.lost("spec.amiFamily", "images of Ubuntu are not found by themselves any more: give spec.amiSelectorTerms (id, name or tags)")
		}
		return
	}
	if len(terms) > 0 {
		return
	}
	alias, ok := aliases[family]
	if !ok {
		w.lost("spec.amiFamily", "%q finds no images by itself: give spec.amiSelectorTerms", family)
		return
	}
	set(class, "spec.amiSelectorTerms", []any{map[string]any{"alias": alias}})
	w.moved("", "spec.amiSelectorTerms", "alias %s: what the family %s found by itself; a fixed version in place of latest keeps nodes from drifting with each release", alias, family)
}

// tags that Karpenter sets itself may not be given.
func (w *work) tags(class Object) {
	tags, _ := get(class, "spec.tags").(map[string]any)
	for _, k := range sorted(tags) {
		switch {
		case k == "karpenter.sh/managed-by", k == "karpenter.sh/provisioner-name", k == "karpenter.sh/nodepool", k == "karpenter.sh/nodeclaim",
			k == "karpenter.k8s.aws/ec2nodeclass", k == "eks:eks-cluster-name", strings.HasPrefix(k, "kubernetes.io/cluster"):
			delete(tags, k)
			w.lost(fmt.Sprintf("spec.tags[%q]", k), "it is set for every instance and may not be given; it is left out")
		}
	}
}

// terms makes terms of a selector of v1alpha1: a map whose values can be lists with commas, all
// keys of which had to hold. One term is one way to be selected.
func terms(sel map[string]any) []any {
	var out []any
	tags := map[string]any{}
	for _, k := range sorted(sel) {
		v := fmt.Sprint(sel[k])
		if k == "aws-ids" || k == "aws::ids" {
			for _, id := range list(v) {
				out = append(out, map[string]any{"id": id})
			}
			continue
		}
		tags[k] = v
	}
	return append(out, tagTerms(tags)...)
}

// tagTerms are the terms of tags, one for each combination of values.
func tagTerms(tags map[string]any) []any {
	if len(tags) == 0 {
		return nil
	}
	all := []map[string]any{{}}
	for _, k := range sorted(tags) {
		var next []map[string]any
		for _, v := range list(fmt.Sprint(tags[k])) {
			for _, t := range all {
				one := clone(t).(map[string]any)
				one[k] = v
				next = append(next, one)
			}
		}
		all = next
	}
	var out []any
	for _, t := range all {
		out = append(out, map[string]any{"tags": t})
	}
	return out
}

// imageTerms makes terms of an amiSelector: ids, names of owners, or tags.
func imageTerms(sel map[string]any) []any {
	rest := map[string]any{}
	var names, owners []string
	for k, v := range sel {
		switch s := fmt.Sprint(v); k {
		case "aws::name":
			names = list(s)
		case "aws::owners":
			owners = list(s)
		default:
			rest[k] = s
		}
	}
	if len(names) == 0 && len(owners) == 0 {
		return terms(rest)
	}
	if len(owners) == 0 {
		owners = []string{""}
	}
	if len(names) == 0 {
		names = []string{""}
	}
	bases := terms(rest)
	if bases == nil {
		bases = []any{map[string]any{}}
	}
	var out []any
	for _, b := range bases {
		for _, name := range names {
			for _, owner := range owners {
				t := clone(b).(map[string]any)
				if name != "" {
					t["name"] = name
				}
				if owner != "" {
					t["owner"] = owner
				}
				out = append(out, t)
			}
		}
	}
	return out
}

// list splits a value at commas.
func list(s string) []string {
	var out []string
	for v := range strings.SplitSeq(s, ",") {
		if v = strings.TrimSpace(v); v != "" {
			out = append(out, v)
		}
	}
	return out
}
