package catalog

import (
	"encoding/json"
	"time"
)

// The catalogue file, field by field. Only name, arch, vcpu, memoryMiB and
// offerings of a type are required; what must be told from zero is a pointer.
type (
	fileCatalog struct {
		Region        string            `json:"region,omitempty"`
		Date          string            `json:"date,omitempty"`
		Source        string            `json:"source,omitempty"`
		InstanceTypes []json.RawMessage `json:"instanceTypes"`
		Commitments   []json.RawMessage `json:"commitments,omitempty"`
	}
	fileType struct {
		Name                 string            `json:"name"`
		Arch                 string            `json:"arch"`
		VCPU                 *int64            `json:"vcpu"`
		MemoryMiB            *int64            `json:"memoryMiB"`
		ENI                  *fileENI          `json:"eni,omitempty"`
		GPUs                 []fileDevice      `json:"gpus,omitempty"`
		Accelerators         []fileDevice      `json:"accelerators,omitempty"`
		LocalNVMeGB          int64             `json:"localNvmeGB,omitempty"`
		NetworkMbps          int64             `json:"networkMbps,omitempty"`
		EBSMbps              int64             `json:"ebsMbps,omitempty"`
		Hypervisor           string            `json:"hypervisor,omitempty"`
		CPUManufacturer      string            `json:"cpuManufacturer,omitempty"`
		NestedVirtualization bool              `json:"nestedVirtualization,omitempty"`
		EBSVolumes           int64             `json:"ebsVolumes,omitempty"`
		Labels               map[string]string `json:"labels,omitempty"`
		Extended             map[string]int64  `json:"extended,omitempty"`
		Offerings            []json.RawMessage `json:"offerings"`
	}
	fileENI struct {
		Interfaces   int64 `json:"interfaces"`
		IPv4         int64 `json:"ipv4PerInterface"`
		NetworkCards int64 `json:"networkCards,omitempty"`
	}
	fileDevice struct {
		Name         string `json:"name"`
		Manufacturer string `json:"manufacturer"`
		Count        int64  `json:"count"`
		MemoryMiB    int64  `json:"memoryMiB,omitempty"`
		Cores        int64  `json:"cores,omitempty"` // Neuron cores of one device
	}
	fileOffering struct {
		Zone         string           `json:"zone"`
		ZoneID       string           `json:"zoneID,omitempty"`
		CapacityType string           `json:"capacityType"`
		Price        json.Number      `json:"pricePerHour,omitempty"` // USD
		Available    *bool            `json:"available,omitempty"`    // default true
		Estimated    bool             `json:"estimated,omitempty"`
		Reservation  *fileReservation `json:"reservation,omitempty"`
	}
	fileReservation struct {
		ID        string    `json:"id"`
		Type      string    `json:"type,omitempty"` // default, capacity-block
		Remaining int64     `json:"remaining"`
		Expires   time.Time `json:"expires,omitzero"`
	}
	fileCommitment struct {
		Scope     string      `json:"scope"`
		Price     json.Number `json:"effectivePricePerHour"` // USD
		Remaining json.Number `json:"remainingPerHour"`      // USD
		ID        string      `json:"id,omitempty"`
	}
)
