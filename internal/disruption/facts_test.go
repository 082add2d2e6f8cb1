package disruption

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"kerf.sh/kerf/internal/snapshot"
)

// facts puts into a snapshot and options what the language of worlds has no words for:
//
//	gate:NodeRepair gate:StaticCapacity gate:SpotToSpot   feature gates
//	unclaimed:n1                              the node has no NodeClaim
//	sick:a                                    condition Ready of the pod is False
//	unhealthy:one:AlwaysAllow                 unhealthyPodEvictionPolicy of a PodDisruptionBudget
//	quiet:n1:10s                              when a pod last came to the node or went
//	leaving:a:10s                             the pod has been leaving for so long, with a grace of 30 s
//	gone:a                                    the pod is not there any more
//	unstarted:a                               the pod has no start time
//	offered                                   the catalogue is what EC2 sells
//	stamp                                     all nodes carry the hashes of their pool and class
//	age:n1:30h expire:n1:720h tgp:n1:1h       of a node's NodeClaim; * = of all nodes
//	ill:n1:Ready:Unknown:31m                  a condition of a node, since so long
//	pool:general:KEY:VALUE                    an annotation of a NodePool
//	template:general:KEY:VALUE                an annotation of its template, from now on
//	node:n1:KEY:VALUE claim:n1:KEY:VALUE      annotations of a node, of its NodeClaim
//	require:general:KEY:VALUE                 a requirement of a NodePool, from now on
//	replicas:general:2                        spec.replicas
//	image:n1:ami-1 images:default:ami-2       the image of a node; those of a class
//	spec:default:JSON                         the spec of a class, from now on ("|" for ",")
//	instance:n1:SUBNET:GROUP|GROUP:RESERVATION:PLACEMENT
//	selects:default:SUBNETS:GROUPS:RESERVATIONS:PLACEMENT
//	pdb:one:1                                 status.disruptionsAllowed
//	doomed:n1:WHY orphan:i-1:WHY back:n1:WHY
func facts(s *snapshot.Snapshot, o *Options, opts map[string]string) error {
	if opts["facts"] == "" {
		return nil
	}
	o.Instances, o.Selected = map[string]Instance{}, map[string]Selected{}
	o.Doomed, o.Orphans = map[string]string{}, map[string]string{}
	for f := range strings.SplitSeq(opts["facts"], ",") {
		if err := fact(s, o, strings.SplitN(f, ":", 6)); err != nil {
			return fmt.Errorf("%s: %w", f, err)
		}
	}
	s.Normalize()
	return nil
}

func fact(s *snapshot.Snapshot, o *Options, f []string) error {
	arg := func(i int) string {
		if i < len(f) {
			return f[i]
		}
		return ""
	}
	list := func(i int) []string { return strings.FieldsFunc(arg(i), func(r rune) bool { return r == '|' }) }
	n := 0
	claims := func(do func(*snapshot.NodeClaim)) {
		for i := range s.NodeClaims {
			if c := &s.NodeClaims[i]; arg(1) == "*" || c.NodeName == arg(1) {
				do(c)
				n++
			}
		}
	}
	nodes := func(do func(*snapshot.Node)) {
		for i := range s.Nodes {
			if x := &s.Nodes[i]; arg(1) == "*" || x.Name == arg(1) {
				do(x)
				n++
			}
		}
	}
	pools := func(do func(*snapshot.NodePool)) {
		for i := range s.NodePools {
			if p := &s.NodePools[i]; p.Name == arg(1) {
				do(p)
				n++
			}
		}
	}
	class := func(do func(*snapshot.NodeClass)) {
		for i := range s.NodeClasses {
			if c := &s.NodeClasses[i]; c.Name == arg(1) {
				do(c)
				n++
			}
		}
	}
	with := func(m map[string]string) map[string]string {
		out := maps.Clone(m)
		if out == nil {
			out = map[string]string{}
		}
		out[arg(2)] = arg(3)
		return out
	}
	ago := func(i int) time.Time {
		d, err := time.ParseDuration(arg(i))
		if err != nil {
			panic(err)
		}
		return s.Now.Add(-d)
	}
	switch f[0] {
	case "gate":
		switch arg(1) {
		case "NodeRepair":
			s.Settings.NodeRepair = true
		case "StaticCapacity":
			s.Settings.StaticCapacity = true
		case "SpotToSpot":
			s.Settings.SpotToSpot = true
		default:
			return fmt.Errorf("no such gate")
		}
		return nil
	case "offered":
		o.Offered = true
		return nil
	case "stamp":
		for i := range s.NodeClaims {
			c := &s.NodeClaims[i]
			p := poolOf(s, c.Labels[labelNodePool])
			c.Annotations = Stamp(p, (&search{s: s}).classOf(p))
		}
		return nil
	case "age":
		claims(func(c *snapshot.NodeClaim) { c.Created = ago(2) })
	case "expire":
		claims(func(c *snapshot.NodeClaim) { c.ExpireAfter = arg(2) })
	case "tgp":
		claims(func(c *snapshot.NodeClaim) { c.TerminationGracePeriod = arg(2) })
	case "claim":
		claims(func(c *snapshot.NodeClaim) { c.Annotations = with(c.Annotations) })
	case "image":
		claims(func(c *snapshot.NodeClaim) { c.ImageID = arg(2) })
	case "ill":
		nodes(func(x *snapshot.Node) {
			x.Conditions = append([]snapshot.Condition{{Type: arg(2), Status: arg(3), Since: ago(4)}}, x.Conditions...)
		})
	case "node":
		nodes(func(x *snapshot.Node) { x.Annotations = with(x.Annotations) })
	case "pool":
		pools(func(p *snapshot.NodePool) { p.Annotations = with(p.Annotations) })
	case "template":
		pools(func(p *snapshot.NodePool) { p.TemplateAnnotations = with(p.TemplateAnnotations) })
	case "require":
		pools(func(p *snapshot.NodePool) {
			p.Requirements = append(p.Requirements, snapshot.SelectorRequirement{Key: arg(2), Operator: "In", Values: list(3)})
		})
	case "replicas":
		pools(func(p *snapshot.NodePool) {
			var want int64
			fmt.Sscan(arg(2), &want)
			p.Replicas = &want
		})
	case "images":
		class(func(c *snapshot.NodeClass) {
			c.HasStatus, c.Images = true, nil
			for _, id := range list(2) {
				c.Images = append(c.Images, snapshot.Image{ID: id})
			}
		})
	case "spec":
		class(func(c *snapshot.NodeClass) {
			c.Spec = []byte(strings.ReplaceAll(strings.Join(f[2:], ":"), "|", ","))
		})
	case "instance":
		o.Instances[arg(1)] = Instance{Subnet: arg(2), Groups: list(3), Reservation: arg(4), PlacementGroup: arg(5)}
		return nil
	case "selects":
		o.Selected[arg(1)] = Selected{Subnets: list(2), Groups: list(3), Reservations: list(4), ReservationsKnown: true, PlacementGroup: list(5), PlacementKnown: true}
		return nil
	case "pdb":
		for i := range s.Budgets {
			if b := &s.Budgets[i]; b.Name == arg(1) {
				b.HasStatus = true
				fmt.Sscan(arg(2), &b.DisruptionsAllowed)
				n++
			}
		}
	case "unhealthy":
		for i := range s.Budgets {
			if b := &s.Budgets[i]; b.Name == arg(1) {
				b.UnhealthyPolicy = arg(2)
				n++
			}
		}
	case "sick", "unstarted":
		for i := range s.Pods {
			if p := &s.Pods[i]; p.Name == arg(1) && f[0] == "sick" {
				p.Ready = &snapshot.Condition{Type: "Ready", Status: "False"}
				n++
			} else if p.Name == arg(1) {
				p.Started = time.Time{}
				n++
			}
		}
	case "gone":
		all := len(s.Pods)
		s.Pods = slices.DeleteFunc(s.Pods, func(p snapshot.Pod) bool { return p.Name == arg(1) })
		n = all - len(s.Pods)
	case "leaving":
		for i := range s.Pods {
			if p := &s.Pods[i]; p.Name == arg(1) {
				p.Deleting = ago(2).Add(30 * time.Second)
				n++
			}
		}
	case "quiet":
		claims(func(c *snapshot.NodeClaim) { c.LastPodEvent = ago(2) })
	case "unclaimed":
		all := len(s.NodeClaims)
		s.NodeClaims = slices.DeleteFunc(s.NodeClaims, func(c snapshot.NodeClaim) bool { return c.NodeName == arg(1) })
		n = all - len(s.NodeClaims)
	case "doomed":
		o.Doomed[arg(1)] = arg(2)
		return nil
	case "orphan":
		o.Orphans[arg(1)] = arg(2)
		return nil
	case "back":
		s.Rests = append(s.Rests, snapshot.Rest{Node: arg(1), Why: arg(2), TakenBack: true})
		return nil
	default:
		return fmt.Errorf("no such fact")
	}
	if n == 0 {
		return fmt.Errorf("there is no %q", arg(1))
	}
	return nil
}
