// Package karpenter drives Karpenter's own scheduler as a library, on the same
// types, prices, pool, daemonsets and pods as the planner.
package karpenter

import (
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	v1 "sigs.k8s.io/karpenter/pkg/apis/v1"
	"sigs.k8s.io/karpenter/pkg/cloudprovider"
	"sigs.k8s.io/karpenter/pkg/scheduling"

	"kerf.sh/kerf/internal/catalog"
	"kerf.sh/kerf/internal/snapshot"
	"kerf.sh/kerf/internal/workload"
	"kerf.sh/kerf/scripts/bench/market"
)

// typeLabels are the labels that describe an instance type. Karpenter's AWS provider
// defines each for every type, as DoesNotExist where it has no value.
var typeLabels = []string{
	catalog.LabelCategory, catalog.LabelGeneration, catalog.LabelFamily, catalog.LabelSize, catalog.LabelFlex,
	catalog.LabelCPU, catalog.LabelCPUManufacturer, catalog.LabelClockMHz, catalog.LabelMemory,
	catalog.LabelHypervisor, catalog.LabelEncryption, catalog.LabelEBSBandwidth, catalog.LabelNetworkBandwidth,
	catalog.LabelLocalNVMe, catalog.LabelGPUName, catalog.LabelGPUManufacturer, catalog.LabelGPUCount,
	catalog.LabelGPUMemory, catalog.LabelAcceleratorName, catalog.LabelAcceleratorManufacturer,
	catalog.LabelAcceleratorCount,
}

// init registers the AWS labels with Karpenter's core, as its AWS provider does.
func init() {
	cloudprovider.ReservationIDLabel = catalog.LabelReservationID
	cloudprovider.ReservedCapacityLabels.Insert(catalog.LabelReservationType, catalog.LabelReservationInterruptible)
	v1.WellKnownLabels = v1.WellKnownLabels.Insert(typeLabels...).Insert(
		catalog.LabelReservationID, catalog.LabelReservationType, catalog.LabelReservationInterruptible,
		catalog.LabelTenancy, catalog.LabelZoneID, corev1.LabelWindowsBuild)
}

func in(key string, values ...string) *scheduling.Requirement {
	return scheduling.NewRequirement(key, corev1.NodeSelectorOpIn, values...)
}

func absent(key string) *scheduling.Requirement {
	return scheduling.NewRequirement(key, corev1.NodeSelectorOpDoesNotExist)
}

// InstanceTypes converts a market to what Karpenter's cloud provider would return.
func InstanceTypes(m *market.Market) []*cloudprovider.InstanceType {
	out := make([]*cloudprovider.InstanceType, len(m.Types))
	for i := range m.Types {
		out[i] = instanceType(&m.Types[i])
	}
	return out
}

func instanceType(t *catalog.Resolved) *cloudprovider.InstanceType {
	var zones, ids []string
	for _, z := range workload.Zones() {
		zones, ids = append(zones, z.Zone), append(ids, z.ZoneID)
	}
	reqs := scheduling.NewRequirements(
		in(corev1.LabelInstanceTypeStable, t.Type.Name),
		in(corev1.LabelArchStable, t.Type.Arch),
		in(corev1.LabelOSStable, "linux"),
		in(corev1.LabelTopologyZone, zones...),
		in(corev1.LabelTopologyRegion, workload.Region),
		in(v1.CapacityTypeLabelKey, catalog.OnDemand, catalog.Spot),
		in(catalog.LabelTenancy, "default", "dedicated"),
		in(catalog.LabelZoneID, ids...),
		absent(corev1.LabelWindowsBuild),
		absent(catalog.LabelReservationID), absent(catalog.LabelReservationType), absent(catalog.LabelReservationInterruptible),
	)
	for _, key := range typeLabels {
		if v, ok := t.Label(key); ok {
			reqs.Add(in(key, v))
		} else {
			reqs.Add(absent(key))
		}
	}
	var offerings cloudprovider.Offerings
	for _, o := range t.Type.Offerings {
		offerings = append(offerings, &cloudprovider.Offering{
			Price:     float64(o.Price) / 1e6,
			Available: o.Available,
			Requirements: scheduling.NewRequirements(
				in(v1.CapacityTypeLabelKey, o.CapacityType), in(corev1.LabelTopologyZone, o.Zone), in(catalog.LabelZoneID, o.ZoneID),
				absent(catalog.LabelReservationID), absent(catalog.LabelReservationType), absent(catalog.LabelReservationInterruptible)),
		})
	}
	return &cloudprovider.InstanceType{
		Name:         t.Type.Name,
		Requirements: reqs,
		Offerings:    offerings,
		Capacity:     resourceList(t.Capacity),
		Overhead:     &cloudprovider.InstanceTypeOverhead{KubeReserved: resourceList(t.Capacity.Sub(t.Allocatable))},
	}
}

func resourceList(r snapshot.Resources) corev1.ResourceList {
	out := corev1.ResourceList{}
	for _, name := range r.Names() {
		v := r.Get(name)
		switch {
		case name == snapshot.CPU:
			out[corev1.ResourceCPU] = *resource.NewMilliQuantity(v, resource.DecimalSI)
		case name == snapshot.Memory || name == snapshot.EphemeralStorage || strings.HasPrefix(name, "hugepages-"):
			out[corev1.ResourceName(name)] = *resource.NewQuantity(v, resource.BinarySI)
		default:
			out[corev1.ResourceName(name)] = *resource.NewQuantity(v, resource.DecimalSI)
		}
	}
	return out
}

// nodePool converts the pool of a variant.
func nodePool(v market.Variant) *v1.NodePool {
	p := workload.Pool(v.Spot, v.CapVCPU)
	out := &v1.NodePool{ObjectMeta: metav1.ObjectMeta{Name: p.Name, UID: types.UID(p.UID)}}
	out.Spec.Template.Spec.NodeClassRef = &v1.NodeClassReference{Group: p.ClassRef.Group, Kind: p.ClassRef.Kind, Name: p.ClassRef.Name}
	for _, r := range p.Requirements {
		out.Spec.Template.Spec.Requirements = append(out.Spec.Template.Spec.Requirements, v1.NodeSelectorRequirementWithMinValues{
			Key: r.Key, Operator: corev1.NodeSelectorOperator(r.Operator), Values: r.Values,
		})
	}
	return out
}

// Pods converts pending pods.
func Pods(pods []snapshot.Pod) []*corev1.Pod {
	out := make([]*corev1.Pod, len(pods))
	for i := range pods {
		p := &pods[i]
		out[i] = &corev1.Pod{
			ObjectMeta: metav1.ObjectMeta{
				Namespace: p.Namespace, Name: p.Name, UID: types.UID(p.UID), Labels: p.Labels,
				CreationTimestamp: metav1.NewTime(p.Created),
			},
			Spec: podSpec(&p.Spec),
			Status: corev1.PodStatus{Phase: corev1.PodPending, Conditions: []corev1.PodCondition{
				{Type: corev1.PodScheduled, Status: corev1.ConditionFalse, Reason: corev1.PodReasonUnschedulable},
			}},
		}
		if p.Owner != nil {
			controller := true
			out[i].OwnerReferences = []metav1.OwnerReference{{
				APIVersion: p.Owner.APIVersion, Kind: p.Owner.Kind, Name: p.Owner.Name, UID: types.UID(p.Owner.UID), Controller: &controller,
			}}
		}
	}
	return out
}

func podSpec(s *snapshot.PodSpec) corev1.PodSpec {
	requests := s.Requests
	requests.Pods = 0 // counted per pod, not requested
	out := corev1.PodSpec{
		SchedulerName: s.SchedulerName,
		Containers:    []corev1.Container{{Name: "main", Image: "main", Resources: corev1.ResourceRequirements{Requests: resourceList(requests)}}},
	}
	for _, t := range s.Spread {
		out.TopologySpreadConstraints = append(out.TopologySpreadConstraints, corev1.TopologySpreadConstraint{
			MaxSkew: t.MaxSkew, TopologyKey: t.TopologyKey, LabelSelector: selector(t.Selector),
			WhenUnsatisfiable: corev1.UnsatisfiableConstraintAction(t.WhenUnsatisfiable),
		})
	}
	for _, t := range s.Anti {
		if out.Affinity == nil {
			out.Affinity = &corev1.Affinity{PodAntiAffinity: &corev1.PodAntiAffinity{}}
		}
		a := out.Affinity.PodAntiAffinity
		a.RequiredDuringSchedulingIgnoredDuringExecution = append(a.RequiredDuringSchedulingIgnoredDuringExecution,
			corev1.PodAffinityTerm{TopologyKey: t.TopologyKey, LabelSelector: selector(t.Selector)})
	}
	return out
}

func selector(s *snapshot.LabelSelector) *metav1.LabelSelector {
	return &metav1.LabelSelector{MatchLabels: s.MatchLabels}
}

// daemonPods are what daemonsets put on every node.
func daemonPods() []*corev1.Pod {
	var out []*corev1.Pod
	for _, d := range workload.DaemonSets() {
		out = append(out, &corev1.Pod{
			ObjectMeta: metav1.ObjectMeta{Namespace: d.Namespace, Name: d.Name, Labels: d.Template.Labels},
			Spec:       podSpec(&d.Template.Spec),
		})
	}
	return out
}
