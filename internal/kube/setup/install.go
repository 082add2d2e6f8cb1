package setup

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"kerf.sh/kerf/internal/kube/live"
)

// API is what is asked of the API server. *live.Client has it.
type API interface {
	Get(ctx context.Context, t live.Target) (json.RawMessage, error)
	Apply(ctx context.Context, t live.Target, manager string, object json.RawMessage) (json.RawMessage, error)
	Remove(ctx context.Context, t live.Target) error
}

// Mode says what to do about Karpenter's definitions.
type Mode string

// The modes.
const (
	// Apply makes what is missing and brings up to date what Kerf made; what somebody else
	// made stays.
	Apply Mode = "apply"
	// Force takes over what somebody else made, too.
	Force Mode = "force"
	// Leave touches none: somebody else looks after them.
	Leave Mode = "leave"
)

// Modes are all of them.
var Modes = []Mode{Apply, Force, Leave}

const (
	// oldest is the first minor version of Kubernetes 1 that serves everything that is
	// needed: flowcontrol v1 came last.
	oldest = 29
	// patience is for how long a cluster is asked again that does not let us in: an access
	// entry takes its time to be known everywhere.
	patience = 2 * time.Minute
	again    = 5 * time.Second
	// servedWithin is how long a new definition may take to be served.
	servedWithin = time.Minute
)

// Installer sets a cluster up.
type Installer struct {
	API API
	// Version of the cluster ("1.33"), and whether EKS Auto Mode is on, as EKS says. Auto
	// Mode brings definitions of karpenter.sh of its own, and they are not ours to touch.
	Version  string
	AutoMode bool
	Mode     Mode
	// Karpenter says who runs Karpenter in the cluster, "" = nobody.
	Karpenter func(ctx context.Context) (holder string, err error)
	Now       func() time.Time
	Wait      func(ctx context.Context, d time.Duration) error
}

// Report is what was done.
type Report struct {
	// Applied and Removed are objects; Left are those that were not touched, with the reason.
	Applied []string `json:"applied,omitempty"`
	Removed []string `json:"removed,omitempty"`
	Left    []string `json:"left,omitempty"`
	// Notes are what a person should know.
	Notes []string `json:"notes,omitempty"`
}

// Install makes the cluster what functions need. It may be repeated. The error says what is
// to be done about it; the report is what was done until then.
func (x *Installer) Install(ctx context.Context) (*Report, error) {
	if err := x.version(); err != nil {
		return &Report{}, err
	}
	return x.persist(ctx, x.install)
}

// Uninstall takes away what functions may do. Definitions stay, and with them every NodePool
// and NodeClaim: to delete those would delete nodes.
func (x *Installer) Uninstall(ctx context.Context) (*Report, error) {
	return x.persist(ctx, func(ctx context.Context, rep *Report) error {
		objects := append(access(), fairness()...)
		slices.Reverse(objects)
		for _, o := range objects {
			if err := x.API.Remove(ctx, o.Target); err != nil {
				return fmt.Errorf("remove %s: %w", name(o.Target), err)
			}
			rep.Removed = append(rep.Removed, name(o.Target))
		}
		rep.Left = append(rep.Left, "Karpenter's CustomResourceDefinitions, with NodePools, EC2NodeClasses and NodeClaims: deleting them would delete nodes")
		return nil
	})
}

// persist repeats what the cluster does not let us do yet.
func (x *Installer) persist(ctx context.Context, do func(context.Context, *Report) error) (*Report, error) {
	begun := x.Now()
	for {
		rep := &Report{}
		err := do(ctx, rep)
		if err == nil || !slices.ContainsFunc([]error{live.ErrUnauthorized, live.ErrForbidden, live.ErrUnavailable}, func(e error) bool { return errors.Is(err, e) }) {
			return rep, err
		}
		if x.Now().Sub(begun) >= patience {
			return rep, advise(err)
		}
		if werr := x.Wait(ctx, again); werr != nil {
			return rep, advise(err)
		}
	}
}

// advise says what to do about an error that does not go away.
func advise(err error) error {
	switch {
	case errors.Is(err, live.ErrUnauthorized):
		return fmt.Errorf("the cluster does not know the role of the bootstrap function: %w; it needs an access entry (access=entries makes it), "+
			"or a line in ConfigMap kube-system/aws-auth where the cluster has no access entries (access=configMap, output AwsAuthRoles)", err)
	case errors.Is(err, live.ErrForbidden):
		return fmt.Errorf("the role of the bootstrap function may not do that: %w; its access entry needs the policy AmazonEKSClusterAdminPolicy, "+
			"or its line in aws-auth the group system:masters, while the stack is deployed", err)
	}
	return fmt.Errorf("the API server cannot be reached: %w; where its endpoint is private the functions have to run in its VPC (vpcId, subnetIds), and may reach it on port 443", err)
}

// version refuses what would fail later in ways that nobody understands.
func (x *Installer) version() error {
	major, minor, _ := strings.Cut(x.Version, ".")
	n, err := strconv.Atoi(minor)
	if major != "1" || err != nil {
		return fmt.Errorf("the cluster has Kubernetes %q: want 1.%d or newer", x.Version, oldest)
	}
	if n < oldest {
		return fmt.Errorf("the cluster has Kubernetes %s: want 1.%d or newer; upgrade it first", x.Version, oldest)
	}
	return nil
}

func (x *Installer) install(ctx context.Context, rep *Report) error {
	holder, err := x.Karpenter(ctx)
	if err != nil {
		return fmt.Errorf("find out whether Karpenter runs: %w", err)
	}
	for _, o := range append(access(), fairness()...) {
		body, err := o.json()
		if err != nil {
			return err
		}
		if _, err := x.API.Apply(ctx, o.Target, manager, body); err != nil {
			return fmt.Errorf("apply %s: %w", name(o.Target), err)
		}
		rep.Applied = append(rep.Applied, name(o.Target))
	}
	if holder != "" {
		rep.Notes = append(rep.Notes, "Karpenter runs in this cluster ("+holder+"): the functions change nothing until it stops; scale its Deployment to 0 to let Kerf take over")
	}
	crds, err := CRDs()
	if err != nil {
		return err
	}
	auto, err := x.autoMode(ctx)
	if err != nil {
		return err
	}
	if auto {
		rep.Notes = append(rep.Notes, "EKS Auto Mode is on: the definitions of karpenter.sh are its own, and so are NodePools whose class is of eks.amazonaws.com")
	}
	var waitFor []*CRD
	for i := range crds {
		c := &crds[i]
		applied, err := x.definition(ctx, c, holder, auto, rep)
		if err != nil {
			return err
		}
		if applied {
			waitFor = append(waitFor, c)
		}
	}
	for _, c := range waitFor {
		if err := x.served(ctx, c); err != nil {
			return err
		}
	}
	return nil
}

// autoMode asks the cluster too: its definitions stay where Auto Mode was turned off.
func (x *Installer) autoMode(ctx context.Context) (bool, error) {
	if x.AutoMode {
		return true, nil
	}
	_, err := x.API.Get(ctx, crdNamed("nodeclasses.eks.amazonaws.com"))
	switch {
	case err == nil:
		return true, nil
	case errors.Is(err, live.ErrNotFound):
		return false, nil
	}
	return false, fmt.Errorf("find out whether Auto Mode was here: %w", err)
}

// definition applies one definition, or says why it is left.
func (x *Installer) definition(ctx context.Context, c *CRD, karpenter string, auto bool, rep *Report) (applied bool, err error) {
	raw, err := x.API.Get(ctx, c.target())
	var have *CRD
	switch {
	case errors.Is(err, live.ErrNotFound):
	case err != nil:
		return false, fmt.Errorf("look for %s: %w", name(c.target()), err)
	default:
		if have, err = parseCRD(raw); err != nil {
			return false, err
		}
	}
	leave := ""
	switch {
	case auto && c.Spec.Group == "karpenter.sh":
		leave = "it is EKS Auto Mode's"
	case x.Mode == Leave:
		leave = "crds=leave"
	case have == nil:
	case karpenter != "":
		leave = "Karpenter runs and uses it"
	case x.Mode != Force && have.owner() != "":
		leave = "it belongs to " + have.owner() + "; crds=force takes it over"
	}
	if leave != "" {
		if err := usable(c, have, leave); err != nil {
			return false, err
		}
		rep.Left = append(rep.Left, name(c.target())+": "+leave)
		return false, nil
	}
	if have != nil {
		for _, v := range have.Status.StoredVersions {
			if !slices.ContainsFunc(c.Spec.Versions, func(o struct {
				Name   string
				Served bool
			}) bool {
				return o.Name == v
			}) {
				return false, fmt.Errorf("%s: there may be objects of version %s, which Karpenter %s does not have: a newer Karpenter made it; deploy with crds=leave",
					name(c.target()), v, KarpenterVersion)
			}
		}
	}
	if _, err := x.API.Apply(ctx, c.target(), manager, c.Object); err != nil {
		return false, fmt.Errorf("apply %s: %w", name(c.target()), err)
	}
	rep.Applied = append(rep.Applied, name(c.target()))
	return true, nil
}

// usable is an error when a definition is left that the functions cannot work with.
func usable(c, have *CRD, why string) error {
	if c.Spec.Group == "autoscaling.x-k8s.io" || c.Metadata.Name == "nodeoverlays.karpenter.sh" {
		return nil // works without
	}
	if have == nil {
		return fmt.Errorf("%s is not there, and is not made because: %s; install Karpenter's definitions %s, or deploy with crds=apply", name(c.target()), why, KarpenterVersion)
	}
	if !slices.Contains(have.serves(), "v1") {
		return fmt.Errorf("%s serves %s and not v1, and is left because: %s; bring it to Karpenter 1.0 or newer", name(c.target()), strings.Join(have.serves(), ", "), why)
	}
	return nil
}

// served waits until the API server serves a definition.
func (x *Installer) served(ctx context.Context, c *CRD) error {
	begun := x.Now()
	for {
		raw, err := x.API.Get(ctx, c.target())
		if err != nil {
			return fmt.Errorf("look for %s: %w", name(c.target()), err)
		}
		have, err := parseCRD(raw)
		if err != nil {
			return err
		}
		if have.established() {
			return nil
		}
		if x.Now().Sub(begun) >= servedWithin {
			return fmt.Errorf("%s was applied and is not served after %s: %s", name(c.target()), servedWithin, conditions(have))
		}
		if err := x.Wait(ctx, time.Second); err != nil {
			return err
		}
	}
}

func conditions(c *CRD) string {
	var out []string
	for _, x := range c.Status.Conditions {
		if x.Status != "True" {
			out = append(out, x.Type+" is "+x.Status+": "+x.Message)
		}
	}
	if len(out) == 0 {
		return "it has no conditions"
	}
	return strings.Join(out, "; ")
}

// name is an object as kubectl names it.
func name(t live.Target) string { return strings.TrimSuffix(t.Resource, "s") + "/" + t.Name }
