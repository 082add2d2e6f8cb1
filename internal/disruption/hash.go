package disruption

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"maps"
	"slices"
	"strings"
	"time"

	"kerf.sh/kerf/internal/requirements"
	"kerf.sh/kerf/internal/snapshot"
)

// Annotations of NodeClaims and Nodes that say what they were launched from: hashes of the
// fields of a NodePool's template, and of an EC2NodeClass, that change what a node is.
// Karpenter's own hashes depend on its Go types and are left alone: what cannot be computed
// cannot be compared (Karpenter: karpenter.sh/nodepool-hash, karpenter.k8s.aws/ec2nodeclass-hash).
const (
	AnnotationPoolHash         = "kerf.sh/nodepool-hash"
	AnnotationPoolHashVersion  = "kerf.sh/nodepool-hash-version"
	AnnotationClassHash        = "kerf.sh/ec2nodeclass-hash"
	AnnotationClassHashVersion = "kerf.sh/ec2nodeclass-hash-version"
)

// Versions of the hashes. When what is hashed changes, so does the version: nodes with
// another one get the present hash, and are not drifted by that (Karpenter: same).
const (
	PoolHashVersion  = "v1"
	ClassHashVersion = "v1"
)

// Stamp are the annotations that say what a node is launched from now. A class that is not
// known gives none.
func Stamp(pool *snapshot.NodePool, class *snapshot.NodeClass) map[string]string {
	out := map[string]string{AnnotationPoolHash: PoolHash(pool), AnnotationPoolHashVersion: PoolHashVersion}
	if class != nil {
		if h := ClassHash(class); h != "" {
			out[AnnotationClassHash], out[AnnotationClassHashVersion] = h, ClassHashVersion
		}
	}
	return out
}

// PoolHash is the hash of what a NodePool's template makes of a node, but for requirements,
// which are compared with the node's labels (Karpenter: labels, annotations, taints, startup
// taints, nodeClassRef, expireAfter, terminationGracePeriod). The order of lists, and how a
// duration is written, do not count.
func PoolHash(p *snapshot.NodePool) string {
	return hashOf(map[string]any{
		"labels": anyMap(p.TemplateLabels), "annotations": anyMap(p.TemplateAnnotations), "taints": taintsOf(p.Taints), "startupTaints": taintsOf(p.StartupTaints),
		"class": []any{p.ClassRef.Group, p.ClassRef.Kind, p.ClassRef.Name}, "expireAfter": durationText(p.ExpireAfter), "grace": durationText(p.TerminationGracePeriod),
	})
}

// notHashed are the fields of an EC2NodeClass that are compared with what the instance has,
// or that change nothing about nodes that are there.
var notHashed = []string{
	"subnetSelectorTerms", "securityGroupSelectorTerms", "amiSelectorTerms", "capacityReservationSelectorTerms", "amiFamily", "ipPrefixCount",
}

// ClassHash is the hash of the spec of an EC2NodeClass and its AMI family, "" when its spec
// is not known or cannot be read.
func ClassHash(c *snapshot.NodeClass) string {
	var spec map[string]any
	if len(c.Spec) == 0 || json.Unmarshal(c.Spec, &spec) != nil {
		return ""
	}
	for _, f := range notHashed {
		delete(spec, f)
	}
	return hashOf(map[string]any{"spec": spec, "family": c.AMIFamily})
}

func hashOf(v any) string {
	data, err := json.Marshal(canonical(v))
	if err != nil {
		return "" // strings, numbers, lists and maps always marshal
	}
	sum := sha256.Sum256(data)
	return hex.EncodeToString(sum[:8])
}

// canonical is a value without what says nothing (null, empty lists and maps), its lists in
// an order of their own: two ways to write the same are one.
func canonical(v any) any {
	switch t := v.(type) {
	case map[string]any:
		out := map[string]any{}
		for k, e := range t {
			if c := canonical(e); c != nil {
				out[k] = c
			}
		}
		if len(out) > 0 {
			return out
		}
	case []any:
		var list []string
		for _, e := range t {
			data, err := json.Marshal(canonical(e))
			if err == nil {
				list = append(list, string(data))
			}
		}
		if len(list) > 0 {
			slices.Sort(list)
			return list
		}
	default:
		return v
	}
	return nil
}

func anyMap(m map[string]string) map[string]any {
	out := map[string]any{}
	for k, v := range maps.All(m) {
		out[k] = v
	}
	return out
}

func taintsOf(taints []snapshot.Taint) []any {
	out := make([]any, 0, len(taints))
	for _, t := range taints {
		out = append(out, strings.Join([]string{t.Key, t.Value, t.Effect}, "\x00"))
	}
	return out
}

// durationText writes durations that are the same in the same way.
func durationText(s string) string {
	if d, err := time.ParseDuration(s); err == nil {
		return d.String()
	}
	return s
}

// stamped is the hash that a node carries under the present version, "" when it carries
// none: then nothing is known about what it was launched from.
func (n *node) stamped(hash, version, want string) string {
	for _, a := range []map[string]string{n.node.Annotations, n.claim.Annotations} {
		if a[version] == want && a[hash] != "" {
			return a[hash]
		}
	}
	return ""
}

// Mark says that a node is to be annotated with what it counts as launched from, because
// nothing comparable says so: it was adopted, or the version of a hash has changed. What
// changes from then on is drift (Karpenter: hash version migration).
type Mark struct {
	Node        string
	Annotations map[string]string
}

// marks are those of all nodes that are initialized and not on their way out, by name.
func (x *search) marks() []Mark {
	var out []Mark
	for _, n := range x.nodes {
		if n.claim == nil || n.pool == nil || !n.initialized || n.going {
			continue
		}
		m := Mark{Node: n.name, Annotations: map[string]string{}}
		if n.stamped(AnnotationPoolHash, AnnotationPoolHashVersion, PoolHashVersion) == "" {
			m.Annotations[AnnotationPoolHash], m.Annotations[AnnotationPoolHashVersion] = x.hashes(n).pool, PoolHashVersion
		}
		if h := x.hashes(n).class; h != "" && n.stamped(AnnotationClassHash, AnnotationClassHashVersion, ClassHashVersion) == "" {
			m.Annotations[AnnotationClassHash], m.Annotations[AnnotationClassHashVersion] = h, ClassHashVersion
		}
		if len(m.Annotations) > 0 {
			out = append(out, m)
		}
	}
	return out
}

// asked is what a pool asks for now: hashes, and requirements on labels.
type asked struct {
	pool, class string
	reqs        []requirements.Requirement
}

func (x *search) hashes(n *node) asked {
	if h, ok := x.askedOf[n.pool.Name]; ok {
		return h
	}
	h := asked{pool: PoolHash(n.pool)}
	if c := x.classOf(n.pool); c != nil {
		h.class = ClassHash(c)
	}
	for _, e := range n.pool.Requirements {
		if r, err := requirements.New(e); err == nil { // else the pool is invalid, and says so
			h.reqs = append(h.reqs, r)
		}
	}
	x.askedOf[n.pool.Name] = h
	return h
}

// classOf is the class that a pool names now, nil when it is not there.
func (x *search) classOf(p *snapshot.NodePool) *snapshot.NodeClass {
	for i := range x.s.NodeClasses {
		if c := &x.s.NodeClasses[i]; c.Name == p.ClassRef.Name && ours(p.ClassRef) {
			return c
		}
	}
	return nil
}
