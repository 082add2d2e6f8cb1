package doctor

import (
	"fmt"
	"slices"
	"strings"
)

// ours is the API group of the classes that are Kerf's.
const ours = "karpenter.k8s.aws"

func (w *walk) pools() {
	if !w.seen(LookObjects) {
		return
	}
	mine, others := 0, 0
	for i := range w.f.Pools {
		p := &w.f.Pools[i]
		object := "nodepool/" + p.Name
		if p.Group != ours {
			others++
			continue
		}
		mine++
		switch {
		case p.Deleting:
			w.say(Note, NodePoolDeleting, object, "it is being deleted: nothing is launched for it")
		case w.class(p.Class) == nil:
			w.say(Broken, ClassMissing, object, "its class "+p.Class+" is not there"+w.known(), "kubectl get ec2nodeclasses", "kubectl edit nodepool "+p.Name)
		case p.Ready == "False" && !strings.Contains(p.Reason+p.Message, "NodeClass"):
			w.say(Broken, NodePoolNotReady, object, "it is not ready: "+p.Reason+": "+p.Message, "kubectl describe nodepool "+p.Name)
		}
	}
	switch {
	case mine == 0:
		detail := "there is no NodePool whose class is of " + ours
		if others > 0 {
			detail += fmt.Sprintf("; those of other groups (%d) are somebody else's", others)
		}
		w.say(Broken, NoNodePool, "", detail, "kubectl apply -f nodepool.yaml   (docs/install.md has one)")
	case others > 0:
		w.say(Note, NodePoolOfOther, "", fmt.Sprintf("those of other groups (%d) are not Kerf's", others))
	}
}

func (w *walk) class(name string) *Class {
	if i := slices.IndexFunc(w.f.Classes, func(c Class) bool { return c.Name == name }); i >= 0 {
		return &w.f.Classes[i]
	}
	return nil
}

func (w *walk) known() string {
	if len(w.f.Classes) == 0 {
		return "; there is no EC2NodeClass at all"
	}
	var names []string
	for i := range w.f.Classes {
		names = append(names, w.f.Classes[i].Name)
	}
	return "; there are " + some(names, 5)
}

func (w *walk) classes() {
	for i := range w.f.Classes {
		c := &w.f.Classes[i]
		if c.Deleting {
			w.say(Note, ClassDeleting, "nodeclass/"+c.Name, "it is being deleted: nothing is launched with it")
			continue
		}
		before := len(w.found)
		w.subnetsOf(c)
		w.groupsOf(c)
		w.imagesOf(c)
		w.conditions(c, len(w.found) > before)
	}
}

// vpc is the cluster's, "" = not known.
func (w *walk) vpc() string {
	if w.f.EKS == nil {
		return ""
	}
	return w.f.EKS.VPC
}

func (w *walk) subnetsOf(c *Class) {
	if !w.seen(LookSubnets) {
		return
	}
	var here []tagged
	var ids, outside []string
	vpc := w.vpc()
	found := w.selected(c)
	for i := range w.f.Subnets {
		s := &w.f.Subnets[i]
		if vpc == "" || s.VPC == vpc {
			here = append(here, tagged{s.ID, "", s.Tags})
			ids = append(ids, s.ID)
		} else if slices.Contains(found, s) {
			outside = append(outside, s.ID+" ("+s.VPC+")")
		}
	}
	w.terms(c, "subnetSelectorTerms", "subnet", c.SubnetTerms, len(found) > 0, ids, here, NoSubnets, SubnetTermEmpty, func(t *Term) bool {
		return slices.ContainsFunc(w.f.Subnets, func(s Subnet) bool { return t.matches(s.ID, "", s.Tags) })
	})
	if len(outside) > 0 {
		w.say(Broken, SubnetElsewhere, "nodeclass/"+c.Name, "it selects subnets outside "+vpc+", where the cluster is: "+some(outside, 4), "kubectl edit ec2nodeclass "+c.Name)
	}
}

// selected are the subnets that a class selects.
func (w *walk) selected(c *Class) []*Subnet {
	var out []*Subnet
	for i := range w.f.Subnets {
		s := &w.f.Subnets[i]
		if slices.ContainsFunc(c.SubnetTerms, func(t Term) bool { return t.matches(s.ID, "", s.Tags) }) {
			out = append(out, s)
		}
	}
	return out
}

func (w *walk) groupsOf(c *Class) {
	if !w.seen(LookGroups) {
		return
	}
	var here []tagged
	for _, g := range w.f.Groups {
		here = append(here, tagged{g.ID, g.Name, g.Tags})
	}
	matches := func(t *Term) bool {
		return slices.ContainsFunc(w.f.Groups, func(g Group) bool { return t.matches(g.ID, g.Name, g.Tags) })
	}
	any := slices.ContainsFunc(c.GroupTerms, func(t Term) bool { return matches(&t) })
	var ids []string // what mends it is the group that EKS made for nodes and API server
	if w.f.EKS != nil && w.f.EKS.SecurityGroup != "" {
		ids = []string{w.f.EKS.SecurityGroup}
	}
	w.terms(c, "securityGroupSelectorTerms", "security group", c.GroupTerms, any, ids, here, NoSecurityGroups, GroupTermEmpty, matches)
}

// terms says which terms match nothing.
func (w *walk) terms(c *Class, field, what string, terms []Term, any bool, ids []string, here []tagged, none, one Code, matches func(*Term) bool) {
	for i := range terms {
		t := &terms[i]
		if matches(t) {
			continue
		}
		status, code := Broken, none
		if any {
			status, code = Doubtful, one
		}
		var fix []string
		if tag := w.tagging(t, ids); tag != "" {
			if len(ids) > 1 {
				tag += "   (those of them that nodes are to be in)"
			}
			fix = append(fix, tag)
		}
		fix = append(fix, "kubectl edit ec2nodeclass "+c.Name)
		w.say(status, code, "nodeclass/"+c.Name, fmt.Sprintf("spec.%s[%d] (%s) matches nothing; %s", field, i, t, t.near(here, what)), fix...)
	}
}

func (w *walk) imagesOf(c *Class) {
	if !w.seen(LookImages) || c.Images != 0 {
		return
	}
	detail := "spec.amiSelectorTerms (" + strings.Join(c.ImageTerms, "; ") + ") finds no image"
	if c.ImageProblem != "" {
		detail += ": " + c.ImageProblem
	}
	w.say(Broken, NoImages, "nodeclass/"+c.Name, detail, "kubectl edit ec2nodeclass "+c.Name)
}

// covered are conditions whose subject was looked at itself.
var covered = map[string]Look{"SubnetsReady": LookSubnets, "SecurityGroupsReady": LookGroups, "AMIsReady": LookImages, "InstanceProfileReady": LookProfiles}

// conditions says what a class is not ready for, beyond what was found already.
func (w *walk) conditions(c *Class, found bool) {
	object := "nodeclass/" + c.Name
	again := w.make("invoke", "FN=catalog", "EVENT=events/catalog/everything.json")
	var bad []string
	late := len(c.Conditions) == 0
	for _, k := range c.Conditions {
		if k.Status == "True" || k.Type == "Ready" {
			continue
		}
		if l, ok := covered[k.Type]; ok && w.seen(l) && k.Status == "False" {
			late = true // it was looked at, and what is wrong is said where it is
			continue
		}
		bad = append(bad, k.Type+" is "+k.Status+": "+k.Reason+": "+k.Message)
	}
	switch {
	case len(bad) > 0:
		w.say(Broken, ClassNotReady, object, strings.Join(bad, "\n"), "kubectl edit ec2nodeclass "+c.Name, again)
	case found:
	case late:
		w.say(Doubtful, ClassNotResolved, object, "what it selects is there, and its status does not say so yet", again)
	case c.Resolved != 0 && c.Resolved != c.Generation:
		w.say(Doubtful, ClassNotResolved, object, fmt.Sprintf("generation %d of it was resolved, and it is at %d", c.Resolved, c.Generation), again)
	}
}

func (w *walk) roles() {
	for i := range w.f.Classes {
		c := &w.f.Classes[i]
		if c.Profile == "" || !w.seen(LookProfiles) || c.Deleting {
			continue
		}
		object := "nodeclass/" + c.Name
		add := "aws iam add-role-to-instance-profile --instance-profile-name " + c.Profile + " --role-name ROLE"
		switch {
		case c.ProfileRoles == nil:
			w.say(Broken, ProfileMissing, object, "spec.instanceProfile: there is no instance profile "+c.Profile,
				"aws iam create-instance-profile --instance-profile-name "+c.Profile, add)
		case len(c.ProfileRoles) == 0:
			w.say(Broken, ProfileEmpty, object, "instance profile "+c.Profile+" holds no role", add)
		}
	}
	for i := range w.f.Roles {
		w.nodeRole(&w.f.Roles[i])
	}
}

// trust is a trust policy that lets EC2 take a role.
const trust = `{"Version":"2012-10-17","Statement":[{"Effect":"Allow","Principal":{"Service":"ec2.amazonaws.com"},"Action":"sts:AssumeRole"}]}`

func (w *walk) nodeRole(r *Role) {
	object, used := "role/"+r.Name, "class "+some(r.Classes, 3)
	if w.seen(LookRoles) {
		if r.Missing {
			w.say(Broken, RoleMissing, object, used+" names it, and IAM has no such role",
				"aws iam create-role --role-name "+r.Name+" --assume-role-policy-document '"+trust+"'", "kubectl edit ec2nodeclass "+r.Classes[0])
			return
		}
		if !slices.ContainsFunc(r.Trusts, func(s string) bool { return strings.HasPrefix(s, "ec2.amazonaws.com") }) {
			w.say(Broken, RoleNotTrusted, object, "its trust policy names "+orNobody(r.Trusts)+", and not ec2.amazonaws.com",
				"aws iam update-assume-role-policy --role-name "+r.Name+" --policy-document '"+trust+"'")
		}
	}
	if w.seen(LookPassRole) {
		switch r.Pass {
		case "allowed", "":
		case "explicitDeny":
			w.say(Broken, PassRoleDenied, object, "a policy denies the functions iam:PassRole on it explicitly: a permissions boundary, or one of the organisation")
		default:
			w.say(Broken, PassRoleDenied, object, used+" names it, and the functions may not hand it to instances (iam:PassRole)", w.context("nodeRoles="+w.allRoles()))
		}
	}
	if w.seen(LookNodeMay) && len(r.Denied) > 0 {
		// Images of one's own may do without.
		w.say(Doubtful, NodeMayTooLittle, object, "most images need and it may not: "+strings.Join(r.Denied, ", "),
			"aws iam attach-role-policy --role-name "+r.Name+" --policy-arn arn:aws:iam::aws:policy/AmazonEKSWorkerNodePolicy",
			"aws iam attach-role-policy --role-name "+r.Name+" --policy-arn arn:aws:iam::aws:policy/AmazonEC2ContainerRegistryPullOnly")
	}
}

func orNobody(list []string) string {
	if len(list) == 0 {
		return "no service"
	}
	return strings.Join(list, ", ")
}

// allRoles are all roles that classes name, as the context takes them.
func (w *walk) allRoles() string {
	var names []string
	for i := range w.f.Roles {
		if !w.f.Roles[i].Missing {
			names = append(names, w.f.Roles[i].Name)
		}
	}
	return strings.Join(names, ",")
}

func (w *walk) access() {
	for i := range w.f.Roles {
		r := &w.f.Roles[i]
		if r.Missing || r.Mapped {
			continue
		}
		switch {
		case r.Entry == "" && w.knowsAccess():
			w.say(Broken, NoAccessEntry, "role/"+r.Name, "neither an access entry nor aws-auth lets nodes with it in: they would start, and never join", w.nodesIn(r))
		case r.Entry == "STANDARD" || r.Entry == "FARGATE_LINUX":
			w.say(Broken, WrongAccessEntry, "role/"+r.Name, "its access entry is of type "+r.Entry+": nodes cannot join with it",
				w.aws("eks delete-access-entry --cluster-name %s --principal-arn %s", w.f.Cluster, r.ARN), w.nodesIn(r))
		}
	}
}

// nodesIn lets nodes with a role into the cluster.
func (w *walk) nodesIn(r *Role) string {
	if w.f.EKS != nil && w.f.EKS.AuthMode == "CONFIG_MAP" {
		return "kubectl -n kube-system edit configmap aws-auth   (under mapRoles:)\n" +
			"- rolearn: " + r.ARN + "\n  username: system:node:{{EC2PrivateDNSName}}\n  groups: [\"system:bootstrappers\", \"system:nodes\"]"
	}
	return w.aws("eks create-access-entry --cluster-name %s --principal-arn %s --type EC2_LINUX", w.f.Cluster, r.ARN)
}
