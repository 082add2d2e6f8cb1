package launch

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"time"

	"kerf.sh/kerf/internal/cloud/nodeclass"
)

// TemplatePrefix begins the name of every launch template that is ours.
const TemplatePrefix = "kerf.sh/"

// Template is a launch template, in our own words. Its name is a hash of all the rest: a
// template is never changed, equal ones are one, and whoever finds the name finds the
// content that was meant.
type Template struct {
	Name            string             `json:"name,omitempty"`
	Cluster         string             `json:"cluster"`
	ImageID         string             `json:"imageID"`
	UserData        string             `json:"userData,omitempty"` // plain text
	InstanceProfile string             `json:"instanceProfile,omitempty"`
	Interfaces      []Interface        `json:"interfaces"`
	BlockDevices    []BlockDevice      `json:"blockDevices,omitempty"`
	Metadata        Metadata           `json:"metadata"`
	Monitoring      bool               `json:"monitoring,omitempty"`
	Tenancy         string             `json:"tenancy,omitempty"` // "" = default
	PlacementGroup  string             `json:"placementGroup,omitempty"`
	Partition       int32              `json:"partition,omitempty"`
	Nested          string             `json:"nestedVirtualization,omitempty"`
	Enclave         bool               `json:"enclave,omitempty"`
	Reservation     ReservationRequest `json:"reservation"`
	// SpotTags: the template also tags the spot request. Only a spot launch may carry
	// that: EC2 refuses it for on-demand.
	SpotTags bool              `json:"spotTags,omitempty"`
	Tags     map[string]string `json:"tags"`
}

// Interface is one network interface.
type Interface struct {
	Card           int32                         `json:"card"`
	Device         int32                         `json:"device"`
	Type           string                        `json:"type,omitempty"` // "" = interface; efa, efa-only
	SecurityGroups []string                      `json:"securityGroups"`
	PublicIP       *bool                         `json:"publicIP,omitempty"`
	IPv4Prefixes   int32                         `json:"ipv4Prefixes,omitempty"`
	IPv6Prefixes   int32                         `json:"ipv6Prefixes,omitempty"`
	IPv6           bool                          `json:"ipv6,omitempty"` // one primary IPv6 address
	Tracking       *nodeclass.ConnectionTracking `json:"tracking,omitempty"`
}

// BlockDevice is one volume. SizeGiB 0 leaves the size to the snapshot.
type BlockDevice struct {
	Device              string `json:"device"`
	SizeGiB             int32  `json:"sizeGiB,omitempty"`
	Type                string `json:"type,omitempty"`
	Encrypted           *bool  `json:"encrypted,omitempty"`
	DeleteOnTermination *bool  `json:"deleteOnTermination,omitempty"`
	IOPS                *int32 `json:"iops,omitempty"`
	Throughput          *int32 `json:"throughput,omitempty"`
	InitializationRate  *int32 `json:"initializationRate,omitempty"`
	KMSKey              string `json:"kmsKey,omitempty"`
	Snapshot            string `json:"snapshot,omitempty"`
}

// Metadata are the options of the instance metadata service. Instance tags are never
// offered in it: their keys hold slashes, which it refuses.
type Metadata struct {
	Endpoint string `json:"endpoint"`
	IPv6     string `json:"ipv6,omitempty"` // "" = not sent: isolated regions do not know it
	HopLimit int32  `json:"hopLimit"`
	Tokens   string `json:"tokens"`
}

// ReservationRequest says which capacity reservations an instance may use. The zero value
// says nothing: open reservations take matching instances.
type ReservationRequest struct {
	Preference string `json:"preference,omitempty"` // none, capacity-reservations-only
	ID         string `json:"id,omitempty"`
	Market     string `json:"market,omitempty"` // capacity-block, interruptible-capacity-reservation
}

// named returns the template with its name.
func (t Template) named() (Template, error) {
	t.Name = ""
	raw, err := json.Marshal(t)
	if err != nil {
		return Template{}, fmt.Errorf("name launch template: %w", err)
	}
	sum := sha256.Sum256(raw)
	t.Name = TemplatePrefix + hex.EncodeToString(sum[:16])
	return t, nil
}

// Stored is a launch template as EC2 has it.
type Stored struct {
	ID      string
	Name    string
	Created time.Time
	Tags    map[string]string
}

// unusedFor is how long a template stays after its last use.
const unusedFor = time.Hour

// Unused are the templates that may go: ours, of this cluster, made an hour ago, used by
// nobody for an hour, and named by no live record or attempt. lastUsed is by name; a
// template that is not in it counts from its creation. The order is that of stored.
func Unused(cluster string, stored []Stored, named map[string]bool, lastUsed map[string]time.Time, now time.Time) []Stored {
	var out []Stored
	for _, s := range stored {
		last := s.Created
		if u := lastUsed[s.Name]; u.After(last) {
			last = u
		}
		switch {
		case len(s.Name) <= len(TemplatePrefix) || s.Name[:len(TemplatePrefix)] != TemplatePrefix:
		case s.Tags[nodeclass.TagClusterPrefix+cluster] != "owned":
		case named[s.Name]:
		case last.IsZero() || now.Sub(last) < unusedFor:
		default:
			out = append(out, s)
		}
	}
	return out
}
