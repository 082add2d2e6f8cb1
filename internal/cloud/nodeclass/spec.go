package nodeclass

import (
	"bytes"
	"encoding/json"
	"fmt"
	"strings"

	"kerf.sh/kerf/internal/catalog"
	"kerf.sh/kerf/internal/snapshot"
)

// Spec is spec of an EC2NodeClass (karpenter.k8s.aws/v1), every field of it.
type Spec struct {
	SubnetSelectorTerms              []SelectorTerm      `json:"subnetSelectorTerms"`
	SecurityGroupSelectorTerms       []SelectorTerm      `json:"securityGroupSelectorTerms"`
	CapacityReservationSelectorTerms []ReservationTerm   `json:"capacityReservationSelectorTerms"`
	PlacementGroupSelector           *PlacementSelector  `json:"placementGroupSelector"`
	AssociatePublicIPAddress         *bool               `json:"associatePublicIPAddress"`
	IPPrefixCount                    *int32              `json:"ipPrefixCount"`
	AMISelectorTerms                 []AMITerm           `json:"amiSelectorTerms"`
	AMIFamily                        string              `json:"amiFamily"`
	UserData                         string              `json:"userData"`
	Role                             string              `json:"role"`
	InstanceProfile                  string              `json:"instanceProfile"`
	Tags                             map[string]string   `json:"tags"`
	Kubelet                          json.RawMessage     `json:"kubelet"`
	BlockDeviceMappings              []BlockDevice       `json:"blockDeviceMappings"`
	InstanceStorePolicy              string              `json:"instanceStorePolicy"`
	NetworkInterfaces                []NetworkInterface  `json:"networkInterfaces"`
	DetailedMonitoring               bool                `json:"detailedMonitoring"`
	MetadataOptions                  *MetadataOptions    `json:"metadataOptions"`
	ConnectionTracking               *ConnectionTracking `json:"connectionTracking"`
	CPUOptions                       *CPUOptions         `json:"cpuOptions"`
	Context                          string              `json:"context"`
}

// SelectorTerm selects subnets (tags or id) or security groups (tags, id or name).
type SelectorTerm struct {
	Tags map[string]string `json:"tags"`
	ID   string            `json:"id"`
	Name string            `json:"name"`
}

// ReservationTerm selects capacity reservations.
type ReservationTerm struct {
	Tags                  map[string]string `json:"tags"`
	ID                    string            `json:"id"`
	OwnerID               string            `json:"ownerID"`
	InstanceMatchCriteria string            `json:"instanceMatchCriteria"` // open, targeted
}

// PlacementSelector selects one placement group.
type PlacementSelector struct {
	Name string `json:"name"`
	ID   string `json:"id"`
}

// AMITerm selects images. Alias is "family@version".
type AMITerm struct {
	Alias        string            `json:"alias"`
	Tags         map[string]string `json:"tags"`
	ID           string            `json:"id"`
	Name         string            `json:"name"`
	Owner        string            `json:"owner"`
	SSMParameter string            `json:"ssmParameter"`
}

// BlockDevice is one blockDeviceMapping.
type BlockDevice struct {
	DeviceName string `json:"deviceName"`
	EBS        *EBS   `json:"ebs"`
	RootVolume bool   `json:"rootVolume"`
}

// EBS is the volume of a block device. VolumeSize is a quantity as written ("20Gi").
type EBS struct {
	DeleteOnTermination      *bool  `json:"deleteOnTermination"`
	Encrypted                *bool  `json:"encrypted"`
	IOPS                     *int32 `json:"iops"`
	KMSKeyID                 string `json:"kmsKeyID"`
	SnapshotID               string `json:"snapshotID"`
	Throughput               *int32 `json:"throughput"`
	VolumeInitializationRate *int32 `json:"volumeInitializationRate"`
	VolumeSize               string `json:"volumeSize"`
	VolumeType               string `json:"volumeType"`
}

// NetworkInterface is one entry of networkInterfaces.
type NetworkInterface struct {
	NetworkCardIndex int32  `json:"networkCardIndex"`
	DeviceIndex      int32  `json:"deviceIndex"`
	InterfaceType    string `json:"interfaceType"` // interface, efa-only
}

// MetadataOptions are the options of the instance metadata service; "" and nil are the
// defaults: enabled, disabled, 1, required.
type MetadataOptions struct {
	HTTPEndpoint            string `json:"httpEndpoint"`
	HTTPProtocolIPv6        string `json:"httpProtocolIPv6"`
	HTTPPutResponseHopLimit *int32 `json:"httpPutResponseHopLimit"`
	HTTPTokens              string `json:"httpTokens"`
}

// ConnectionTracking are idle time-outs of tracked connections, in seconds.
type ConnectionTracking struct {
	TCPEstablishedTimeout *int32 `json:"tcpEstablishedTimeout"`
	UDPStreamTimeout      *int32 `json:"udpStreamTimeout"`
	UDPTimeout            *int32 `json:"udpTimeout"`
}

// CPUOptions is cpuOptions.
type CPUOptions struct {
	NestedVirtualization string `json:"nestedVirtualization"` // enabled, disabled
}

// Class is one EC2NodeClass.
type Class struct {
	Name        string
	UID         string
	Generation  int64
	Annotations map[string]string
	Family      string // AMI family, by its alias where the spec names none
	Alias       string // "al2023@latest"; "" when images are selected otherwise
	Spec        Spec
	Kubelet     Kubelet
}

// Kubelet is spec.kubelet: the fields of the released API typed, all of them as given.
type Kubelet struct {
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
	// Raw is every field of spec.kubelet as JSON, those above included; AL2023 passes
	// them all through to the kubelet.
	Raw map[string]json.RawMessage `json:"-"`
}

// Parse reads the spec of a class. The error names the field that cannot be read.
func Parse(c *snapshot.NodeClass) (*Class, error) {
	out := &Class{Name: c.Name, UID: c.UID, Generation: c.Generation, Annotations: c.Annotations}
	if len(c.Spec) == 0 {
		return nil, fmt.Errorf("read nodeclass %s: spec is missing", c.Name)
	}
	d := json.NewDecoder(bytes.NewReader(c.Spec))
	if err := d.Decode(&out.Spec); err != nil {
		return nil, fmt.Errorf("read nodeclass %s: spec: %w", c.Name, err)
	}
	for _, t := range out.Spec.AMISelectorTerms {
		if t.Alias != "" {
			out.Alias = t.Alias
		}
	}
	family, err := catalog.FamilyOf(&snapshot.NodeClass{Name: c.Name, AMIFamily: out.Spec.AMIFamily, AMIAlias: out.Alias})
	if err != nil {
		return nil, err
	}
	out.Family = family
	if raw := bytes.TrimSpace(out.Spec.Kubelet); len(raw) > 0 && string(raw) != "null" {
		if err := json.Unmarshal(raw, &out.Kubelet); err != nil {
			return nil, fmt.Errorf("read nodeclass %s: spec.kubelet: %w", c.Name, err)
		}
		if err := json.Unmarshal(raw, &out.Kubelet.Raw); err != nil {
			return nil, fmt.Errorf("read nodeclass %s: spec.kubelet: %w", c.Name, err)
		}
	}
	return out, nil
}

// Windows reports whether the class boots Windows.
func (c *Class) Windows() bool { return strings.HasPrefix(c.Family, "Windows") }
