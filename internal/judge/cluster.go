package judge

import (
	"bufio"
	"cmp"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"slices"
	"strings"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	utilyaml "k8s.io/apimachinery/pkg/util/yaml"
	"k8s.io/client-go/kubernetes/scheme"
	"k8s.io/component-helpers/storage/ephemeral"
	"k8s.io/klog/v2"
	"k8s.io/kubernetes/pkg/controller/daemon"

	"kerf.sh/kerf/internal/catalog"
	"kerf.sh/kerf/internal/plan"
	"kerf.sh/kerf/internal/snapshot"
	"kerf.sh/kerf/internal/worldtest"
)

// Cluster is a cluster as Kubernetes' objects, before anything was planned.
type Cluster struct {
	// Nodes that exist or are in flight, as they will be when they take pods.
	Nodes []*corev1.Node
	// Pods as the API server stores them, by namespace/name: those that run, those that
	// wait, those that are done.
	Pods       map[string]*corev1.Pod
	DaemonSets []*appsv1.DaemonSet
	Claims     []*corev1.PersistentVolumeClaim
	// Others are what else the scheduler looks at: volumes, classes, CSINodes, namespaces.
	Others []runtime.Object

	inFlight map[string]bool // nodes of claims that have none yet
	// templates of pods by kind/namespace/name, and the gate that pods pass: units of
	// CapacityBuffers are pods of no object of their own.
	templates map[string]*corev1.PodTemplateSpec
	gate      *gate

	// What Kubernetes knows nothing of: pools, classes, claims in flight, types.
	s     *snapshot.Snapshot
	c     *catalog.Catalog
	types map[string]map[string]*catalog.Resolved
	// supplies are what pools could launch, by pool, as package worldtest sees it.
	supplies map[string][]*worldtest.Supply
}

// Read makes a cluster of manifests. Kinds that are not Kubernetes' own come from the
// snapshot that Kerf has read from the same manifests.
func Read(manifests string, s *snapshot.Snapshot, c *catalog.Catalog) (*Cluster, error) {
	var objs []runtime.Object
	r := utilyaml.NewYAMLReader(bufio.NewReader(strings.NewReader(manifests)))
	for {
		doc, err := r.Read()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			return nil, fmt.Errorf("read manifests: %w", err)
		}
		obj, _, err := scheme.Codecs.UniversalDeserializer().Decode(doc, nil, nil)
		switch {
		case runtime.IsNotRegisteredError(err):
			continue
		case err != nil:
			return nil, fmt.Errorf("decode a manifest: %w\n%s", err, doc)
		}
		objs = append(objs, obj)
	}
	return newCluster(objs, s, c)
}

// FromSnapshot makes a cluster of the pods and daemonsets of a snapshot that has no
// nodes and no volumes.
func FromSnapshot(s *snapshot.Snapshot, c *catalog.Catalog) (*Cluster, error) {
	if len(s.Nodes)+len(s.Claims)+len(s.Volumes) > 0 {
		return nil, errors.New("nodes and volumes of a snapshot cannot be made objects: use manifests")
	}
	var objs []runtime.Object
	for i := range s.Pods {
		objs = append(objs, podOf(&s.Pods[i]))
	}
	for i := range s.DaemonSets {
		d := &s.DaemonSets[i]
		objs = append(objs, &appsv1.DaemonSet{
			ObjectMeta: metav1.ObjectMeta{Namespace: d.Namespace, Name: d.Name},
			Spec: appsv1.DaemonSetSpec{Template: corev1.PodTemplateSpec{
				ObjectMeta: metav1.ObjectMeta{Labels: d.Template.Labels}, Spec: podSpec(&d.Template.Spec),
			}},
		})
	}
	return newCluster(objs, s, c)
}

func newCluster(objs []runtime.Object, s *snapshot.Snapshot, c *catalog.Catalog) (*Cluster, error) {
	gate, err := newGate(objs)
	if err != nil {
		return nil, err
	}
	out := &Cluster{
		Pods: map[string]*corev1.Pod{}, inFlight: map[string]bool{}, templates: map[string]*corev1.PodTemplateSpec{}, gate: gate,
		s: s, c: c, types: map[string]map[string]*catalog.Resolved{}, supplies: worldtest.Supplies(s, c),
	}
	template := func(kind string, m metav1.ObjectMeta, t *corev1.PodTemplateSpec) {
		out.templates[kind+"/"+cmp.Or(m.Namespace, metav1.NamespaceDefault)+"/"+m.Name] = t
	}
	claimed := map[string]bool{}
	var pods []*corev1.Pod
	for _, obj := range objs {
		switch o := obj.(type) {
		case *corev1.Node:
			claim := claimOf(s, o)
			if claim != nil {
				claimed[claim.Name] = true
			}
			out.Nodes = append(out.Nodes, ready(o, claim))
		case *corev1.Pod:
			p, err := gate.admit(o)
			if err != nil {
				return nil, err
			}
			out.Pods[name(p)] = p
			pods = append(pods, p)
		case *corev1.PodTemplate:
			template("PodTemplate", o.ObjectMeta, &o.Template)
		case *appsv1.Deployment:
			template("Deployment", o.ObjectMeta, &o.Spec.Template)
		case *appsv1.StatefulSet:
			template("StatefulSet", o.ObjectMeta, &o.Spec.Template)
		case *appsv1.ReplicaSet:
			template("ReplicaSet", o.ObjectMeta, &o.Spec.Template)
		case *appsv1.DaemonSet:
			if o.Namespace == "" {
				o.Namespace = metav1.NamespaceDefault
			}
			// What the API server makes of the template's pods, it makes of every pod of it.
			p, err := gate.admit(&corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: o.Namespace, Name: o.Name, Labels: o.Spec.Template.Labels}, Spec: o.Spec.Template.Spec})
			if err != nil {
				return nil, err
			}
			o.Spec.Template.Spec = p.Spec
			out.DaemonSets = append(out.DaemonSets, o)
		case *corev1.PersistentVolumeClaim:
			if o.Namespace == "" {
				o.Namespace = metav1.NamespaceDefault
			}
			o.UID = types.UID("uid-" + o.Namespace + "-" + o.Name)
			out.Claims = append(out.Claims, o)
		case *corev1.PersistentVolume, *corev1.Namespace, *storagev1.StorageClass, *storagev1.CSINode, *storagev1.VolumeAttachment:
			out.Others = append(out.Others, o)
		}
	}
	for i := range s.NodeClaims {
		if claim := &s.NodeClaims[i]; !claimed[claim.Name] && claim.NodeName == "" && claim.Deleting.IsZero() {
			out.Nodes = append(out.Nodes, out.coming(claim))
			out.inFlight[claim.Name] = true
		}
	}
	out.storage(pods)
	out.namespaces(pods)
	return out, nil
}

// pod finds the pod of a plan: one of the cluster's, or a unit of a CapacityBuffer
// ("buffer/namespace/name/number"), which is a pod of the buffer's template.
func (c *Cluster) pod(ref string) (*corev1.Pod, error) {
	if p := c.Pods[ref]; p != nil {
		return p, nil
	}
	parts := strings.Split(ref, "/")
	if len(parts) != 4 || parts[0] != "buffer" {
		return nil, fmt.Errorf("the plan speaks of pod %s, which does not exist", ref)
	}
	for i := range c.s.Buffers {
		b := &c.s.Buffers[i]
		if b.Namespace != parts[1] || b.Name != parts[2] {
			continue
		}
		key := "PodTemplate/" + b.Namespace + "/" + b.PodTemplate
		if b.Scalable != nil {
			key = b.Scalable.Kind + "/" + b.Namespace + "/" + b.Scalable.Name
		}
		if t := c.templates[key]; t != nil {
			return c.gate.admit(&corev1.Pod{
				ObjectMeta: metav1.ObjectMeta{Namespace: b.Namespace, Name: "buffer-" + b.Name + "-" + parts[3], Labels: t.Labels}, Spec: t.Spec,
			})
		}
	}
	return nil, fmt.Errorf("the plan speaks of %s, which nothing is known of", ref)
}

// storage adds what controllers do as soon as they see pods, claims and volumes.
func (c *Cluster) storage(pods []*corev1.Pod) {
	// The controller of ephemeral volumes makes their claims.
	for _, p := range pods {
		for i := range p.Spec.Volumes {
			v := &p.Spec.Volumes[i]
			if v.Ephemeral == nil {
				continue
			}
			yes := true
			owner := []metav1.OwnerReference{{APIVersion: "v1", Kind: "Pod", Name: p.Name, UID: p.UID, Controller: &yes}}
			n := ephemeral.VolumeClaimName(p, v)
			if k := slices.IndexFunc(c.Claims, func(o *corev1.PersistentVolumeClaim) bool { return o.Namespace == p.Namespace && o.Name == n }); k >= 0 {
				c.Claims[k].OwnerReferences = owner
				continue
			}
			c.Claims = append(c.Claims, &corev1.PersistentVolumeClaim{
				ObjectMeta: metav1.ObjectMeta{Namespace: p.Namespace, Name: n, UID: types.UID("uid-" + p.Namespace + "-" + n), OwnerReferences: owner},
				Spec:       *v.Ephemeral.VolumeClaimTemplate.Spec.DeepCopy(),
				Status:     corev1.PersistentVolumeClaimStatus{Phase: corev1.ClaimPending},
			})
		}
	}
	// Claims that name no class get the default one.
	standard := ""
	for _, o := range c.Others {
		k, ok := o.(*storagev1.StorageClass)
		if ok && k.Annotations["storageclass.kubernetes.io/is-default-class"] == "true" && (standard == "" || k.Name < standard) {
			standard = k.Name
		}
	}
	by := map[string]*corev1.PersistentVolumeClaim{}
	for _, k := range c.Claims {
		if k.Spec.StorageClassName == nil && k.Spec.VolumeName == "" && standard != "" {
			k.Spec.StorageClassName = &standard
		}
		if k.Spec.VolumeName != "" {
			by[k.Spec.VolumeName] = k
		}
	}
	// A volume belongs to the claim that names it; what a volume was made for that no
	// claim names is gone, and nothing else may be bound to it.
	for _, o := range c.Others {
		v, ok := o.(*corev1.PersistentVolume)
		if !ok {
			continue
		}
		if k := by[v.Name]; k != nil {
			v.Spec.ClaimRef = &corev1.ObjectReference{Namespace: k.Namespace, Name: k.Name, UID: k.UID}
			v.Status.Phase = corev1.VolumeBound
		} else {
			v.Spec.ClaimRef = &corev1.ObjectReference{Namespace: "gone", Name: "gone"}
			v.Status.Phase = corev1.VolumeReleased
		}
	}
}

// namespaces sees to it that every namespace in use exists and has its name as a label.
func (c *Cluster) namespaces(pods []*corev1.Pod) {
	have := map[string]bool{}
	for _, o := range c.Others {
		if n, ok := o.(*corev1.Namespace); ok {
			have[n.Name] = true
			if n.Labels == nil {
				n.Labels = map[string]string{}
			}
			n.Labels[corev1.LabelMetadataName] = n.Name
		}
	}
	for _, p := range pods {
		if !have[p.Namespace] {
			have[p.Namespace] = true
			c.Others = append(c.Others, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: p.Namespace, Labels: map[string]string{corev1.LabelMetadataName: p.Namespace}}})
		}
	}
}

// Launched returns the nodes of a plan's launches: of the chosen offer each, or, with a
// source of chance, of any of its options.
func (c *Cluster) Launched(p *plan.Plan, r *rand.Rand) ([]*corev1.Node, error) {
	var out []*corev1.Node
	for i := range p.Launches {
		l := &p.Launches[i]
		o := l.Chosen
		if r != nil && len(l.Options) > 0 {
			o = l.Options[r.IntN(len(l.Options))]
		}
		n := c.launched(l, o)
		if n == nil {
			return nil, fmt.Errorf("launch %s: no node can be made of %s in NodePool %s, NodeClass %s", l.Name, o.InstanceType, l.NodePool, l.NodeClass)
		}
		out = append(out, n)
	}
	return out, nil
}

// daemons are the pods that the DaemonSet controller makes for a node, those left out
// that already run there.
func (c *Cluster) daemons(n *corev1.Node) []*corev1.Pod {
	var out []*corev1.Pod
	for _, d := range c.DaemonSets {
		if should, _ := daemon.NodeShouldRunDaemonPod(klog.Background(), n, d); !should || c.runs(d, n.Name) {
			continue
		}
		p := daemon.NewPod(d, "").DeepCopy()
		p.Namespace, p.Name = d.Namespace, "daemon-"+d.Name+"-"+n.Name
		p.UID = types.UID("uid-" + p.Namespace + "-" + p.Name)
		yes := true
		p.OwnerReferences = []metav1.OwnerReference{{APIVersion: "apps/v1", Kind: "DaemonSet", Name: d.Name, Controller: &yes}}
		p.Status.Phase = corev1.PodPending
		out = append(out, p)
	}
	return out
}

func (c *Cluster) runs(d *appsv1.DaemonSet, node string) bool {
	for _, p := range c.Pods {
		if p.Spec.NodeName != node || p.Namespace != d.Namespace {
			continue
		}
		if o := metav1.GetControllerOf(p); o != nil && o.Kind == "DaemonSet" && o.Name == d.Name {
			return true
		}
	}
	return false
}
