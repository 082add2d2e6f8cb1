package launch

import "time"

// Described is an instance as EC2 has it.
type Described struct {
	ID, Type, Zone, ZoneID string
	State                  string // pending, running, shutting-down, terminated, stopping, stopped
	StateReason            string // code of the last transition
	// CapacityType is spot; reserved when the instance was launched into a reservation and
	// still is in it; else on-demand. One that matched an open reservation by itself is
	// on-demand (BC-33).
	CapacityType   string
	ReservationID  string // "" unless reserved
	ImageID        string
	Subnet         string
	SecurityGroups []string
	Profile        string // ARN of the instance profile
	PrivateDNS     string
	Tenancy        string
	PlacementGroup string
	Partition      int32
	Launched       time.Time
	Tags           map[string]string
}

// ProviderID is the id that the node of an instance has.
func (i *Described) ProviderID() string { return "aws:///" + i.Zone + "/" + i.ID }

// Gone reports whether an instance is ending or has ended.
func (i *Described) Gone() bool {
	return i.State == "terminated" || i.State == "shutting-down"
}
