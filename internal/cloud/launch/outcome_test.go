package launch_test

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"kerf.sh/kerf/internal/cloud/awserr"
	"kerf.sh/kerf/internal/cloud/launch"
	"kerf.sh/kerf/internal/cloud/nodeclass"
	"kerf.sh/kerf/internal/plan"
)

func TestPairing(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		ids := rapid.SliceOfNDistinct(rapid.StringMatching(`i-[0-9a-f]{4}`), 0, 6, rapid.ID[string]).Draw(t, "ids")
		claims := []string{"c", "a", "b", "d"}[:rapid.IntRange(1, 4).Draw(t, "claims")]
		owned, surplus, unserved := launch.Pair(claims, ids)
		again, _, _ := launch.Pair(claims, rapid.Permutation(ids).Draw(t, "order"))
		if d := cmp.Diff(owned, again); d != "" {
			t.Fatalf("the order of ids changes owners:\n%s", d)
		}
		if len(owned)+len(surplus) != len(ids) || len(owned)+len(unserved) != len(claims) {
			t.Fatalf("%d ids, %d claims: %v %v %v", len(ids), len(claims), owned, surplus, unserved)
		}
		for i, o := range owned {
			if o.Claim != claims[i] || i > 0 && owned[i-1].ID >= o.ID {
				t.Fatalf("owner %d: %+v", i, o)
			}
		}
	})
}

// request has three claims, spot in two zones.
func request(t *testing.T) *launch.Request {
	in := input(t, al2023, offer("m5.large", "a", "spot", 40), offer("m6i.large", "b", "spot", 41))
	in.Claims = []string{"c-1", "c-2", "c-3"}
	r := mustPlan(t, in).Request
	return &r
}

func TestRead(t *testing.T) {
	r := request(t)
	got := launch.Read(r, &launch.Answer{FleetID: "fleet-1",
		Instances: []launch.AnswerInstances{{IDs: []string{"i-9"}, Type: "m5.large", Zone: "us-east-1a"}, {IDs: []string{"i-1"}, Type: "m6i.large", Zone: "us-east-1b"}},
		Errors: []launch.AnswerError{
			{Code: "InsufficientInstanceCapacity", Message: "none", Type: "m5.large", Zone: "us-east-1a"},
			{Code: "InsufficientInstanceCapacity", Message: "none", Type: "m5.large", Zone: "us-east-1a"},
			{Code: "InsufficientFreeAddressesInSubnet", Message: "full", Type: "m6i.large", Zone: "us-east-1b"},
		}})
	want := &launch.Outcome{FleetID: "fleet-1",
		Instances: []launch.Instance{
			{Claim: "c-1", ID: "i-1", Type: "m6i.large", Zone: "us-east-1b", Subnet: "subnet-b", CapacityType: "spot", Price: 41},
			{Claim: "c-2", ID: "i-9", Type: "m5.large", Zone: "us-east-1a", Subnet: "subnet-a", CapacityType: "spot", Price: 40},
		},
		Unserved: []string{"c-3"},
		Failures: []launch.Failure{
			{Kind: awserr.Capacity, Code: "InsufficientInstanceCapacity", Message: "none", Reason: "LaunchFailed", Type: "m5.large", Zone: "us-east-1a", Subnet: "subnet-a", CapacityType: "spot"},
			{Kind: awserr.SubnetFull, Code: "InsufficientFreeAddressesInSubnet", Message: "spec.subnetSelectorTerms: full", Reason: "InsufficientFreeAddressesInSubnet", Field: "spec.subnetSelectorTerms", Type: "m6i.large", Zone: "us-east-1b", Subnet: "subnet-b", CapacityType: "spot"},
		},
		Shortages: []launch.Shortage{
			{Scope: launch.ScopeOffer, Type: "m5.large", Zone: "us-east-1a", CapacityType: "spot", Code: "InsufficientInstanceCapacity"},
			{Scope: launch.ScopeSubnet, Zone: "us-east-1b", ID: "subnet-b", Code: "InsufficientFreeAddressesInSubnet"},
		}}
	if d := cmp.Diff(want, got); d != "" {
		t.Errorf("outcome (-want +got):\n%s", d)
	}
	if !got.Short() {
		t.Error("only shortages, but the outcome is not short")
	}
	if got.Instances[0].ProviderID() != "aws:///us-east-1b/i-1" {
		t.Errorf("provider id %s", got.Instances[0].ProviderID())
	}
}

// TestCodes: every code of the reference, what it is, what is remembered, who is blamed.
func TestCodes(t *testing.T) {
	tests := []struct {
		code, message string
		kind          awserr.Kind
		reason, field string
		scope         launch.Scope
		short         bool
	}{
		{"InsufficientInstanceCapacity", "", awserr.Capacity, "LaunchFailed", "", launch.ScopeOffer, true},
		{"MaxSpotInstanceCountExceeded", "", awserr.SpotLimit, "SpotQuotaExceeded", "", launch.ScopeCapacityType, true}, // S-14
		{"VcpuLimitExceeded", "", awserr.VCPULimit, "VCPULimitExceeded", "", launch.ScopeOffer, true},
		{"UnfulfillableCapacity", "", awserr.Capacity, "LaunchFailed", "", launch.ScopeOffer, true},
		{"Unsupported", "not supported in your requested Availability Zone", awserr.Capacity, "LaunchFailed", "", launch.ScopeOffer, true},
		{"InsufficientFreeAddressesInSubnet", "", awserr.SubnetFull, "InsufficientFreeAddressesInSubnet", "spec.subnetSelectorTerms", launch.ScopeSubnet, true},
		{"MaxFleetCountExceeded", "", awserr.FleetLimit, "FleetQuotaExceeded", "", "", true},
		{"ReservationCapacityExceeded", "", awserr.ReservationFull, "LaunchFailed", "", "", true},
		{"AuthFailure.ServiceLinkedRoleCreationNotPermitted", "", awserr.SpotRole, "SpotSLRCreationFailed", "", launch.ScopeCapacityType, true},
		{"InvalidParameterValue", "instance limit of 7 exceeded for spread placement group", awserr.PlacementFull, "LaunchFailed", "spec.placementGroupSelector", launch.ScopePlacement, true},
		{"UnauthorizedOperation", "You are not authorized to perform this operation. User: arn is not authorized to perform: ec2:RunInstances on resource: arn:aws:ec2:x:subnet/s because no identity-based policy allows the ec2:RunInstances action", awserr.Unauthorized, "Unauthorized", "", "", false},
		{"AuthFailure", "Not authorized for images: [ami-1]", awserr.Unauthorized, "AMIAuthorizationFailure", "spec.amiSelectorTerms", "", false},
		{"InvalidParameter", "Security group sg-1 and subnet subnet-1 belong to different networks.", awserr.Invalid, "SecurityGroupSubnetVPCMismatch", "spec.securityGroupSelectorTerms", "", false},
		{"InvalidParameterValue", "Value (x) for parameter iamInstanceProfile.name is invalid. Invalid IAM Instance Profile name", awserr.Invalid, "InstanceProfileNameInvalid", "spec.role", "", false},
		{"InvalidUserData.Malformed", "User data is limited to 16384 bytes", awserr.Invalid, "UserDataSizeLimitExceeded", "spec.userData", "", false},
		{"InvalidAMIID.Malformed", "", awserr.Invalid, "InvalidAMIID", "spec.amiSelectorTerms", "", false},
		{"InvalidAMIID.NotFound", "", awserr.Invalid, "AMINotFound", "spec.amiSelectorTerms", "", false},
		{"InvalidBlockDeviceMapping", "Invalid device name /dev/xvda", awserr.Invalid, "LaunchFailed", "spec.blockDeviceMappings", "", false},
		{"InvalidParameterValue", "The architecture 'arm64' of the specified instance type does not match", awserr.Invalid, "LaunchFailed", "spec.amiSelectorTerms", "", false},
		{"InternalError", "", awserr.Transient, "InternalError", "", "", false},
		{"RequestLimitExceeded", "", awserr.Throttled, "RequestLimitExceeded", "", "", false},
		{"InvalidParameterCombination", "The specified instance type is not eligible for Free Tier.", awserr.AccountNotAllowed, "FreeTierIneligible", "", "", false},
		{"PendingVerification", "", awserr.AccountNotAllowed, "AccountPendingVerification", "", "", false},
		{"InvalidLaunchTemplateName.NotFoundException", "", awserr.TemplateNotFound, "LaunchTemplateNotFound", "", "", false},
		{"SomethingNew", "", awserr.Other, "LaunchFailed", "", "", false},
	}
	for _, tt := range tests {
		o := launch.Read(request(t), &launch.Answer{Errors: []launch.AnswerError{{Code: tt.code, Message: tt.message, Type: "m5.large", Zone: "us-east-1a"}}})
		f := o.Failures[0]
		scope := launch.Scope("")
		if len(o.Shortages) > 0 {
			scope = o.Shortages[0].Scope
		}
		if f.Kind != tt.kind || f.Reason != tt.reason || f.Field != tt.field || scope != tt.scope || o.Short() != tt.short {
			t.Errorf("%s %q: kind %s, reason %s, field %q, scope %q, short %v; want %s, %s, %q, %q, %v", tt.code, tt.message, f.Kind, f.Reason, f.Field, scope, o.Short(), tt.kind, tt.reason, tt.field, tt.scope, tt.short)
		}
		if tt.code == "UnauthorizedOperation" && !strings.Contains(f.Message, "permission ec2:RunInstances is missing") {
			t.Errorf("message %q does not name the permission", f.Message)
		}
	}
}

func TestReadError(t *testing.T) {
	r := request(t)
	for code, open := range map[string]bool{"InternalError": true, "RequestLimitExceeded": true, "InvalidLaunchTemplateName.NotFoundException": true, "IdempotentParameterMismatch": true,
		"UnauthorizedOperation": false, "InvalidFleetConfig": false, "MaxFleetCountExceeded": false} {
		o := launch.ReadError(r, awserr.New(code, "x"))
		if (o == nil) != open {
			t.Errorf("%s: the attempt stays open: %v, want %v", code, o == nil, open)
		}
		if o != nil && !slices.Equal(o.Unserved, r.Claims) {
			t.Errorf("%s: unserved %v", code, o.Unserved)
		}
	}
}

// TestNextOffering is S-14: with the account's spot used up, the next attempt of the same
// pass is on-demand, and no type is asked for as spot.
func TestNextOffering(t *testing.T) {
	in := input(t, al2023, offer("m5.large", "a", "spot", 40), offer("m6i.large", "b", "spot", 41), offer("m5.large", "a", "on-demand", 96))
	p := mustPlan(t, in)
	o := launch.Read(&p.Request, &launch.Answer{Errors: []launch.AnswerError{{Code: "MaxSpotInstanceCountExceeded", Type: "m5.large", Zone: "us-east-1a"}}})
	avoid := launch.NewAvoid(o.Shortages, "")
	in.Attempt, in.Claims = "at-2", o.Unserved
	in.Offers = slices.DeleteFunc(slices.Concat(p.Used, p.Left), func(f plan.Offer) bool {
		return avoid.Offer(f.InstanceType, f.Zone, f.CapacityType, f.ReservationID)
	})
	if got := overrides(mustPlan(t, in)); !slices.Equal(got, []string{"0 m5.large a subnet-a"}) || len(in.Offers) != 1 {
		t.Errorf("second attempt: %v of %v", got, in.Offers)
	}
	if len(o.Shortages) != 1 || o.Shortages[0].Type != "" {
		t.Errorf("shortages %+v; want one for the whole account", o.Shortages)
	}
}

func TestAvoid(t *testing.T) {
	a := launch.NewAvoid([]launch.Shortage{
		{Scope: launch.ScopeOffer, Type: "m5.large", Zone: "z-a", CapacityType: "spot"}, {Scope: launch.ScopeReservation, ID: "cr-1", CapacityType: "reserved"},
		{Scope: launch.ScopeSubnet, ID: "subnet-1"}, {Scope: launch.ScopePlacement, Zone: "z-b", ID: "pg-1"},
	}, "pg-1")
	for offer, want := range map[[4]string]bool{
		{"m5.large", "z-a", "spot", ""}: true, {"m5.large", "z-a", "on-demand", ""}: false, {"m5.xlarge", "z-a", "spot", ""}: false,
		{"m5.large", "z-c", "reserved", "cr-1"}: true, {"m5.large", "z-c", "reserved", "cr-2"}: false, {"m5.large", "z-b", "spot", ""}: true,
	} {
		if got := a.Offer(offer[0], offer[1], offer[2], offer[3]); got != want {
			t.Errorf("avoid %v: %v, want %v", offer, got, want)
		}
	}
	if !a.Subnets["subnet-1"] || launch.NewAvoid([]launch.Shortage{{Scope: launch.ScopePlacement, Zone: "z-b", ID: "pg-1"}}, "pg-2").Offer("m5.large", "z-b", "spot", "") {
		t.Error("subnets or placement groups")
	}
}

func TestDecodeRefuses(t *testing.T) {
	for _, text := range []string{"", "{}", `{"version":2,"token":"a","claims":["c"],"configs":[{}]}`, `{"version":1,"token":"","claims":["c"],"configs":[{}]}`, `{"version":1,"token":"a","claims":["c"],"configs":[{}],"new":1}`} {
		if r, err := launch.Decode([]byte(text)); err == nil {
			t.Errorf("%s was read as %+v", text, r)
		}
	}
}

func TestUnused(t *testing.T) {
	mine := map[string]string{nodeclass.TagClusterPrefix + "prod": "owned"}
	old, young := now.Add(-time.Hour), now.Add(-59*time.Minute)
	stored := []launch.Stored{
		{Name: "kerf.sh/old", Created: old, Tags: mine}, {Name: "kerf.sh/young", Created: young, Tags: mine},
		{Name: "kerf.sh/named", Created: old, Tags: mine}, {Name: "kerf.sh/used", Created: old, Tags: mine},
		{Name: "kerf.sh/foreign", Created: old, Tags: map[string]string{nodeclass.TagClusterPrefix + "other": "owned"}},
		{Name: "karpenter.k8s.aws/1", Created: old, Tags: mine}, {Name: "kerf.sh/", Created: old, Tags: mine}, {Name: "kerf.sh/undated", Tags: mine},
	}
	var got []string
	for _, s := range launch.Unused("prod", stored, map[string]bool{"kerf.sh/named": true}, map[string]time.Time{"kerf.sh/used": young}, now) {
		got = append(got, s.Name)
	}
	if d := cmp.Diff([]string{"kerf.sh/old"}, got); d != "" {
		t.Errorf("unused (-want +got):\n%s", d)
	}
}

// TestAddresses: what is in flight is taken off every subnet that may be used.
func TestAddresses(t *testing.T) {
	in := input(t, al2023, offer("m5.large", "a", "spot", 40), offer("m5.xlarge", "b", "spot", 41))
	in.Claims = []string{"c-1", "c-2"}
	got := mustPlan(t, in).Request
	if d := cmp.Diff(map[string]int64{"subnet-a": 58, "subnet-b": 58}, got.Addresses()); d != "" {
		t.Errorf("addresses (-want +got):\n%s", d)
	}
	zones := nodeclass.ZoneSubnets([]nodeclass.Subnet{{ID: "subnet-a", Zone: "z", FreeIPs: 60}, {ID: "subnet-c", Zone: "z", FreeIPs: 3}}, got.Addresses(), nil)
	if zones["z"].ID != "subnet-c" {
		t.Errorf("the next launch uses %+v", zones["z"])
	}
}
