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

// kubelet is spec.kubelet: the typed fields of the released API, and by name all
// fields of KubeletConfiguration (kubelet.config.k8s.io/v1beta1), which the next
// release passes through. registerWithTaints is none of them: pools have taints.
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
	passedThrough
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

type passedThrough struct {
	EnableServer                              json.RawMessage `json:"enableServer"`
	StaticPodPath                             json.RawMessage `json:"staticPodPath"`
	PodLogsDir                                json.RawMessage `json:"podLogsDir"`
	SyncFrequency                             json.RawMessage `json:"syncFrequency"`
	FileCheckFrequency                        json.RawMessage `json:"fileCheckFrequency"`
	HttpCheckFrequency                        json.RawMessage `json:"httpCheckFrequency"`
	StaticPodURL                              json.RawMessage `json:"staticPodURL"`
	StaticPodURLHeader                        json.RawMessage `json:"staticPodURLHeader"`
	Address                                   json.RawMessage `json:"address"`
	Port                                      json.RawMessage `json:"port"`
	ReadOnlyPort                              json.RawMessage `json:"readOnlyPort"`
	TlsCertFile                               json.RawMessage `json:"tlsCertFile"`
	TlsPrivateKeyFile                         json.RawMessage `json:"tlsPrivateKeyFile"`
	TlsCipherSuites                           json.RawMessage `json:"tlsCipherSuites"`
	TlsCurvePreferences                       json.RawMessage `json:"tlsCurvePreferences"`
	TlsMinVersion                             json.RawMessage `json:"tlsMinVersion"`
	RotateCertificates                        json.RawMessage `json:"rotateCertificates"`
	ServerTLSBootstrap                        json.RawMessage `json:"serverTLSBootstrap"`
	Authentication                            json.RawMessage `json:"authentication"`
	Authorization                             json.RawMessage `json:"authorization"`
	RegistryPullQPS                           json.RawMessage `json:"registryPullQPS"`
	RegistryBurst                             json.RawMessage `json:"registryBurst"`
	ImagePullCredentialsVerificationPolicy    json.RawMessage `json:"imagePullCredentialsVerificationPolicy"`
	PreloadedImagesVerificationAllowlist      json.RawMessage `json:"preloadedImagesVerificationAllowlist"`
	EventRecordQPS                            json.RawMessage `json:"eventRecordQPS"`
	EventBurst                                json.RawMessage `json:"eventBurst"`
	EnableDebuggingHandlers                   json.RawMessage `json:"enableDebuggingHandlers"`
	EnableContentionProfiling                 json.RawMessage `json:"enableContentionProfiling"`
	HealthzPort                               json.RawMessage `json:"healthzPort"`
	HealthzBindAddress                        json.RawMessage `json:"healthzBindAddress"`
	OomScoreAdj                               json.RawMessage `json:"oomScoreAdj"`
	ClusterDomain                             json.RawMessage `json:"clusterDomain"`
	StreamingConnectionIdleTimeout            json.RawMessage `json:"streamingConnectionIdleTimeout"`
	NodeStatusUpdateFrequency                 json.RawMessage `json:"nodeStatusUpdateFrequency"`
	NodeStatusReportFrequency                 json.RawMessage `json:"nodeStatusReportFrequency"`
	NodeLeaseDurationSeconds                  json.RawMessage `json:"nodeLeaseDurationSeconds"`
	ImageMinimumGCAge                         json.RawMessage `json:"imageMinimumGCAge"`
	ImageMaximumGCAge                         json.RawMessage `json:"imageMaximumGCAge"`
	VolumeStatsAggPeriod                      json.RawMessage `json:"volumeStatsAggPeriod"`
	KubeletCgroups                            json.RawMessage `json:"kubeletCgroups"`
	SystemCgroups                             json.RawMessage `json:"systemCgroups"`
	CgroupRoot                                json.RawMessage `json:"cgroupRoot"`
	CgroupsPerQOS                             json.RawMessage `json:"cgroupsPerQOS"`
	CgroupDriver                              json.RawMessage `json:"cgroupDriver"`
	CpuManagerPolicy                          json.RawMessage `json:"cpuManagerPolicy"`
	SingleProcessOOMKill                      json.RawMessage `json:"singleProcessOOMKill"`
	CpuManagerPolicyOptions                   json.RawMessage `json:"cpuManagerPolicyOptions"`
	CpuManagerReconcilePeriod                 json.RawMessage `json:"cpuManagerReconcilePeriod"`
	MemoryManagerPolicy                       json.RawMessage `json:"memoryManagerPolicy"`
	TopologyManagerPolicy                     json.RawMessage `json:"topologyManagerPolicy"`
	TopologyManagerScope                      json.RawMessage `json:"topologyManagerScope"`
	TopologyManagerPolicyOptions              json.RawMessage `json:"topologyManagerPolicyOptions"`
	QosReserved                               json.RawMessage `json:"qosReserved"`
	RuntimeRequestTimeout                     json.RawMessage `json:"runtimeRequestTimeout"`
	HairpinMode                               json.RawMessage `json:"hairpinMode"`
	PodCIDR                                   json.RawMessage `json:"podCIDR"`
	PodPidsLimit                              json.RawMessage `json:"podPidsLimit"`
	ResolvConf                                json.RawMessage `json:"resolvConf"`
	RunOnce                                   json.RawMessage `json:"runOnce"`
	CpuCFSQuotaPeriod                         json.RawMessage `json:"cpuCFSQuotaPeriod"`
	NodeStatusMaxImages                       json.RawMessage `json:"nodeStatusMaxImages"`
	MaxOpenFiles                              json.RawMessage `json:"maxOpenFiles"`
	ContentType                               json.RawMessage `json:"contentType"`
	KubeAPIQPS                                json.RawMessage `json:"kubeAPIQPS"`
	KubeAPIBurst                              json.RawMessage `json:"kubeAPIBurst"`
	SerializeImagePulls                       json.RawMessage `json:"serializeImagePulls"`
	MaxParallelImagePulls                     json.RawMessage `json:"maxParallelImagePulls"`
	EvictionMinimumReclaim                    json.RawMessage `json:"evictionMinimumReclaim"`
	MergeDefaultEvictionSettings              json.RawMessage `json:"mergeDefaultEvictionSettings"`
	EvictionPressureTransitionPeriod          json.RawMessage `json:"evictionPressureTransitionPeriod"`
	EnableControllerAttachDetach              json.RawMessage `json:"enableControllerAttachDetach"`
	ProtectKernelDefaults                     json.RawMessage `json:"protectKernelDefaults"`
	MakeIPTablesUtilChains                    json.RawMessage `json:"makeIPTablesUtilChains"`
	IptablesMasqueradeBit                     json.RawMessage `json:"iptablesMasqueradeBit"`
	IptablesDropBit                           json.RawMessage `json:"iptablesDropBit"`
	FeatureGates                              json.RawMessage `json:"featureGates"`
	FailSwapOn                                json.RawMessage `json:"failSwapOn"`
	MemorySwap                                json.RawMessage `json:"memorySwap"`
	ContainerLogMaxSize                       json.RawMessage `json:"containerLogMaxSize"`
	ContainerLogMaxFiles                      json.RawMessage `json:"containerLogMaxFiles"`
	ContainerLogMaxWorkers                    json.RawMessage `json:"containerLogMaxWorkers"`
	ContainerLogMonitorInterval               json.RawMessage `json:"containerLogMonitorInterval"`
	ConfigMapAndSecretChangeDetectionStrategy json.RawMessage `json:"configMapAndSecretChangeDetectionStrategy"`
	SystemReservedCgroup                      json.RawMessage `json:"systemReservedCgroup"`
	KubeReservedCgroup                        json.RawMessage `json:"kubeReservedCgroup"`
	EnforceNodeAllocatable                    json.RawMessage `json:"enforceNodeAllocatable"`
	AllowedUnsafeSysctls                      json.RawMessage `json:"allowedUnsafeSysctls"`
	VolumePluginDir                           json.RawMessage `json:"volumePluginDir"`
	ProviderID                                json.RawMessage `json:"providerID"`
	KernelMemcgNotification                   json.RawMessage `json:"kernelMemcgNotification"`
	Logging                                   json.RawMessage `json:"logging"`
	EnableSystemLogHandler                    json.RawMessage `json:"enableSystemLogHandler"`
	EnableSystemLogQuery                      json.RawMessage `json:"enableSystemLogQuery"`
	ShutdownGracePeriod                       json.RawMessage `json:"shutdownGracePeriod"`
	ShutdownGracePeriodCriticalPods           json.RawMessage `json:"shutdownGracePeriodCriticalPods"`
	ShutdownGracePeriodByPodPriority          json.RawMessage `json:"shutdownGracePeriodByPodPriority"`
	CrashLoopBackOff                          json.RawMessage `json:"crashLoopBackOff"`
	ReservedMemory                            json.RawMessage `json:"reservedMemory"`
	ReservedSystemCPUs                        json.RawMessage `json:"reservedSystemCPUs"`
	ShowHiddenMetricsForVersion               json.RawMessage `json:"showHiddenMetricsForVersion"`
	EnableProfilingHandler                    json.RawMessage `json:"enableProfilingHandler"`
	EnableDebugFlagsHandler                   json.RawMessage `json:"enableDebugFlagsHandler"`
	SeccompDefault                            json.RawMessage `json:"seccompDefault"`
	MemoryThrottlingFactor                    json.RawMessage `json:"memoryThrottlingFactor"`
	RegisterNode                              json.RawMessage `json:"registerNode"`
	Tracing                                   json.RawMessage `json:"tracing"`
	LocalStorageCapacityIsolation             json.RawMessage `json:"localStorageCapacityIsolation"`
	ContainerRuntimeEndpoint                  json.RawMessage `json:"containerRuntimeEndpoint"`
	ImageServiceEndpoint                      json.RawMessage `json:"imageServiceEndpoint"`
	FailCgroupV1                              json.RawMessage `json:"failCgroupV1"`
	UserNamespaces                            json.RawMessage `json:"userNamespaces"`
}
