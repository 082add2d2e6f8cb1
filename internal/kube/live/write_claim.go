package live

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"kerf.sh/kerf/internal/kube/api"
	"kerf.sh/kerf/internal/snapshot"
)

const (
	// TerminationFinalizer keeps a NodeClaim and its Node until the instance is gone
	// (Karpenter: karpenter.sh/termination).
	TerminationFinalizer = "karpenter.sh/termination"
	// CreationAnnotation says which intent made a NodeClaim, so that making it again is
	// known to be that.
	CreationAnnotation = "kerf.sh/creation"
)

func reference(o Owner) metav1.OwnerReference {
	yes := true
	return metav1.OwnerReference{APIVersion: o.APIVersion, Kind: o.Kind, Name: o.Name, UID: types.UID(o.UID), BlockOwnerDeletion: &yes}
}

// CreateNodeClaim makes a NodeClaim with the termination finalizer and returns its UID.
// If it was made before, by the same intent, that is success and gives the UID it has. A
// NodeClaim of that name that something else made is ErrConflict.
func (c *Client) CreateNodeClaim(ctx context.Context, n NewNodeClaim) (uid string, err error) {
	if n.Creation == "" || n.Pool.UID == "" {
		return "", fmt.Errorf("create nodeclaim %s: want the id of the intent and the UID of the NodePool", n.Claim.Name)
	}
	q, err := object("NodeClaim", "", n.Claim.Name)
	if err != nil {
		return "", fmt.Errorf("create: %w", err)
	}
	if q.body, err = json.Marshal(wireClaimOf(&n)); err != nil {
		return "", fmt.Errorf("create nodeclaim %s: %w", n.Claim.Name, err)
	}
	q.verb, q.content = "create", plainJSON
	a, err := c.do(ctx, &q)
	if err == nil {
		var made customObject
		if err = json.Unmarshal(a.body, &made); err == nil {
			return string(made.Metadata.UID), nil
		}
		// It is there; what it is called there, a look tells.
	} else if !errors.Is(err, ErrConflict) {
		return "", err
	}
	there, gerr := c.custom(ctx, "NodeClaim", n.Claim.Name)
	if gerr != nil {
		return "", gerr
	}
	if by := there.Metadata.Annotations[CreationAnnotation]; by != n.Creation {
		return "", &Error{Verb: "create", Group: q.group, Resource: q.resource, Name: q.name, Is: ErrConflict, Err: err,
			Detail: fmt.Sprintf("a NodeClaim of this name is there, made by %q and not by %q", by, n.Creation)}
	}
	return string(there.Metadata.UID), nil
}

type wireRequirement struct {
	Key       string   `json:"key"`
	Operator  string   `json:"operator"`
	Values    []string `json:"values,omitempty"`
	MinValues int      `json:"minValues,omitempty"`
}

type wireClaim struct {
	metav1.TypeMeta
	Metadata metav1.ObjectMeta `json:"metadata"`
	Spec     wireClaimSpec     `json:"spec"`
}

type wireClaimSpec struct {
	Taints                 []snapshot.Taint  `json:"taints,omitempty"`
	StartupTaints          []snapshot.Taint  `json:"startupTaints,omitempty"`
	Requirements           []wireRequirement `json:"requirements"`
	Resources              wireResources     `json:"resources,omitzero"`
	NodeClassRef           snapshot.ClassRef `json:"nodeClassRef"`
	ExpireAfter            string            `json:"expireAfter,omitempty"`
	TerminationGracePeriod string            `json:"terminationGracePeriod,omitempty"`
}

type wireResources struct {
	Requests map[string]string `json:"requests,omitempty"`
}

func wireClaimOf(n *NewNodeClaim) wireClaim {
	s := &n.Claim
	out := wireClaim{TypeMeta: metav1.TypeMeta{APIVersion: "karpenter.sh/v1", Kind: "NodeClaim"}}
	out.Metadata.Name = s.Name
	out.Metadata.Labels = s.Labels
	out.Metadata.Annotations = map[string]string{CreationAnnotation: n.Creation}
	maps.Copy(out.Metadata.Annotations, s.Annotations)
	out.Metadata.Finalizers = []string{TerminationFinalizer}
	out.Metadata.OwnerReferences = []metav1.OwnerReference{reference(n.Pool)}
	out.Spec = wireClaimSpec{
		Taints: s.Taints, StartupTaints: s.StartupTaints, Requirements: make([]wireRequirement, 0, len(s.Requirements)),
		NodeClassRef: s.ClassRef, ExpireAfter: s.ExpireAfter, TerminationGracePeriod: s.TerminationGracePeriod,
	}
	for _, r := range s.Requirements {
		out.Spec.Requirements = append(out.Spec.Requirements, wireRequirement(r))
	}
	out.Spec.Resources.Requests = api.Quantities(s.Requests)
	return out
}
