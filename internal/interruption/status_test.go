package interruption

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

// TestUnwell: what EC2 says when it is asked, and what is made of it.
func TestUnwell(t *testing.T) {
	at := func(d time.Duration) time.Time { return now.Add(d) }
	const a, b = "i-0123456789abcdef0", "i-0123456789abcdef1"
	tests := []struct {
		name string
		s    Status
		want []Notice
	}{
		{"fails for two minutes", Status{Instance: a, Kind: SystemStatusFailed, Since: at(-2 * time.Minute)},
			[]Notice{{Kind: SystemStatusFailed, Instances: []string{a}, At: now, Deadline: now}}},
		{"fails for an hour", Status{Instance: a, Kind: InstanceStatusFailed, Since: at(-time.Hour)},
			[]Notice{{Kind: InstanceStatusFailed, Instances: []string{a}, At: at(-58 * time.Minute), Deadline: at(-58 * time.Minute)}}},
		{"has just begun to fail", Status{Instance: a, Kind: SystemStatusFailed, Since: at(-2*time.Minute + 1)}, nil},
		{"fails, and nobody knows since when", Status{Instance: a, Kind: SystemStatusFailed}, nil},
		{"is to be retired", Status{Instance: a, Kind: MaintenanceScheduled, Code: "instance-retirement", NotBefore: at(time.Hour)},
			[]Notice{{Kind: MaintenanceScheduled, Instances: []string{a}, At: now, Deadline: at(time.Hour)}}},
		{"some day", Status{Instance: a, Kind: MaintenanceScheduled, Code: "system-reboot"}, []Notice{{Kind: MaintenanceScheduled, Instances: []string{a}, At: now}}},
		{"was rebooted", Status{Instance: a, Kind: MaintenanceScheduled, Code: "system-reboot", Description: "[Completed] The instance is scheduled for a reboot", NotBefore: at(-time.Hour)}, nil},
		{"is not rebooted after all", Status{Instance: a, Kind: MaintenanceScheduled, Code: "system-reboot", Description: "[Canceled] no"}, nil},
		{"an event of another kind", Status{Instance: a, Kind: MaintenanceScheduled, Code: "volume-maintenance"}, nil},
		{"no instance", Status{Instance: "vol-1", Kind: SystemStatusFailed, Since: at(-time.Hour)}, nil},
		{"something else", Status{Instance: a, Kind: SpotInterrupted}, nil},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			if d := cmp.Diff(tt.want, Unwell([]Status{tt.s}, now)); d != "" {
				t.Error(d)
			}
		})
	}
	got := Unwell([]Status{
		{Instance: b, Kind: SystemStatusFailed, Since: at(-time.Hour)}, {Instance: a, Kind: SystemStatusFailed, Since: at(-time.Hour)}, {Instance: a, Kind: InstanceStatusFailed, Since: at(-time.Hour)},
	}, now)
	if len(got) != 3 || got[0].Kind != InstanceStatusFailed || got[0].Instances[0] != a || got[2].Instances[0] != b {
		t.Errorf("order %+v", got)
	}
}
