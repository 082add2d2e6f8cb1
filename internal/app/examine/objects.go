package examine

import (
	"cmp"
	"context"
	"errors"
	"maps"
	"slices"
	"strings"
	"time"

	"sigs.k8s.io/yaml"

	"kerf.sh/kerf/internal/catalog"
	"kerf.sh/kerf/internal/cloud/checkup"
	"kerf.sh/kerf/internal/cloud/nodeclass"
	"kerf.sh/kerf/internal/doctor"
	"kerf.sh/kerf/internal/handler"
	"kerf.sh/kerf/internal/lifecycle"
	"kerf.sh/kerf/internal/plan"
	"kerf.sh/kerf/internal/provision"
	"kerf.sh/kerf/internal/snapshot"
)

// mapped are the roles of mapRoles in aws-auth, by group. The roles have no paths there.
func mapped(text string) map[string][]string {
	var rows []struct {
		RoleARN string   `json:"rolearn"`
		Groups  []string `json:"groups"`
	}
	if yaml.Unmarshal([]byte(text), &rows) != nil {
		return nil
	}
	out := map[string][]string{}
	for _, r := range rows {
		for _, g := range r.Groups {
			out[g] = append(out[g], r.RoleARN)
		}
	}
	return out
}

// objects puts pools, classes and nodes into facts.
func objects(f *doctor.Facts, s *snapshot.Snapshot, m *memory) {
	startup := map[string][]snapshot.Taint{}
	for i := range s.NodePools {
		p := &s.NodePools[i]
		startup[p.Name] = p.StartupTaints
		out := doctor.Pool{Name: p.Name, Group: p.ClassRef.Group, Class: p.ClassRef.Name, Deleting: !p.Deleting.IsZero()}
		if c := snapshot.FindCondition(p.Conditions, "Ready"); c != nil {
			out.Ready, out.Reason, out.Message = c.Status, c.Reason, c.Message
		}
		f.Pools = append(f.Pools, out)
	}
	for i := range s.NodeClasses {
		f.Classes = append(f.Classes, class(&s.NodeClasses[i], m))
	}
	for i := range s.Nodes {
		n := &s.Nodes[i]
		pool, ok := n.Labels["karpenter.sh/nodepool"]
		if !ok || !slices.ContainsFunc(f.Pools, func(p doctor.Pool) bool { return p.Name == pool && p.Group == ours }) {
			continue
		}
		f.Nodes = append(f.Nodes, node(n, pool, startup[pool]))
	}
}

// ours is the API group of the classes that are Kerf's.
const ours = "karpenter.k8s.aws"

func class(c *snapshot.NodeClass, m *memory) doctor.Class {
	out := doctor.Class{Name: c.Name, Deleting: !c.Deleting.IsZero(), Generation: c.Generation, Images: -1}
	if m != nil && m.facts != nil {
		if got, ok := m.facts.Classes[c.Name]; ok && got.UID == c.UID {
			out.Resolved = got.Generation
		}
	}
	for _, k := range c.Conditions {
		out.Conditions = append(out.Conditions, doctor.Condition{Type: k.Type, Status: k.Status, Reason: k.Reason, Message: k.Message})
	}
	spec, err := nodeclass.Parse(c)
	if err != nil {
		out.Conditions = append(out.Conditions, doctor.Condition{Type: "ValidationSucceeded", Status: "False", Reason: "InvalidNodeClass", Message: err.Error()})
		return out
	}
	for _, t := range spec.Spec.SubnetSelectorTerms {
		out.SubnetTerms = append(out.SubnetTerms, doctor.Term{ID: t.ID, Tags: t.Tags})
	}
	for _, t := range spec.Spec.SecurityGroupSelectorTerms {
		out.GroupTerms = append(out.GroupTerms, doctor.Term{ID: t.ID, Name: t.Name, Tags: t.Tags})
	}
	for _, t := range spec.Spec.AMISelectorTerms {
		out.ImageTerms = append(out.ImageTerms, imageTerm(t))
	}
	out.Role, out.Profile = spec.Spec.Role, spec.Spec.InstanceProfile
	return out
}

func imageTerm(t nodeclass.AMITerm) string {
	var parts []string
	for _, p := range []struct{ what, value string }{{"alias", t.Alias}, {"id", t.ID}, {"name", t.Name}, {"owner", t.Owner}, {"SSM parameter", t.SSMParameter}} {
		if p.value != "" {
			parts = append(parts, p.what+" "+p.value)
		}
	}
	for _, k := range slices.Sorted(maps.Keys(t.Tags)) {
		parts = append(parts, "tag "+k+"="+t.Tags[k])
	}
	return strings.Join(parts, ", ")
}

// waits are taints that others take off a node before it counts.
var waits = []string{"node.cloudprovider.kubernetes.io/uninitialized", lifecycle.Unregistered.Key}

func node(n *snapshot.Node, pool string, startup []snapshot.Taint) doctor.Node {
	out := doctor.Node{
		Name: n.Name, Pool: pool, Created: n.Created, Deleting: !n.Deleting.IsZero(), Ready: "Unknown",
		Registered: n.Labels[lifecycle.LabelRegistered] == "true", Initialized: n.Labels[lifecycle.LabelInitialized] == "true",
	}
	if c := snapshot.FindCondition(n.Conditions, "Ready"); c != nil {
		out.Ready, out.Reason, out.Message, out.Since = c.Status, c.Reason, c.Message, c.Since
	}
	for _, t := range n.Taints {
		theirs := slices.ContainsFunc(startup, func(s snapshot.Taint) bool { return s.Key == t.Key && s.Effect == t.Effect })
		if slices.Contains(waits, t.Key) || theirs && !out.Initialized {
			out.Startup = append(out.Startup, t.Key+":"+t.Effect)
		}
	}
	return out
}

// pending plans, and says what becomes of the pods without a node.
func pending(s *snapshot.Snapshot, warnings []plan.Warning, m *memory) *doctor.Pending {
	if m != nil {
		m.remembered.Into(s)
	}
	p, err := handler.Make(&handler.Reading{Snapshot: s, Warnings: warnings}, embedded(s.Region, m), "", func(s *snapshot.Snapshot, c *catalog.Catalog, explain string) *plan.Plan {
		return provision.Plan(s, c, provision.Options{Explain: explain})
	})
	if err != nil {
		return nil
	}
	out := &doctor.Pending{Pods: p.Summary.PendingPods, Placed: len(p.Placements), Nodes: len(p.Launches), Incomplete: p.Incomplete}
	for i := range p.Launches {
		out.Launched += len(p.Launches[i].Pods)
	}
	var oldest time.Time
	for i := range s.Pods {
		if pod := &s.Pods[i]; pod.NodeName == "" && (oldest.IsZero() || pod.Created.Before(oldest)) && !pod.Created.IsZero() {
			oldest = pod.Created
		}
	}
	if !oldest.IsZero() {
		out.OldestSeconds = int(s.Now.Sub(oldest).Seconds())
	}
	at := map[plan.Code]int{}
	for _, v := range p.Verdicts {
		pod, ok := strings.CutPrefix(v.Object, "pod/")
		if !ok || doctor.Harmless(v.Code) {
			continue
		}
		i, known := at[v.Code]
		if !known {
			i = len(out.Reasons)
			at[v.Code] = i
			out.Reasons = append(out.Reasons, doctor.Reason{Code: string(v.Code), Pod: pod, Detail: detail(&v)})
		}
		out.Reasons[i].Pods++
	}
	slices.SortStableFunc(out.Reasons, func(a, b doctor.Reason) int { return cmp.Or(b.Pods-a.Pods, cmp.Compare(a.Code, b.Code)) })
	return out
}

func detail(v *plan.Verdict) string {
	if v.Detail != "" || len(v.Pools) == 0 {
		return v.Detail
	}
	return "pool " + v.Pools[0].NodePool + ": " + v.Pools[0].Detail
}

// wants tells what pools may launch, by the letters of families and the kind.
func wants(pools []snapshot.NodePool) func(letters []string, kind string) bool {
	return func(letters []string, kind string) bool {
		return slices.ContainsFunc(pools, func(p snapshot.NodePool) bool {
			if p.ClassRef.Group != ours || !p.Deleting.IsZero() {
				return false
			}
			graphics, named := false, false
			for _, r := range p.Requirements {
				switch {
				case r.Key == "karpenter.sh/capacity-type" && r.Operator == "In" && !slices.Contains(r.Values, kind):
					return false
				case strings.HasPrefix(r.Key, "karpenter.k8s.aws/instance-gpu"):
					graphics = true
				case r.Operator == "In" && (r.Key == "karpenter.k8s.aws/instance-category" || r.Key == "karpenter.k8s.aws/instance-family" || r.Key == "node.kubernetes.io/instance-type"):
					named = true
					if !slices.ContainsFunc(r.Values, func(v string) bool { return slices.Contains(letters, checkup.Letters(v)) }) {
						return false
					}
				}
			}
			// Types with accelerators are launched where somebody asks for them.
			return named || graphics || slices.Contains(letters, "m")
		})
	}
}

// images asks for what classes select.
func (x *Examiner) images(ctx context.Context, f *doctor.Facts, s *snapshot.Snapshot) {
	if s == nil {
		return
	}
	for i := range s.NodeClasses {
		c, err := nodeclass.Parse(&s.NodeClasses[i])
		if err != nil || f.Classes[i].Deleting {
			continue // its condition says so
		}
		ctx, done := context.WithTimeout(ctx, timeout)
		found, err := x.Images(ctx, c, f.EKS.Version)
		done()
		var no *nodeclass.Refusal
		switch {
		case errors.As(err, &no):
			f.Classes[i].Images, f.Classes[i].ImageProblem = 0, no.Message
		case err != nil:
			checkup.Note(f, doctor.LookImages, checkup.Unseen(err))
		default:
			f.Classes[i].Images = len(found)
		}
	}
}

// instances looks which ones have no node, and at those closely.
func (x *Examiner) instances(ctx context.Context, f *doctor.Facts, s *snapshot.Snapshot) {
	look, done := context.WithTimeout(ctx, timeout)
	defer done()
	found, err := x.Instances(look, x.Cluster)
	if err != nil {
		u := checkup.Unseen(err)
		checkup.Note(f, doctor.LookInstances, u)
		return
	}
	if s == nil { // which have joined is not known
		checkup.Note(f, doctor.LookInstances, doctor.Unseen{Why: "which of them have a node is not known without the API server"})
		return
	}
	nodes := map[string]string{}
	for i := range s.Nodes {
		nodes[s.Nodes[i].ProviderID[strings.LastIndexByte(s.Nodes[i].ProviderID, '/')+1:]] = s.Nodes[i].Name
	}
	for _, d := range found {
		in := doctor.Instance{
			ID: d.ID, Type: d.Type, State: d.State, Subnet: d.Subnet, Pool: d.Tags[nodeclass.TagNodePool], Claim: d.Tags[nodeclass.TagNodeClaim],
			Profile: d.Profile[strings.LastIndexByte(d.Profile, '/')+1:], Launched: d.Launched, Node: nodes[d.ID],
		}
		of := d.Tags[nodeclass.TagNodeClass]
		for i := range f.Classes {
			if c := &f.Classes[i]; c.Name == of {
				in.Role = c.Role
				if c.Profile != "" && len(c.ProfileRoles) > 0 {
					in.Role = c.ProfileRoles[0]
				}
				in.Role = in.Role[strings.LastIndexByte(in.Role, '/')+1:]
			}
		}
		f.Instances = append(f.Instances, in)
	}
	x.Cloud.FindTrouble(ctx, f, func(in *doctor.Instance) bool { return f.NotJoined(in) })
}
