package nodeclass_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"kerf.sh/kerf/internal/cloud/nodeclass"
	"kerf.sh/kerf/internal/snapshot"
)

var now = time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)

func parse(t testing.TB, spec string) *nodeclass.Class {
	t.Helper()
	c, err := nodeclass.Parse(&snapshot.NodeClass{Name: "default", UID: "u1", Generation: 3, Spec: []byte(spec)})
	if err != nil {
		t.Fatal(err)
	}
	return c
}

const plainSpec = `{"amiSelectorTerms":[{"alias":"al2023@latest"}],"role":"nodes"}`

// good is a resolution where everything was found.
func good() *nodeclass.Resolved {
	return &nodeclass.Resolved{
		Class: "default", UID: "u1", Generation: 3, At: now,
		Subnets:        []nodeclass.Subnet{{ID: "subnet-2", Zone: "a", ZoneID: "1", FreeIPs: 9}, {ID: "subnet-1", Zone: "b", FreeIPs: 3}},
		SecurityGroups: []nodeclass.SecurityGroup{{ID: "sg-1", Name: "nodes"}},
		Images:         []nodeclass.Image{{ID: "ami-1", Name: "x", Requirements: []snapshot.SelectorRequirement{{Key: "kubernetes.io/arch", Operator: "In", Values: []string{"amd64"}}}}},
		Profile:        "prod_1",
	}
}

func TestParse(t *testing.T) {
	c := parse(t, `{"amiSelectorTerms":[{"alias":"bottlerocket@v1.2"}],"kubelet":{"maxPods":7,"shutdownGracePeriod":"30s"}}`)
	if c.Family != "Bottlerocket" || c.Alias != "bottlerocket@v1.2" || *c.Kubelet.MaxPods != 7 || len(c.Kubelet.Raw) != 2 || c.Windows() {
		t.Errorf("class %+v", c)
	}
	for _, spec := range []string{"", "[]", `{"kubelet":3}`, `{"amiFamily":"Plan9"}`, `{"amiSelectorTerms":[{"alias":"beos@latest"}]}`} {
		if _, err := nodeclass.Parse(&snapshot.NodeClass{Name: "default", Spec: []byte(spec)}); err == nil {
			t.Errorf("spec %q was read", spec)
		}
	}
}

// summary is the conditions as "type=status reason".
func summary(s nodeclass.Status) map[string]string {
	out := map[string]string{}
	for _, c := range s.Conditions {
		out[c.Type] = c.Status + " " + c.Reason
	}
	return out
}

func TestStatus(t *testing.T) {
	tests := []struct {
		name   string
		spec   string
		change func(r *nodeclass.Resolved)
		want   map[string]string // of conditions that are not True
	}{
		{"ready", "", func(*nodeclass.Resolved) {}, nil},
		{"no subnet", "", func(r *nodeclass.Resolved) { r.Subnets = nil },
			map[string]string{"SubnetsReady": "False SubnetsNotFound", "ValidationSucceeded": "False DependenciesNotReady", "Ready": "False UnhealthyDependents"}},
		{"no security group", "", func(r *nodeclass.Resolved) { r.SecurityGroups = nil },
			map[string]string{"SecurityGroupsReady": "False SecurityGroupsNotFound", "ValidationSucceeded": "False DependenciesNotReady", "Ready": "False UnhealthyDependents"}},
		{"no image", "", func(r *nodeclass.Resolved) { r.Images = nil },
			map[string]string{"AMIsReady": "False AMINotFound", "ValidationSucceeded": "False DependenciesNotReady", "Ready": "False UnhealthyDependents"}},
		{"al2 from 1.33", "", func(r *nodeclass.Resolved) { r.ImagesErr = nodeclass.Refuse(nodeclass.UnsupportedAlias, "too old") },
			map[string]string{"AMIsReady": "False UnsupportedAlias", "ValidationSucceeded": "False DependenciesNotReady", "Ready": "False UnhealthyDependents"}},
		{"throttled", "", func(r *nodeclass.Resolved) { r.SubnetsErr = errors.New("throttled") },
			map[string]string{"SubnetsReady": "Unknown ResolutionFailed", "ValidationSucceeded": "Unknown DependenciesNotReady", "Ready": "Unknown ReconcilingDependents"}},
		{"no profile", "", func(r *nodeclass.Resolved) { r.Profile = "" },
			map[string]string{"InstanceProfileReady": "False InstanceProfileNotFound", "ValidationSucceeded": "False DependenciesNotReady", "Ready": "False UnhealthyDependents"}},
		{"placement group not found", `{"amiSelectorTerms":[{"alias":"al2023@latest"}],"placementGroupSelector":{"name":"x"}}`, func(*nodeclass.Resolved) {},
			map[string]string{"PlacementGroupReady": "False PlacementGroupNotFound", "ValidationSucceeded": "False DependenciesNotReady", "Ready": "False UnhealthyDependents"}},
		{"placement group not known", `{"amiSelectorTerms":[{"alias":"al2023@latest"}],"placementGroupSelector":{"name":"x"}}`, func(r *nodeclass.Resolved) { r.PlacementGroupErr = errors.New("x") },
			map[string]string{"PlacementGroupReady": "Unknown PlacementGroupResolutionFailed", "ValidationSucceeded": "Unknown DependenciesNotReady", "Ready": "Unknown ReconcilingDependents"}},
		{"a tag that is ours", `{"amiSelectorTerms":[{"alias":"al2023@latest"}],"tags":{"karpenter.sh/nodepool":"x"}}`, func(*nodeclass.Resolved) {},
			map[string]string{"ValidationSucceeded": "False TagValidationFailed", "Ready": "False UnhealthyDependents"}},
		{"a tag of a cluster", `{"amiSelectorTerms":[{"alias":"al2023@latest"}],"tags":{"kubernetes.io/cluster/x":"y"}}`, func(*nodeclass.Resolved) {},
			map[string]string{"ValidationSucceeded": "False TagValidationFailed", "Ready": "False UnhealthyDependents"}},
		{"user data too large", "", func(r *nodeclass.Resolved) {
			r.Checks = []nodeclass.Check{{Reason: nodeclass.UserDataSizeLimitExceeded, Message: "too large"}}
		},
			map[string]string{"ValidationSucceeded": "False UserDataSizeLimitExceeded", "Ready": "False UnhealthyDependents"}},
		{"not checked", "", func(r *nodeclass.Resolved) {
			r.Checks = []nodeclass.Check{{Reason: nodeclass.UserDataSizeLimitExceeded, Unknown: true}}
		},
			map[string]string{"ValidationSucceeded": "Unknown UserDataSizeLimitExceeded", "Ready": "Unknown ReconcilingDependents"}},
		{"reservations not known", "", func(r *nodeclass.Resolved) { r.ReservationsErr = errors.New("x") },
			map[string]string{"CapacityReservationsReady": "Unknown ResolutionFailed", "ValidationSucceeded": "Unknown DependenciesNotReady", "Ready": "Unknown ReconcilingDependents"}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			spec := plainSpec
			if tt.spec != "" {
				spec = tt.spec
			}
			r := good()
			tt.change(r)
			s := nodeclass.StatusOf(parse(t, spec), r, nodeclass.StatusOptions{Now: now, Reservations: true})
			want := map[string]string{}
			for _, typ := range []string{"SubnetsReady", "SecurityGroupsReady", "AMIsReady", "InstanceProfileReady", "PlacementGroupReady", "CapacityReservationsReady", "ValidationSucceeded", "Ready"} {
				want[typ] = "True " + typ
				if w, ok := tt.want[typ]; ok {
					want[typ] = w
				}
			}
			if d := cmp.Diff(want, summary(s)); d != "" {
				t.Errorf("conditions (-want +got):\n%s", d)
			}
			for _, c := range s.Conditions {
				if c.ObservedGeneration != 3 || c.Reason == "" {
					t.Errorf("%+v", c)
				}
			}
			if s.Usable(3) != (tt.want == nil) || s.Usable(4) {
				t.Errorf("usable at generation 3: %v, at 4: %v", s.Usable(3), s.Usable(4))
			}
		})
	}
}

func TestStatusOnTheWire(t *testing.T) {
	r := good()
	r.Reservations = []nodeclass.Reservation{{ID: "cr-1", InstanceType: "m5.large", Zone: "a", OwnerID: "1", MatchCriteria: "open", Type: "capacity-block", Remaining: 2, Ends: now.Add(40 * time.Minute)}}
	previous := []nodeclass.Condition{{Type: "SubnetsReady", Status: "True", LastTransitionTime: now.Add(-time.Hour)}, {Type: "Ready", Status: "False", LastTransitionTime: now.Add(-time.Hour)}}
	s := nodeclass.StatusOf(parse(t, plainSpec), r, nodeclass.StatusOptions{Now: now, Reservations: true, Previous: previous})
	if got := s.Condition("SubnetsReady").LastTransitionTime; !got.Equal(now.Add(-time.Hour)) {
		t.Errorf("a condition that stays has a new time: %v", got)
	}
	if got := s.Condition("Ready").LastTransitionTime; !got.Equal(now) {
		t.Errorf("a condition that changes keeps its time: %v", got)
	}
	s.Conditions = s.Conditions[:1]
	raw, err := json.Marshal(s)
	if err != nil {
		t.Fatal(err)
	}
	const want = `{"subnets":[{"id":"subnet-2","zone":"a","zoneID":"1"},{"id":"subnet-1","zone":"b"}],"securityGroups":[{"id":"sg-1","name":"nodes"}],` +
		`"amis":[{"id":"ami-1","name":"x","requirements":[{"key":"kubernetes.io/arch","operator":"In","values":["amd64"]}]}],"instanceProfile":"prod_1",` +
		`"capacityReservations":[{"id":"cr-1","availabilityZone":"a","instanceType":"m5.large","ownerID":"1","instanceMatchCriteria":"open","reservationType":"capacity-block","endTime":"2026-03-01T12:40:00Z","state":"expiring"}],` +
		`"conditions":[{"type":"SubnetsReady","status":"True","reason":"SubnetsReady","message":"","observedGeneration":3,"lastTransitionTime":"2026-03-01T11:00:00Z"}]}`
	if d := cmp.Diff(want, string(raw)); d != "" {
		t.Errorf("status (-want +got):\n%s", d)
	}
}

// TestKeep: what could not be asked for is kept from before, a refusal is not covered up,
// and nothing is kept over a change of the class.
func TestKeep(t *testing.T) {
	r := &nodeclass.Resolved{UID: "u1", Generation: 3, SubnetsErr: errors.New("throttled"), ImagesErr: nodeclass.Refuse(nodeclass.AMINotFound, "gone"),
		ReservationsErr: errors.New("throttled"), SecurityGroups: []nodeclass.SecurityGroup{{ID: "sg-9"}}, Profile: "p"}
	old := good()
	old.Reservations = []nodeclass.Reservation{{ID: "cr-1", Remaining: 5}}
	kept := r.KeepFrom(old)
	if d := cmp.Diff([]string{"SubnetsReady", "CapacityReservationsReady"}, kept); d != "" {
		t.Errorf("kept (-want +got):\n%s", d)
	}
	if len(r.Subnets) != 2 || r.SubnetsErr != nil || r.ImagesErr == nil || r.SecurityGroups[0].ID != "sg-9" || r.Reservations[0].Remaining != 0 || old.Reservations[0].Remaining != 5 {
		t.Errorf("after: %+v", r)
	}
	changed := &nodeclass.Resolved{UID: "u1", Generation: 4, SubnetsErr: errors.New("throttled")}
	if kept := changed.KeepFrom(old); kept != nil || changed.Subnets != nil {
		t.Errorf("kept %v over a change", kept)
	}
}

// TestZoneSubnetsS15: the subnet of a zone has the most addresses left of those that are not
// full, and no zone is given up while one of its subnets has any (S-15).
func TestZoneSubnetsS15(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var subnets []nodeclass.Subnet
		taken, full := map[string]int64{}, map[string]bool{}
		for i := range rapid.IntRange(0, 6).Draw(t, "subnets") {
			s := nodeclass.Subnet{ID: fmt.Sprint("subnet-", i), Zone: rapid.SampledFrom([]string{"a", "b"}).Draw(t, "zone"), FreeIPs: rapid.Int64Range(0, 4).Draw(t, "free")}
			subnets = append(subnets, s)
			taken[s.ID] = rapid.Int64Range(0, 3).Draw(t, "taken")
			full[s.ID] = rapid.Bool().Draw(t, "full")
		}
		got := nodeclass.ZoneSubnets(subnets, taken, full)
		again := nodeclass.ZoneSubnets(rapid.Permutation(subnets).Draw(t, "order"), taken, full)
		if d := cmp.Diff(got, again); d != "" {
			t.Fatalf("the order of subnets matters:\n%s", d)
		}
		if broken := checkZones(subnets, taken, full, got); broken != "" {
			t.Fatal(broken)
		}
	})
}

// checkZones says which subnet a choice is wrong about; "" when it is right.
func checkZones(subnets []nodeclass.Subnet, taken map[string]int64, full map[string]bool, got map[string]nodeclass.Subnet) string {
	for _, s := range subnets {
		left := s.FreeIPs - taken[s.ID]
		best, ok := got[s.Zone]
		if !full[s.ID] && left > 0 && (!ok || best.FreeIPs < left) {
			return fmt.Sprintf("%s has %d left, the zone's is %+v", s.ID, left, best)
		}
		if ok && best.ID == s.ID && (full[s.ID] || left <= 0 || best.FreeIPs != left) {
			return fmt.Sprintf("%+v was picked with %d left, full %v", best, left, full[s.ID])
		}
	}
	return ""
}

func TestZoneSubnetsCanFail(t *testing.T) {
	subnets := []nodeclass.Subnet{{ID: "s-1", Zone: "a", FreeIPs: 5}, {ID: "s-2", Zone: "a", FreeIPs: 9}}
	taken := map[string]int64{"s-2": 6}
	pick := func(s nodeclass.Subnet, free int64) map[string]nodeclass.Subnet {
		s.FreeIPs = free
		return map[string]nodeclass.Subnet{"a": s}
	}
	if broken := checkZones(subnets, taken, nil, nodeclass.ZoneSubnets(subnets, taken, nil)); broken != "" {
		t.Fatal(broken)
	}
	for name, got := range map[string]map[string]nodeclass.Subnet{
		"the zone is given up": {}, "what is in flight does not count": pick(subnets[1], 9), "the one with fewer": pick(subnets[1], 3),
	} {
		if checkZones(subnets, taken, nil, got) == "" {
			t.Errorf("%s: not noticed", name)
		}
	}
	if checkZones(subnets, taken, map[string]bool{"s-1": true}, pick(subnets[0], 5)) == "" {
		t.Error("a full subnet: not noticed")
	}
}

func TestFill(t *testing.T) {
	r := good()
	r.Reservations = []nodeclass.Reservation{{ID: "cr-1", InstanceType: "m5.large", Zone: "a", Type: "default", Remaining: 2}}
	c := parse(t, plainSpec)
	s := nodeclass.StatusOf(c, r, nodeclass.StatusOptions{Now: now, Reservations: true})
	class := &snapshot.NodeClass{Name: "default", Generation: 3}
	nodeclass.Fill(class, r, &s, now)
	if len(class.Zones) != 2 || class.Images[0].ID != "ami-1" || class.Reservations[0].Remaining != 2 || !class.HasStatus || snapshot.FindCondition(class.Conditions, "Ready").Status != "True" {
		t.Errorf("class %+v", class)
	}
}
