package fleet_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/ec2"
	"github.com/aws/aws-sdk-go-v2/service/ec2/types"
	"github.com/aws/aws-sdk-go-v2/service/sts"
	"github.com/google/go-cmp/cmp"

	"kerf.sh/kerf/internal/cloud/awserr"
	"kerf.sh/kerf/internal/cloud/ec2fake"
	"kerf.sh/kerf/internal/cloud/fleet"
	"kerf.sh/kerf/internal/cloud/launch"
	"kerf.sh/kerf/internal/cloud/nodeclass"
	"kerf.sh/kerf/internal/plan"
)

var ctx = context.Background()

const spotAndMore = "m5.large a spot 40000, m6i.large b spot 41000, m5.large a on-demand 96000"

// TestLostAnswer is BC-24: the answer is lost after EC2 acted. Sending the stored bytes
// again gives the same instances with the same owners, and no more of them.
func TestLostAnswer(t *testing.T) {
	w := newWorld(t)
	_, stored := w.prepared(input(t, al2023, spotAndMore, "c-2", "c-1"))
	lost := true
	w.ec2.Hook = func(c ec2fake.Call) ec2fake.Fault {
		if c.Op == "CreateFleet" && lost {
			lost = false
			return ec2fake.Fault{After: context.DeadlineExceeded}
		}
		return ec2fake.Fault{}
	}
	if _, err := w.fleet.Create(ctx, stored); !awserr.Is(err, awserr.Transient) {
		t.Fatalf("lost answer: %v; want an outcome that is not known", err)
	}
	w.now = w.now.Add(45 * time.Second)
	o := w.create(stored)
	again := w.create(stored)
	if d := cmp.Diff(o, again); d != "" {
		t.Errorf("two answers to one attempt differ:\n%s", d)
	}
	if n := len(w.ec2.Instances()); n != 2 || len(o.Instances) != 2 {
		t.Fatalf("%d instances, %d known; want 2", n, len(o.Instances))
	}
	// Whoever only finds the tag comes to the same owners.
	w.now = w.now.Add(time.Minute)
	byTag, err := w.fleet.ByAttempt(ctx, "at-1", "at-other")
	if err != nil {
		t.Fatal(err)
	}
	var ids []string
	for _, i := range byTag["at-1"] {
		ids = append(ids, i.ID)
	}
	owned, _, _ := launch.Pair([]string{"c-2", "c-1"}, ids)
	for i, p := range owned {
		if o.Instances[i].ID != p.ID || o.Instances[i].Claim != p.Claim {
			t.Errorf("owner %d is %v by answer and %v by tag", i, o.Instances[i], p)
		}
	}
}

// TestChangedRequest: a token with another request is refused, and the refusal is no outcome.
func TestChangedRequest(t *testing.T) {
	w := newWorld(t)
	_, stored := w.prepared(input(t, al2023, spotAndMore, "c-1"))
	w.create(stored)
	_, other := w.prepared(input(t, al2023, "m6i.large b spot 41000", "c-1"))
	if _, err := w.fleet.Create(ctx, other); !awserr.Is(err, awserr.Mismatch) {
		t.Errorf("another request with the token: %v", err)
	}
	if n := len(w.ec2.Instances()); n != 1 {
		t.Errorf("%d instances", n)
	}
}

// TestOneCall: the SDK may not repeat CreateFleet by itself.
func TestOneCall(t *testing.T) {
	c := &optionSpy{EC2: newWorld(t).ec2}
	_, stored := newWorld(t).prepared(input(t, al2023, spotAndMore, "c-1"))
	_, _ = (&fleet.Fleet{Client: c}).Create(ctx, stored)
	if c.attempts != 1 {
		t.Errorf("SDK may try %d times", c.attempts)
	}
	if !c.deadline {
		t.Error("the call has no deadline")
	}
}

type optionSpy struct {
	*ec2fake.EC2
	attempts int
	deadline bool
}

func (c *optionSpy) CreateFleet(ctx context.Context, in *ec2.CreateFleetInput, opts ...func(*ec2.Options)) (*ec2.CreateFleetOutput, error) {
	var o ec2.Options
	for _, opt := range opts {
		opt(&o)
	}
	c.attempts = o.RetryMaxAttempts
	_, c.deadline = ctx.Deadline()
	return c.EC2.CreateFleet(ctx, in)
}

// TestShortages: what EC2 lacks is remembered per offer, the rest is served.
func TestShortages(t *testing.T) {
	w := newWorld(t)
	w.ec2.Left[ec2fake.Offer{Type: "m5.large", Zone: "us-east-1a", CapacityType: "spot"}] = 1
	w.ec2.Short = []ec2fake.Offer{{Type: "m6i.large", Zone: "*", CapacityType: "spot"}}
	_, stored := w.prepared(input(t, al2023, spotAndMore, "c-1", "c-2"))
	o := w.create(stored)
	if len(o.Instances) != 1 || !slices.Equal(o.Unserved, []string{"c-2"}) || !o.Short() || len(o.Shortages) != 2 {
		t.Errorf("outcome %+v", o)
	}
}

// TestSpotLimitS14 is S-14 against EC2.
func TestSpotLimitS14(t *testing.T) {
	w := newWorld(t)
	w.ec2.SpotLimit = 1
	in := input(t, al2023, spotAndMore, "c-1", "c-2")
	p, stored := w.prepared(in)
	o := w.create(stored)
	avoid := launch.NewAvoid(o.Shortages, "")
	in.Attempt, in.Claims, in.Offers = "at-2", o.Unserved, slices.Concat(p.Used, p.Left)
	in.Offers = slices.DeleteFunc(in.Offers, func(f plan.Offer) bool {
		return avoid.Offer(f.InstanceType, f.Zone, f.CapacityType, f.ReservationID)
	})
	_, stored = w.prepared(in)
	o = w.create(stored)
	if len(o.Instances) != 1 || o.Instances[0].CapacityType != "on-demand" || o.Instances[0].Claim != "c-2" {
		t.Errorf("second attempt: %+v", o)
	}
}

// TestSubnetsS15 is S-15: the second subnet of a zone is used before the zone is given up.
func TestSubnetsS15(t *testing.T) {
	w := newWorld(t)
	w.ec2.AddSubnet("subnet-a2", "us-east-1a", "use1-az1", 50)
	*w.ec2.Subnets[0].AvailableIpAddressCount = 0
	in := input(t, al2023, "m5.large a on-demand 96000", "c-1")
	_, stored := w.prepared(in)
	o := w.create(stored)
	if len(o.Instances) != 0 || len(o.Shortages) != 1 || o.Shortages[0].ID != "subnet-a" {
		t.Fatalf("first attempt %+v", o)
	}
	all := []nodeclass.Subnet{{ID: "subnet-a", Zone: "us-east-1a", FreeIPs: 60}, {ID: "subnet-a2", Zone: "us-east-1a", FreeIPs: 50}}
	in.Attempt = "at-2"
	in.Subnets = nodeclass.ZoneSubnets(all, nil, launch.NewAvoid(o.Shortages, "").Subnets)
	_, stored = w.prepared(in)
	if o = w.create(stored); len(o.Instances) != 1 || o.Instances[0].Subnet != "subnet-a2" {
		t.Errorf("second attempt %+v", o)
	}
}

// TestUnauthorised: the missing permission is named, decoded where the text does not say.
func TestUnauthorised(t *testing.T) {
	w := newWorld(t)
	_, stored := w.prepared(input(t, al2023, spotAndMore, "c-1"))
	w.ec2.Denied["ec2:CreateFleet"] = true
	o := w.create(stored)
	if f := o.Failures[0]; f.Kind != awserr.Unauthorized || f.Permission != "ec2:CreateFleet" || o.Short() {
		t.Errorf("denied call: %+v", f)
	}
	w.ec2.Denied = map[string]bool{"ec2:RunInstances": true}
	if f := w.create(stored).Failures[0]; f.Permission != "ec2:RunInstances" || !strings.Contains(f.Message, "ec2:RunInstances") {
		t.Errorf("denied inside the answer: %+v", f)
	}
	w.fleet.Decoder = decoder{}
	w.ec2.Denied = map[string]bool{}
	w.ec2.Hook = func(ec2fake.Call) ec2fake.Fault {
		return ec2fake.Fault{Before: ec2fake.Error("UnauthorizedOperation", "You are not authorized to perform this operation. Encoded authorization failure message: abcDEF-1_2")}
	}
	if f := w.create(stored).Failures[0]; f.Permission != "ec2:CreateTags" || !strings.Contains(f.Message, "arn:aws:ec2:::instance/*") {
		t.Errorf("encoded denial: %+v", f)
	}
}

type decoder struct{}

func (decoder) DecodeAuthorizationMessage(_ context.Context, in *sts.DecodeAuthorizationMessageInput, _ ...func(*sts.Options)) (*sts.DecodeAuthorizationMessageOutput, error) {
	if aws.ToString(in.EncodedMessage) != "abcDEF-1_2" {
		return nil, errors.New("not what was encoded")
	}
	return &sts.DecodeAuthorizationMessageOutput{DecodedMessage: aws.String(`{"allowed":false,"explicitDeny":false,"context":{"action":"ec2:CreateTags","resource":"arn:aws:ec2:::instance/*"}}`)}, nil
}

// TestTemplateCollected: a template that went is made again, and the same bytes go through.
func TestTemplateCollected(t *testing.T) {
	w := newWorld(t)
	p, stored := w.prepared(input(t, al2023, spotAndMore, "c-1"))
	list, err := w.templates.List(ctx, "prod")
	if err != nil || len(list) != 1 {
		t.Fatalf("templates %v, %v", list, err)
	}
	if got := launch.Unused("prod", list, nil, nil, w.now.Add(time.Hour)); len(got) != 1 {
		t.Fatalf("an hour later %v may go", got)
	}
	if gone, err := w.templates.Delete(ctx, append(list, list...)); err != nil || len(gone) != 2 {
		t.Fatalf("gone %v, %v", gone, err)
	}
	if _, err := w.fleet.Create(ctx, stored); !awserr.Is(err, awserr.TemplateNotFound) {
		t.Fatalf("without its template: %v", err)
	}
	w.templates.Forget(p.Request.Templates()...)
	if err := w.templates.Ensure(ctx, p.Templates); err != nil {
		t.Fatal(err)
	}
	if o := w.create(stored); len(o.Instances) != 1 {
		t.Errorf("outcome %+v", o)
	}
}

// TestEnsureIsQuiet: known templates cost no call, and two passes make one template.
func TestEnsureIsQuiet(t *testing.T) {
	w := newWorld(t)
	p, _ := w.prepared(input(t, al2023, spotAndMore, "c-1"))
	before := len(w.ec2.Calls())
	if err := w.templates.Ensure(ctx, p.Templates); err != nil || len(w.ec2.Calls()) != before {
		t.Errorf("%v, %d more calls", err, len(w.ec2.Calls())-before)
	}
	w.now = w.now.Add(11 * time.Minute)
	if err := w.templates.Ensure(ctx, p.Templates); err != nil || len(w.ec2.Calls("DescribeLaunchTemplates")) != 2 || len(w.ec2.Calls("CreateLaunchTemplate")) != 1 {
		t.Errorf("%v: %d reads, %d made", err, len(w.ec2.Calls("DescribeLaunchTemplates")), len(w.ec2.Calls("CreateLaunchTemplate")))
	}
}

// TestYoungInstances is BC-27 and its twin: EC2 does not know a new instance yet, and one
// unknown id says nothing about 49 others.
func TestYoungInstances(t *testing.T) {
	w := newWorld(t)
	var claims []string
	for i := range 49 {
		claims = append(claims, fmt.Sprintf("c-%02d", i))
	}
	_, stored := w.prepared(input(t, al2023, spotAndMore, claims...))
	var ids []string
	for _, i := range w.create(stored).Instances {
		ids = append(ids, i.ID)
	}
	w.ec2.VisibleAfter, w.ec2.RunningAfter = 20*time.Second, 30*time.Second
	in := input(t, al2023, spotAndMore, "young")
	in.Attempt = "at-2"
	_, stored = w.prepared(in)
	young := w.create(stored).Instances[0].ID
	ids = append(ids, young)
	found, missing, err := w.fleet.Describe(ctx, ids)
	if err != nil || len(found) != 49 || !slices.Equal(missing, []string{young}) {
		t.Fatalf("%d found, missing %v, %v", len(found), missing, err)
	}
	w.now = w.now.Add(23 * time.Second)
	found, missing, err = w.fleet.Describe(ctx, []string{young})
	if err != nil || len(missing) != 0 || found[0].State != "pending" || found[0].PrivateDNS != "" || found[0].Gone() {
		t.Errorf("at 23 s: %+v, %v, %v", found, missing, err)
	}
	w.now = w.now.Add(10 * time.Second)
	if found, _, _ = w.fleet.Describe(ctx, []string{young}); found[0].State != "running" || found[0].PrivateDNS == "" {
		t.Errorf("at 33 s: %+v", found)
	}
}

// TestIsolation: unknown ids are taken out whether the message names them or not.
func TestIsolation(t *testing.T) {
	for _, named := range []bool{true, false} {
		w := newWorld(t)
		_, stored := w.prepared(input(t, al2023, spotAndMore, "a", "b", "c", "d", "e"))
		ids := []string{"i-bad1", "i-bad2", "i-bad3"}
		for _, i := range w.create(stored).Instances {
			ids = append(ids, i.ID)
		}
		if !named {
			w.ec2.Hook = func(c ec2fake.Call) ec2fake.Fault {
				var some []string
				switch in := c.In.(type) {
				case *ec2.DescribeInstancesInput:
					some = in.InstanceIds
				case *ec2.TerminateInstancesInput:
					some = in.InstanceIds
				}
				if slices.ContainsFunc(some, func(id string) bool { return strings.HasPrefix(id, "i-bad") }) {
					return ec2fake.Fault{Before: ec2fake.Error("InvalidInstanceID.NotFound", "some do not exist")}
				}
				return ec2fake.Fault{}
			}
		}
		found, missing, err := w.fleet.Describe(ctx, ids)
		if err != nil || len(found) != 5 || len(missing) != 3 {
			t.Errorf("named %v: found %d, missing %v, %v", named, len(found), missing, err)
		}
		ending, unknown, err := w.fleet.Terminate(ctx, ids)
		if err != nil || len(ending) != 5 || len(unknown) != 3 {
			t.Errorf("named %v: ending %v, unknown %v, %v", named, ending, unknown, err)
		}
		if found, _, _ = w.fleet.Describe(ctx, ids); !found[0].Gone() {
			t.Errorf("after termination: %+v", found[0])
		}
	}
	w := newWorld(t)
	w.ec2.Hook = func(ec2fake.Call) ec2fake.Fault {
		return ec2fake.Fault{Before: ec2fake.Error("RequestLimitExceeded", "slow down")}
	}
	if _, missing, err := w.fleet.Describe(ctx, []string{"i-1"}); !awserr.Is(err, awserr.Throttled) || missing != nil {
		t.Errorf("throttled: missing %v, %v", missing, err)
	}
}

func TestChunks(t *testing.T) {
	w := newWorld(t)
	ids := make([]string, 1201)
	for i := range ids {
		ids[i] = fmt.Sprintf("i-%04d", i)
	}
	_, missing, err := w.fleet.Describe(ctx, ids)
	if err != nil || len(missing) != len(ids) {
		t.Errorf("%d missing, %v", len(missing), err)
	}
	for _, c := range w.ec2.Calls("DescribeInstances") {
		if n := len(c.In.(*ec2.DescribeInstancesInput).InstanceIds); n > 500 {
			t.Errorf("a call names %d instances", n)
		}
	}
}

// TestList: pages are read to the end, others' instances are not in it.
func TestList(t *testing.T) {
	w := newWorld(t)
	w.ec2.PageSize = 2
	_, stored := w.prepared(input(t, al2023, spotAndMore, "a", "b", "c", "d", "e"))
	first := w.create(stored).Instances
	in := input(t, al2023, spotAndMore, "x")
	in.Attempt, in.Cluster.Name = "at-2", "other"
	_, stored = w.prepared(in)
	w.create(stored)
	w.ec2.Interrupt(first[0].ID)
	w.now = w.now.Add(time.Minute)
	list, err := w.fleet.List(ctx, "prod")
	if err != nil || len(list) != 4 {
		t.Errorf("%d instances, %v; want 4", len(list), err)
	}
	all, err := w.fleet.ByAttempt(ctx, "at-1")
	if err != nil || len(all["at-1"]) != 5 {
		t.Errorf("%d instances of the attempt, %v; the one that is gone counts for owners", len(all["at-1"]), err)
	}
}

func TestTagRegistered(t *testing.T) {
	w := newWorld(t)
	_, stored := w.prepared(input(t, "{amiSelectorTerms: [{alias: al2023@latest}], tags: {Name: mine}}", spotAndMore, "a"))
	id := w.create(stored).Instances[0].ID
	for range 2 {
		found, _, err := w.fleet.Describe(ctx, []string{id})
		if err != nil {
			t.Fatal(err)
		}
		if err := w.fleet.TagRegistered(ctx, &found[0], "prod", "claim-a", "node-a"); err != nil {
			t.Fatal(err)
		}
	}
	got := w.ec2.Instances()[0].Tags
	if got["Name"] != "mine" || got[nodeclass.TagNodeClaim] != "claim-a" || len(w.ec2.Calls("CreateTags")) != 1 {
		t.Errorf("tags %v, %d calls", got, len(w.ec2.Calls("CreateTags")))
	}
}

// TestOpenReservation is BC-33: an instance that matched an open reservation by itself is
// on-demand; one launched into a reservation is reserved until the reservation goes.
func TestOpenReservation(t *testing.T) {
	w := newWorld(t)
	reserve := func(id string, open bool) types.CapacityReservation {
		criteria := types.InstanceMatchCriteriaTargeted
		if open {
			criteria = types.InstanceMatchCriteriaOpen
		}
		return types.CapacityReservation{CapacityReservationId: aws.String(id), InstanceType: aws.String("m5.large"), AvailabilityZone: aws.String("us-east-1a"),
			AvailableInstanceCount: aws.Int32(3), InstanceMatchCriteria: criteria, State: types.CapacityReservationStateActive}
	}
	w.ec2.Reservations = []types.CapacityReservation{reserve("cr-open", true), reserve("cr-mine", false)}
	in := input(t, al2023, "m5.large a on-demand 96000", "c-1")
	in.Reservations = false
	_, stored := w.prepared(in)
	open := w.create(stored).Instances[0].ID
	if w.ec2.Instances()[0].Reservation != "cr-open" {
		t.Fatal("the open reservation did not match")
	}
	in = input(t, al2023, "m5.large a reserved 0 cr-mine", "c-2")
	in.Attempt = "at-2"
	in.Resolved.Reservations = []nodeclass.Reservation{{ID: "cr-mine", InstanceType: "m5.large", Zone: "us-east-1a", Type: "default", Remaining: 3}}
	_, stored = w.prepared(in)
	o := w.create(stored)
	if len(o.Instances) != 1 || o.Instances[0].CapacityType != "reserved" || o.Instances[0].ReservationID != "cr-mine" {
		t.Fatalf("reserved launch %+v", o)
	}
	found, _, err := w.fleet.Describe(ctx, []string{open, o.Instances[0].ID})
	if err != nil {
		t.Fatal(err)
	}
	for _, i := range found {
		want := map[bool]string{true: "on-demand", false: "reserved cr-mine"}[i.ID == open]
		if got := strings.TrimSpace(i.CapacityType + " " + i.ReservationID); got != want {
			t.Errorf("%s is %q, want %q", i.ID, got, want)
		}
	}
	w.ec2.Instances()[1].Reservation = "" // the reservation is cancelled, the instance goes on
	if found, _, _ = w.fleet.Describe(ctx, []string{o.Instances[0].ID}); found[0].CapacityType != "on-demand" {
		t.Errorf("after its reservation went it is %s", found[0].CapacityType)
	}
}
