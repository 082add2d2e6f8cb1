package kube

import (
	"encoding/json"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// The wire of karpenter.k8s.aws/v1. Fields that the planner does not use are
// here all the same: they are known, and their types are checked.

type nodeClass struct {
	metav1.TypeMeta
	Metadata metav1.ObjectMeta `json:"metadata"`
	Spec     json.RawMessage   `json:"spec"`
	Status   json.RawMessage   `json:"status"`
}

type nodeClassSpec struct {
	SubnetSelectorTerms              []selectorTerm       `json:"subnetSelectorTerms"`
	SecurityGroupSelectorTerms       []namedSelectorTerm  `json:"securityGroupSelectorTerms"`
	CapacityReservationSelectorTerms []reservationTerm    `json:"capacityReservationSelectorTerms"`
	PlacementGroupSelector           *placementGroup      `json:"placementGroupSelector"`
	AssociatePublicIPAddress         *bool                `json:"associatePublicIPAddress"`
	IPPrefixCount                    *int32               `json:"ipPrefixCount"`
	AMISelectorTerms                 []amiTerm            `json:"amiSelectorTerms"`
	AMIFamily                        string               `json:"amiFamily"`
	UserData                         *string              `json:"userData"`
	Role                             string               `json:"role"`
	InstanceProfile                  *string              `json:"instanceProfile"`
	Tags                             map[string]string    `json:"tags"`
	Kubelet                          *kubelet             `json:"kubelet"`
	BlockDeviceMappings              []blockDeviceMapping `json:"blockDeviceMappings"`
	InstanceStorePolicy              string               `json:"instanceStorePolicy"`
	NetworkInterfaces                []networkInterface   `json:"networkInterfaces"`
	DetailedMonitoring               *bool                `json:"detailedMonitoring"`
	MetadataOptions                  *metadataOptions     `json:"metadataOptions"`
	ConnectionTracking               *connectionTracking  `json:"connectionTracking"`
	CPUOptions                       *cpuOptions          `json:"cpuOptions"`
	Context                          *string              `json:"context"`
}

type selectorTerm struct {
	Tags map[string]string `json:"tags"`
	ID   string            `json:"id"`
}

type namedSelectorTerm struct {
	Tags map[string]string `json:"tags"`
	ID   string            `json:"id"`
	Name string            `json:"name"`
}

type reservationTerm struct {
	Tags                  map[string]string `json:"tags"`
	ID                    string            `json:"id"`
	OwnerID               string            `json:"ownerID"`
	InstanceMatchCriteria string            `json:"instanceMatchCriteria"`
}

type placementGroup struct {
	Name *string `json:"name"`
	ID   *string `json:"id"`
}

type amiTerm struct {
	Alias        string            `json:"alias"`
	Tags         map[string]string `json:"tags"`
	ID           string            `json:"id"`
	Name         string            `json:"name"`
	Owner        string            `json:"owner"`
	SSMParameter string            `json:"ssmParameter"`
}

type blockDeviceMapping struct {
	DeviceName string       `json:"deviceName"`
	EBS        *blockDevice `json:"ebs"`
	RootVolume bool         `json:"rootVolume"`
}

type blockDevice struct {
	DeleteOnTermination      *bool              `json:"deleteOnTermination"`
	Encrypted                *bool              `json:"encrypted"`
	IOPS                     *int64             `json:"iops"`
	KMSKeyID                 *string            `json:"kmsKeyID"`
	SnapshotID               *string            `json:"snapshotID"`
	Throughput               *int64             `json:"throughput"`
	VolumeInitializationRate *int32             `json:"volumeInitializationRate"`
	VolumeSize               *resource.Quantity `json:"volumeSize"`
	VolumeType               *string            `json:"volumeType"`
}

type networkInterface struct {
	NetworkCardIndex int32  `json:"networkCardIndex"`
	DeviceIndex      int32  `json:"deviceIndex"`
	InterfaceType    string `json:"interfaceType"`
}

type metadataOptions struct {
	HTTPEndpoint            *string `json:"httpEndpoint"`
	HTTPProtocolIPv6        *string `json:"httpProtocolIPv6"`
	HTTPPutResponseHopLimit *int64  `json:"httpPutResponseHopLimit"`
	HTTPTokens              *string `json:"httpTokens"`
}

type connectionTracking struct {
	TCPEstablishedTimeout *int32 `json:"tcpEstablishedTimeout"`
	UDPStreamTimeout      *int32 `json:"udpStreamTimeout"`
	UDPTimeout            *int32 `json:"udpTimeout"`
}

type cpuOptions struct {
	NestedVirtualization string `json:"nestedVirtualization"`
}

type kubelet struct {
	ClusterDNS                  []string          `json:"clusterDNS"`
	MaxPods                     *int64            `json:"maxPods"`
	PodsPerCore                 *int64            `json:"podsPerCore"`
	SystemReserved              map[string]string `json:"systemReserved"`
	KubeReserved                map[string]string `json:"kubeReserved"`
	EvictionHard                map[string]string `json:"evictionHard"`
	EvictionSoft                map[string]string `json:"evictionSoft"`
	EvictionSoftGracePeriod     map[string]string `json:"evictionSoftGracePeriod"`
	EvictionMaxPodGracePeriod   *int32            `json:"evictionMaxPodGracePeriod"`
	ImageGCHighThresholdPercent *int32            `json:"imageGCHighThresholdPercent"`
	ImageGCLowThresholdPercent  *int32            `json:"imageGCLowThresholdPercent"`
	CPUCFSQuota                 *bool             `json:"cpuCFSQuota"`
}

type nodeClassStatus struct {
	Subnets []struct {
		ID     string `json:"id"`
		Zone   string `json:"zone"`
		ZoneID string `json:"zoneID"`
	} `json:"subnets"`
	AMIs []struct {
		ID           string                           `json:"id"`
		Name         string                           `json:"name"`
		Deprecated   bool                             `json:"deprecated"`
		Requirements []corev1.NodeSelectorRequirement `json:"requirements"`
	} `json:"amis"`
	CapacityReservations []struct {
		ID               string       `json:"id"`
		AvailabilityZone string       `json:"availabilityZone"`
		InstanceType     string       `json:"instanceType"`
		ReservationType  string       `json:"reservationType"`
		State            string       `json:"state"`
		EndTime          *metav1.Time `json:"endTime"`
	} `json:"capacityReservations"`
	Conditions []metav1.Condition `json:"conditions"`
}
